# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
Two engines on the wire that lose packets, many programs between them at once, and programs that are killed at random moments.

UVERBSD_SOAK is how long it lasts, in seconds: with UVERBSD_LONG half an hour for a sanitizer's build, otherwise two rounds of a few
programs. UVERBSD_SEED chooses programs and kills. What has happened is printed (pytest -s).
"""
import contextlib
import os
import random
import tempfile
import time

import pytest

from conftest import SANITIZED
from wire_engine import Engine, Pair, idle, reports_in
from wirenet import Net

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="makes network namespaces")
LONG = "UVERBSD_LONG" in os.environ
SECONDS = float(os.environ.get("UVERBSD_SOAK", (1800 if SANITIZED else 120) if LONG else 0))
SEED = int(os.environ.get("UVERBSD_SEED", 46))
AT_ONCE = 5
ROUND = 60  # seconds: then all programs end, and the engines are looked at


@pytest.fixture(name="net")
def fixture_net():
    net = Net()
    yield net
    net.close()


def test_programs_killed_at_random_moments_leave_nothing_on_a_lossy_wire(net):
    rng, counts, samples, failures = random.Random(SEED), {}, [], []
    personas = "rxe", rng.choice(("rxe", "hfi1"))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="uverbsd-soak-"))
        os.chmod(folder, 0o777)
        engines = [stack.enter_context(Engine(net, end, folder, personas[end], ["--filter", "loss:rc=%1"])) for end in (0, 1)]
        pairs, number, begin = [], 0, time.monotonic()
        while len(samples) < 2 or time.monotonic() < begin + SECONDS:
            pause, least = min(begin + SECONDS, time.monotonic() + ROUND), number + AT_ONCE
            while pairs or number < least or time.monotonic() < pause:
                while len(pairs) < AT_ONCE and (number < least or time.monotonic() < pause):
                    pairs.append(Pair(engines, rng, number, kills=0.4))
                    number += 1
                for pair in pairs[:]:
                    try:
                        if not pair.step():
                            continue
                    except AssertionError as e:
                        assert all(engine.run.poll() is None for engine in engines), [engine.words() for engine in engines]
                        pair.abandon()
                        pair.result = "failed"
                        failures.append(str(e))
                        print(e, flush=True)
                    pairs.remove(pair)
                    counts[pair.result] = counts.get(pair.result, 0) + 1
                assert not reports_in(folder)
                time.sleep(0.02)
            samples.append([idle(e) for e in engines])
            print(f"{time.monotonic() - begin:.0f} s: {number} pairs {counts} fds, threads, KiB: {samples[-1]}", flush=True)
        dropped = [[w["dropped"] for w in e.status()["wire"]] for e in engines]
        assert [e.close() for e in engines] == [0, 0], [e.words() for e in engines]
        said = [e.words() for e in engines]
        print(f"seed {SEED}, personas {personas}: dropped {dropped}\n" + "\n".join(said))
        assert not reports_in(folder) and not any(" is still charged for " in s for s in said), said
    assert not failures, failures
    assert counts.get("whole") and sum(counts.values()) > counts["whole"], counts
    for end in (0, 1):
        fds, threads, memory = zip(*(s[end] for s in samples))
        assert fds[-1] <= fds[0] and threads[-1] <= threads[0] + 2, samples
        if len(memory) > 10:
            assert max(memory[-3:]) < 1.2 * max(memory[2:5]), samples
