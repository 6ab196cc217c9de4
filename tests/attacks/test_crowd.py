# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Clients with more calls that wait for their memory than their share allows: they delay only themselves."""
import os
import signal
import subprocess
import time

from conftest import Attack, USER, cuse
from test_waiting import others_work, waiting_in, waiting_questions

THREADS = 40
SHARE = 8  # UVD_RES_CALLS
MOST_THREADS = 256  # MAX_WORKERS
SOON = 10  # seconds: counts as at once in an emulated machine
NODE = "/dev/infiniband/uverbs0"


def workers(d):
    return d.status()["devices"][0]["workers"]


def in_daemon(d):
    return waiting_in(d.serving)


def others_ping(user=cuse.NOBODY):
    who = dict(env=cuse.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **cuse.ids_of(user))
    ping = ["ibv_rc_pingpong", "-d", cuse.NAMES[0], "-n", "20"]
    with subprocess.Popen(ping, **who) as server:
        time.sleep(1)
        client = subprocess.run([*ping, "localhost"], timeout=cuse.STUCK, **who)
        said = server.communicate(timeout=cuse.STUCK)[0]
    assert client.returncode == 0 and server.returncode == 0, (client.stdout, said)


def waits_in_ioctl(pid):
    return open(f"/proc/{pid}/syscall").read().startswith("16 ")


def waits_for_its_turn(pid):
    """With two processes an open of the node waits for its turn, too: the client stays in openat()."""
    return open(f"/proc/{pid}/syscall").read().startswith("257 " if cuse.SEPARATE else "16 ")


def open_and_close():
    """Returns how long an open and a close take, in seconds."""
    began = time.monotonic()
    os.close(os.open(NODE, os.O_RDWR))
    return time.monotonic() - began


def test_crowd_that_waits_holds_up_nobody_else(start):
    d = start()
    held = Attack("crowd", "lock", THREADS)
    cuse.wait_for("all of the share", lambda: in_daemon(d) == SHARE)
    assert open_and_close() < SOON
    others_ping()
    others_work(d)
    assert in_daemon(d) == SHARE
    assert workers(d) <= 2 * SHARE + 4  # the other users have a share, too
    # Another process of the same user waits for its turn. A signal that kills it ends the wait.
    for end in signal.SIGKILL, signal.SIGTERM:
        same = subprocess.Popen([cuse.CLIENT, "loop-pd"], env=cuse.environment(), user=USER, group=USER, extra_groups=[],
                                stdout=subprocess.PIPE, text=True)
        cuse.wait_for("its call", lambda: waits_for_its_turn(same.pid))
        time.sleep(1)
        assert waits_for_its_turn(same.pid)
        began = time.monotonic()
        same.send_signal(end)
        same.wait(cuse.STUCK)
        assert time.monotonic() - began < SOON
    last = subprocess.Popen([cuse.CLIENT, "loop-pd"], env=cuse.environment(), user=USER, group=USER, extra_groups=[],
                            stdout=subprocess.PIPE, text=True)
    cuse.wait_for("its call", lambda: waits_for_its_turn(last.pid))
    assert held.end() == f"{THREADS} returned\n"
    assert last.stdout.readline() == "ready\n"
    last.kill()
    last.wait()
    d.wait_idle()
    cuse.wait_for("threads without work to exit", lambda: workers(d) <= 2)
    others_work(d)


def crowd_process(held):
    """Returns the pid of the process that has the threads."""
    parent = held.process.pid
    for child in open(f"/proc/{parent}/task/{parent}/children").read().split():
        if len(os.listdir(f"/proc/{child}/task")) > THREADS:
            return int(child)
    raise AssertionError("no such process")


def threads_that_wait_for_the_daemon(pid):
    return sum(open(f"/proc/{pid}/task/{tid}/wchan").read() == "request_wait_answer" for tid in os.listdir(f"/proc/{pid}/task"))


def test_calls_of_a_crowd_that_is_killed_end_at_once_while_its_memory_still_waits(start):
    d = start()
    held = Attack("crowd", "lock", THREADS)
    cuse.wait_for("all of the share", lambda: in_daemon(d) == SHARE)
    pid = crowd_process(held)
    assert threads_that_wait_for_the_daemon(pid) == THREADS
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    # Its threads now wait for their mmap_lock themselves, in order to exit.
    cuse.wait_for("the calls' end", lambda: not threads_that_wait_for_the_daemon(pid))
    assert time.monotonic() - began < SOON and in_daemon(d) == SHARE
    held.process.stdin.close()
    held.process.wait(cuse.STUCK)
    d.wait_idle()
    others_work(d)


def test_opens_whose_path_waits_hold_up_nobody_else(start):
    """The broker's child reads the path of an open from the client's memory, which does not answer by then."""
    d = start("--separate", "yes")
    held = Attack("crowd", "open", MOST_THREADS + 20)
    cuse.wait_for("all of the share", lambda: waiting_questions(d) >= SHARE)
    time.sleep(1)
    assert open_and_close() < SOON
    others_ping()
    others_work(d)
    # No child has given up, and the user has got no more than its share.
    assert waiting_questions(d) == SHARE and workers(d) <= 2 * SHARE + 4
    pid = crowd_process(held)
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    cuse.wait_for("the opens' end", lambda: not threads_that_wait_for_the_daemon(pid))
    assert time.monotonic() - began < SOON
    # The children still wait, and still count as the user's calls.
    assert waiting_questions(d) == SHARE and d.held()[USER]["calls"] == SHARE
    assert open_and_close() < SOON
    held.process.stdin.close()
    held.process.wait(cuse.STUCK)
    d.wait_idle()
    others_work(d)


def test_removal_ends_what_waits_for_its_turn(start):
    d = start()
    held = Attack("crowd", "lock", THREADS)
    cuse.wait_for("all of the share", lambda: in_daemon(d) == SHARE)
    with subprocess.Popen([cuse.BUILD / "tools" / "uverbsctl", "device", "remove", cuse.NAMES[0]], stdout=subprocess.PIPE) as remove:
        time.sleep(1)
        assert remove.poll() is None and not os.path.exists(NODE)
        assert held.end() == f"{THREADS} returned\n"
        assert remove.wait(cuse.STUCK) == 0
    assert d.stop() == 0


def test_threads_are_limited_and_opens_and_closes_go_on(start):
    # The calls' memory is behind userfaultfd, which with two processes is EFAULT.
    d = start(*cuse.ONE_PROCESS)
    # Root is not limited to a share. When its calls occupy all threads that calls may use, other calls wait; opens and closes do not.
    held = Attack("crowd", "fault", MOST_THREADS + 20, user=0)
    cuse.wait_for("all threads", lambda: in_daemon(d) == MOST_THREADS - 32)
    assert open_and_close() < SOON
    assert workers(d) <= MOST_THREADS
    other = subprocess.Popen([cuse.CLIENT, "loop-pd"], env=cuse.environment(), stdout=subprocess.PIPE, text=True,
                             **cuse.ids_of(cuse.NOBODY))
    cuse.wait_for("its call", lambda: waits_in_ioctl(other.pid))
    time.sleep(2)
    assert waits_in_ioctl(other.pid) and in_daemon(d) == MOST_THREADS - 32
    assert held.end() == ""
    assert other.stdout.readline() == "ready\n"
    other.kill()
    other.wait()
    d.wait_idle()
    cuse.wait_for("threads without work to exit", lambda: workers(d) <= 2)
