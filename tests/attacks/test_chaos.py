# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
Two users attack the device at random (chaos.c), while a third one uses it as intended. The tests take $UVERBSD_CHAOS seconds; the
default is 6, or 1800 with --long.
"""
import contextlib
import json
import os
import socket
import subprocess
import tempfile
import threading
import time

import pytest

from conftest import client, cuse, uverbsctl

# Over CUSE queues can be mapped from Linux 6.9 on.
PERSONAS = ["hfi1", "rxe"] if cuse.MAPPED else ["hfi1"]
SECONDS = int(os.environ.get("UVERBSD_CHAOS", 1800 if os.environ.get("UVERBSD_LONG") else 3))
SEED = int(os.environ.get("UVERBSD_SEED", 1))
USERS = {"other": 1001, "victim": 1002}


def ids_of(name):
    return dict(user=USERS[name], group=USERS[name], extra_groups=[])


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return str(s.getsockname()[1])


class Victim:
    """Starts one ibv_rc_pingpong after the other; each must succeed."""

    def __init__(self, under, env, options=()):
        self.options = options
        self.under, self.env, self.end, self.rounds, self.failure = under, env, False, 0, None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def start(self, port, *args):
        return subprocess.Popen([*self.under, "ibv_rc_pingpong", "-n", "20", "-p", port, *self.options, *args], env=self.env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **ids_of("victim"))

    def one(self):
        port = free_port()
        server = self.start(port)
        try:
            end = time.monotonic() + cuse.STUCK
            while time.monotonic() < end:
                time.sleep(0.2)
                with self.start(port, "localhost") as pingpong:
                    said = pingpong.communicate(timeout=cuse.STUCK)[0]
                # Retry until the server listens.
                if "Couldn't connect" not in said or server.poll() is not None:
                    break
            assert pingpong.returncode == 0, said
            said = server.communicate(timeout=cuse.STUCK)[0]
            assert server.returncode == 0, said
        except subprocess.TimeoutExpired:
            raise AssertionError("a victim's ibv_rc_pingpong does not end") from None
        finally:
            server.kill()

    def run(self):
        try:
            while not self.end:
                self.one()
                self.rounds += 1
        except AssertionError as e:
            self.failure = e

    def stop(self):
        self.end = True
        self.thread.join()
        assert not self.failure, self.failure
        assert self.rounds


def start_chaos(seed, *args, under=(), **kwargs):
    """Its output goes to a file: a process that waits for a reader of its pipe would keep objects that count against its user's limits."""
    said = tempfile.TemporaryFile("w+")
    chaos = subprocess.Popen([*under, client("chaos"), str(SECONDS), str(seed), *args], stdout=said, **kwargs)
    chaos.said = said
    return chaos


def end_of(chaos):
    """Waits for chaos: its processes must end by themselves, whatever they wait for."""
    chaos.wait(SECONDS + cuse.STUCK)
    chaos.said.seek(0)
    said = chaos.said.read()
    assert chaos.returncode == 0 and said.endswith(" rounds\n") and not said.startswith("0 "), said


@pytest.mark.parametrize("persona", PERSONAS)
def test_chaos_of_two_users_leaves_a_victim_alive_and_nothing_behind(start, persona):
    d = start("--persona", persona)
    chaos = [start_chaos(SEED, "mapped"), start_chaos(SEED + 500, **ids_of("other"))]
    victim = Victim([], cuse.environment(), ["-g", "0"] if persona == "rxe" else [])
    while any(c.poll() is None for c in chaos):
        assert d.status()["devices"]
        time.sleep(0.5)
    for c in chaos:
        end_of(c)
    victim.stop()
    d.wait_idle()


def wait_until_accounts_are_empty(run, **who):
    end = time.monotonic() + cuse.STUCK
    while time.monotonic() < end:
        held = subprocess.run([*run, run[0], "status", "--accounts", "--json"], text=True,
                              stdout=subprocess.PIPE, timeout=cuse.STUCK, check=True, **who).stdout
        if not json.loads(held)["accounts"]:
            return
        time.sleep(0.2)
    raise AssertionError(held)


@contextlib.contextmanager
def started(command, **kwargs):
    """Kills the command's session in the end: after a failure the test would wait forever for processes that still run."""
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, start_new_session=True, **kwargs)
    try:
        yield process
    finally:
        if process.poll() is None:
            subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)


def test_chaos_of_two_trees_leaves_a_third_alive_and_nothing_behind():
    """All trees belong to one user: only the user who started a run can join it."""
    run = [uverbsctl(), "run", "--persona", "hfi1", "--join", "chaos", "--"]
    who = ids_of("victim")
    with started([*run, "sh", "-c", "echo ready; read line"], stdin=subprocess.PIPE, **who) as first:
        assert first.stdout.readline() == "ready\n"
        chaos = [start_chaos(SEED + n, under=run, **who) for n in (1000, 2000)]
        victim = Victim(run, dict(os.environ))
        for c in chaos:
            end_of(c)
        victim.stop()
        wait_until_accounts_are_empty(run, **who)
        first.communicate("\n", timeout=cuse.STUCK)
        assert first.returncode == 0
