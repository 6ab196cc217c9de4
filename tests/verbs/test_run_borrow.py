# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""--memory=borrow under `uverbsctl run`, as an unprivileged user: the programs' threads register their memory with rxe0, the adapter."""
import errno
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

import test_verbs as verbs
from conftest import HERE, cuse
from test_borrow import LONG, PERFTESTS, PINGPONGS, PTRACE_SEIZE, SCENES, libc
from test_kills import processes_of_run
from test_verbs import fixture_own  # noqa: F401 pylint: disable=unused-import

RUN = verbs.RUN_BORROW
SIDES = [("run", "plain"), ("plain", "run"), ("run", "run")]
REFUSED = "no thread of the client can be borrowed"


@pytest.fixture(autouse=True)
def fixture_nothing_is_left(own):
    yield
    cuse.wait_for("an adapter without objects", lambda: verbs.resources() == own)


def on_both_sides(programs):
    """A run at one end and rxe0 itself at the other; the first program, or with --long each, also the other ways round."""
    return [pytest.param(sides, *p, id=f"{p[0]}-{'-'.join(sides)}") for n, p in enumerate(programs)
            for sides in (SIDES if LONG or not n else SIDES[:1])]


@pytest.mark.parametrize("sides, program, args", on_both_sides(PINGPONGS))
def test_pingpong_with_checked_payload(sides, program, args):
    verbs.pingpong(*sides, program, *args)


@pytest.mark.parametrize("sides, program, size", on_both_sides(PERFTESTS))
def test_perftest_reaches_the_memory_of_its_peer(sides, program, size):
    verbs.bandwidth(*sides, program, size)


def scenes(prefix, device):
    command = [*prefix, sys.executable, HERE / "memory.py", device, *SCENES]
    done = subprocess.run(command, timeout=verbs.STUCK, check=False, **verbs.TEXT, **verbs.USER)
    assert done.returncode == 0, done.stdout
    return {name: value for line in done.stdout.splitlines() if line[0] == "{" for name, value in json.loads(line).items()}


def test_registration_is_that_of_the_adapter_itself():
    ours, plain = scenes(RUN, verbs.DEVICE), scenes([], verbs.ADAPTER)
    size = 64 << 10
    assert ours["write"] == dict(status=0, seen=True, pinned=size, left=0)
    assert ours["fork"] == dict(status=[0, 0], parent=True, child_keeps_its_own=True)
    assert ours["munmap"] == dict(status=0, new_memory_is_untouched=True, pinned=size)
    assert ours["refused"] == dict(readonly=errno.EFAULT, unmapped=errno.EFAULT, nothing=errno.EFAULT)
    assert ours["memlock"] == dict(above=errno.ENOMEM, rest_of_it=True, one_more=errno.ENOMEM)
    assert ours == plain


def register(*words, prefix=(), options=()):
    command = [*RUN[:-1], *options, "--", *prefix, sys.executable, HERE / "register.py", *words]
    done = subprocess.run(command, timeout=verbs.STUCK, check=False, **verbs.TEXT, **verbs.USER)
    return done.stdout


def test_memory_of_a_program_is_reached_by_peers():
    text = register("remote")
    assert "registered" in text and REFUSED not in text


def test_data_of_a_traced_program_is_copied():
    with subprocess.Popen([*RUN, sys.executable, HERE / "register.py", "remote", "wait"], stdin=subprocess.PIPE, **verbs.TEXT,
                          **verbs.USER) as process:
        assert process.stdout.readline() == "waits\n"
        program, _ = processes_of_run(process.pid)
        assert not libc.ptrace(PTRACE_SEIZE, program, None, None)
        process.stdin.write("go\n")
        process.stdin.flush()
        os.waitpid(program, 0)  # its parent learns of its end only after its tracer
        text = process.communicate(timeout=verbs.STUCK)[0]
    assert "EOPNOTSUPP" in text and f"{REFUSED} (EPERM)" in text


def test_program_with_a_filter_of_its_own_is_not_borrowed():
    filtered = (sys.executable, HERE.parent / "cuse" / "filtered.py")
    text = register("remote", prefix=filtered)
    assert "EOPNOTSUPP" in text and f"{REFUSED} (EPERM)" in text
    assert "registered" in register("local", prefix=filtered)


def test_program_without_a_free_descriptor_is_not_borrowed():
    text = register("remote", "full")
    assert "EOPNOTSUPP" in text and f"{REFUSED} (EMFILE)" in text


