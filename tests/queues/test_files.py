# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The file that takes the place of a client's descriptor: what a client can do with it, and what it cannot."""
import os
import pathlib
import signal
import subprocess
import time

import pytest

from conftest import BUILD, OTHER, STUCK, begin, end, run, wait_for


def test_descriptor_can_be_mapped_once_it_has_a_context(daemon):
    run("""
dev = uverbs.open("uverbs0")
assert stat.S_ISCHR(os.fstat(dev.fd).st_mode) and failure(mapped, dev.fd) == "ENODEV"
fcntl.fcntl(dev.fd, fcntl.F_SETFL, os.O_NONBLOCK)
os.set_inheritable(dev.fd, True)
fds = os.listdir("/proc/self/fd")
pd = dev.PD.ALLOC_PD()
assert stat.S_ISREG(os.fstat(dev.fd).st_mode) and len(os.listdir("/proc/self/fd")) == len(fds)
assert fcntl.fcntl(dev.fd, fcntl.F_GETFL) & (os.O_NONBLOCK | os.O_ACCMODE) == os.O_NONBLOCK | os.O_RDWR
assert os.get_inheritable(dev.fd)
cq = dev.CQ.CREATE(cqe=16)
memory = mapped(dev.fd)
assert memory[:64] != bytes(64), "the header of a queue"
""")


def test_descriptor_keeps_close_on_exec(daemon):
    run("assert not os.get_inheritable(with_context().fd)")


def test_memory_of_a_queue_is_zero_when_it_is_gone(daemon):
    run("""
dev = with_context()
cq = dev.CQ.CREATE(cqe=16)
memory = mapped(dev.fd)
assert any(memory[:])
memory[100] = 1
del cq
dev.CQ.DESTROY(handle=1)
assert not any(memory[:])
memory[100] = 1
""")


def test_file_is_not_opened_again(daemon):
    """By no name: there is none but below /proc."""
    run("""
dev = with_context()
for flags in (os.O_RDWR, os.O_RDONLY, os.O_WRONLY):
    assert failure(os.open, f"/proc/self/fd/{dev.fd}", flags) == "EPERM"
name = os.readlink(f"/proc/self/fd/{dev.fd}")
assert failure(os.open, name, os.O_RDWR) == "ENOENT"
assert failure(os.open, f"/proc/self/fd/{dev.fd}/../1", os.O_RDWR) in ("ENOTDIR", "ENOENT")
dev.PD.ALLOC_PD()
""")


def test_file_cannot_be_changed(daemon):
    run("""
dev = with_context()
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    return errno.errorcode[ctypes.get_errno()] if getattr(libc, name)(dev.fd, *args) < 0 else None
assert failure(os.ftruncate, dev.fd, 0) == "EPERM" and failure(os.ftruncate, dev.fd, 1 << 63 - 1) == "EPERM"
assert failure(os.fchmod, dev.fd, 0o777) == "EPERM" and failure(os.fchown, dev.fd, os.getuid(), -1) == "EPERM"
assert failure(os.utime, dev.fd) == "EPERM"
for mode in (0, 1, 3, 8, 16):  # KEEP_SIZE, PUNCH_HOLE, COLLAPSE_RANGE, ZERO_RANGE
    assert call("fallocate", mode, ctypes.c_long(0), ctypes.c_long(PAGE)) == "EOPNOTSUPP", mode
assert failure(os.setxattr, dev.fd, "user.a", b"a") in ("EOPNOTSUPP", "EPERM")
assert failure(fcntl.fcntl, dev.fd, 1033, 8) in ("EINVAL", "EPERM")  # F_ADD_SEALS
dev.PD.ALLOC_PD()
""")


def test_copies_are_the_same_open_device(daemon):
    run("""
before = uverbs.open("uverbs0")
copy = os.dup(before.fd)
pd = before.PD.ALLOC_PD()
cq = before.CQ.CREATE(cqe=16)
memory = mapped(before.fd)
memory[200] = 7
assert mapped(os.dup(before.fd))[200] == 7
assert failure(mapped, copy) == "ENODEV", "the copy of before is the node"
here, there = socket.socketpair()
if not os.fork():
    (fd,) = socket.recv_fds(there, 1, 1)[1]
    os._exit(mapped(fd)[200] != 7 or mapped(before.fd)[200] != 7 or before.PD.ALLOC_PD().handle is None)
socket.send_fds(here, [b"x"], [before.fd])
assert os.wait()[1] == 0
memory.close()
""")


