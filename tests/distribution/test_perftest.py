# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's perftest, 2 B to 8 MiB.

By default each program runs once, at one size, with events if it supports them, in one of the ways of conftest.py, because each
start measures the CPU's clock for 0.2 to 0.4 s. One program runs with -a. Over CUSE only a few programs run, none with -a: the
payload tests cover every size of every verb. With UVERBSD_LONG every program runs with every size, with perftest's own number of
iterations, in all ways. Over CUSE each then runs in one ABI only, which takes 35 minutes: an emulated machine copies the 84 GB of
each ib_*_bw -a.
"""
import re

import pytest

from perftest import was_disturbed
from conftest import CAN_LOCK, CUSE, LIMIT, LONG, SANITIZED, WAYS

CONNECTIONS = {"send": ["RC", "UC", "UD"], "write": ["RC", "UC"], "read": ["RC"], "atomic": ["RC"]}
PAIRS = [(verb, what, connection) for verb, connections in CONNECTIONS.items() for connection in connections
         for what in ("lat", "bw")]
if CUSE and not LONG:
    PAIRS = [("send", "lat", "RC"), ("write", "bw", "RC"), ("read", "lat", "RC"), ("send", "bw", "UD"), ("atomic", "lat", "RC")]
ALL_SIZES = [p for p in PAIRS if p[0] != "atomic"] if LONG else [] if CUSE else [("send", "bw", "RC")]
if SANITIZED:
    ALL_SIZES = []  # to a sanitizer this adds nothing to test_perftest_sizes_and_events


def in_turn(cases):
    """Gives each case one way, or all ways. The way comes first, to sort the cases by lasting_device."""
    n = len(WAYS)
    return sorted((way, *case) for i, case in enumerate(cases) for way in (WAYS if LONG and not CUSE else [WAYS[(i // n + i) % n]]))


def perftest_cases(cases):
    return pytest.mark.parametrize("lasting_device, verb, what, connection", in_turn(cases), indirect=["lasting_device"])


pytestmark = pytest.mark.skipif(not CAN_LOCK, reason="needs RLIMIT_MEMLOCK unlimited, or root")


def perftest(device, verb, what, connection, *args):
    args = ["-c", connection, *args]
    if not LONG:
        args += ["-n", 20]
    texts = device.pair(f"ib_{verb}_{what}", *args, seconds=LIMIT, locks=True)
    sizes = [int(s) for s in re.findall(r"^ (\d+) +\d+ ", texts[1], re.M)]
    assert sizes, texts
    return sizes


def perftest_of_all_sizes(device, verb, what, connection, *args):
    """A run with -a measures the clock for each size. If one such measurement fails each time, each size has its own run."""
    try:
        return perftest(device, verb, what, connection, "-a", *args)
    except AssertionError as e:
        if not was_disturbed(str(e)):
            raise
    return [size for exponent in range(1, 13 if connection == "UD" else 24)
            for size in perftest(device, verb, what, connection, "-s", 1 << exponent, *args)]


def sizes_of(verb, connection):
    return [8, 8] if verb == "atomic" else [2, 4096] if connection == "UD" else [2, 65536, 8 << 20]


@perftest_cases(PAIRS)
def test_perftest_sizes_and_events(device, verb, what, connection):
    ways = list(zip(sizes_of(verb, connection), [[], ["-e"], []]))
    for size, events in ways if LONG else ways[1:2]:
        if verb == "write":
            events = []  # perftest itself refuses events here
        assert perftest(device, verb, what, connection, *events, *([] if verb == "atomic" else ["-s", size])) == [size]


if ALL_SIZES:
    @perftest_cases(ALL_SIZES)
    def test_perftest_all_sizes(device, verb, what, connection):
        for events in [[], ["-e"]] if LONG and verb != "write" else [[]]:
            sizes = perftest_of_all_sizes(device, verb, what, connection, *events)
            assert sizes == [1 << i for i in range(1, 13 if connection == "UD" else 24)]
