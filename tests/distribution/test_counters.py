# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The counters of a port in sysfs, as monitoring reads them around the traffic of the distribution's programs."""
import re
import shutil
import sys
import time
import urllib.request

import pytest

from conftest import CUSE, free_port, listens, over_cuse, until

EXPORTER = shutil.which("prometheus-node-exporter")
MESSAGES, SIZE = 100, 4096
PACKETS = SIZE // 1024  # ibv_rc_pingpong's path MTU
BOTH = 2 * MESSAGES  # both programs send
STALE = 1  # second: the promise of hw_counters/lifespan

# Opens a counter, says so, and says when the open file shows another value.
HOLDER = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
first = os.pread(fd, 32, 0)
print("open", flush=True)
while os.pread(fd, 32, 0) == first:
    time.sleep(0.05)
print("changed", time.monotonic(), flush=True)
"""


def folder_of(device):
    return f"/sys/class/infiniband/{device.name}/ports/1"


def read(device):
    """All counters of the port: {folder/name: value}."""
    text = device.run("sh", "-c", f"grep . {folder_of(device)}/counters/* {folder_of(device)}/hw_counters/*").ok()
    return {name: int(value) for name, value in re.findall(r"ports/1/(\w+/\w+):(\d+)$", text, re.M)}


def grown(device, before):
    return {name: value - before[name] for name, value in read(device).items() if value != before[name]}


def expected_of_pingpong(device):
    words, packets = BOTH * SIZE // 4, BOTH * PACKETS
    expected = {f"counters/port_{way}_data": words for way in ("xmit", "rcv")}
    for way in "xmit", "rcv":
        expected |= {f"counters/port_{way}_packets": packets, f"counters/unicast_{way}_packets": packets}
    if device.way == "rxe":
        expected |= {f"hw_counters/{name}": packets for name in ("sent_pkts", "rcvd_pkts")}
        expected |= {f"hw_counters/{name}": BOTH for name in ("rdma_sends", "rdma_recvs")}
    return expected


def settled(device):
    """The counters once they show all earlier traffic."""
    if CUSE:
        time.sleep(STALE)
    return read(device)


@over_cuse("ioctl")
def test_pingpong_counts_its_words_and_packets(device):
    before, expected = settled(device), expected_of_pingpong(device)
    device.pair("ibv_rc_pingpong", "-n", MESSAGES, "-s", SIZE)
    if CUSE:
        until(lambda: grown(device, before) == expected, f"{expected}", tell=lambda: str(grown(device, before)))
    assert grown(device, before) == expected


@over_cuse("ioctl")
def test_write_bw_counts_its_data(device):
    before = {}
    device.pair("ib_write_bw", "-n", 200, "-s", 65536, locks=True, begin=lambda: before.update(settled(device)))
    words = settled(device)["counters/port_xmit_data"] - before["counters/port_xmit_data"]
    assert 200 * 65536 // 4 <= words < 2 * 200 * 65536 // 4


@over_cuse("ioctl")
def test_counter_that_stays_open_shows_new_values(device):
    holder = device.start(sys.executable, "-c", HOLDER, f"{folder_of(device)}/counters/port_rcv_data")
    until(lambda: "open" in holder.text(), "the open file")
    device.pair("ibv_rc_pingpong", "-n", MESSAGES)
    end = time.monotonic()
    changed = float(re.search(r"changed (\S+)", holder.wait().ok())[1])
    assert changed - end < STALE + 20  # a busy machine is slow


def metrics_of(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    return {name: float(value) for name, value in re.findall(r"^node_infiniband_(\w+)\{[^}]*\} (\S+)$", text, re.M)}


@over_cuse("ioctl")
@pytest.mark.skipif(not EXPORTER, reason="prometheus-node-exporter is not installed")
def test_node_exporter_exports_the_traffic(device):
    port = free_port()
    exporter = device.start(EXPORTER, "--collector.disable-defaults", "--collector.infiniband", f"--web.listen-address=127.0.0.1:{port}")
    until(lambda: listens(port) or exporter.ended(), "the exporter", tell=exporter.text)
    settled(device)
    before = metrics_of(port)
    assert before["state_id"] == 4 and before["port_transmit_wait_total"] == 0, exporter.text()
    device.pair("ibv_rc_pingpong", "-n", MESSAGES, "-s", SIZE)
    settled(device)
    now = metrics_of(port)
    for way in "transmitted", "received":
        name = f"port_data_{way}_bytes_total"
        assert now[name] - before[name] == BOTH * SIZE, exporter.text()
        name = f"port_packets_{way}_total"
        assert now[name] - before[name] == BOTH * PACKETS
