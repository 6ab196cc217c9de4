# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The distribution's programs on a device of uverbsd that forwards to rxe0, against programs on rxe0 itself."""
import pathlib
import re
import socket
import subprocess
import sys

import pytest

from conftest import HERE, cuse

STUCK = cuse.STUCK
DEVICE, ADAPTER = "hfi1_0", "rxe0"
GID = "1"           # 10.99.0.1
TABLES = ["/proc/net/tcp", "/proc/net/tcp6"]
TEXT = dict(text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
USER = dict(user=cuse.NOBODY, group=cuse.NOBODY, extra_groups=[])
OURS = [sys.executable, HERE / "no_netlink.py"]
RUN = [cuse.BUILD / "tools" / "uverbsctl", "run", "--backend", "verbs", "--hca", ADAPTER]


def on(side, program, *args):
    """The command of a program on our device (`ours`) or on the adapter itself (`plain`)."""
    return [*(OURS if side == "ours" else []), program, "-d", DEVICE if side == "ours" else ADAPTER, *args]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    return any(re.search(rf":{port:04X} \w+:0000 0A ", pathlib.Path(table).read_text()) for table in TABLES)


def pair(server, client, port):
    """Runs the server, and the client when the server listens. Returns what both say."""
    with subprocess.Popen(server, **TEXT, **USER) as process:
        try:
            cuse.wait_for("the server", lambda: listens(port) or process.poll() is not None)
            done = subprocess.run(client, timeout=STUCK, check=False, **TEXT, **USER)
            text = process.communicate(timeout=STUCK)[0]
        finally:
            process.kill()
    assert done.returncode == 0 and process.returncode == 0, done.stdout + text
    return done.stdout + text


def resources():
    """What clients have on the adapter, as `rdma resource show` tells: {"qp": 3, ...}. A PD, CQ and QP are the kernel's own."""
    text = subprocess.run(["rdma", "resource", "show"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: int(n) for name, n in re.findall(r"(\w+) (\d+)", text.split(f"{ADAPTER}:")[1])}


@pytest.fixture(name="own", scope="module")
def fixture_own():
    """What is on the adapter without clients."""
    return resources()


@pytest.fixture(name="daemon", scope="module")
def fixture_daemon(own, tmp_path_factory):
    d = cuse.Daemon(tmp_path_factory.mktemp("verbs"), "--backend", "verbs", "--hca", ADAPTER)
    yield d
    assert d.stop() == 0, d.log.read_text()
    assert resources() == own


@pytest.fixture(autouse=True)
def fixture_nothing_is_left(own, request):
    yield
    if "daemon" in request.fixturenames:
        d = request.getfixturevalue("daemon")
        d.wait_idle()
        # The daemon has a context of its own on the adapter, for queries.
        cuse.wait_for("an adapter without clients' objects",
                      lambda: {**resources(), "ctx": 0} == {**own, "ctx": 0})


SIDES = [("ours", "plain"), ("plain", "ours"), ("ours", "ours")]
PROGRAMS = [("ibv_rc_pingpong", []), ("ibv_rc_pingpong", ["-e"]), ("ibv_uc_pingpong", []), ("ibv_ud_pingpong", ["-s", "1024"]),
            ("ibv_srq_pingpong", ["-q", "2"])]


def pingpong(server, client, program, *args):
    port = free_port()
    args = ["-g", GID, "-n", "20", "-c", "-p", str(port), *args]
    text = pair(on(server, program, *args), [*on(client, program, *args), "localhost"], port)
    assert text.count("20 iters") == 2, text


@pytest.mark.parametrize("sides", SIDES, ids="-".join)
def test_rc_pingpong_with_checked_payload(daemon, sides):
    pingpong(*sides, "ibv_rc_pingpong")


@pytest.mark.parametrize("program, args", PROGRAMS[1:], ids=lambda v: v if isinstance(v, str) else "".join(v))
def test_pingpong_of_other_kinds_with_checked_payload(daemon, program, args):
    pingpong("ours", "plain", program, *args)
