# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""--wire: which sockets an engine opens, what its devices are then, and what is refused. No packet leaves an engine here."""
import json
import re
import subprocess

import pytest

from conftest import STUCK, UVERBSCTL, own_network
from test_addresses import ADDRESS, MAPPED, NONE, VIRTUAL, sh
from test_run import pingpong, port  # noqa: F401 (a fixture)

SECOND, SIXTH = "192.0.2.10", "2001:db8::9"
PORT = "port1=/sys/class/infiniband/*/ports/1; "
SETUP = f"""ip link set lo up; ip addr add {ADDRESS}/32 dev lo; ip addr add {SECOND}/32 dev lo
ip addr add {SIXTH}/128 dev lo nodad
"""
ETH = f"""ip link add eth7 type veth peer name end7; ip link set eth7 up; ip link set end7 up
ip addr add 192.0.2.33/24 dev eth7
ip addr add 2001:db8:1::33/64 dev eth7 nodad; ip addr add 192.0.2.34/24 dev eth7 label eth7:1; ip link set lo up
ip addr add {ADDRESS}/32 dev lo
"""


@pytest.fixture
def own(run):
    return own_network(run, SETUP)


def value(text, name):
    return re.search(rf"{name}:\s+(.*)", text)[1]


NESTED = f"RUN='{UVERBSCTL} run --persona rxe'; "


def shell(run, script):
    """Runs a shell script with several runs in one network of their own, $RUN each."""
    return subprocess.run([*run.prefix, "sh", "-c", NESTED + script], capture_output=True, text=True, env=run.env, timeout=STUCK)


# ---- devices ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("persona", ["rxe", "hfi1"])
def test_addresses_of_the_wire_are_the_first_gids_and_the_port_is_ethernet(own, persona):
    r = own("sh", "-ec", PORT + "cat $port1/gids/[0-5]; cat $port1/gid_attrs/types/[01]; cat $port1/gid_attrs/ndevs/0; ibv_devinfo",
            options=["--persona", persona, "--wire", f"{SECOND},{SIXTH}", "--ip", f"{VIRTUAL},{SECOND}"])
    lines = r.stdout.splitlines()
    second = MAPPED[ADDRESS][:-2] + "0a"
    assert r.returncode == 0 and lines[:6] == [second, "2001:0db8:0000:0000:0000:0000:0000:0009", MAPPED[VIRTUAL], MAPPED["127.0.0.1"],
                                               NONE[:-1] + "1", NONE], r
    assert lines[6:9] == ["RoCE v2", "RoCE v2", "lo"] and value(r.stdout, "link_layer") == "Ethernet", lines


def test_active_mtu_is_the_configured_one_or_1024_if_the_interface_carries_it(own):
    """Larger receive buffers than others have raise it: tests/run/test_wire.c."""
    r = shell(own, f"""mtu() {{ link=$1; shift; ip link set lo mtu $link; $RUN --wire {ADDRESS} "$@" -- ibv_devinfo | grep active_mtu; }}
mtu 1500; mtu 700; mtu 2300 --mtu 256; mtu 2300 --mtu 4096""")
    assert re.findall(r"active_mtu:\s+(\d+)", r.stdout) == ["1024", "512", "256", "2048"], r
    assert r.stderr == "uverbsctl run: warning: rxe0: --mtu 4096: the wire's interface carries 2048 at most, which it is now\n", r


def test_engines_on_the_wire_have_guids_of_their_own(own):
    def guids(*options):
        r = own("sh", "-c", "cat /sys/class/infiniband/*/node_guid; ibv_devinfo", options=["--devices", "2", "--wire", ADDRESS, *options])
        published = r.stdout.splitlines()[:2]
        assert sorted(re.findall(r"node_guid:\s+(.*)", r.stdout)) == published and len(set(published)) == 2, r
        return published

    one, other = guids(), guids()
    assert not set(one) & set(other), (one, other)
    assert one[0][:2] == "02" and int(one[1].replace(":", ""), 16) == int(one[0].replace(":", ""), 16) + 4, one
    assert guids("--guid", "0002:c903:00ab:cd00")[0] == "0002:c903:00ab:cd00"


def test_engines_without_a_wire_have_the_same_guids(run):
    assert run("cat", "/sys/class/infiniband/hfi1_0/node_guid").stdout == "0275:7665:7262:7300\n"


def test_lost_address_of_the_wire_leaves_its_gid(own):
    out, log = sh(own, f"ip addr del {ADDRESS}/32 dev lo; num 1; gids\n", "--persona", "rxe", "--wire", ADDRESS)
    assert out == [NONE, MAPPED["127.0.0.1"], NONE[:-1] + "1"] and f"the machine has lost the address {ADDRESS}\n" in log, (out, log)


