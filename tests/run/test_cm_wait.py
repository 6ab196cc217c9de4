# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Calls on rdma_cm that wait for an event, under `uverbsctl run`: events, signals, ends and limits."""
import json

import pytest

from cm_client import client


# ---- waiting -------------------------------------------------------------------------------------------------------


def test_get_event_waits_until_another_thread_makes_one(run):
    client(run, """
fd = opened()
for i in range(20):
    w = Waiter(fd)
    if not i % 4:
        parked(1)
    event(fd, 100 + i)
    assert w.end() == 100 + i
parked(0)
""")


def test_other_calls_go_on_while_one_waits(run):
    client(run, """
fd, other = opened(), opened()
w = Waiter(fd)
parked(1)
for i in range(50):
    event(other, i + 1)
    assert get(other) == i + 1
os.listdir("/dev/infiniband")
assert subprocess.run(["ibv_devinfo"], stdout=subprocess.DEVNULL).returncode == 0
event(fd)
assert w.end() == 7
""")


def test_each_event_ends_one_wait(run):
    client(run, """
fd = opened()
waiters = [Waiter(fd) for i in range(5)]
parked(5)
for i in range(1, 6):
    event(fd, i)
    until(lambda: sum(w.got is not None for w in waiters) == i)
assert sorted(w.end() for w in waiters) == [1, 2, 3, 4, 5]
""")


def test_nonblocking_get_event_is_eagain(run):
    client(run, """
fd = opened(os.O_NONBLOCK)
assert get(fd) == "EAGAIN"
fcntl.fcntl(fd, fcntl.F_SETFL, 0)
w = Waiter(fd)
parked(1)
fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)
assert get(fd) == "EAGAIN"
# The kernel, too, looks at the flag when it wakes: the event is another thread's by then, or this one's.
event(fd)
assert w.end() == 7 and get(fd) == "EAGAIN"
""")


def test_wait_goes_on_when_the_number_becomes_another_file(run):
    client(run, """
fd, other = opened(), opened(os.O_NONBLOCK)
event(other, 5)
copy, w = os.dup(fd), Waiter(fd)
parked(1)
os.dup2(other, fd)
event(copy, 6)
assert w.end() == 6 and get(other) == 5
""")


SIGNALLED = """
fd, runs = opened(), []
signal.signal(signal.SIGUSR1, lambda *a: runs.append(1))
signal.siginterrupt(signal.SIGUSR1, {interrupts})
"""


def test_signal_interrupts_a_wait(run):
    client(run, SIGNALLED.format(interrupts=True) + """
for i in range(3):
    assert signalled(get, fd) == "EINTR"
parked(0)
event(fd)
assert get(fd) == 7 and len(runs) >= 3
""")


def test_signal_with_sa_restart_does_not(run):
    client(run, SIGNALLED.format(interrupts=False) + """
tick = open(f"/proc/{os.getpid()}/status")
def later():
    parked(1)
    for i in range(3):
        os.kill(os.getpid(), signal.SIGUSR1)
        def delivered():
            tick.seek(0)
            return "ShdPnd:\\t" + "0" * 16 in tick.read()
        until(delivered)
    parked(1)
    event(fd)
threading.Thread(target=later).start()
assert get(fd) == 7 and len(runs) > 0
""")


def test_signal_to_one_thread_interrupts_that_thread(run):
    client(run, SIGNALLED.format(interrupts=True) + """
waiters = [Waiter(fd) for i in range(3)]
parked(3)
signal.pthread_kill(waiters[1].ident, signal.SIGUSR1)
assert waiters[1].end() == "EINTR"
parked(2)
time.sleep(0.2)
assert [w.got for w in waiters] == [None, "EINTR", None]
event(fd)
event(fd)
assert [w.end() for w in waiters] == [7, "EINTR", 7]
""")


def test_signal_that_the_first_thread_takes_interrupts_no_other(run):
    client(run, SIGNALLED.format(interrupts=True) + """
w = Waiter(fd)
parked(1)
for i in range(20):
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0.01)
assert w.got is None and runs
event(fd)
assert w.end() == 7
""")


def test_blocked_or_ignored_signal_interrupts_nothing(run):
    client(run, SIGNALLED.format(interrupts=True) + """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
signal.signal(signal.SIGUSR2, signal.SIG_IGN)
w = Waiter(fd)
parked(1)
for sig in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD, signal.SIGWINCH):
    os.kill(os.getpid(), sig)
    signal.pthread_kill(w.ident, sig)
time.sleep(0.3)
assert w.got is None
event(fd)
assert w.end() == 7
""")


