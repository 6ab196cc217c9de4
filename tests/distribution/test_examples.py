# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""libibverbs' own example programs (Debian's ibverbs-utils)."""
import re

import pytest

from conftest import CLIENTS, CUSE, LONG, over_cuse, until

ITERS = 1000 if LONG else 50


HOW = [[], ["-e"], ["-c"], ["-e", "-c", "-s", "100000"]]  # polling, events, bytes compared
if CUSE and not LONG:
    HOW = [[], HOW[-1]]
ON_DEMAND = [["-o", "-c"]]


@over_cuse("ioctl")
@pytest.mark.parametrize("kind, how", [(kind, how) for kind in ("rc", "uc", "ud", "srq") for how in HOW + ON_DEMAND
                                       if kind in ("rc", "srq") or how not in ON_DEMAND],
                         ids=lambda v: v if isinstance(v, str) else "".join(v))
def test_pingpong(device, kind, how):
    if kind == "ud":
        how = [a if a != "100000" else "2048" for a in how]  # a datagram is one packet
    args = ["-n", ITERS] + (["-q", 4] if kind == "srq" else [])
    for text in device.pair(f"ibv_{kind}_pingpong", *args, *how):
        assert re.search(rf"{ITERS} iters in", text), text


@over_cuse("write")
def test_pingpong_in_the_other_abi(device):
    for text in device.pair("ibv_rc_pingpong", "-n", ITERS, *HOW[-1]):
        assert re.search(rf"{ITERS} iters in", text), text


@over_cuse("ioctl")
def test_asyncwatch_sees_the_port_go_and_come(device):
    watch = device.start("stdbuf", "-oL", "ibv_asyncwatch")
    until(lambda: "event" in watch.text() or watch.ended(), "ibv_asyncwatch's start")
    device.control("port", "down", device.name, "1").ok()
    until(lambda: "IBV_EVENT_PORT_ERR" in watch.text() or "local port" in watch.text(), "the port's end")
    assert "PORT_DOWN" in device.run("ibv_devinfo").ok()
    device.control("port", "up", device.name, "1").ok()
    until(lambda: "IBV_EVENT_PORT_ACTIVE" in watch.text(), "the port's return")
    assert re.findall(r"IBV_EVENT_(\w+) .*port (\d)", watch.text()) == [("PORT_ERR", "1"), ("PORT_ACTIVE", "1")], watch.text()
    assert "PORT_ACTIVE" in device.run("ibv_devinfo").ok()


@over_cuse("write")
def test_multicast_between_three_processes(device):
    device.run(CLIENTS["mcast"]).ok()
