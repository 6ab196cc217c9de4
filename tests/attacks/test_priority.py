# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A user for whom the daemon does more than for others: its threads then serve that user at low priority, but never a lone user."""
import contextlib
import os
import pathlib
import time

import pytest

from conftest import USER, cuse

OTHER = 1002
ALONE = 1  # second
MANY = 6  # clients: the daemon lowers the priority only if more than two threads work for a user at a time


def told(pid, name):
    """Yields the text of this /proc file of each thread of the process; processes and threads may exit at any time."""
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                yield pathlib.Path(f"/proc/{pid}/task/{task}/{name}").read_text()


def daemons(d):
    """Returns the pids of the daemon: with two processes also of the engine process and of the broker's children."""
    found = [d.process.pid]
    for pid in found:
        for text in told(pid, "children"):
            found += map(int, text.split())
    return found


def threads_of_low_priority(d):
    return sum(text.rsplit(")", 1)[1].split()[16] != "0" for pid in daemons(d) for text in told(pid, "stat"))


def borrowers_of_low_priority(clients):
    """Counts these clients whose thread is now borrowed by a thread, or a broker's child, of low priority."""
    n = 0
    for p in clients:
        status = pathlib.Path(f"/proc/{p.pid}/status").read_text()
        tracer = int(status.split("TracerPid:")[1].split()[0])
        with contextlib.suppress(ProcessLookupError):
            n += tracer and os.getpriority(os.PRIO_PROCESS, tracer) > 0
    return n


@contextlib.contextmanager
def clients(number, mode, user):
    started = [cuse.start_client(mode, user=user) for _ in range(number)]
    try:
        yield started
    finally:
        for p in started:
            p.kill()
            p.wait()


def ever_low(d, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if threads_of_low_priority(d):
            return True
    return False


# The work of the daemon for the user: transfers, loans of threads, and calls.
WORK = [("no", "loop-transfer"), ("yes", "loop-pd"), ("yes", "loop-channel")]
if os.environ.get("UVERBSD_LONG"):
    WORK += [("no", "loop-channel"), ("yes", "loop-transfer"), ("no", "loop-pd")]


@pytest.mark.parametrize("separate, mode", WORK)
def test_user_gives_way_who_does_more_than_another(start, separate, mode):
    d = start("--separate", separate)
    with clients(MANY, mode, USER) as started:
        assert not ever_low(d, ALONE)
        with clients(1, "loop-rarely", OTHER):
            cuse.wait_for("a thread of low priority", lambda: threads_of_low_priority(d))
            if mode == "loop-channel":
                cuse.wait_for("a borrower of low priority", lambda: borrowers_of_low_priority(started))
    # The priority is not lowered for good.
    with clients(1, "loop-pd", OTHER):
        cuse.wait_for("threads of one priority", lambda: not ever_low(d, ALONE))
    d.wait_idle()
