# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""/dev/infiniband/rdma_cm over CUSE: its node, calls that wait for an event, and poll(). The commands themselves are tested elsewhere."""
import errno
import fcntl
import os
import pathlib
import select
import signal
import stat
import subprocess
import sys
import threading
import time

import pytest

import cm
from conftest import NOBODY, STUCK, ids_of, wait_for

CLASS = pathlib.Path("/run/uverbsd/sysfs/class/misc/rdma_cm")
NODE = pathlib.Path(cm.NODE)
ROCE = ("--link-layer", "ethernet", "--gid", f"::ffff:{cm.ADDRESS}")


@pytest.fixture
def served(start):
    """A daemon whose device has the address of cm.py, and a function that opens the node."""
    files = []

    def serve(*options):
        served.daemon = start(*ROCE, *options)

        def open_node(flags=0):
            files.append(cm.File(flags))
            return files[-1]
        return served.daemon, open_node
    yield serve
    for file in files:
        file.close()


class Call(threading.Thread):
    """A call on a thread of its own."""
    def __init__(self, call, *args):
        super().__init__(daemon=True)
        self.call, self.args = call, args
        self.start()

    def run(self):
        self.result = self.call(*self.args)

    def answer(self):
        self.join(STUCK)
        assert not self.is_alive(), "the call waits for ever"
        return self.result


def parked(d, uid=None):
    """How many calls wait for an event."""
    rows = [r for r in d.status("accounts")["accounts"] if r["resource"] == "parked" and uid in (None, r["uid"])]
    return sum(r["used"] for r in rows)


def wait_parked(d, number):
    wait_for(f"{number} calls that wait", lambda: parked(d) == number)


def waiter(number, user=NOBODY):
    p = subprocess.Popen([sys.executable, cm.__file__, "wait", str(number)], stdout=subprocess.PIPE, text=True, **ids_of(user))
    assert p.stdout.readline() == "ready\n"
    return p


def test_node_is_everybodys_and_published_until_the_end(start):
    d = start()
    st = NODE.stat()
    assert stat.S_ISCHR(st.st_mode) and stat.S_IMODE(st.st_mode) == 0o666
    assert (CLASS / "dev").read_text() == f"{os.major(st.st_rdev)}:{os.minor(st.st_rdev)}\n"
    assert (CLASS / "abi_version").read_text() == "4\n"
    assert d.stop() == 0
    assert not NODE.exists() and not CLASS.exists()


def test_beside_another_rdma_cm_the_daemons_has_another_name(start):
    aside = NODE.with_name("uverbsd_cm")
    NODE.parent.mkdir(exist_ok=True)
    NODE.touch()
    try:
        d = start()
        assert f"warning: {NODE}: there is a node of that name already; this uverbsd's is {aside}" in d.log.read_text()
        st = aside.stat()
        assert stat.S_IMODE(st.st_mode) == 0o666
        assert (CLASS / "dev").read_text() == f"{os.major(st.st_rdev)}:{os.minor(st.st_rdev)}\n"
        assert d.stop() == 0 and not CLASS.exists()
        assert NODE.exists() and not aside.exists()
    finally:
        NODE.unlink()


def test_where_both_names_are_taken_the_daemon_goes_on_without(start):
    aside = NODE.with_name("uverbsd_cm")
    NODE.parent.mkdir(exist_ok=True)
    NODE.touch()
    aside.touch()
    try:
        d = start()
        assert f"warning: {NODE} is not served: there is a node of that name already; nor is {aside}: " in d.log.read_text()
        assert not CLASS.exists()
        aside.unlink()
        assert d.stop() == 0 and NODE.exists()
    finally:
        NODE.unlink()


def test_get_event_waits_for_the_event_of_another_thread(served):
    d, open_node = served()
    file = open_node()
    call = Call(file.get)
    wait_parked(d, 1)
    file.event(uid=77)
    assert call.answer() == (cm.ADDR_RESOLVED, 77)
    wait_parked(d, 0)


def test_each_of_several_calls_gets_an_event(served):
    d, open_node = served()
    file = open_node()
    calls = [Call(file.get) for _ in range(5)]
    wait_parked(d, 5)
    for uid in range(1, 6):
        file.event(uid)
        wait_parked(d, 5 - uid)
    assert sorted(c.answer()[1] for c in calls) == [1, 2, 3, 4, 5]


