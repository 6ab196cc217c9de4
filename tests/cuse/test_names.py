# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Node numbers: the daemon refuses a number that is taken, and leaves its node as it is."""
import os
import stat
import subprocess

import pytest

from conftest import BUILD, STUCK, serves

SECOND = ["--control", "/run/second/control", "--sysfs", "/run/second/sysfs"]


def refused(*options):
    done = subprocess.run([BUILD / "src" / "uverbsd", *options], stderr=subprocess.PIPE, text=True, timeout=STUCK)
    assert done.returncode == 1
    return done.stderr


def test_number_of_another_cuse_device_is_refused(start):
    start()
    text = refused("--first-number", "0", *SECOND)
    assert "/dev/infiniband/uverbs0: another CUSE device has that name" in text
    assert not os.path.exists("/run/second/sysfs") and not os.path.exists("/run/second/control")
    assert serves()  # the first one is unharmed


def test_without_a_number_the_next_free_one_is_taken(start, tmp_path):
    start()
    log = tmp_path / "second"
    with open(log, "wb") as f, subprocess.Popen([BUILD / "src" / "uverbsd", *SECOND], stderr=f) as p:
        try:
            for _ in range(300):
                if "ready" in log.read_text():
                    break
                try:
                    p.wait(0.1)
                except subprocess.TimeoutExpired:
                    pass
            assert "ready: /dev/infiniband/uverbs1" in log.read_text()
        finally:
            p.terminate()


def test_node_of_somebody_else_is_refused():
    os.makedirs("/dev/infiniband", exist_ok=True)
    os.mknod("/dev/infiniband/uverbs3", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    try:
        assert "/dev/infiniband/uverbs3: there is a node of that name" in refused("--first-number", "3")
        assert os.stat("/dev/infiniband/uverbs3").st_rdev == os.makedev(1, 3)
    finally:
        os.unlink("/dev/infiniband/uverbs3")


def test_second_daemon_on_one_socket_is_refused(start):
    start()
    assert "another uverbsd answers on" in refused()


def test_mode_and_group_of_the_node(start):
    start("--mode", "0640", "--group", "daemon", "--first-number", "5")
    st = os.stat("/dev/infiniband/uverbs5")
    assert stat.S_IMODE(st.st_mode) == 0o640 and st.st_gid == 1


@pytest.fixture
def kernel_uverbs0():
    """Makes the kernel's own uverbs0, of rxe. Removes it and its modules afterwards, so that netlink fails again."""
    def sh(*args, check=True):
        subprocess.run(args, check=check, stdout=subprocess.DEVNULL)
    sh("modprobe", "-a", "ib_uverbs", "rdma_rxe", "dummy")
    sh("ip", "link", "add", "dummy9", "type", "dummy", check=False)
    sh("ip", "link", "set", "dummy9", "up")
    sh("rdma", "link", "add", "rxe9", "type", "rxe", "netdev", "dummy9")
    yield
    sh("rdma", "link", "del", "rxe9", check=False)
    sh("ip", "link", "del", "dummy9", check=False)
    sh("modprobe", "-r", "rdma_rxe", "ib_uverbs", "ib_core")
    assert "ib_core" not in open("/proc/modules").read()


def test_number_of_the_kernels_own_device_is_refused(kernel_uverbs0):
    before = os.stat("/dev/infiniband/uverbs0").st_rdev
    assert "/dev/infiniband/uverbs0: the kernel has an RDMA device of that name" in refused("--first-number", "0")
    assert os.stat("/dev/infiniband/uverbs0").st_rdev == before
