# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
How much an attacker slows down a victim's ibv_rc_pingpong. During each attack the victim must keep half of the speed that it has beside
as many plain loops of the attacker's user. Runs only with --long (conftest.py): figures of a busy machine mean nothing.
"""
import contextlib
import re
import statistics
import subprocess
import sys
import time

import pytest

from conftest import USER, Attack, client, cuse

VICTIM = 1002
ROUNDS = 3
ATTACKER = dict(user=USER, group=USER, extra_groups=[])
LOOP = ["sh", "-c", "while :; do :; done"]
STATUS = [sys.executable, "-c", """
import socket
while True:
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("/run/uverbsd/control")
        s.sendall(b"status\\n")
        while s.recv(65536):
            pass
"""]
# For each attack: the number of loops to compare it with, and the command of as many processes (chaos: of the one that starts them).
ATTACKS = {
    "loop-pd": (4, lambda: [cuse.CLIENT, "loop-pd"]),
    "loop-open": (4, lambda: [cuse.CLIENT, "loop-open"]),
    "loop-channel": (4, lambda: [cuse.CLIENT, "loop-channel"]),
    "loop-transfer": (4, lambda: [cuse.CLIENT, "loop-transfer"]),
    "status": (4, lambda: STATUS),
    "crowd": (40, lambda: [cuse.CLIENT, "loop-pd"]),
    "flip": (2, lambda: [client("flip"), "jump", "1000000"]),
    "grab": (2, lambda: [client("grab"), "1000000"]),
    "chaos": (24, lambda: [client("chaos"), "600", "1"]),
}
STUCK = ["call", "relative", "exec"]


@contextlib.contextmanager
def processes(number, command):
    started = [subprocess.Popen(command, env=cuse.environment(), stdout=subprocess.DEVNULL, start_new_session=True, **ATTACKER)
               for _ in range(number)]
    time.sleep(2)
    try:
        yield
    finally:
        for p in started:
            p.kill()
            p.wait()
            # chaos has children in its session. pkill may miss one that is forked meanwhile, so repeat.
            while not subprocess.run(["pkill", "-KILL", "-s", str(p.pid)], check=False).returncode:
                time.sleep(0.1)


def pingpong():
    """Returns the microseconds per iteration."""
    who = dict(user=VICTIM, group=VICTIM, extra_groups=[], env=cuse.environment(), text=True, stdout=subprocess.PIPE)
    with subprocess.Popen(["ibv_rc_pingpong", "-n", "200"], **who):
        for _ in range(100):
            time.sleep(0.3)
            done = subprocess.run(["ibv_rc_pingpong", "-n", "200", "localhost"], stderr=subprocess.PIPE, timeout=cuse.STUCK, **who)
            if done.returncode == 0:
                break
        assert done.returncode == 0, done.stdout + done.stderr
    return float(re.search(r"= ([\d.]+) usec/iter", done.stdout).group(1))


def compare(name, number, attack):
    """Measures loops and attack in turn. attack() returns a context manager."""
    loops, attacked = [], []
    for _ in range(ROUNDS):
        with processes(number, LOOP):
            loops.append(pingpong())
        with attack():
            attacked.append(pingpong())
    loops, attacked = statistics.median(loops), statistics.median(attacked)
    print(f"victim: {name}: beside {number} loops {loops:.0f} us an iteration, beside the attack {attacked:.0f}")
    assert attacked < 2 * loops


@pytest.mark.parametrize("name", ATTACKS)
def test_victim_has_half_of_its_speed_beside(start, capsys, name):
    d = start()
    number, command = ATTACKS[name]
    with capsys.disabled():
        compare(name, number, lambda: processes(1 if name == "chaos" else number, command()))
    d.wait_idle()


@pytest.mark.parametrize("mode", STUCK)
def test_victim_has_half_of_its_speed_beside_memory_that_answers_nobody(start, capsys, mode):
    @contextlib.contextmanager
    def held():
        stuck = Attack("stuck", mode)
        yield
        stuck.end()
    d = start()
    with capsys.disabled():
        compare(f"stuck {mode}", 1, held)
    d.wait_idle()