def test_a_signal_ends_the_wait_with_eintr(served):
    d, open_node = served()
    file = open_node()
    ran = []
    old = signal.signal(signal.SIGALRM, lambda *_: ran.append(1))
    try:
        for _ in range(3):
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            assert file.get() == -errno.EINTR
        assert len(ran) == 3
    finally:
        signal.signal(signal.SIGALRM, old)
    wait_parked(d, 0)
    file.event(uid=5)
    assert file.get() == (cm.ADDR_RESOLVED, 5)


def test_signals_at_any_moment_lose_no_event_and_no_call(served):
    """Signals and events come while a call is carried out, parked, ready, or is carried out anew."""
    d, open_node = served()
    file = open_node()
    stop = threading.Event()
    made = []

    def make():
        for uid in range(1, 101):
            number = file.event(uid)
            made.append(number)
        stop.set()

    old = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.007)
    got = []
    try:
        maker = Call(make)
        while len(got) < 100:
            answer = file.get()
            if answer == -errno.EINTR:
                continue
            got.append(answer[1])
        maker.answer()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert sorted(got) == list(range(1, 101))
    wait_parked(d, 0)


def test_with_o_nonblock_no_call_waits(served):
    d, open_node = served()
    file, other = open_node(os.O_NONBLOCK), open_node()
    assert file.get() == -errno.EAGAIN
    fcntl.fcntl(other.fd, fcntl.F_SETFL, os.O_NONBLOCK)
    assert other.get() == -errno.EAGAIN
    fcntl.fcntl(file.fd, fcntl.F_SETFL, 0)
    call = Call(file.get)
    wait_parked(d, 1)
    file.event()
    assert call.answer() == (cm.ADDR_RESOLVED, 1)


def test_poll_reports_events_and_never_that_the_file_can_be_written(served):
    _, open_node = served()
    file = open_node()
    poll = select.poll()
    poll.register(file.fd, select.POLLIN | select.POLLOUT)
    assert poll.poll(0) == []
    file.event()
    assert poll.poll(0) == [(file.fd, select.POLLIN)]
    file.get()
    assert poll.poll(0) == []
    call = Call(poll.poll, STUCK * 1000)
    time.sleep(0.3)
    file.event()
    assert call.answer() == [(file.fd, select.POLLIN)]
    assert select.select([file.fd], [file.fd], [], 0) == ([file.fd], [], [])


def test_each_event_is_an_edge_for_epoll(served):
    _, open_node = served()
    file, other = open_node(), open_node()
    with select.epoll() as epoll:
        epoll.register(file.fd, select.EPOLLIN | select.EPOLLET)
        assert epoll.poll(0) == []
        file.event()
        assert epoll.poll(STUCK) == [(file.fd, select.EPOLLIN)] and epoll.poll(0) == []
        file.event()  # the first one has not been taken
        assert epoll.poll(STUCK) == [(file.fd, select.EPOLLIN)] and epoll.poll(0) == []
        other.event()
        assert epoll.poll(0) == []
        for _ in range(2):
            file.get()
        assert epoll.poll(0) == []
        call = Call(epoll.poll, STUCK)
        time.sleep(0.3)
        file.event()
        assert call.answer() == [(file.fd, select.EPOLLIN)]


def test_a_killed_client_leaves_its_wait_at_once(served):
    d, _ = served()
    for _ in range(3):
        p = waiter(4)
        wait_parked(d, 4)
        p.kill()
        assert p.wait(STUCK) == -signal.SIGKILL
        d.wait_idle()


def test_a_thousand_calls_that_wait_hold_no_thread_and_no_call(served):
    d, open_node = served("--limit-calls", "2")
    p = waiter(1000)
    wait_parked(d, 1000)
    assert len(os.listdir(f"/proc/{d.serving}/task")) < 40
    file = open_node()
    file.event(uid=9)
    assert file.get() == (cm.ADDR_RESOLVED, 9)
    p.kill()
    p.wait(STUCK)
    wait_parked(d, 0)


