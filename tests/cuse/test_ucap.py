# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""User Capabilities over CUSE: real nodes, whose file permissions decide who gets a capability.

They came with Linux 6.15, which the test machine does not run: docs/abi-rules.md and the kernel's
Documentation/infiniband/ucaps.rst are the standard.
"""
import errno
import fcntl
import os
import pathlib
import signal
import stat
import subprocess
import time

import pytest

from conftest import BUILD, MAPPED, NAMES, NOBODY, SEPARATE, STUCK, wait_for

OURS = "uverbsd_port_state"
DEV, CLASS = pathlib.Path("/dev/infiniband"), pathlib.Path("/run/uverbsd/sysfs/class/infiniband_ucaps")


def client(*names, user=NOBODY):
    """Runs ucap_client and returns its lines, one for each step."""
    done = subprocess.run([BUILD / "tests" / "run" / "ucap_client", *names], stdin=subprocess.DEVNULL, text=True, timeout=STUCK,
                          stdout=subprocess.PIPE, user=user, group=user, extra_groups=[],
                          env=dict(os.environ, UCAP_SYSFS="/run/uverbsd/sysfs", **({"UCAP_RXE": "1"} if MAPPED else {})))
    assert done.returncode == 0
    return done.stdout.splitlines()


def device(*args):
    subprocess.run([BUILD / "tools" / "uverbsctl", "device", *args], check=True, timeout=STUCK, stdout=subprocess.DEVNULL)


def test_node_is_roots_alone_and_published_with_its_number(start):
    d = start("--ucaps", f"{OURS}, mlx5_perm_ctrl_local")
    for name in OURS, "mlx5_perm_ctrl_local":
        st = os.stat(DEV / name)
        assert stat.S_ISCHR(st.st_mode) and stat.S_IMODE(st.st_mode) == 0o600 and (st.st_uid, st.st_gid) == (0, 0)
        number = f"{os.major(st.st_rdev)}:{os.minor(st.st_rdev)}"
        assert (CLASS / name / "dev").read_text() == number + "\n"
        assert f"DEVNAME=infiniband/{name}\n" in (CLASS / name / "uevent").read_text()
    assert d.status()["ucaps"] == [{"name": OURS, "users": 1}, {"name": "mlx5_perm_ctrl_local", "users": 1}]
    assert client(OURS)[:3] == [f"open {OURS} EACCES", "context 0", "down EPROTONOSUPPORT"]
    assert d.stop() == 0
    assert not (DEV / OURS).exists() and not (DEV / "mlx5_perm_ctrl_local").exists() and not CLASS.exists()


def test_whoever_may_open_the_node_gets_what_it_stands_for(start):
    """The use that the kernel's documentation describes: root gives the node to a user."""
    d = start("--ucaps", OURS)
    want = ["context 0", "down 0", "state 1: DOWN", "up 0", "state 4: ACTIVE", "after 0"]
    assert client(OURS, user=0)[1:] == want
    assert client(user=0)[:2] == ["context 0", "down EPROTONOSUPPORT"]
    os.chown(DEV / OURS, NOBODY, 0)
    assert client(OURS) == [f"open {OURS} 0", *want]
    assert client(OURS, OURS)[2:] == want
    d.wait_idle()


def owner(name):
    st = os.stat(DEV / name)
    return st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)


def test_options_grant_a_capability(start):
    other = "mlx5_perm_ctrl_local"
    start("--ucaps", f"{OURS}, {other}", "--ucap-owner", f"{OURS}:{NOBODY}", "--ucap-group", "daemon", "--ucap-mode", f"{OURS}:400")
    assert owner(OURS) == (NOBODY, 1, 0o400) and owner(other) == (0, 1, 0o660)
    assert client(OURS)[1:3] == ["context 0", "down 0"]


def test_grant_survives_a_crash_and_a_restart(start):
    if not SEPARATE:
        pytest.skip("one process does not survive its crash")
    d = start("--ucaps", OURS)
    os.chown(DEV / OURS, NOBODY, 1)
    os.chmod(DEV / OURS, 0o640)
    time.sleep(1)
    os.kill(d.serving, signal.SIGKILL)
    wait_for("another engine process", lambda: d.starts() == 2)
    assert owner(OURS) == (NOBODY, 1, 0o640)
    assert client(OURS)[1:3] == ["context 0", "down 0"]
    os.chown(DEV / OURS, 0, 2)
    device("remove", NAMES[0])
    device("add", NAMES[0])
    wait_for("the node", lambda: (DEV / OURS).exists())
    assert owner(OURS) == (0, 2, 0o640)
    assert d.status("restart") == {"restart": "begins"}
    wait_for("another engine process", lambda: d.starts() == 3)
    assert owner(OURS) == (0, 2, 0o640)
    assert client(OURS)[0] == f"open {OURS} EACCES"


def test_descriptor_that_needed_no_permission_proves_nothing(start):
    start("--ucaps", OURS)
    assert client(f"/{OURS}")[:3] == [f"open /{OURS} 0", "context EBADF", "context again 0"]
    assert client("uverbs0")[:3] == ["open uverbs0 0", "context EINVAL", "context again 0"]


def test_another_node_of_the_same_number_is_that_node(start):
    """The kernel compares only device numbers: a node that a privileged process made elsewhere, as in a container, works as well."""
    start("--ucaps", OURS)
    other = DEV / "another_name"
    os.mknod(other, 0o666 | stat.S_IFCHR, os.stat(DEV / OURS).st_rdev)
    os.chmod(other, 0o666)
    try:
        assert client("another_name")[:3] == ["open another_name 0", "context 0", "down 0"]
    finally:
        other.unlink()


def test_of_the_node_there_is_open_and_nothing_else(start):
    start("--ucaps", OURS)
    fd = os.open(DEV / OURS, os.O_RDWR)
    for call, want in ((lambda: os.read(fd, 1), errno.EINVAL), (lambda: os.write(fd, b"x"), errno.EINVAL),
                       (lambda: fcntl.ioctl(fd, 0xC0181B01, bytes(24)), errno.ENOTTY)):
        with pytest.raises(OSError) as e:
            call()
        assert e.value.errno == want
    os.close(fd)


def test_node_goes_with_the_last_device_and_comes_again_with_the_next(start):
    d = start("--devices", "2", "--ucaps", OURS)
    assert d.status()["ucaps"] == [{"name": OURS, "users": 2}]
    fd = os.open(DEV / OURS, os.O_RDONLY)
    device("remove", NAMES[0])
    assert (DEV / OURS).exists() and d.status()["ucaps"] == [{"name": OURS, "users": 1}]
    device("remove", NAMES[1])
    wait_for("the node's end", lambda: not (DEV / OURS).exists())
    assert list(CLASS.iterdir()) == [] and d.status()["ucaps"] == []
    device("add", NAMES[0])
    wait_for("the node", lambda: (DEV / OURS).exists())
    os.close(fd)
    assert client(OURS, user=0)[1:3] == ["context 0", "down 0"]


def test_name_that_is_taken_is_refused(start):
    start("--ucaps", OURS)
    done = subprocess.run([BUILD / "src" / "uverbsd", "--ucaps", OURS, "--control", "/run/second/control", "--sysfs",
                           "/run/second/sysfs"], stderr=subprocess.PIPE, text=True, timeout=STUCK)
    assert done.returncode == 1 and f"/dev/infiniband/{OURS}: another CUSE device has that name" in done.stderr
    assert client(OURS, user=0)[1:3] == ["context 0", "down 0"]
