# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Where clients with mapped queues are, and what they become: the rules are those of the node, which a file of queues replaces."""
import pytest
from conftest import NOBODY, run

# What is executed: its first argument is a descriptor of a context with a completion queue.
EXECUTED = """
import mmap, os, sys, uverbs
fd = int(sys.argv[1])
memory = mmap.mmap(fd, mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=mmap.PAGESIZE)
assert memory[200] == 7
os.open = lambda *args: fd
dev = uverbs.Device("/dev/infiniband/uverbs0", context=False)
dev.PD.ALLOC_PD()
cq = dev.CQ.CREATE(cqe=16)
"""
IN_A_NAMESPACE = """
dev = with_context()
cq = dev.CQ.CREATE(cqe=16)
memory = mapped(dev.fd)
memory[200] = 7
channel = dev.COMP_CHANNEL.CREATE()
assert mapped(dev.fd)[200] == 7
"""


def test_executed_program_has_the_descriptor_and_maps_it_anew(daemon):
    run(f"""
dev = with_context()
cq = dev.CQ.CREATE(cqe=16)
mapped(dev.fd)[200] = 7
os.set_inheritable(dev.fd, True)
os.execv(sys.executable, [sys.executable, "-c", {EXECUTED!r}, str(dev.fd)])
""")
    daemon.wait_idle()


@pytest.mark.parametrize("user", [0, NOBODY])
def test_client_without_a_file_system_gets_its_queues(daemon, tmp_path, user):
    """The node is opened before chroot(), and its context made afterwards: nothing is looked up in the client's root."""
    empty = tmp_path / "empty"
    empty.mkdir()
    run(f"""
dev = uverbs.open("uverbs0")
os.chroot({str(empty)!r})
os.chdir("/")
os.setgroups([])
os.setresgid({user}, {user}, {user})
os.setresuid({user}, {user}, {user})
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE
dev.PD.ALLOC_PD()
cq = dev.CQ.CREATE(cqe=16)
mapped(dev.fd)[200] = 7
assert mapped(dev.fd)[200] == 7
""", user=0)
    daemon.wait_idle()


@pytest.mark.parametrize("kinds", ["-U", "-Ur", "-Urm", "-Urpf", "-Urmpfn"])
def test_client_in_namespaces_of_its_own_gets_its_queues(daemon, kinds):
    run(IN_A_NAMESPACE, before=("unshare", kinds))
    daemon.wait_idle()


def test_descriptor_that_is_passed_into_other_namespaces_is_mapped_there(daemon):
    run("""
dev = with_context()
cq = dev.CQ.CREATE(cqe=16)
mapped(dev.fd)[200] = 7
here, there = socket.socketpair()
if not os.fork():
    assert not ctypes.CDLL(None).unshare(0x10000000 | 0x20000)  # a user's and a mount namespace
    (fd,) = socket.recv_fds(there, 1, 1)[1]
    os._exit(mapped(fd)[200] != 7)
socket.send_fds(here, [b"x"], [dev.fd])
assert os.wait()[1] == 0
""")
    daemon.wait_idle()
