# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Clients whose memory or files do not answer, and calls whose client has exited or executed another program meanwhile."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import Attack, PLACE, USER, attack, cuse

READ, IOCTL, PREAD, PROCESS_VM_READV, KCMP = "0", "16", "17", "310", "312"  # IOCTL: PAGEMAP_SCAN of Linux 6.7
SOON = 10  # seconds: counts as at once in an emulated machine
BUSY = ["loop-transfer", "loop-pd"]


@pytest.fixture
def program():
    """A program of a more privileged user, which runs long enough to be taken for the client."""
    path = PLACE / "setuid-sleep"
    shutil.copy("/bin/sleep", path)
    path.chmod(0o4755)
    script = PLACE / "victim"
    script.write_text(f"#!/bin/sh\nexec {path} 5\n")
    script.chmod(0o755)
    return script


def others_work(d):
    """Checks that others can register memory, transfer data and get event files, and that the administrator gets the status."""
    clients = [cuse.start_client(mode) for mode in BUSY]
    assert d.status()["devices"]
    cuse.run_client("channels", "2")
    for p in clients:
        assert p.poll() is None
        p.kill()
        p.wait()


def test_call_that_was_let_go_does_not_reach_the_next_program(start, program):
    d = start()
    said = attack("letgo", program)
    assert said.startswith("not reached"), said
    d.wait_idle()


def test_memory_of_a_borrowed_thread_that_died_is_not_the_next_programs(start):
    # With two processes the memory is in use until it has answered, so its other thread cannot map memory meanwhile.
    d = start(*cuse.ONE_PROCESS)
    assert attack("dead", user=0) == "not reached\n"
    d.wait_idle()


def waits_for_client(pid, tid):
    """Is this thread in a system call that can wait for a client: for its memory, its mappings, or its exec?"""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        number, *args = open(f"/proc/{pid}/task/{tid}/syscall").read().split()
        if number in (READ, PREAD, IOCTL):
            return bool(re.fullmatch(r"/proc/\d+/(mem|maps|pagemap)", os.readlink(f"/proc/{pid}/fd/{int(args[0], 16)}")))
        return number in (PROCESS_VM_READV, KCMP)
    return False


def waiting_in(pid):
    """How many threads of this process wait for a client?"""
    return sum(waits_for_client(pid, tid) for tid in os.listdir(f"/proc/{pid}/task"))


def waiting_questions(d):
    """How many of the broker's children wait for a client?"""
    return sum(waits_for_client(child, child) for child in cuse.children(d.process.pid) if child != d.serving)


def stuck(mode):
    return Attack("stuck", mode, user=0 if mode == "page" else USER)


@pytest.mark.parametrize("mode", ["relative", "exec", "call", "page"])
def test_memory_that_answers_nobody_holds_nobody_else_up(start, mode):
    d = start()
    held = stuck(mode)
    if mode != "relative":
        cuse.wait_for("somebody who waits", lambda: waiting_in(d.serving) or waiting_questions(d))
    others_work(d)
    held.end()
    d.wait_idle()


@pytest.mark.parametrize("mode", ["relative", "exec", "call"])
def test_memory_that_answers_nobody_holds_up_no_other_tree_that_joined(mode):
    run = [cuse.BUILD / "tools" / "uverbsctl", "run", "--persona", "hfi1", "--join", "attacks", "--"]
    held = Attack("stuck", mode, under=run)
    who = {"user": USER, "group": USER, "extra_groups": []}
    with subprocess.Popen([*run, cuse.CLIENT, "loop-transfer"], stdout=subprocess.PIPE, text=True, **who) as transfer:
        assert transfer.stdout.readline() == "ready\n"
        transfer.terminate()
    held.end()


def test_file_that_waits_for_its_close_holds_nobody_else_up(start, tmp_path):
    d = start()
    held = Attack("flush", says="ready")
    # With readlink() the daemon identifies the socket. From then on it duplicates whatever has the socket's number.
    with cuse.stopped_after(tmp_path, d.process.pid, "readlink") as stopped:
        held.tell()
    held.tell()
    held.hear("in place")
    os.kill(stopped[0], signal.SIGCONT)
    held.hear("stuck")
    others_work(d)
    cuse.wait_for("the end of the loan", lambda: not d.status()["grants"]["under_way"])
    assert d.held()[USER]["loans"] == 1
    # The end of the daemon does not wait for the process either.
    began = time.monotonic()
    assert d.stop() == 0
    assert time.monotonic() - began < SOON
    held.end()


def test_new_daemon_starts_beside_one_that_cannot_end(start):
    # The broker of two processes waits for no client: tests/cuse/test_lives.py has an engine process that cannot end.
    options = [*cuse.ONE_PROCESS, "--devices", "2", "--ucaps", "mlx5_perm_ctrl_local"]
    dead = start(*options)
    # SIGKILL does not end this wait: process_vm_readv() for the mmap_lock.
    held = stuck("call")
    cuse.wait_for("somebody who waits", lambda: waiting_in(dead.serving))
    dead.process.kill()
    cuse.wait_for("its death", lambda: b") Z " in open(f"/proc/{dead.serving}/stat", "rb").read())
    assert len(os.listdir(f"/proc/{dead.serving}/task")) > 1, "nothing holds it up"
    d = start(*options)
    assert d.nodes == ["/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1"]
    others_work(d)
    held.end()
    dead.process.wait(cuse.STUCK)
    others_work(d)
    assert os.path.exists("/dev/infiniband/uverbs0") and os.path.exists("/dev/infiniband/mlx5_perm_ctrl_local")
