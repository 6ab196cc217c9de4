# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl explain` on a running daemon with two users: each reads what failed on his own files, root reads all, and so does the log."""
import json
import signal
import subprocess

import pytest

from conftest import BUILD, NOBODY, STUCK

UVERBSCTL = BUILD / "tools" / "uverbsctl"
OTHER = 1000


def popen(user, *args):
    return subprocess.Popen([UVERBSCTL, *args], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, user=user, group=user,
                            extra_groups=[], cwd="/")


def reader(user, *args):
    p = popen(user, *args)
    assert "it has begun" in p.stderr.readline()
    return p


def fail(user, handle):
    """Has this user destroy a PD that does not exist. Returns the pid of the program."""
    p = popen(user, "call", "hfi1_0", "PD", "DESTROY", "--handle", str(handle))
    _, err = p.communicate(timeout=STUCK)
    assert p.returncode == 1 and "ENOENT" in err, err
    return p.pid


def until(p, pid):
    """Reads JSON up to the explanation for this process. Returns the processes and texts of all explanations."""
    found = []
    for line in p.stdout:
        o = json.loads(line)
        if o["kind"] == "why":
            found.append((o["pid"], o["text"]))
            if o["pid"] == pid:
                break
    return found


def end(p):
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=STUCK)
    assert (p.returncode, err) == (0, ""), err
    return out


def told(handle):
    return f"UVERBS_ATTR_DESTROY_PD_HANDLE is wrong ({handle}, {handle:#x})"


@pytest.mark.parametrize("command", ["explain", "trace"])
def test_a_user_reads_his_own_explanations_and_root_all(start, command):
    d = start()
    readers = {user: reader(user, command, "--json") for user in (0, NOBODY, OTHER)}
    pids = {user: fail(user, 70 + i) for i, user in enumerate((0, NOBODY, OTHER))}
    said = {(pids[user], told(70 + i)) for i, user in enumerate((0, NOBODY, OTHER))}
    # The others have failed before the last one, so whoever reads of them has read it when the last one's is there.
    last = fail(NOBODY, 80), fail(OTHER, 81)
    assert {*until(readers[0], last[1])} == said | {(last[0], told(80)), (last[1], told(81))}
    assert until(readers[NOBODY], last[0]) == [(pids[NOBODY], told(71)), (last[0], told(80))]
    assert until(readers[OTHER], last[1]) == [(pids[OTHER], told(72)), (last[1], told(81))]
    for p in readers.values():
        end(p)
    log = d.log.read_text()
    assert all(f"ENOENT: {text}, pid {pid}\n" in log for pid, text in said), log
    d.wait_idle()


def test_a_user_has_one_recorder_of_both_kinds(start):
    d = start()
    first = reader(NOBODY, "explain")
    p = popen(NOBODY, "trace")
    assert "too many traces" in p.communicate(timeout=STUCK)[1] and p.returncode == 1
    end(first)
    end(reader(0, "explain"))
    d.wait_idle()
