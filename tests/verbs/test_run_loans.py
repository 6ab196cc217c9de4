# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What disturbs the loan of a program's thread under `uverbsctl run`, on purpose or not: memory that waits, signals, exec, tracers."""
import contextlib
import ctypes
import errno
import os
import pathlib
import random
import re
import signal
import subprocess
import threading
import time

import pytest

import test_verbs as verbs
from conftest import cuse
from test_borrow import LONG, libc
from test_kills import processes_of_run
from test_run_borrow import REFUSED, RUN, fixture_nothing_is_left  # noqa: F401 pylint: disable=unused-import
from test_verbs import fixture_own  # noqa: F401 pylint: disable=unused-import

LOANS = cuse.BUILD / "tests" / "verbs" / "loans"
PTRACE_ATTACH, PTRACE_DETACH, WALL = 16, 17, 0x40000000
YAMA = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
BOTH = ["remote 0\n", "local 0\n"]
COPIED = [f"remote {errno.EOPNOTSUPP}\n", "local 0\n"]
ROUNDS = 50 if LONG else 3


def hear(process, what):
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line == what + "\n":
            return "".join(lines)
    raise AssertionError("".join(lines))


def end(process):
    """Lets the program go on. Returns what else it says. (communicate() does not see what hear() has read ahead.)"""
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    text = process.stdout.read()
    process.wait()
    return text


@contextlib.contextmanager
def loans(*words, says="begun", prefix=(), options=(), user=verbs.USER):
    """A run of tests/verbs/loans.c that has begun."""
    command = [*RUN[:-1], *options, "--", *prefix, LOANS, *map(str, words)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, **verbs.TEXT, **user) as process:
        limit = threading.Timer(verbs.STUCK, process.kill)
        limit.start()
        try:
            hear(process, says)
            yield process
        finally:
            limit.cancel()
            process.kill()


def run_loans(*words, **options):
    """Runs it to its end, without an error. Returns what it says."""
    with loans(*words, **options) as process:
        text = end(process)
    assert process.returncode == 0, text
    return text


def borrows(text):
    assert all(line in text for line in BOTH) and REFUSED not in text, text


def copies(text, lines=None):
    """The data of both regions was copied, and a line for each says so."""
    assert all(line in text for line in COPIED), text
    assert (text if lines is None else lines).count(f"{REFUSED} (EPERM)") == 2, lines or text


def count(text):
    return int(re.search(r"^registered (\d+)$", text, re.M)[1])


def program_of(process):
    return processes_of_run(process.pid)[0]


def only_the_engines(own):
    """Waits until all that is left is the context that an engine process has for queries."""
    cuse.wait_for("an adapter without clients' objects", lambda: verbs.resources() == {**own, "ctx": own["ctx"] + 1})


# ---- memory that waits -----------------------------------------------------------------------------------------------


@pytest.fixture(name="fuse")
def fixture_fuse_for_everybody():
    """As udev does on Debian."""
    os.chmod("/dev/fuse", 0o666)


def page(letter, **options):
    """Returns what is said when the page of a file has come, and the letter has disturbed the loan that waited for it."""
    with loans("page", says="asks", **options) as process:
        process.stdin.write(letter)
        process.stdin.flush()
        text = hear(process, "registered beside") if letter == "k" else ""
        if letter == "k":
            process.stdin.write("a")
        text += end(process)
    assert process.returncode == 0 and REFUSED not in text, text
    return text


def test_memory_that_answers_late_is_registered(fuse):
    assert "registered, as the file, signals 0\nended by signal 0" in page("a")


def test_registration_waits_for_its_turn_while_the_only_loan_waits_for_memory(fuse):
    text = page("w", options=["--limit-loans", "1"])
    borrows(text)
    assert "registered, as the file, signals 0\n" in text and "ended by signal 0\n" in text, text


def test_client_whose_memory_never_answers_can_be_killed_and_holds_nobody_up(fuse):
    """The kernel lets it wait for a page of which the file system has heard, as on the adapter itself, but nobody else."""
    text = page("k")
    borrows(text)
    assert "ended by signal 9" in text, text


def test_signal_to_a_client_whose_loan_waits_is_handled_after_the_loan(fuse):
    assert "registered, as the file, signals 1\nended by signal 0" in page("u")


def test_client_that_is_stopped_in_a_loan_stays_so_without_it_and_goes_on(fuse):
    assert "registered, as the file, signals 0\nended by signal 0" in page("s")


def test_client_that_is_stopped_in_a_loan_can_be_killed(fuse):
    assert "ended by signal 9" in page("S")


# ---- signals ---------------------------------------------------------------------------------------------------------


def test_signals_are_neither_lost_nor_doubled_and_end_no_registration():
    times = 1000 if LONG else 60
    text = run_loans("signals", times)
    assert f"registered {times}, alarms many" in text and REFUSED not in text, text


