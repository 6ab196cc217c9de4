# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl explain` on a running daemon with two users: each reads what failed on his own files, root reads all, and so does the log."""
import json
import re
import signal
import subprocess

import pytest

from conftest import BUILD, NAMES, NOBODY, STUCK, environment

UVERBSCTL = BUILD / "tools" / "uverbsctl"
PEER = BUILD / "tests" / "cuse" / "cuse-peer"
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
    p = popen(user, "call", NAMES[0], "PD", "DESTROY", "--handle", str(handle))
    _, err = p.communicate(timeout=STUCK)
    assert p.returncode == 1 and "ENOENT" in err, err
    return p.pid


def until(p, pid):
    """Reads JSON up to the explanation for this process. Returns the processes and texts of all explanations."""
    return [(o["pid"], o["text"]) for o in all_until(p, pid)]


def all_until(p, pid):
    found = []
    for line in p.stdout:
        o = json.loads(line)
        if o["kind"] == "why":
            found.append(o)
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


class Peer:
    """A program of this user's, which has a QP."""

    def __init__(self, user, kind):
        self.process = subprocess.Popen([PEER, kind], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(),
                                        user=user, group=user, extra_groups=[], cwd="/")
        self.pid = self.process.pid
        self.number, self.address, self.rkey = map(int, self.process.stdout.readline().split())

    def do(self, action, peer, rkey=0, qkey=0):
        self.process.stdin.write(f"{peer} {action} {rkey} {qkey}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == f"is {action}\n"

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(STUCK) == 0


# What NOBODY's program sends to OTHER's, which has never had that R_Key, is in INIT, or has another Q_Key. The kind of the QPs, what the
# two do, the status of the message, and the reasons that each of them reads, with a part of the text.
RKEY, QKEY = 0x1ff00, 0x12
MESSAGES = [
    ("rc", "ready", "write", "remote access error", ("remote-refused", "has refused the request with a NAK: remote access error"),
     ("key-unknown", "0x1ff00 is the r_key of no region")),
    ("rc", "init", "write", "transport retry counter exceeded", ("peer-silent", "no QP of yours has that number"),
     ("peer-state", "is in INIT and drops what arrives")),
    ("ud", "ready", "send", "success", None, ("datagram-qkey", "the Q_Key 0x12 came")),
]


def test_of_failed_messages_between_two_users_each_reads_his_own_part(start):
    d = start()
    readers = {user: reader(user, "explain", "--json") for user in (0, NOBODY, OTHER)}
    for kind, state, action, status, *wants in MESSAGES:
        a, b = Peer(NOBODY, kind), Peer(OTHER, kind)
        b.do(state, a.number)
        a.do(action, b.number, RKEY, QKEY)
        assert a.process.stdout.readline().lower().strip() == status
        # Now that these fail, all that is said of the message has been said.
        last = {user: fail(user, 90) for user in (NOBODY, OTHER)}
        said = {user: all_until(readers[user], last[user])[:-1] for user in (NOBODY, OTHER)}
        everything = {(o["pid"], o["text"]) for o in all_until(readers[0], last[OTHER])}
        for user, peer, want in zip((NOBODY, OTHER), (a, b), wants):
            found = [(o["pid"], o["number"], o["reason"]) for o in said[user]]
            assert found == ([(peer.pid, peer.number, want[0])] if want else []), said
            assert all(want[1] in o["text"] for o in said[user]), said
        # Which process, which key and what state of the QP it is, is the responder's to know.
        secrets = re.compile(rf"\b({b.pid}|0x1ff00|INIT|region)\b")
        assert not any(secrets.search(o["text"] + json.dumps(o["values"])) for o in said[NOBODY]), said
        assert all((o["pid"], o["text"]) in everything and o["text"] in d.log.read_text() for o in said[NOBODY] + said[OTHER])
        for p in (a, b):
            p.end()
    for p in readers.values():
        end(p)
    d.wait_idle()
