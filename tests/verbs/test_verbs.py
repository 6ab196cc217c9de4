# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The distribution's programs on a device of uverbsd that forwards to rxe0, against programs on rxe0 itself."""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys

import pytest

import perftest
from conftest import HERE, cuse

STUCK = cuse.STUCK
DEVICE, ADAPTER = "hfi1_0", "rxe0"
GID = "1"           # 10.99.0.1
TABLES = ["/proc/net/tcp", "/proc/net/tcp6"]
TEXT = dict(text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
USER = dict(user=cuse.NOBODY, group=cuse.NOBODY, extra_groups=[])
OURS = [cuse.BUILD / "tests" / "verbs" / "no_netlink"]
RUN_VERBS = [cuse.BUILD / "tools" / "uverbsctl", "run", "--backend", "verbs"]
RUN = [*RUN_VERBS, "--hca", ADAPTER]
RUN_BORROW = [*RUN, "--"]  # the default: --memory=auto


def on(side, program, *args):
    """The command of a program on the daemon's device (`ours`), on that of a run (`run`) or on the adapter itself (`plain`)."""
    prefix = {"ours": OURS, "run": RUN_BORROW, "plain": []}[side]
    return [*prefix, program, "-d", ADAPTER if side == "plain" else DEVICE, *args]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    return any(re.search(rf":{port:04X} \w+:0000 0A ", pathlib.Path(table).read_text()) for table in TABLES)


def pair(server, client, port):
    """Runs the server, and the client when the server listens. Returns what both say."""
    def attempt():
        with subprocess.Popen(server, **TEXT, **USER) as process:
            try:
                cuse.wait_for("the server", lambda: listens(port) or process.poll() is not None)
                done = subprocess.run(client, timeout=STUCK, check=False, **TEXT, **USER)
                text = process.communicate(timeout=STUCK)[0]
            finally:
                process.kill()
        return done.returncode or process.returncode, done.stdout + text

    status, text = perftest.undisturbed(attempt, lambda result: result[1] if result[0] else "")
    assert status == 0, text
    return text


def thief(mode, prefix=OURS):
    """Runs a client whose other thread gets at the adapter's device file while it registers. Returns how often it kept it."""
    command = [*prefix, cuse.BUILD / "tests" / "verbs" / "thief", DEVICE, mode]
    done = subprocess.run(command, timeout=STUCK, check=False, env={**os.environ, "UVERBS_NODE": "/dev/infiniband/uverbs0"},
                          **TEXT, **USER)
    assert done.returncode == 0, done.stdout
    return int(re.search(r"^kept (\d+)$", done.stdout, re.M)[1])


def resources():
    """What clients have on the adapter, as `rdma resource show` tells: {"qp": 3, ...}. A PD, CQ and QP are the kernel's own."""
    text = subprocess.run(["rdma", "resource", "show"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: int(n) for name, n in re.findall(r"(\w+) (\d+)", text.split(f"{ADAPTER}:")[1])}


@pytest.fixture(name="own", scope="module")
def fixture_own():
    """What is on the adapter without clients."""
    return resources()


# test_separate.py has some of the tests with two processes; with --long all are made with both.
SEPARATE = ["no", "yes"] if os.environ.get("UVERBSD_LONG") else ["no"]


@pytest.fixture(name="daemon", scope="module", params=SEPARATE)
def fixture_daemon(own, tmp_path_factory, request):
    d = cuse.Daemon(tmp_path_factory.mktemp("verbs"), "--backend", "verbs", "--hca", ADAPTER, "--memory", "bounce",
                    "--separate", request.param)
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


def bandwidth(server, client, program, size):
    port = free_port()
    args = ["-x", GID, "-n", "20", "-t", "16", "-p", str(port), "-F", *([] if program == "ib_atomic_bw" else ["-s", str(size)])]
    text = pair(on(server, program, *args), [*on(client, program, *args), "127.0.0.1"], port)
    assert re.search(rf"^ *{size} +20 ", text, re.M), text


@pytest.mark.parametrize("sides", SIDES, ids="-".join)
def test_rc_pingpong_with_checked_payload(daemon, sides):
    pingpong(*sides, "ibv_rc_pingpong")


@pytest.mark.parametrize("program, args", PROGRAMS[1:], ids=lambda v: v if isinstance(v, str) else "".join(v))
def test_pingpong_of_other_kinds_with_checked_payload(daemon, program, args):
    pingpong("ours", "plain", program, *args)


# Sixteen receives of 64 KiB are more than a chunk of buffers.
@pytest.mark.parametrize("size", ["2", "4096", "65536"])
def test_send_bandwidth_runs_at_this_size(daemon, size):
    port = free_port()
    args = ["-x", GID, "-n", "20", "-s", size, "-t", "16", "-r", "16", "-p", str(port), "-F"]
    text = pair(on("ours", "ib_send_bw", *args), [*on("plain", "ib_send_bw", *args), "127.0.0.1"], port)
    assert re.search(rf"^ *{size} +20 ", text, re.M), text


def test_run_forwards_without_root(own):
    port = free_port()
    args = ["-g", GID, "-n", "20", "-c", "-p", str(port)]
    text = pair([*RUN, "--", "ibv_rc_pingpong", *args], [*on("plain", "ibv_rc_pingpong", *args), "localhost"], port)
    assert text.count("20 iters") == 2, text


def test_killed_client_leaves_nothing_on_the_adapter(daemon, own):
    port = free_port()
    with subprocess.Popen(on("ours", "ibv_rc_pingpong", "-g", GID, "-p", str(port)), **TEXT, **USER) as server:
        cuse.wait_for("the server", lambda: listens(port))
        assert resources()["qp"] > own["qp"]
        server.kill()
    # The fixture waits until the accounts and the adapter are empty.


def refused(*options, program=(cuse.BUILD / "src" / "uverbsd",), user=None):
    done = subprocess.run([*program, *options], timeout=STUCK, check=False, **TEXT, **(user or {}))
    assert done.returncode != 0, done.stdout
    return done.stdout


def test_adapter_that_does_not_exist_is_named_with_those_that_do():
    text = refused("--hca", "mlx5_7", "--", "true", program=RUN_VERBS)
    assert f"--hca mlx5_7: there is no such adapter; libibverbs finds: {ADAPTER}" in text


def test_device_is_not_its_own_adapter():
    text = refused("--hca", DEVICE, "--", "true", program=RUN_VERBS)
    assert f"--hca {DEVICE}: it is this device itself, and not an adapter" in text


def test_adapter_without_permission_is_named_with_its_node():
    node = pathlib.Path("/dev/infiniband/uverbs0")
    node.chmod(0o600)
    try:
        text = refused("--", "true", program=RUN, user=USER)
    finally:
        node.chmod(0o666)
    assert "no permission to open /dev/infiniband/uverbs0: EACCES" in text


@pytest.mark.parametrize("options, why", [
    (["--backend", "verbs"], "backend verbs needs --hca NAME"),
    (["--hca", ADAPTER], f"--hca {ADAPTER} is for --backend verbs, and not for soft"),
], ids=["no hca", "no backend"])
def test_options_that_do_not_fit_are_refused(options, why):
    assert why in refused(*options)


def test_mapped_queues_are_refused():
    text = refused("--persona", "rxe", "--", "true", program=RUN)
    assert "backend 'verbs' has no mapped queues, which persona 'rxe' needs" in text


def call(how, access):
    """Registers memory on a device with this --memory. Returns the exit status and what it says."""
    script = f"$pd = PD ALLOC\n$mr = MR REG --pd $pd --access {access}\n"
    del script
    done = subprocess.run([*RUN, "--memory", how, "--", sys.executable, HERE / "register.py", access], timeout=STUCK, check=False,
                          **TEXT)
    return done.stdout


def test_memory_of_peers_is_refused_by_bounce():
    assert "registered" in call("bounce", "local")
    text = call("bounce", "remote")
    assert "EOPNOTSUPP" in text and "its data is copied (--memory=bounce), and peers cannot access it" in text


def test_no_memory_is_registered_by_refuse():
    text = call("refuse", "local")
    assert "EOPNOTSUPP" in text and "the device has --memory=refuse" in text


def test_port_of_the_adapter_is_not_taken_down_by_uverbsctl(daemon):
    done = subprocess.run([cuse.BUILD / "tools" / "uverbsctl", "port", "down", DEVICE, "1"], timeout=STUCK, check=False, **TEXT)
    assert done.returncode and f"the ports of this device are those of its adapter {ADAPTER}: change them there" in done.stdout
    state = pathlib.Path(f"/run/uverbsd/sysfs/class/infiniband/{DEVICE}/ports/1/state")
    assert state.read_text() == "4: ACTIVE\n"


def port_of(root, name):
    return root / "class" / "infiniband" / name / "ports" / "1"


def tables(port):
    """What clients and administrators read of a port. An empty slot has no type and no network device."""
    texts = {name: (port / name).read_text() for name in ("state", "phys_state", "link_layer", "lid", "rate", "pkeys/0")}
    for i in range(16):
        texts[f"gids/{i}"] = gid = (port / f"gids/{i}").read_text()
        for attr in ("types", "ndevs") if gid.strip("0:\n") else ():
            texts[f"{attr}/{i}"] = (port / f"gid_attrs/{attr}/{i}").read_text()
    return texts


def ip(*words):
    subprocess.run(["ip", *words, "dev", "dummy0"], check=True)


def devinfo(*args):
    return subprocess.run(on("ours", "ibv_devinfo", *args), check=True, **TEXT, **USER).stdout


def test_what_a_device_publishes_follows_its_adapter(daemon):
    port = port_of(pathlib.Path("/run/uverbsd/sysfs"), DEVICE)
    adapter = port_of(pathlib.Path("/sys"), ADAPTER)

    def follows(*gids, state="4: ACTIVE\n"):
        expected = sorted(["0a63:0001", *gids])

        def is_there():
            found = tables(port)
            have = sorted(text.split("ffff:")[1].strip() for name, text in found.items() if name[:5] == "gids/" and "ffff:" in text)
            return have == expected and found["state"] == state and found == tables(adapter)
        cuse.wait_for(f"a device with GIDs {expected} and state {state}", is_there)

    follows()
    # No file but those of GIDs changes here, and later no GID: each kind of event is enough for what it tells.
    ip("addr", "add", "10.99.0.7/24")
    follows("0a63:0007")
    ip("addr", "add", "10.99.0.8/24")
    follows("0a63:0007", "0a63:0008")
    ip("addr", "del", "10.99.0.7/24")
    follows("0a63:0008")  # behind an empty slot
    text = devinfo("-v")
    assert "10.99.0.8" in text and "10.99.0.7" not in text and "PORT_ACTIVE" in text, text
    ip("link", "set", "down")
    follows("0a63:0008", state="1: DOWN\n")
    assert "PORT_DOWN" in devinfo()
    ip("link", "set", "up")
    follows("0a63:0008")
    ip("addr", "del", "10.99.0.8/24")
    follows()
    assert "PORT_ACTIVE" in devinfo()


def test_hca_lists_the_adapter_and_not_the_device(daemon):
    hca = [cuse.BUILD / "tools" / "uverbsctl", "hca", "list"]
    adapters = json.loads(subprocess.run([*hca, "--json"], check=True, stdout=subprocess.PIPE).stdout)
    assert [a["hca"] for a in adapters] == [ADAPTER]
    through_us = dict(rc=True, uc=True, ud=True, srq=True, mcast=True, **{"remote-access": True}, xrc=False, dm=False,
                      counters=False, flow=False, raw=False, rss=False)
    assert adapters[0]["through_us"] == through_us
    assert adapters[0]["problem"] is None and adapters[0]["ports"][0]["link_layer"] == "ethernet"
    table = subprocess.run(hca, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    assert len(table) == 2 and table[1].split()[:3] == [ADAPTER, "uverbs0", "ethernet"]
    # The device is left out if libibverbs finds it.
    assert json.loads(subprocess.run([*OURS, *hca, "--json"], check=True, stdout=subprocess.PIPE).stdout) == []


def test_objects_that_the_adapter_lacks_are_absent(daemon):
    tree = [cuse.BUILD / "tools" / "uverbsctl", "tree", "--json", "--open", "/dev/infiniband/uverbs1"]
    objects = json.loads(subprocess.run(tree, check=True, stdout=subprocess.PIPE).stdout)["objects"]
    names = {o["name"].removeprefix("UVERBS_OBJECT_") for o in objects}
    methods = {m["name"] for o in objects for m in o["methods"]}
    assert {"PD", "CQ", "QP", "SRQ", "MR", "AH"} <= names
    assert not {"XRCD", "DM", "COUNTERS", "FLOW", "FLOW_ACTION", "WQ", "RWQ_IND_TBL", "MW"} & names
    assert "UVERBS_METHOD_DM_MR_REG" not in methods