def test_client_that_is_stopped_again_and_again_registers_on():
    chance = random.Random(4)
    with loans("often", 2) as process:
        program = program_of(process)
        for _ in range(ROUNDS * 10):
            os.kill(program, signal.SIGSTOP)
            time.sleep(chance.random() / 40)
            os.kill(program, signal.SIGCONT)
            time.sleep(chance.random() / 40)
        text = end(process)
    assert process.returncode == 0 and count(text) and REFUSED not in text, text


# ---- other threads ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("registers, rounds", [("exec", 1), ("first", ROUNDS), ("other", ROUNDS)])
def test_loan_ends_with_an_exec_of_another_thread(own, fuse, registers, rounds):
    for _ in range(rounds):
        with loans(registers) as process:
            hear(process, "executed")
            only_the_engines(own)
            text = end(process)
        assert process.returncode == 0, text


def test_exit_of_another_thread_ends_the_loan_and_has_its_status():
    for _ in range(ROUNDS):
        with loans("exit", 7) as process:
            text = end(process)
        assert process.returncode == 7, text


def test_forks_of_another_thread_do_no_harm():
    text = run_loans("fork", 300 if LONG else 25)
    assert count(text) and REFUSED not in text, text


def test_sixteen_threads_register_at_once():
    with loans("often", 16) as process:
        time.sleep(1)
        text = end(process)
    assert process.returncode == 0 and count(text) >= 16 and REFUSED not in text, text


# ---- tracers ---------------------------------------------------------------------------------------------------------


DEBUGGERS = [("strace", "-f", "-qq", "-o", "/dev/null"), *([("gdb", "-q", "-batch", "-ex", "run", "--args")] if LONG else [])]


@pytest.mark.parametrize("debugger", DEBUGGERS, ids=lambda command: command[0])
def test_data_of_a_program_under_a_debugger_is_copied(debugger):
    copies(run_loans("once", prefix=debugger))


def test_debugger_that_attaches_during_a_loan_is_refused(fuse):
    assert "registered, as the file, signals 0\nended by signal 0" in page("t")


def test_tracer_that_comes_and_goes_disturbs_no_registration():
    chance = random.Random(6)
    with loans("local", 1) as process:
        program, traced = program_of(process), 0
        for _ in range(ROUNDS * 30):
            if not libc.ptrace(PTRACE_ATTACH, program, None, None):
                os.waitpid(program, WALL)
                assert not libc.ptrace(PTRACE_DETACH, program, None, None)
                traced += 1
            else:
                assert ctypes.get_errno() == errno.EPERM
            time.sleep(chance.random() / 100)
        text = end(process)
    assert process.returncode == 0 and count(text) and traced, (traced, text)


# ---- rights ----------------------------------------------------------------------------------------------------------


def test_memory_of_a_client_in_namespaces_of_its_own_is_borrowed():
    borrows(run_loans("namespaces"))


def test_memory_of_a_client_that_gave_up_roots_ids_is_borrowed():
    borrows(run_loans("nobody", user={}))


def test_client_that_must_not_be_traced_gets_an_error_and_no_harm():
    """The engine may not read its commands, either: docs/abi-differences.md."""
    text = run_loans("undumpable")
    assert f"remote {errno.EFAULT}\n" in text and f"local {errno.EFAULT}\n" in text, text
    # The engine of root may.
    borrows(run_loans("undumpable", user={}))


@pytest.fixture(name="scope")
def fixture_scope():
    """Sets Yama's ptrace_scope. Debian's kernels have Yama."""
    before = YAMA.read_text()
    yield lambda value: YAMA.write_text(str(value))
    YAMA.write_text(before)


@pytest.mark.parametrize("value, user", [(0, verbs.USER), (1, verbs.USER), (2, {})], ids=["0", "1", "2-root"])
def test_memory_of_a_joined_run_is_borrowed_where_yama_allows_it(scope, value, user):
    scope(value)
    join = dict(options=["--join", "loans"], user=user)
    with loans("often", 1, **join) as process:
        text = run_loans("once", **join)
        of_engine = end(process)
    assert process.returncode == 0, of_engine
    if value == 1:
        copies(text, of_engine)
    else:
        borrows(text + of_engine)


# ---- kills -----------------------------------------------------------------------------------------------------------


def test_programs_and_engines_killed_at_random_moments_leave_nothing(own):
    """Beside others that register on."""
    chance = random.Random(7)
    kinds = [("often", 4), ("fork", 100000), ("signals", 100000)]
    for _ in range(20 if LONG else 1):
        with loans("often", 2) as beside:
            for _ in range(10 if LONG else 2):
                with loans(*chance.choice(kinds)) as process:
                    victim = chance.choice(processes_of_run(process.pid))
                    time.sleep(chance.random() / 5)
                    os.kill(victim, signal.SIGKILL)
                    text = end(process)
                assert process.returncode, text
            text = end(beside)
        assert beside.returncode == 0 and count(text) and REFUSED not in text, text
        cuse.wait_for("an adapter without objects", lambda: verbs.resources() == own)
