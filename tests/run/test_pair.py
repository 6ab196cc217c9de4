# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl pair`: a program as a server and as its client."""
import pathlib
import re
import time

from conftest import STUCK, UVERBSCTL

LISTENER = """#!/usr/bin/python3
import socket, sys, time
port, *words = sys.argv[2:]
with socket.socket() as s:
    if words[-1:] == ["127.0.0.1"]:
        s.connect(("127.0.0.1", int(port)))
        print("asks with", *words)
        %s
    s.bind(("", int(port)))
    s.listen()
    print("listens with", *words, flush=True)
    while True:
        s.accept()
"""


def pair(run, then, *options):
    program = pathlib.Path(run.folder, "program")
    program.write_text(LISTENER % then, encoding="ascii")
    program.chmod(0o755)
    return run(UVERBSCTL, "pair", *options, "--", str(program), "-x", "2", timeout=STUCK)


def test_the_status_is_the_clients_and_both_outputs_are_told(run):
    r = pair(run, "sys.exit(7)")
    assert (r.returncode, r.stdout) == (7, "client 7\nasks with -x 2 127.0.0.1\nlistens with -x 2\n"), r


def test_a_client_that_a_signal_ends_has_128_and_its_number(run):
    r = pair(run, "import os; sys.stdout.flush(); os.kill(os.getpid(), 9)")
    assert r.returncode == 137 and r.stdout.startswith("client 137\nasks with"), r


def test_a_pair_that_takes_too_long_is_ended(run):
    begin = time.monotonic()
    r = pair(run, "time.sleep(999)", "--limit", "0.5")
    assert (r.returncode, r.stdout.split("\n")[0]) == (124, "client 124") and 0.5 <= time.monotonic() - begin < STUCK / 2, r


def test_a_server_that_does_not_listen_is_late_too(run):
    program = pathlib.Path(run.folder, "sleeper")
    program.write_text("#!/bin/sh\nexec sleep 999\n", encoding="ascii")
    program.chmod(0o755)
    r = run(UVERBSCTL, "pair", "--limit", "0.3", str(program), timeout=STUCK)
    assert (r.returncode, r.stdout) == (124, "client 124\n"), r


def test_a_port_can_be_given_and_what_fails_at_once_does_not_hang(run):
    r = run(UVERBSCTL, "pair", "--port", "1", "false", timeout=STUCK)
    assert r.returncode == 1 and r.stdout == "client 1\n", r
    r = run(UVERBSCTL, "pair", "/nowhere", timeout=STUCK)
    assert r.returncode == 127 and r.stdout.startswith("client 127\nuverbsctl pair: /nowhere: ENOENT\n"), r


def test_pingpong_runs_on_the_device_of_a_run(run):
    r = run(UVERBSCTL, "pair", "ibv_rc_pingpong", "-n", "20", options=["--persona", "hfi1"], timeout=STUCK)
    assert r.returncode == 0 and len(re.findall(r"20 iters in", r.stdout)) == 2, r