def test_device_that_is_added_later_is_on_the_wire(own):
    r = own("sh", "-c", f"{UVERBSCTL} device add --persona rxe >/dev/null; cat /sys/class/infiniband/rxe1/ports/1/gids/0; "
            f"ibv_devinfo | grep -e node_guid -e active_mtu; {UVERBSCTL} device add --wire {SECOND}",
            options=["--persona", "rxe", "--wire", ADDRESS])
    guids, mtus = re.findall(r"node_guid:\s+(.*)", r.stdout), re.findall(r"active_mtu:\s+(.*)", r.stdout)
    assert r.stdout.startswith(MAPPED[ADDRESS]) and len(set(guids)) == 2 and len(mtus) == 2 and len(set(mtus)) == 1, r
    assert guids[0][:17] == guids[1][:17] and "unknown option `--wire" in r.stderr and r.returncode, r


@pytest.mark.parametrize("persona", ["rxe", "hfi1"])
def test_programs_of_one_run_reach_each_other_by_an_address_of_the_wire(own, persona, port):  # noqa: F811
    r = own(*pingpong("-g 0 -n 100 -c -p", port), options=["--persona", persona, "--wire", ADDRESS], cwd=own.folder)
    assert r.returncode == 0 and "100 iters" in r.stdout, r


# ---- sockets ----------------------------------------------------------------------------------------------------------


def test_status_shows_the_sockets(own):
    script = f"cat /proc/net/udp /proc/net/udp6; {UVERBSCTL} status; {UVERBSCTL} status --json"
    r = own("sh", "-c", script, options=["--persona", "rxe", "--wire", f"{ADDRESS},{SIXTH}"])
    wire = json.loads(r.stdout[r.stdout.rindex("\n{"):] if "\n{" in r.stdout else r.stdout)["wire"]
    assert [w["address"] for w in wire] == [ADDRESS, SIXTH] and all(w["port"] == 4791 and w["link_mtu"] == 65536 for w in wire), wire
    assert f"wire {ADDRESS} port 4791: interface's MTU 65536, active MTU {wire[0]['mtu']}, receive buffer " in r.stdout, r.stdout
    assert "090200C0:12B7" in r.stdout and "B80D0120000000000000000009000000:12B7" in r.stdout, r.stdout
    assert wire[0]["packets"] > 0 and wire[0]["receive_buffer"] > 100000
    r = own("cat", "/proc/net/udp", options=["--persona", "rxe"])
    assert "12B7" not in r.stdout and r.returncode == 0, r


def test_auto_is_what_the_interface_of_the_default_route_has(run):
    own_network(run, ETH)
    add = "ip route add default via 192.0.2.1 dev eth7 metric 9; "
    argv = ["sh", "-c", f"{UVERBSCTL} status --json"]
    r = run(*argv, options=["--persona", "rxe", "--wire", "auto"])
    wrong = "uverbsctl run: --wire: `auto` finds no default route: name addresses, which `ip address` shows\n"
    assert r.returncode == 2 and r.stderr == wrong, r
    run.prefix[-2] = run.prefix[-2].replace("exec", add + "exec")
    r = run(*argv, options=["--persona", "rxe", "--wire", "auto"])
    assert r.returncode == 0, r
    assert [w["address"] for w in json.loads(r.stdout)["wire"]] == ["192.0.2.33", "192.0.2.34", "2001:db8:1::33"], r.stdout


@pytest.mark.parametrize("wire, words", [
    ("0.0.0.0", "has `0.0.0.0`, which stands for any address: name addresses of this machine, or give `auto`"),
    (f"{ADDRESS},::", "has `::`, which stands for any address"),
    ("127.0.0.1", "has `127.0.0.1`, which each engine has for itself: name an address that other hosts reach"),
    ("::1", "has `::1`, which each engine has for itself"),
    ("224.0.0.1", "has `224.0.0.1`, which is no address of one machine: name addresses of this machine"),
    ("ff02::1", "has `ff02::1`, which is no address of one machine"),
    (f"{ADDRESS},{SECOND},{ADDRESS}", f"has `{ADDRESS}` twice: name each address once"),
    ("fe80::1", "has `fe80::1`, a link-local address: give its interface, too, as in fe80::2%eth0"),
    ("fe80::1%none", "has `fe80::1%none`, but there is no interface `none`: `ip link` shows them"),
    (f"{SIXTH}%lo", f"has `{SIXTH}%lo`: only a link-local address needs its interface"),
    ("eth0", "has `eth0`, which is not an address such as 192.0.2.2, 2001:db8::2 or fe80::2%eth0"),
    ("", "is empty: name addresses of this machine, or give `auto`"),
    (",".join(f"192.0.2.{n}" for n in range(1, 10)), "has more than 8 addresses"),
])
def test_address_that_cannot_be_on_the_wire_is_refused_in_one_line(wire, words):
    r = subprocess.run([UVERBSCTL, "run", "--wire", wire, "--", "true"], capture_output=True, text=True, timeout=STUCK)
    assert r.returncode == 2 and r.stderr.startswith(f"uverbsctl run: --wire: `{wire}` {words}") and r.stderr.count("\n") == 1, r


