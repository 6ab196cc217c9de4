# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""uverbsctl env, status, port and tree while a daemon runs, and env and status without one."""
import json
import subprocess

import pytest

from conftest import BUILD, LOANS, NAMES, NOBODY, PERSONA, STUCK, UNMAPPED, environment, start_client


def uverbsctl(*args, user=0, **kwargs):
    return subprocess.run([BUILD / "tools" / "uverbsctl", *args], text=True, timeout=STUCK, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, user=user, group=user, extra_groups=[], cwd="/", **kwargs)


def test_env_is_what_a_shell_needs(start):
    start("--sysfs", "/run/uverbsd/it's here")
    done = uverbsctl("env", user=NOBODY)
    assert done.returncode == 0 and "warning" not in done.stderr
    shell = subprocess.run(["sh", "-c", done.stdout + "ibv_devices"], text=True, stdout=subprocess.PIPE, timeout=STUCK)
    assert NAMES[0] in shell.stdout


def test_env_names_the_overlay_that_programs_with_a_built_in_path_need(start):
    start()
    assert "--sysfs overlay" in uverbsctl("env").stdout


@pytest.mark.parametrize("user", [0, NOBODY])
def test_env_mount_shows_the_devices_in_sys_class(start, user):
    start()
    done = uverbsctl("env", "--mount", "--", "sh", "-c", "ls /sys/class/infiniband; unset SYSFS_PATH; ibv_devices", user=user)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(NAMES[0]) == 2
    assert subprocess.run(["ls", "/sys/class/infiniband"], stderr=subprocess.DEVNULL).returncode != 0


def test_check_says_that_root_can_have_nodes_and_others_cannot():
    assert [line.split()[-1] for line in uverbsctl("doctor").stdout.splitlines()] == ["works", "works"]
    done = uverbsctl("doctor", user=NOBODY)
    assert "uverbsd        does not work: /dev/cuse: EACCES: root must start uverbsd" in done.stdout and done.returncode == 0, done


def test_env_and_status_without_a_daemon_say_so():
    for command in "env", "status":
        done = uverbsctl(command)
        assert done.returncode == 1 and "no uverbsd answers on /run/uverbsd/control" in done.stderr


def test_status_shows_open_files_objects_and_memory(start):
    d = start()
    p = start_client("loop-transfer")
    done = uverbsctl("status", user=NOBODY)
    assert done.returncode == 0
    for words in [f"open by cuse-client, pid {p.pid}, uid {NOBODY}: ", "2 UVERBS_OBJECT_QP", "1 UVERBS_OBJECT_MR",
                  f"registered memory of cuse-client, pid {p.pid}: 512 pages", f"event files: {LOANS} granted"]:
        assert words in done.stdout, done.stdout
    p.kill()
    p.wait()
    d.wait_idle()
    assert "0 open files" in uverbsctl("status").stdout


def test_status_watch_shows_the_same_as_a_screen(start):
    d = start()
    p = start_client("loop-transfer")
    done = uverbsctl("status", "--watch", "--once", user=NOBODY)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("uverbsd (cuse) pid ")
    assert lines[1].startswith(f"{NAMES[0]} (uverbs0): soft as {PERSONA}, ioctl ABI, 1 open files")
    assert lines[2].startswith(f"  |- cuse-client     pid {p.pid} ") and "2 QP" in lines[3] and "1 MR" in lines[3]
    entry, = json.loads(uverbsctl("status", "--json", user=NOBODY).stdout)["memlock"]
    assert entry["pages"] == 512 and entry["limit"] is not None and lines[6].startswith(f"cuse-client     pid {p.pid} ")
    watch = subprocess.Popen([BUILD / "tools" / "uverbsctl", "status", "--watch", "-n", "0.1"], text=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE)
    assert any("requests/s" in line for line in watch.stdout)
    watch.terminate()
    watch.communicate(timeout=STUCK)
    assert watch.returncode == 0
    p.kill()
    p.wait()
    d.wait_idle()


def test_port_is_the_administrators_to_change(start):
    start("--sysfs", "/run/uverbsd/sysfs")

    def state():
        return subprocess.run(["ibv_devinfo"], text=True, stdout=subprocess.PIPE, timeout=STUCK, env=environment()).stdout

    done = uverbsctl("port", "down", NAMES[0], "1", user=NOBODY)
    assert done.returncode == 1 and "only root" in done.stderr and "PORT_ACTIVE" in state()
    assert uverbsctl("port", "down", NAMES[0], "1").returncode == 0
    assert "PORT_DOWN" in state()
    assert uverbsctl("port", "up", NAMES[0], "1").returncode == 0
    assert "PORT_ACTIVE" in state()


def test_overlay_option_shows_the_devices_to_everybody(start):
    d = start("--sysfs", "overlay")
    for program in ["ibv_devices"], ["ibstat"], ["ibstatus"]:
        shown = subprocess.run(program, text=True, stdout=subprocess.PIPE, timeout=STUCK, user=NOBODY)
        assert shown.returncode == 0 and NAMES[0] in shown.stdout, shown.stdout
    assert "Active" in subprocess.run(["ibstat"], text=True, stdout=subprocess.PIPE, timeout=STUCK, user=NOBODY).stdout
    for action in "remove", "add":
        assert uverbsctl("device", action, NAMES[0]).returncode == 0
        shown = subprocess.run(["ibv_devices"], text=True, stdout=subprocess.PIPE, timeout=STUCK, user=NOBODY).stdout
        assert (NAMES[0] in shown) == (action == "add"), shown
    assert d.stop() == 0
    assert subprocess.run(["ls", "/sys/class/infiniband"], stderr=subprocess.DEVNULL).returncode != 0


def test_tree_of_a_device_is_asked_of_the_device(start):
    start("--backend", "null", *UNMAPPED)
    # Leave out the objects that only a file with a User Capability sees.
    said = [o.strip() for o in uverbsctl("tree", "--backend", "null").stdout.split("\n\n")[1:] if "wants UCAP" not in o]
    for how in ["--device", "hfi1_0"], ["--open", "/dev/infiniband/uverbs0"]:
        done = uverbsctl("tree", *how, user=NOBODY)
        assert done.returncode == 0 and [o.strip() for o in done.stdout.split("\n\n")[1:]] == said, done.stderr
    driver_id = json.loads(uverbsctl("tree", "--json", "--backend", "null").stdout)["driver_id"]
    client = BUILD / "tests" / "tree" / "tree-client"
    client = subprocess.run([client, "/dev/infiniband/uverbs0", str(driver_id)], text=True, stdout=subprocess.PIPE,
                            timeout=STUCK, user=NOBODY, group=NOBODY, extra_groups=[])
    assert client.returncode == 0 and "UVERBS_METHOD_INVOKE_WRITE" in client.stdout


@pytest.mark.parametrize("abi", ["ioctl", "write"])
def test_call_finds_the_only_device_and_calls_it(start, abi):
    start("--abi", abi)
    assert uverbsctl("call", "PD", "ALLOC").stdout == "PD ALLOC pd_handle=0\n"
    done = uverbsctl("call", "--json", "-f", "-", NAMES[0], input="c = COMP_CHANNEL CREATE\nCQ CMD_CREATE_CQ --cqe 16 --comp_channel $c")
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["error"] for line in done.stdout.splitlines()] == [None, None]