def test_beyond_the_users_limit_a_call_is_enomem(served):
    d, open_node = served("--limit-parked", "3", "--limit-root", "yes")
    file = open_node()
    calls = [Call(file.get) for _ in range(3)]
    wait_parked(d, 3)
    assert file.get() == -errno.ENOMEM
    others = waiter(2)
    wait_parked(d, 5)
    file.event()
    wait_parked(d, 4)
    for _ in range(2):
        file.event()
    assert [c.answer()[0] for c in calls] == [cm.ADDR_RESOLVED] * 3
    others.kill()
    others.wait(STUCK)


def test_the_end_of_the_daemon_ends_the_waits(served):
    d, open_node = served()
    file = open_node()
    calls = [Call(file.get) for _ in range(3)]
    wait_parked(d, 3)
    assert d.stop() == 0
    assert {c.answer() for c in calls} <= {-errno.EIO, -errno.ENOTCONN, -errno.ECONNABORTED}


def test_without_its_session_the_node_goes_and_the_devices_stay(served):
    d, open_node = served()
    file = open_node()
    call = Call(file.get)
    wait_parked(d, 1)
    pathlib.Path("/sys/class/cuse/infiniband!rdma_cm/abort").write_text("1")
    assert call.answer() in (-errno.ECONNABORTED, -errno.EIO)
    wait_for("the end of the node", lambda: not CLASS.exists() and not NODE.exists())
    wait_for("a line of it", lambda: d.text_of("rdma_cm was aborted from outside"))
    assert d.process.poll() is None
    d.wait_idle()


def test_a_command_whose_struct_lies_behind_the_write_is_read(served):
    """As the kernel, which asks only that the write() has the bytes that the header speaks of."""
    _, open_node = served()
    file = open_node(os.O_NONBLOCK)
    answer = cm.ctypes.create_string_buffer(4)
    data = cm.struct.pack("<IHH", cm.CREATE_ID, 0, 4) + cm.struct.pack("<QQHB5x", 1, cm.ctypes.addressof(answer), 0x106, 2)
    buffer = cm.ctypes.create_string_buffer(data, len(data))
    assert cm.libc.write(file.fd, buffer, 8) == 8
    assert file.destroy(cm.struct.unpack("<I", answer.raw)[0]) > 0


def test_a_write_that_cuse_splits_can_wait(served):
    d, open_node = served()
    file = open_node()
    answer = cm.ctypes.create_string_buffer(336)
    data = cm.struct.pack("<IHH", cm.GET_EVENT, 8, 336) + cm.struct.pack("<Q", cm.ctypes.addressof(answer)) + bytes(300000)
    call = Call(file.write, data)
    wait_parked(d, 1)
    file.event(uid=3)
    assert call.answer() == len(data)
    assert cm.struct.unpack_from("<Q", answer)[0] == 3
    fcntl.fcntl(file.fd, fcntl.F_SETFL, os.O_NONBLOCK)
    assert file.write(data) == -errno.EAGAIN


def test_of_the_node_there_are_write_and_poll(served):
    _, open_node = served()
    file = open_node()
    with pytest.raises(OSError) as e:
        os.read(file.fd, 8)
    assert e.value.errno == errno.EINVAL
    with pytest.raises(OSError) as e:
        fcntl.ioctl(file.fd, 0xc0181b01, bytes(24))
    assert e.value.errno == errno.ENOTTY


def test_only_the_opener_may_write(served):
    _, open_node = served()
    file = open_node()
    pid = os.fork()
    if not pid:
        os._exit(-file.get())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == errno.EACCES
    file.event()
    assert file.get() == (cm.ADDR_RESOLVED, 1)


def test_migrate_takes_only_a_descriptor_of_the_node(served):
    _, open_node = served()
    file, other = open_node(), open_node()
    number = file.event()
    answer = cm.ctypes.create_string_buffer(4)

    def migrate(fd):
        return other.command(cm.MIGRATE_ID, cm.struct.pack("<QII", cm.ctypes.addressof(answer), number, fd), 4)
    assert migrate(9999) == -errno.ENOENT
    with open("/dev/null") as null:
        assert migrate(null.fileno()) == -errno.EINVAL
    assert migrate(file.fd) > 0
    assert other.get() == (cm.ADDR_RESOLVED, 1)