@pytest.mark.parametrize("options, words", [
    (["--backend", "null"], "--wire: no device has --backend soft, which alone can use it: leave it out\n"),
    (["--link-layer", "infiniband"],
     "device rxe0: --link-layer infiniband: a device on the wire is Ethernet: leave out one of this and --wire\n"),
])
def test_device_that_cannot_be_on_the_wire_is_refused(options, words):
    r = subprocess.run([UVERBSCTL, "run", "--wire", "127.0.0.2", *options, "--", "true"], capture_output=True, text=True, timeout=STUCK)
    assert r.returncode == 2 and r.stderr == f"uverbsctl run: {words}", r


def test_address_of_another_machine_is_refused_in_one_line(own):
    r = own("true", options=["--wire", f"{ADDRESS},{VIRTUAL}"])
    assert r.returncode == 125 and r.stderr.count("\n") == 1, r
    assert f"{VIRTUAL} port 4791: EADDRNOTAVAIL: " in r.stderr and "`ip address` shows" in r.stderr, r


# ---- several engines --------------------------------------------------------------------------------------------------

def test_second_engine_with_the_address_is_refused_and_told_the_remedies(own):
    r = shell(own, f"""mkfifo $TMPDIR/ready $TMPDIR/end
$RUN --wire {ADDRESS} -- sh -c 'echo >$TMPDIR/ready; read x <$TMPDIR/end' & read x <$TMPDIR/ready
$RUN --wire {ADDRESS} -- true; echo status $?
$RUN --wire {SECOND} -- echo beside
echo >$TMPDIR/end; wait; $RUN --wire {ADDRESS} -- echo afterwards""")
    assert r.stdout == "status 125\nbeside\nafterwards\n" and r.stderr.count("\n") == 1, r
    assert f"{ADDRESS} port 4791: EADDRINUSE: " in r.stderr and "--join" in r.stderr and "rxe" in r.stderr, r


def test_runs_join_an_engine_on_the_wire_with_its_addresses_alone(own):
    name = "--join lab"
    r = shell(own, f"""mkfifo $TMPDIR/ready $TMPDIR/end
$RUN {name} --wire {ADDRESS},{SECOND} -- sh -c 'echo >$TMPDIR/ready; read x <$TMPDIR/end' & read x <$TMPDIR/ready
$RUN {name} --wire {ADDRESS},{SECOND} -- sh -c 'ibv_devinfo | grep -c rxe0'
$RUN {name} -- sh -c 'ibv_devinfo | grep -c rxe0'
$RUN {name} --wire {SECOND},{ADDRESS} -- echo other; echo status $?
unshare --net $RUN {name} -- echo elsewhere; echo status $?
echo >$TMPDIR/end; wait
$RUN {name} -- sh -c 'echo >$TMPDIR/ready; read x <$TMPDIR/end' & read x <$TMPDIR/ready
$RUN {name} --wire {ADDRESS} -- echo other; echo status $?
unshare --net $RUN {name} -- sh -c 'ibv_devinfo | grep -c rxe0'
echo >$TMPDIR/end; wait""")
    assert r.stdout == "1\n1\nstatus 125\nstatus 125\nstatus 125\n1\n", r
    remedy = "leave --wire out, or use another name with --join\n"
    assert r.stderr == (
        f"uverbsctl run: --wire {SECOND},{ADDRESS}: the devices of --join lab exist already, with --wire {ADDRESS},{SECOND}: {remedy}"
        f"uverbsctl run: --join lab: its devices are on the wire ({ADDRESS},{SECOND}) in another network namespace: start this run in that "
        f"one, or use another name and --wire\n"
        f"uverbsctl run: --wire {ADDRESS}: the devices of --join lab exist already, without --wire: {remedy}"), r.stderr


# ---- rdma_cm ----------------------------------------------------------------------------------------------------------


def test_connection_to_an_address_beyond_the_engine_is_told_to_be_impossible_yet(own):
    script = """id = CM_ID CREATE_ID --ps TCP --qp_type RC --uid 7
CM_ID RESOLVE_ADDR --id $id --dst_addr 192.0.2.200:7471 --timeout_ms 1000
CM_ID GET_EVENT
"""
    argv = ["sh", "-c", f"printf '%s' '{script}' | {UVERBSCTL} call -f - rdma_cm"]
    r = own(*argv, options=["--persona", "rxe", "--wire", ADDRESS])
    assert "ADDR_ERROR" in r.stdout and r.stderr.count("connection management does not travel over the wire yet") == 1, r
    r = own(*argv, options=["--persona", "rxe"])
    assert "ADDR_ERROR" in r.stdout and "over the wire" not in r.stderr, r
