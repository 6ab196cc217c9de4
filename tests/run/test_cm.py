# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The node rdma_cm under `uverbsctl run`: its files, what poll() says, and the last close."""
import os
import signal
import subprocess

import pytest

from cm_client import CLIENT, PYTHON, client
from conftest import STUCK, UVERBSCTL, until


# ---- the node ------------------------------------------------------------------------------------------------------


def test_node_is_a_character_device_that_the_class_misc_names(run):
    client(run, """
import stat
fd, st = opened(), os.stat(NODE)
for s in (st, os.lstat(NODE), os.fstat(fd)):
    assert stat.S_ISCHR(s.st_mode) and s.st_mode & 0o7777 == 0o666 and s.st_rdev == st.st_rdev
assert "rdma_cm" in os.listdir("/dev/infiniband")
path = "/sys/class/misc/rdma_cm/"
assert open(path + "dev").read() == f"{os.major(st.st_rdev)}:{os.minor(st.st_rdev)}\\n"
assert open(path + "abi_version").read() == "4\\n"
misc = os.open("/sys/class/misc", os.O_RDONLY)
assert os.read(os.open("rdma_cm/abi_version", os.O_RDONLY, dir_fd=misc), 9) == b"4\\n"
assert os.path.isdir("/sys/class/misc/rdma_cm")
""")


