# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
A victim is connected to a client whose memory does not answer: that must not delay the victim. Over CUSE these are two users, under
`uverbsctl run` two process trees of one engine.
"""
import subprocess

import pytest

from conftest import USER, client, cuse, uverbsctl

MODES = ["recv", "ud", "destroy", "write", "atomic"]
VICTIM = 1001
MOST_MS = 2000  # in an emulated machine; a transfer that does not end is given up after 4 seconds


class Peer:
    def __init__(self, role, mode, user, under, env):
        self.process = subprocess.Popen([*under, client("peer"), role, mode], user=user, group=user, extra_groups=[], env=env,
                                        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.address = self.hear()

    def hear(self):
        line = self.process.stdout.readline()
        assert line, "it has ended"
        return line

    def tell(self, line="\n"):
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def end(self):
        self.process.communicate("\n", timeout=cuse.STUCK)
        assert self.process.returncode == 0


def meet(mode, attacker_user, victim_user, under, env):
    """Returns how many milliseconds the victim's part took."""
    victim = Peer("victim", mode, victim_user, under, env)
    attacker = Peer("attack", mode, attacker_user, under, env)
    victim.tell(attacker.address)
    assert victim.hear() == "ready\n"
    attacker.tell(victim.address)
    assert attacker.hear() == "ready\n"
    victim.tell()
    took = int(victim.hear())
    assert victim.process.wait(cuse.STUCK) == 0
    attacker.end()
    return took


@pytest.mark.parametrize("mode", MODES)
def test_memory_of_a_peer_that_answers_nobody_is_waited_for_by_no_other_user(start, mode):
    d = start()
    assert meet(mode, USER, VICTIM, [], cuse.environment()) < MOST_MS
    d.wait_idle()


@pytest.mark.parametrize("mode", MODES)
def test_memory_of_a_peer_that_answers_nobody_is_waited_for_by_no_other_tree(mode):
    assert meet(mode, USER, USER, [uverbsctl(), "run", "--persona", "hfi1", "--join", f"peer-{mode}", "--"], None) < MOST_MS