def test_two_users_have_memory_of_their_own(daemon):
    program = """
dev = with_context()
cq = dev.CQ.CREATE(cqe=16)
memory = mapped(dev.fd)
memory[200] = %d
said("ready")
assert memory[200] == %d and mapped(dev.fd)[200] == %d
"""
    clients = [begin(program % (n, n, n), user=user) for n, user in ((1, OTHER), (2, OTHER), (3, 65534))]
    for client in clients:
        assert client.stdout.readline() == "ready\n"
    for client in clients:
        end(client)


@pytest.mark.parametrize("how", ["kill", "restart"])
def test_calls_fail_when_the_engine_process_is_gone(daemon, how):
    client = begin("""
dev = with_context()
cq = dev.CQ.CREATE(cqe=16)
memory, untouched = mapped(dev.fd), mapped(dev.fd, 1 << 40)
said("ready")
assert failure(dev.PD.ALLOC_PD) == "ENOTCONN"
assert failure(os.write, dev.fd, bytes(32)) in ("EPERM", "ENOTCONN"), "nobody would hear it"
memory[200] = untouched[5] = 7
assert memory[200] == untouched[5] == 7
os.close(dev.fd)
dev.fd = -1
assert memory[200] == 7
said("again")
dev = with_context()
assert mapped(dev.fd, 1 << 40)[5] == 0
""")
    assert client.stdout.readline() == "ready\n"
    starts, engine = daemon.starts(), daemon.serving
    if how == "kill":
        os.kill(engine, signal.SIGKILL)
    else:
        subprocess.run([BUILD / "tools/uverbsctl", "daemon", "restart"], check=True, timeout=STUCK)
    wait_for("the next engine process", lambda: daemon.starts() > starts)
    client.stdin.write("\n")
    client.stdin.flush()
    assert client.stdout.readline() == "again\n", client.communicate()
    end(client)
    daemon.wait_idle()


def test_removed_device_leaves_memory_of_zeros(daemon):
    client = begin("""
dev = with_context()
cq = dev.CQ.CREATE(cqe=16)
memory = mapped(dev.fd)
assert any(memory[:])
said("ready")
assert failure(dev.PD.ALLOC_PD) == "EIO" and not any(memory[:])
memory[200] = 1
""")
    assert client.stdout.readline() == "ready\n"
    subprocess.run([BUILD / "tools/uverbsctl", "device", "remove", "rxe0"], check=True, timeout=STUCK)
    end(client)


def test_abort_of_a_removed_node_leaves_its_mapped_clients_their_file(daemon):
    """The node's session ends, and that of the files of queues does not: they are used until they are closed."""
    client = begin("""
dev = with_context()
cq = dev.CQ.CREATE(cqe=16)
said("ready")
assert failure(dev.PD.ALLOC_PD) == "EIO" and mapped(dev.fd)[200] == 0
said("again")
dev.close()
said("closed")
""")
    assert client.stdout.readline() == "ready\n"
    subprocess.run([BUILD / "tools/uverbsctl", "device", "remove", "rxe0"], check=True, timeout=STUCK)
    pathlib.Path("/sys/class/cuse/infiniband!uverbs0/abort").write_text("1")
    wait_for("the end of the node's threads", lambda: not daemon.status()["devices"][0]["workers"])
    # Before it answers a command on devices the daemon looks for removed ones without files.
    assert subprocess.run([BUILD / "tools/uverbsctl", "device", "remove", "none"], check=False, timeout=STUCK).returncode == 1
    client.stdin.write("\n")
    client.stdin.flush()
    assert client.stdout.readline() == "again\n" and len(daemon.status()["devices"]) == 1
    client.stdin.write("\n")
    client.stdin.flush()
    assert client.stdout.readline() == "closed\n"
    wait_for("the end of the old node", lambda: not daemon.status()["devices"])
    end(client)
    subprocess.run([BUILD / "tools/uverbsctl", "device", "add", "rxe0"], check=True, timeout=STUCK)
    run("with_context()")
    assert daemon.starts() == 1


