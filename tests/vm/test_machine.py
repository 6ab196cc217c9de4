# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The files in contrib/ on a real kernel with real CUSE. Run these only in the virtual machine: they change /etc and load modules."""
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", ROOT / "build")).resolve()
NODE = pathlib.Path("/dev/infiniband/uverbs63")


STUCK = 300  # seconds: a limit for a program that is stuck, long enough for one that is only slow


def wait_for(what, seconds=STUCK):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def netlink_rdma():
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)


def loaded(module):
    return any(line.split()[0] == module for line in open("/proc/modules"))


@pytest.fixture
def udevd():
    daemon = subprocess.Popen(["/usr/lib/systemd/systemd-udevd"], stderr=subprocess.PIPE)
    wait_for(lambda: pathlib.Path("/run/udev/control").exists())
    yield
    daemon.terminate()
    daemon.wait()


def test_udev_rule_opens_the_node_to_everybody(udevd):
    rules = pathlib.Path("/run/udev/rules.d")
    rules.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "contrib/udev/60-uverbsd.rules", rules)
    subprocess.run(["udevadm", "control", "--reload"], check=True, timeout=STUCK)
    # The device of another program, so that only udev changes the mode.
    device = subprocess.Popen([BUILD / "bench/null_cuse", "infiniband/" + NODE.name])
    try:
        wait_for(NODE.exists)
        subprocess.run(["udevadm", "settle", f"--timeout={STUCK}"], check=True, timeout=STUCK)
        assert stat.S_IMODE(NODE.stat().st_mode) == 0o666
    finally:
        device.terminate()
        device.wait(timeout=STUCK)


def test_modprobe_conf_keeps_netlink_discovery_from_winning():
    conf = pathlib.Path("/etc/modprobe.d/uverbsd.conf")
    assert not loaded("ib_core")
    shutil.copy(ROOT / "contrib/modprobe.d/uverbsd.conf", conf)
    with pytest.raises(OSError):
        netlink_rdma()
    assert not loaded("ib_core")
    conf.unlink()
    netlink_rdma().close()  # without the file, opening it loads the module
    assert loaded("ib_core")
    subprocess.run(["modprobe", "-r", "ib_core"], check=True, timeout=STUCK)


def test_tmpfiles_make_the_runtime_folder():
    subprocess.run(["systemd-tmpfiles", "--create", ROOT / "contrib/tmpfiles.d/uverbsd.conf"], check=True, timeout=STUCK)
    s = os.stat("/run/uverbsd")
    assert (s.st_uid, s.st_gid, stat.S_IMODE(s.st_mode)) == (0, 0, 0o755)


def test_overlay_on_the_stock_kernel():
    """Runs the C tests of the overlay on Debian's kernel."""
    done = subprocess.run([BUILD / "tests/sysfs/test_sysfs"], env={**os.environ, "CK_RUN_CASE": "overlay"}, text=True,
                          stdout=subprocess.PIPE, timeout=STUCK)
    assert done.returncode == 0 and "Checks: 2," in done.stdout, done.stdout


def test_run_ends_with_its_program_on_this_kernel():
    """Before Linux 6.11 a thread that waits for seccomp notifications is not told that the last caller has exited."""
    assert subprocess.run([BUILD / "tools" / "uverbsctl", "run", "--", "false"], timeout=STUCK).returncode == 1
