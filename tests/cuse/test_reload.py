# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The configuration that is read again: devices come, change and go, and the others do not notice."""
import os
import pathlib
import signal
import subprocess

import pytest

from conftest import BUILD, SEPARATE, STUCK, UNMAPPED, run_client, start_client, wait_for

BOTH = ["no", "yes"] if SEPARATE else ["no"]
FIRST = "[uverbsd]\ndevices = 3\n[device 0]\nname = a\n[device 1]\nname = b\n[device 2]\nname = c\n"


@pytest.fixture
def file():
    path = pathlib.Path("/run/uverbsd-reload.conf")
    path.write_text(FIRST)
    yield path
    path.unlink()


def names():
    return sorted(p.name for p in pathlib.Path("/run/uverbsd/sysfs/class/infiniband").iterdir())


@pytest.mark.parametrize("how", BOTH)
def test_devices_follow_the_file_and_others_go_on(start, file, how):
    d = start("--separate", how, "--config", str(file), *UNMAPPED)
    fd = os.open("/dev/infiniband/uverbs0", os.O_RDWR)
    assert names() == ["a", "b", "c"]
    file.write_text("[uverbsd]\ndevices = 3\nmode = 600\nnode-desc = x\n[device 0]\nname = a\nnode-desc = a\n[device 1]\nname = d\n"
                    "[device 2]\nname = b\nports = 2\n")
    first = d.status("reload")
    assert first["ignored"] == ["mode"] and not first["failed"], first
    assert (first["changed"], first["removed"], first["added"]) == (["a", "b"], ["c"], ["d"])
    assert names() == ["a", "b", "d"] and os.path.isdir("/run/uverbsd/sysfs/class/infiniband/b/ports/2")
    os.close(fd)
    file.write_text(file.read_text().replace("ports = 2", "ports = 3"))
    assert d.status("reload")["changed"] == ["b"]
    assert d.status("reload") == {"added": [], "changed": [], "removed": [], "failed": {}, "ignored": ["mode"]}
    run_client("channels", "2")
    if how == "yes":  # the next engine process has the file's devices, too
        os.kill(d.serving, signal.SIGKILL)
        wait_for("another engine process", lambda: d.starts() == 2)
        assert names() == ["a", "b", "d"] and os.path.isdir("/run/uverbsd/sysfs/class/infiniband/b/ports/3")
        file.write_text(FIRST)
        assert d.status("reload")["removed"] == ["d"] and names() == ["a", "b", "c"]


@pytest.mark.parametrize("how", BOTH)
def test_client_of_another_device_goes_on(start, file, how):
    d = start("--separate", how, "--config", str(file), *UNMAPPED)
    client = start_client("loop-pd")
    used, other = sorted(d.status()["devices"], key=lambda device: not device["files"])[:2]
    name = "name = " + other["device"] + "\n"
    file.write_text(FIRST.replace(name, name + "ports = 2\n"))
    assert d.status("reload")["changed"] == [other["device"]]

    def calls():
        return {device["node"]: device["requests"] for device in d.status()["devices"]}[used["node"]]
    before = calls()
    wait_for("more calls", lambda: calls() > before + 100)
    assert client.poll() is None


@pytest.mark.parametrize("how", BOTH)
def test_error_in_the_file_changes_nothing_and_has_its_line(start, file, how):
    d = start("--separate", how, "--config", str(file), *UNMAPPED)
    file.write_text(FIRST.replace("3", "2") + "[port 0.1]\nlid = none\n")
    done = subprocess.run([BUILD / "tools" / "uverbsctl", "daemon", "reload"], stderr=subprocess.PIPE, text=True, timeout=STUCK)
    assert done.returncode == 1 and f"{file}:8: there is no device 2" in done.stderr, done.stderr
    assert names() == ["a", "b", "c"]
    file.write_text(FIRST.replace("name = b", "name = z"))
    done = subprocess.run([BUILD / "tools" / "uverbsctl", "daemon", "reload"], stdout=subprocess.PIPE, text=True, timeout=STUCK)
    assert (done.returncode, done.stdout) == (0, "added: z\nremoved: b\n") and names() == ["a", "c", "z"]
    file.write_text(FIRST)
    d.process.send_signal(signal.SIGHUP)
    wait_for("the former devices", lambda: names() == ["a", "b", "c"])
    assert d.process.poll() is None


def test_without_a_file_there_is_nothing_to_reload(start):
    assert "without --config" in start().status("reload")["error"]