def test_finite_file_size_limit_is_an_error_of_get_context(daemon):
    run("""
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, 1 << 40))
dev = uverbs.open("uverbs0")
assert failure(dev.PD.ALLOC_PD) == "EOPNOTSUPP" and failure(mapped, dev.fd) == "ENODEV"
""")
    assert daemon.text_of("gets no queues that it can map: its RLIMIT_FSIZE is finite")


def test_traced_client_is_told_of_the_other_persona(daemon):
    run("""
dev = uverbs.open("uverbs0")
assert failure(dev.PD.ALLOC_PD) == "EOPNOTSUPP" and failure(mapped, dev.fd) == "ENODEV"
""", before=("strace", "-f", "-o", "/dev/null"))
    assert daemon.text_of("gets no queues that it can map: its thread cannot be borrowed") and daemon.text_of("--persona hfi1")


@pytest.mark.parametrize("position", ["behind the log", "below the log", "in the queues"])
def test_what_a_client_writes_elsewhere_is_given_back(daemon, position):
    """Its memory is no client's way to fill the machine's."""
    at = {"behind the log": (1 << 61) + (1 << 40), "below the log": (1 << 61) - (1 << 30), "in the queues": 1 << 30}[position]
    client = begin(f"""
dev = with_context()
cq = dev.CQ.CREATE(cqe=16)
for i in range(64):
    os.pwrite(dev.fd, b"x" * (1 << 20), {at} + (i << 20))
said("ready")
dev.PD.ALLOC_PD()
""")
    assert client.stdout.readline() == "ready\n", client.communicate()

    def bytes_of_queues():
        fds = [f"/proc/{daemon.serving}/fd/{fd}" for fd in os.listdir(f"/proc/{daemon.serving}/fd")]
        return sum(os.stat(fd).st_blocks * 512 for fd in fds if os.readlink(fd).startswith("/memfd:uverbsd:queues"))
    wait_for("the memory's end", lambda: bytes_of_queues() < 2 << 20, 20)
    end(client)


def test_one_of_two_calls_at_once_makes_the_context(daemon):
    run("""
import threading
for i in range(20):
    dev = uverbs.open("uverbs0")
    results = []
    def make():
        try:
            results.append(dev.DEVICE.GET_CONTEXT() and None)
        except OSError as e:
            results.append(errno.errorcode[e.errno])
    threads = [threading.Thread(target=make) for n in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results, key=str) == ["EINVAL", "EINVAL", None], results
    mapped(dev.fd)
    dev.close()
""")


def test_hundred_clients_at_once_get_memory_and_leave_none(daemon):
    clients = [begin("""
dev = with_context()
cq = dev.CQ.CREATE(cqe=16)
assert any(mapped(dev.fd)[:])
""") for _ in range(100)]
    for client in clients:
        end(client)
    daemon.wait_idle()


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.03, 0.1])
def test_client_that_is_killed_in_the_middle_leaves_nothing(daemon, seconds):
    for _ in range(10):
        client = begin("""
print("ready", flush=True)
while True:
    dev = with_context()
    cq = dev.CQ.CREATE(cqe=16)
    dev.close()
""")
        assert client.stdout.readline() == "ready\n"
        time.sleep(seconds)
        client.kill()
        client.communicate(timeout=STUCK)
    daemon.wait_idle()
    run("mapped(with_context().fd)")


def test_device_is_added_while_clients_use_another(daemon):
    client = begin("""
dev = with_context()
said("ready")
mapped(dev.fd)
dev = uverbs.open("uverbs1")
pd = dev.PD.ALLOC_PD()
cq = dev.CQ.CREATE(cqe=16)
assert any(mapped(dev.fd)[:])
""")
    assert client.stdout.readline() == "ready\n"
    subprocess.run([BUILD / "tools/uverbsctl", "device", "add", "--persona", "rxe"], check=True, timeout=STUCK)
    end(client)
