# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Clients whose memory or files answer nobody, and calls whose client is gone by then."""
import os
import shutil
import signal
import subprocess

import pytest

from conftest import Attack, PLACE, USER, attack, cuse

KCMP, PROCESS_VM_READV = 312, 310
BUSY = ["loop-transfer", "loop-pd"]


@pytest.fixture
def program():
    """Of a more privileged user, and long enough there to be taken for the client."""
    path = PLACE / "setuid-sleep"
    shutil.copy("/bin/sleep", path)
    path.chmod(0o4755)
    script = PLACE / "victim"
    script.write_text(f"#!/bin/sh\nexec {path} 5\n")
    script.chmod(0o755)
    return script


def others_work(d):
    """Registering memory, transfers, event files, and the administrator's questions."""
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


@pytest.mark.skipif("yes" in cuse.OPTIONS, reason="with --separate yes its other thread cannot map memory meanwhile")
def test_memory_of_a_borrowed_thread_that_died_is_not_the_next_programs(start):
    d = start()
    assert attack("dead", user=0) == "not reached\n"
    d.wait_idle()


def threads_in(pid, number):
    """How many of its threads are in this system call?"""
    calls = [open(f"/proc/{pid}/task/{tid}/syscall").read() for tid in os.listdir(f"/proc/{pid}/task")]
    return sum(call.startswith(f"{number} ") for call in calls)


@pytest.mark.parametrize("mode", ["relative", "exec", "call"])
def test_memory_that_answers_nobody_holds_nobody_else_up(start, mode):
    d = start()
    held = Attack("stuck", mode)
    waits_in = {"relative": None, "exec": KCMP, "call": PROCESS_VM_READV}[mode]
    if waits_in:
        cuse.wait_for("somebody who waits", lambda: threads_in(d.process.pid, waits_in))
    others_work(d)
    held.end()
    d.wait_idle()


@pytest.mark.parametrize("mode", ["relative", "exec", "call"])
def test_memory_that_answers_nobody_holds_up_no_other_tree_that_joined(mode):
    run = [cuse.BUILD / "tools" / "uverbsctl", "run", "--join", "attacks", "--"]
    held = Attack("stuck", mode, under=run)
    who = {"user": USER, "group": USER, "extra_groups": []}
    with subprocess.Popen([*run, cuse.CLIENT, "loop-transfer"], stdout=subprocess.PIPE, text=True, **who) as transfer:
        assert transfer.stdout.readline() == "ready\n"
        transfer.terminate()
    held.end()


def test_file_that_waits_for_its_close_holds_nobody_else_up(start, tmp_path):
    d = start()
    held = Attack("flush", says="ready")
    # The daemon asks which socket it is: from then on it takes copies of what has the socket's number.
    with cuse.stopped_after(tmp_path, d.process.pid, "readlink"):
        held.tell()
    held.tell()
    held.hear("in place")
    d.process.send_signal(signal.SIGCONT)
    held.hear("stuck")
    others_work(d)
    cuse.wait_for("the end of the loan", lambda: not d.status()["grants"]["under_way"])
    assert d.stop() == 0
    held.end()


def test_new_daemon_starts_beside_one_that_cannot_end(start):
    options = ["--devices", "2", "--ucaps", "mlx5_perm_ctrl_local"]
    dead = start(*options)
    held = Attack("stuck", "call")
    cuse.wait_for("somebody who waits", lambda: threads_in(dead.process.pid, PROCESS_VM_READV))
    dead.process.kill()
    cuse.wait_for("its death", lambda: b") Z " in open(f"/proc/{dead.process.pid}/stat", "rb").read())
    assert len(os.listdir(f"/proc/{dead.process.pid}/task")) > 1, "nothing holds it up"
    d = start(*options)
    assert d.nodes == ["/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1"]
    others_work(d)
    held.end()
    dead.process.wait(cuse.STUCK)
    others_work(d)
    assert os.path.exists("/dev/infiniband/uverbs0") and os.path.exists("/dev/infiniband/mlx5_perm_ctrl_local")