def test_signal_that_does_nothing_interrupts_nothing(run):
    """
    As SIGCHLD does where nobody has asked for it. A thread that starts a child blocks all signals until the child has begun: in that
    time the kernel gives SIGCHLD to a thread that waits.
    """
    client(run, """
fd = opened()
w = Waiter(fd)
parked(1)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
for sig in (signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH):
    os.kill(os.getpid(), sig)
    signal.pthread_kill(w.ident, sig)
time.sleep(0.3)
assert w.got is None
event(fd)
assert w.end() == 7
""")


def test_sigchld_with_a_handler_interrupts(run):
    client(run, """
fd = opened()
signal.signal(signal.SIGCHLD, lambda *a: None)
w = Waiter(fd)
parked(1)
signal.pthread_kill(w.ident, signal.SIGCHLD)
assert w.end() == "EINTR"
""")


def test_signal_that_only_waiters_take_interrupts_one(run):
    client(run, SIGNALLED.format(interrupts=True) + """
waiters = [Waiter(fd) for i in range(2)]
parked(2)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.kill(os.getpid(), signal.SIGUSR1)
until(lambda: runs)
until(lambda: any(w.got for w in waiters))
assert {w.got for w in waiters} <= {"EINTR", None}, "ERESTARTSYS is the kernel's own"
""")


@pytest.mark.parametrize("num", [0, 1, 3], ids=["first thread", "another", "three others"])
def test_process_that_waits_can_be_stopped(run, num):
    client(run, """
num, (go, set_off), child = %d, os.pipe(), os.fork()
if not child:
    fd = opened()
    waiters = [Waiter(fd) for i in range(num)]
    def go_on():
        os.read(go, 1)
        for i in range(max(1, num)):
            event(fd)
    if num:
        go_on()
    else:
        threading.Thread(target=go_on).start()
        assert get(fd) == 7
    assert all(w.end() == 7 for w in waiters)
    os._exit(0)
parked(max(1, num))
os.kill(child, signal.SIGSTOP)
pid, status = os.waitpid(child, os.WUNTRACED)
assert pid == child and os.WIFSTOPPED(status)
os.kill(child, signal.SIGCONT)
os.write(set_off, b"x")
assert os.waitpid(child, 0)[1] == 0
""" % num)


@pytest.mark.parametrize("how", ["kill", "exit", "exec"])
def test_end_of_a_waiter_leaves_nothing(run, how):
    client(run, """
how = "%s"
for i in range(3):
    child = os.fork()
    if not child:
        fd = opened()
        waiters = [Waiter(fd) for j in range(4)]
        parked(4)
        if how == "exec":
            os.execvp("sh", ["sh", "-c", "exit 0"])
        os._exit(0) if how == "exit" else time.sleep(600)
    if how == "kill":
        parked(4)
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    parked(0)
    until(lambda: held("files") == 0)
""" % how)


def test_parked_calls_have_a_limit(run):
    program = """
fd, child = opened(), os.fork()
if not child:
    fd = opened()
    w = Waiter(fd)
    time.sleep(600)
w = Waiter(fd)
parked(2)
assert get(fd) == "ENOMEM"
event(fd)
assert w.end() == 7
w = Waiter(fd)
parked(2)
os.kill(child, signal.SIGKILL)
os.wait()
# The killed one does not count any more, also before the engine has looked at it.
w2 = Waiter(fd)
time.sleep(0.1)
event(fd)
event(fd)
assert w.end() == 7 and w2.end() == 7
"""
    said = "--limit-parked, or `parked` of [limits]"
    client(run, program, ["--limit-parked", "2"], stderr=lambda text: text.count(said) == 1)


def test_thousand_calls_wait(run):
    told = json.loads(client(run, """
fd, num = opened(), 1000
threading.stack_size(65536)
waiters = [Waiter(fd) for i in range(num)]
parked(num)
engine = int(open(f"/proc/{os.getpid()}/status").read().split("PPid:")[1].split()[0])
def spent():
    return sum(map(int, open(f"/proc/{engine}/stat").read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")
begin = spent()
time.sleep(2)
print((spent() - begin) / 2)
for w in waiters:
    event(fd)
assert [w.end() for w in waiters] == [7] * num
parked(0)
""", ["--limit-descriptors", "70000"]))
    assert told < 0.3  # of a processor; a look at all of them every 20 ms would be half of one
