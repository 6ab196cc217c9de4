# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""uverbsd --wire: the sockets are the broker's, and the device is hfi1 with addresses."""
import os
import pathlib
import re
import signal
import subprocess

from conftest import BUILD, NAMES, ONE_PROCESS, STUCK, wait_for
from test_programs import pingpong, run

ADDRESS, GID = "127.0.0.2", "0000:0000:0000:0000:0000:ffff:7f00:0002"
PORT = pathlib.Path(f"/run/uverbsd/sysfs/class/infiniband/{NAMES[0]}/ports/1")
MOST = int(pathlib.Path("/proc/sys/net/core/rmem_max").read_text())


def published():
    return (PORT / "../../node_guid").read_text().strip(), (PORT / "gids/0").read_text().strip(), (PORT / "link_layer").read_text().strip()


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
    pingpong("-g", "0")
    os.kill(d.serving, signal.SIGKILL)
    wait_for("another engine process", lambda: d.starts() == 2)
    assert is_on_the_wire(d) == guid
    pingpong("-g", "0")
    again = subprocess.run([BUILD / "src" / "uverbsd", "--wire", ADDRESS], stderr=subprocess.PIPE, text=True, timeout=STUCK)
    assert again.returncode == 1 and "EADDRINUSE" in again.stderr and "--join" in again.stderr and again.stderr.count("\n") == 1, again
    assert d.stop() == 0
    assert "12B7" not in pathlib.Path("/proc/net/udp").read_text()
    d = start(*ONE_PROCESS, "--wire", ADDRESS)
    assert is_on_the_wire(d) != guid and d.stop() == 0
