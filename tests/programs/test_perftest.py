# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's perftest, 2 B to 8 MiB.

-a goes through all sizes, but measures the processor's clock at each, 0.2 to 0.4 s: only a few cases do that by default.
"""
import re

import pytest

from conftest import CAN_LOCK, LONG

CONNECTIONS = {"send": ["RC", "UC", "UD"], "write": ["RC", "UC"], "read": ["RC"], "atomic": ["RC"]}
PAIRS = [(verb, what, connection) for verb, connections in CONNECTIONS.items() for connection in connections
         for what in ("lat", "bw")]
ALL = PAIRS if LONG else [("send", "bw", "RC"), ("write", "bw", "RC"), ("read", "bw", "RC")]

pytestmark = pytest.mark.skipif(not CAN_LOCK, reason="needs RLIMIT_MEMLOCK unlimited, or root")


def perftest(device, verb, what, connection, *args):
    args = ["-c", connection, *args]
    if not LONG:
        args += ["-n", 20]
    texts = device.pair(f"ib_{verb}_{what}", *args, seconds=1800 if LONG else 120, locks=True)
    sizes = [int(s) for s in re.findall(r"^ (\d+) +\d+ ", texts[1], re.M)]
    assert sizes, texts
    return sizes


def sizes_of(verb, connection):
    return [8] if verb == "atomic" else [2, 4096] if connection == "UD" else [2, 65536, 8 << 20]


@pytest.mark.parametrize("verb, what, connection", PAIRS)
def test_perftest_sizes_and_events(device, verb, what, connection):
    sizes = sizes_of(verb, connection)
    for size, events in zip([*sizes, sizes[0]], [[], ["-e"], [], ["-e"]]):
        if verb == "write":
            events = []  # refused by perftest itself
        assert perftest(device, verb, what, connection, *events, *([] if verb == "atomic" else ["-s", size])) == [size]


@pytest.mark.parametrize("verb, what, connection", [p for p in ALL if p[0] != "atomic"])
def test_perftest_all_sizes(device, verb, what, connection):
    for events in [[], ["-e"]] if LONG and verb != "write" else [[]]:
        sizes = perftest(device, verb, what, connection, "-a", *events)
        assert sizes == [1 << i for i in range(1, 13 if connection == "UD" else 24)]
