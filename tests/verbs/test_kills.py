# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Clients and engines are killed at random moments: nothing stays on the adapter, rxe0."""
import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import pytest

import test_verbs as verbs
from conftest import HERE, cuse
from test_verbs import fixture_own  # noqa: F401 pylint: disable=unused-import

# 6 kills, and with --long 198, beside those of test_borrow.py, which are of clients that register.
ROUNDS = 33 if os.environ.get("UVERBSD_LONG") else 1
LONG = [("borrow", "no"), ("bounce", "yes")] if ROUNDS > 1 else []
# A kill comes within a round or two of the client.
SECONDS = 0.3
chance = random.Random(18)


@contextlib.contextmanager
def worker(program, script="work.py", **user):
    """A client that has begun to work. The body must end its device or the client: then it must end by itself, with an error."""
    command = [*program, sys.executable, HERE / script, verbs.DEVICE]
    with subprocess.Popen(command, start_new_session=True, stdin=subprocess.PIPE, **verbs.TEXT, **user) as process:
        try:
            said = []
            for line in process.stdout:
                said.append(line)
                if line == "begun\n":
                    break
            assert said and said[-1] == "begun\n", "".join(said)
            yield process
            process.communicate(timeout=verbs.STUCK)
            assert process.returncode, "the client has ended, and no call of it has failed"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def at_a_random_moment(kill):
    time.sleep(chance.random() * SECONDS)
    kill()


@pytest.mark.parametrize("memory, separate", [("bounce", "no"), ("borrow", "yes"), *LONG])
def test_killed_client_and_killed_daemon_leave_nothing(own, tmp_path, memory, separate):
    for _ in range(ROUNDS):
        d = cuse.Daemon(tmp_path, "--backend", "verbs", "--hca", verbs.ADAPTER, "--memory", memory, "--separate", separate)
        try:
            with worker(verbs.OURS, **verbs.USER) as client:
                at_a_random_moment(client.kill)
            d.wait_idle()
            # The daemon has a context of its own on the adapter, for queries.
            cuse.wait_for("an adapter without clients' objects", lambda: {**verbs.resources(), "ctx": 0} == {**own, "ctx": 0})
            with worker(verbs.OURS, **verbs.USER):
                at_a_random_moment(d.process.kill)
        finally:
            d.stop(signal.SIGKILL)
        cuse.wait_for("an adapter without objects", lambda: verbs.resources() == own)


def test_killed_engine_process_leaves_nothing_and_is_followed_by_another(own, tmp_path):
    d = cuse.Daemon(tmp_path, "--backend", "verbs", "--hca", verbs.ADAPTER, "--memory", "borrow", "--separate", "yes")
    try:
        # The broker gives up after five engine processes within a minute.
        for n in range(2, 2 + min(ROUNDS, 3)):
            with worker(verbs.OURS, **verbs.USER):
                at_a_random_moment(lambda: os.kill(d.serving, signal.SIGKILL))
            cuse.wait_for("another engine process", lambda number=n: d.starts() == number)
            cuse.wait_for("an adapter without clients' objects", lambda: {**verbs.resources(), "ctx": 0} == {**own, "ctx": 0})
            verbs.pingpong("ours", "plain", "ibv_rc_pingpong")
    finally:
        status = d.stop()
    assert status == 0, d.log.read_text()
    cuse.wait_for("an adapter without objects", lambda: verbs.resources() == own)


@pytest.mark.parametrize("victim", ["engine", "broker"])
def test_process_of_two_that_is_killed_while_a_client_registers_leaves_nothing(own, tmp_path, victim):
    """The thread of the client is borrowed at most moments: the broker has it, and the engine process waits for it."""
    for _ in range(ROUNDS):
        d = cuse.Daemon(tmp_path, "--backend", "verbs", "--hca", verbs.ADAPTER, "--memory", "borrow", "--separate", "yes")
        try:
            pid = d.serving if victim == "engine" else d.process.pid
            with worker(verbs.OURS, "register_often.py", **verbs.USER):
                at_a_random_moment(lambda pid=pid: os.kill(pid, signal.SIGKILL))
            if victim == "engine":
                cuse.wait_for("another engine process", lambda daemon=d: daemon.starts() == 2)
                verbs.pingpong("ours", "plain", "ibv_rc_pingpong")
        finally:
            d.stop(signal.SIGKILL)
        cuse.wait_for("an adapter without objects", lambda: verbs.resources() == own)


def processes_of_run(pid):
    """Returns the program and the engine process: the child of `uverbsctl run` is the guardian, and the engine starts the program."""
    guardian, = cuse.children(pid)
    engine, = cuse.children(guardian)
    program, = cuse.children(engine)
    return program, engine


@pytest.mark.parametrize("memory", ["bounce", "borrow"])
def test_killed_program_and_killed_engine_of_run_leave_nothing(own, memory):
    for _ in range(ROUNDS):
        for victim in range(2):
            with worker([*verbs.RUN, "--memory", memory, "--"], **verbs.USER) as client:
                at_a_random_moment(lambda pid=processes_of_run(client.pid)[victim]: os.kill(pid, signal.SIGKILL))
            cuse.wait_for("an adapter without objects", lambda: verbs.resources() == own)


def test_client_that_destroys_what_uverbsd_made_holds_up_neither_removal_nor_exit(own, tmp_path):
    d = cuse.Daemon(tmp_path, "--backend", "verbs", "--hca", verbs.ADAPTER, "--memory", "borrow")
    assert verbs.thief("destroy") == 1
    cuse.wait_for("the client's close", lambda: not d.files())
    verbs.pingpong("ours", "ours", "ibv_rc_pingpong")
    assert d.stop() == 0, d.log.read_text()
    cuse.wait_for("an adapter without objects", lambda: verbs.resources() == own)
