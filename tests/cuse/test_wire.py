# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""uverbsd --wire: the sockets are the broker's, and the device is hfi1 with addresses."""
import os
import pathlib
import re
import signal
import subprocess

from conftest import BUILD, ONE_PROCESS, STUCK, wait_for
from test_programs import pingpong, run

ADDRESS, GID = "127.0.0.2", "0000:0000:0000:0000:0000:ffff:7f00:0002"
DEVICES = pathlib.Path("/run/uverbsd/sysfs/class/infiniband")
MOST = int(pathlib.Path("/proc/sys/net/core/rmem_max").read_text())


def published():
    (device,) = DEVICES.iterdir()
    port = device / "ports/1"
    return tuple(file.read_text().strip() for file in (device / "node_guid", port / "gids/0", port / "link_layer"))


def is_on_the_wire(d):
    """Returns the node GUID. The receive buffer is larger than what a process without CAP_NET_ADMIN gets, for the MTU 4096."""
    guid, *rest = published()
    shown = run("ibv_devinfo")
    assert rest == [GID, "Ethernet"] and re.search(r"node_guid:\s+(.*)", shown)[1] == guid, (rest, shown)
    assert re.search(r"active_mtu:\s+(\d+)", shown)[1] == "4096" and re.search(r"link_layer:\s+(.*)", shown)[1] == "Ethernet", shown
    [wire] = d.status()["wire"]
    assert wire["address"] == ADDRESS and wire["receive_buffer"] > 2 * MOST and wire["packets"] >= 128, wire
    assert "0200007F:12B7" in pathlib.Path("/proc/net/udp").read_text()
    return guid


def test_broker_opens_the_sockets_for_each_engine_process(start):
    d = start("--wire", ADDRESS)
    guid = is_on_the_wire(d)
    pingpong()
    os.kill(d.serving, signal.SIGKILL)
    wait_for("another engine process", lambda: d.starts() == 2)
    assert is_on_the_wire(d) == guid
    pingpong()
    again = subprocess.run([BUILD / "src" / "uverbsd", "--wire", ADDRESS], stderr=subprocess.PIPE, text=True, timeout=STUCK)
    assert again.returncode == 1 and "EADDRINUSE" in again.stderr and "--join" in again.stderr and again.stderr.count("\n") == 1, again
    assert d.stop() == 0
    assert "12B7" not in pathlib.Path("/proc/net/udp").read_text()
    d = start(*ONE_PROCESS, "--wire", ADDRESS)
    assert is_on_the_wire(d) != guid and d.stop() == 0
