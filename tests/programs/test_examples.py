# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""libibverbs' own example programs (Debian's ibverbs-utils)."""
import re

import pytest

from conftest import CLIENTS, LONG, until

ITERS = 1000 if LONG else 50


@pytest.mark.parametrize("how", [[], ["-e"], ["-c"], ["-e", "-s", "100000"]], ids=" ".join)
@pytest.mark.parametrize("kind", ["rc", "uc", "ud", "srq"])
def test_pingpong(device, kind, how):
    if "-s" in how and kind == "ud":
        how = ["-e", "-s", "2048"]  # a datagram is one packet
    if "-c" in how and kind != "rc":
        how = ["-s", "1"]  # only rc looks at the bytes; the smallest message instead
    args = ["-n", ITERS] + (["-q", 4] if kind == "srq" else [])
    for text in device.pair(f"ibv_{kind}_pingpong", *args, *how):
        assert re.search(rf"{ITERS} iters in", text), text


def test_asyncwatch_sees_the_port_go_and_come(device):
    watch = device.start("stdbuf", "-oL", "ibv_asyncwatch")
    until(lambda: "event" in watch.text() or watch.ended(), "ibv_asyncwatch's start")
    device.control("port", "hfi1_0", "1", "down").ok()
    until(lambda: "IBV_EVENT_PORT_ERR" in watch.text() or "local port" in watch.text(), "the port's end")
    assert "PORT_DOWN" in device.run("ibv_devinfo").ok()
    device.control("port", "hfi1_0", "1", "up").ok()
    until(lambda: "IBV_EVENT_PORT_ACTIVE" in watch.text(), "the port's return")
    assert re.findall(r"IBV_EVENT_(\w+) .*port (\d)", watch.text()) == [("PORT_ERR", "1"), ("PORT_ACTIVE", "1")], watch.text()
    assert "PORT_ACTIVE" in device.run("ibv_devinfo").ok()


def test_multicast_between_three_processes(device):
    device.run(CLIENTS["mcast"]).ok()