def test_class_misc_stays_the_machines(run):
    beside = """
import os
print(sorted(os.listdir("/sys/class/misc")), os.path.exists("/sys/class/misc/rdma_cmx"), os.path.exists("/sys/class/misc/rdma_cm/../x"))
for name in sorted(os.listdir("/sys/class/misc")):
    print(name, open(f"/sys/class/misc/{name}/dev").read() if name != "rdma_cm" else "")
"""
    outside = subprocess.run([PYTHON, "-c", beside], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert run(PYTHON, "-c", beside).stdout == outside


def test_file_has_write_alone(run):
    client(run, """
def fails(call, *args):
    try:
        call(*args)
    except OSError as e:
        return errno.errorcode[e.errno]
fd = opened()
assert fails(os.read, fd, 1) == "EINVAL" and fails(os.readv, fd, [bytearray(1)]) == "EINVAL"
assert fails(fcntl.ioctl, fd, 0xc0181b01, bytearray(64)) == "ENOTTY"
assert fails(os.lseek, fd, 0, 0) == "ESPIPE" and fails(mmap.mmap, fd, 4096) == "ENODEV"
assert fails(os.open, NODE, os.O_RDWR | os.O_DIRECTORY) == "ENOTDIR"
assert get(os.open(NODE, os.O_RDONLY)) == "EBADF" and fails(os.read, os.open(NODE, os.O_WRONLY), 1) == "EBADF"
assert fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
assert get(os.dup2(fd, 20)) == "EPIPE", "the filter does not see a write() to a low number"
if not os.fork():
    os._exit(get(fd) != "EACCES")
assert os.wait()[1] == 0
""")


def test_writev_is_a_command_for_each_piece(run):
    client(run, """
fd, number, got = opened(), ctypes.c_uint32(), [ctypes.create_string_buffer(336) for i in range(3)]
one = packed(CREATE_ID, struct.pack("<QQHB5x", 7, ctypes.addressof(number), 0x106, 2), 4)
take = [packed(GET_EVENT, struct.pack("<Q", ctypes.addressof(b)), len(b)) for b in got]
assert os.writev(fd, [one, b"", one]) == 2 * len(one)
assert os.writev(fd, [one, b"bad", one]) == len(one)
event(fd, 1)
wrote = []
waits = threading.Thread(target=lambda: wrote.append(os.writev(fd, [one, *take])), daemon=True)
waits.start()
parked(1)
event(fd, 2)
event(fd, 3)
waits.join(300)
assert wrote == [len(one) + sum(map(len, take))]
assert [struct.unpack_from("<Q", b)[0] for b in got] == [1, 2, 3]
""", stderr=lambda text: "rdma_cm: command: the length of the write() is wrong (3, 0x3): EINVAL, pid " in text)


# ---- poll() --------------------------------------------------------------------------------------------------------


def test_poll_is_ready_as_long_as_there_is_an_event(run):
    client(run, """
fd, ALL = opened(os.O_NONBLOCK), select.POLLIN | select.POLLOUT | select.POLLPRI
p = select.poll()
p.register(fd, ALL)
assert p.poll(0) == []
for num in (1, 2, 40):
    for i in range(num):
        event(fd)
        assert p.poll(0) == [(fd, select.POLLIN)]
    for i in range(num):
        assert p.poll(0) == [(fd, select.POLLIN)] and get(fd) == 7
    assert p.poll(0) == [] and get(fd) == "EAGAIN"
threading.Timer(0.2, event, (fd,)).start()
assert p.poll(300000) == [(fd, select.POLLIN)]
""")


def test_epoll_has_an_edge_for_each_event(run):
    client(run, """
fd, e, level = opened(os.O_NONBLOCK), select.epoll(), select.epoll()
e.register(fd, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET)
level.register(fd, select.EPOLLIN | select.EPOLLOUT)
assert e.poll(0) == [] and level.poll(0) == []
for i in range(40):
    event(fd)
    assert e.poll(0) == [(fd, select.EPOLLIN)] and e.poll(0) == [], i
for i in range(40):
    assert level.poll(0) == [(fd, select.EPOLLIN)] and get(fd) == 7
    assert e.poll(0) == []
assert level.poll(0) == []
""")


def test_events_that_end_with_their_identifier_are_not_polled(run):
    client(run, """
fd = opened(os.O_NONBLOCK)
p = select.poll()
p.register(fd)
number = create(fd)
resolve(fd, number)
assert p.poll(0) and destroy(fd, number) == 24 and p.poll(0) == [] and get(fd) == "EAGAIN"
""")


def test_log_names_the_field_and_the_state_of_a_command_that_fails(run):
    client(run, """
fd = opened()
number = create(fd)
assert destroy(fd, 99) == "ENOENT" and resolve(fd, number) > 0 and resolve(fd, number) == "EINVAL"
""", stderr=lambda text: "rdma_cm: DESTROY_ID: id is wrong (99, 0x63): ENOENT, pid " in text
           and "rdma_cm: RESOLVE_ADDR: identifier 0 is in state ADDR_RESOLVED: EINVAL, pid " in text)


def test_events_move_with_their_identifier(run):
    client(run, """
a, b = opened(os.O_NONBLOCK), opened(os.O_NONBLOCK)
number = create(a)
resolve(a, number)
p = select.poll()
p.register(a)
p.register(b)
assert p.poll(0) == [(a, select.POLLIN)]
assert migrate(b, number, 700) == "ENOENT" and migrate(b, number, -1) == "ENOENT"
assert migrate(b, number, 1) == "EINVAL" and migrate(b, number, os.pipe()[0]) == "EINVAL"
assert migrate(b, number, os.open("/", os.O_PATH)) == "ENOENT"
assert migrate(b, number, a) == 24 and p.poll(0) == [(b, select.POLLIN)]
assert get(a) == "EAGAIN" and get(b) == 7 and p.poll(0) == []
""", stderr=lambda text: "rdma_cm: MIGRATE_ID: fd is wrong (700, 0x2bc): ENOENT, pid " in text)


# ---- the last close ------------------------------------------------------------------------------------------------


def test_file_ends_with_its_last_descriptor(run):
    client(run, """
fd, (there, here) = opened(), socket.socketpair()
event(fd)
assert held("files") == 1 and held("cm-ids") == 1
copy = os.dup(fd)
os.close(fd)
assert get(copy) == 7
child = os.fork()
if not child:
    here.recv(1)
    socket.send_fds(here, [b"x"], [copy])
    os.close(copy)
    here.recv(1)
    os._exit(0)
os.close(copy)
there.send(b"x")
sent = socket.recv_fds(there, 1, 1)[1][0]
there.send(b"x")
os.wait()
time.sleep(0.1)
assert held("files") == 1
os.close(sent)
until(lambda: held("files") == 0 and held("cm-ids") == 0)
parked(0)
until(lambda: held("descriptors") == 0)
""")


def test_files_that_are_closed_do_not_count(run):
    client(run, """
for i in range(50):
    os.close(opened())
os.close(os.open("/dev/infiniband/uverbs0", os.O_RDWR))
""", ["--limit-files", "1"])


def test_file_whose_poll_the_client_spoils_still_works(run):
    """The client receives from its end of the socket pair: that harms nothing but its own poll()."""
    client(run, """
fd = opened(os.O_NONBLOCK)
s = socket.socket(fileno=os.dup2(fd, 50))
for i in range(3):
    event(fd, i + 1)
assert s.recv(100)
event(fd, 4)
assert [get(fd) for i in range(5)] == [1, 2, 3, 4, "EAGAIN"]
""")


# ---- other trees, and the end --------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", [False, True], ids=["direct", "agent"])
def test_joined_runs_have_each_its_own_waiters(run, agent):
    if agent:
        run.env["UVERBSD_RUN_AGENT"] = "1"
    first = run.start("sh", "-c", "echo ready; read line", options=["--join", "cm", "--limit-root", "yes"])
    assert first.stdout.readline() == "ready\n"
    program = """
fd = opened()
signal.signal(signal.SIGUSR1, lambda *a: None)
signal.siginterrupt(signal.SIGUSR1, True)
for i in range(5):
    w = Waiter(fd)
    until(lambda: held("parked") > 0)
    event(fd, i + 1)
    assert w.end() == i + 1
    assert signalled(get, fd) == "EINTR"
fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)
p = select.poll()
p.register(fd)
assert get(fd) == "EAGAIN" and event(fd) and p.poll(0) and get(fd) == 7 and p.poll(0) == []
"""
    others = [run.start(PYTHON, "-c", CLIENT + program, UVERBSCTL, options=["--join", "cm"]) for i in range(2)]
    for other in others:
        out, err = other.communicate(timeout=STUCK)
        assert (other.returncode, err) == (0, ""), err
    first.communicate("\n", timeout=STUCK)
    assert first.returncode == 0


def test_file_that_goes_to_another_run_is_not_its_own(run):
    """The receiver is not the opener, so no call waits in a tree other than the file's."""
    path = os.path.join(run.folder, "socket")
    first = run.start(PYTHON, "-c", CLIENT + f"""
s = socket.socket(socket.AF_UNIX)
s.bind({path!r})
s.listen()
print("ready", flush=True)
fd, peer = opened(), s.accept()[0]
socket.send_fds(peer, [b"x"], [fd])
os.close(fd)
peer.recv(1)
until(lambda: held("files") == 0)
""", UVERBSCTL, options=["--join", "cm"])
    assert first.stdout.readline() == "ready\n", first.communicate()
    second = run.start(PYTHON, "-c", CLIENT + f"""
s = socket.socket(socket.AF_UNIX)
s.connect({path!r})
fd = socket.recv_fds(s, 1, 1)[1][0]
copy = os.dup2(fd, 777)
assert get(copy) == "EACCES" and held("files") == 1
os.close(fd)
os.close(copy)
s.send(b"x")
""", UVERBSCTL, options=["--join", "cm"])
    for p in (second, first):
        out, err = p.communicate(timeout=STUCK)
        assert (p.returncode, err) == (0, ""), err


def test_engine_that_dies_ends_all_waits(run):
    p = run.start(PYTHON, "-c", CLIENT + """
fd = opened()
waiters = [Waiter(fd) for i in range(5)]
parked(5)
poll = select.poll()
poll.register(fd)
print("ready", flush=True)
assert [w.end() for w in waiters] == ["EIO"] * 5
assert poll.poll(300000)[0][1] & select.POLLHUP
assert get(fd) == "EIO"
try:
    opened()
except OSError as e:
    assert e.errno == errno.EIO
print("done", flush=True)
""", UVERBSCTL)
    assert p.stdout.readline() == "ready\n", p.communicate()
    os.kill(run.engine(p), signal.SIGKILL)
    out, err = p.communicate(timeout=STUCK)
    assert out == "done\n" and p.returncode == 0 and "the engine has died" in err, (out, err)


def test_run_ends_beside_a_process_that_has_the_file_open(run):
    """A process outside the run has received the descriptor: the engine does not wait for it."""
    path = os.path.join(run.folder, "socket")
    holder = subprocess.Popen([*run.prefix, PYTHON, "-c", f"""
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind({path!r})
s.listen()
print("ready", flush=True)
fds = socket.recv_fds(s.accept()[0], 1, 1)[1]
print("got", flush=True)
sys.stdin.readline()
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=run.env)
    assert holder.stdout.readline() == "ready\n"
    client(run, f"""
s = socket.socket(socket.AF_UNIX)
s.connect({path!r})
fd = opened()
event(fd)
socket.send_fds(s, [b"x"], [fd])
""")
    assert holder.stdout.readline() == "got\n"
    holder.communicate("\n", timeout=STUCK)
    assert holder.returncode == 0
    assert until(lambda: not run.left()), run.left()