def shell(script, *options):
    """A run of a shell. $0 is python, $1 a program that does not let its borrowed thread come back; fd 3 is the pipe to stdin."""
    command = ["sh", "-c", f"cd {HERE}; exec 3<&0; {script}", sys.executable, cuse.BUILD / "tests" / "verbs" / "spin"]
    return subprocess.Popen([*RUN[:-1], *options, "--", *command], stdin=subprocess.PIPE, **verbs.TEXT, **verbs.USER)


def read_until(process, word):
    lines = []
    for line in process.stdout:
        lines.append(line)
        assert not re.match("often: [1-9]", line), "".join(lines)
        if word in line:
            return "".join(lines)
    raise AssertionError("".join(lines))


def test_registrations_wait_for_their_turn():
    """Four programs register all the time, and one thread may be borrowed at once."""
    script = f'for i in 1 2 3 4; do ("$0" register_often.py {verbs.DEVICE} <&3; echo "often: $?") & done; wait'
    with shell(script, "--limit-loans", "1") as process:
        text = "".join(read_until(process, "begun") for _ in range(4))
        time.sleep(2)
        text += process.communicate(timeout=verbs.STUCK)[0]
    assert text.count("often: 0") == 4 and REFUSED not in text, text


def register_often():
    command = [*RUN, sys.executable, HERE / "register_often.py", verbs.DEVICE]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, **verbs.TEXT, **verbs.USER)
    assert process.stdout.readline() == "begun\n", process.stdout.read()
    return process


def test_programs_killed_while_they_register_leave_nothing(own):
    chance = random.Random(2)
    for _ in range(100 if LONG else 6):
        with register_often() as process:
            program, _ = processes_of_run(process.pid)
            time.sleep(chance.random() / 10)
            os.kill(program, signal.SIGKILL)
            text = process.communicate(timeout=verbs.STUCK)[0]
        assert process.returncode == 137, text
        cuse.wait_for("an adapter without objects", lambda: verbs.resources() == own)


@pytest.mark.parametrize("mode", ["events", "race", "destroy"])
def test_threads_that_use_every_descriptor_meanwhile_do_no_harm(mode):
    # A device of another number does not hide the adapter's own node.
    assert verbs.thief(mode, [*RUN[:-1], "--number", "9", "--"])


def test_program_that_holds_its_loan_up_is_killed_and_holds_up_no_other():
    often = f'("$0" register_often.py {verbs.DEVICE} <&3; echo "often: $?")'
    with shell(f'{often} & exec "$1"') as process:
        text = read_until(process, "did not come back from its loan: killing its process")
        # PROGRAM was the one that was killed.
        assert process.wait(verbs.STUCK) == 137
        text += process.communicate(timeout=verbs.STUCK)[0]
    assert "often: 0" in text and text.count("killing its process") == 1, text


def is_held(pid):
    """Is the process's thread borrowed, and does not come back?"""
    traced = []
    for _ in range(5):
        traced.append(cuse.status_of(pid)["TracerPid"] != "0")
        time.sleep(0.1)
    return all(traced)


def test_call_that_waits_for_its_loan_fails_when_the_engine_dies():
    """The program has the one loan, and its child waits for a turn. The daemon allows the loan a second, so the child starts first."""
    with shell('trap \'exec "$1"\' USR1; "$0" register.py remote wait <&3 & wait', "--limit-loans", "1") as process:
        read_until(process, "waits")
        program, engine = processes_of_run(process.pid)
        os.kill(program, signal.SIGUSR1)
        cuse.wait_for("a loan that does not come back", lambda: is_held(program))
        process.stdin.write("go\n")
        process.stdin.flush()
        time.sleep(0.3)  # of the second that it waits at most
        os.kill(engine, signal.SIGKILL)
        text = process.communicate(timeout=verbs.STUCK)[0]
    assert process.returncode == 137 and f"errno {errno.EIO}" in text, text


def test_ends_of_orphans_do_not_end_a_loan():
    """The engine process adopts them, and waits for them while it traces the program, which is its child, too."""
    orphans = 'for i in $(seq 200); do (sleep 0.01 & ); sleep 0.01; done; echo orphans'
    with shell(f'({orphans}) & exec "$0" register_often.py {verbs.DEVICE}') as process:
        text = read_until(process, "orphans")
        text += process.communicate(timeout=verbs.STUCK)[0]
    assert process.returncode == 0 and REFUSED not in text and "errno" not in text, text
