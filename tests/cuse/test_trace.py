# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl trace` on a running daemon: whose calls it prints."""
import re
import signal
import subprocess

import pytest

from conftest import BUILD, NAMES, NOBODY, STUCK

UVERBSCTL = BUILD / "tools" / "uverbsctl"


def popen(user, *args):
    return subprocess.Popen([UVERBSCTL, *args], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, user=user, group=user,
                            extra_groups=[], cwd="/")


def tracer(user, *args):
    p = popen(user, "trace", *args)
    assert "it has begun" in p.stderr.readline()
    return p


def allocate(user):
    """Makes a PD as this user. Returns the pid of the program."""
    p = popen(user, "call", NAMES[0], "PD", "ALLOC")
    out, err = p.communicate(timeout=STUCK)
    assert (p.returncode, out) == (0, "PD ALLOC pd_handle=0\n"), err
    return p.pid


def until_call_of(p, pid):
    """Reads the tracer's output up to the PD of this process. Returns it."""
    lines = []
    for line in p.stdout:
        lines.append(line)
        if re.search(rf"\[{pid}\] {NAMES[0]}:\d+ PD\.ALLOC\(\) = \{{pd_handle=PD#0\}} <\d", line):
            break
    return "".join(lines)


@pytest.mark.parametrize("user", [0, NOBODY])
def test_root_sees_all_calls_and_another_user_his_own(start, user):
    start()
    p = tracer(user)
    roots, nobodys = allocate(0), allocate(NOBODY)
    text = until_call_of(p, nobodys)
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=STUCK)
    assert (p.returncode, err) == (0, "")
    assert (f"[{roots}]" in text) == (user == 0), text
    assert f"[{nobodys}]" in text


def test_a_trace_ends_with_its_daemon_and_has_all_until_then(start, tmp_path):
    d = start()
    path = tmp_path / "trace"
    p = tracer(0, "-o", str(path))
    pid = allocate(NOBODY)
    assert d.stop() == 0
    _, err = p.communicate(timeout=STUCK)
    assert (p.returncode, err) == (0, ""), err
    done = subprocess.run([UVERBSCTL, "trace", "-i", path], text=True, stdout=subprocess.PIPE, timeout=STUCK)
    assert done.returncode == 0 and re.search(rf"\[{pid}\] {NAMES[0]}:\d+ PD\.ALLOC", done.stdout), done.stdout


def test_a_user_has_one_trace(start):
    start()
    first = tracer(NOBODY)
    done = subprocess.run([UVERBSCTL, "trace"], text=True, stderr=subprocess.PIPE, timeout=STUCK, user=NOBODY, group=NOBODY,
                          extra_groups=[], cwd="/")
    assert done.returncode == 1 and "too many traces" in done.stderr
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=STUCK)
    assert first.returncode == 0
    second = tracer(0)
    second.send_signal(signal.SIGINT)
    second.communicate(timeout=STUCK)
    assert second.returncode == 0
