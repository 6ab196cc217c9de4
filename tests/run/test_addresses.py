# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Addresses of a device (--ip), which the machine loses and gets back."""
import pytest

from conftest import own_network

ADDRESS, VIRTUAL = "192.0.2.9", "192.0.2.77"  # the latter the machine never has
MAPPED = {a: "0000:0000:0000:0000:0000:ffff:" + "{:02x}{:02x}:{:02x}{:02x}".format(*map(int, a.split(".")))
          for a in (ADDRESS, VIRTUAL, "127.0.0.1")}
NONE = ":".join(["0000"] * 8)
# Watches the device's events; num N waits for so many of them, gids prints the first of the table.
WATCH = """
ibv_asyncwatch >watched & watcher=$!
until grep -q FD watched; do sleep 0.02; done
num() { until [ $(grep -c GID_CHANGE watched) = $1 ]; do sleep 0.02; done; }
gids() { cat /sys/class/infiniband/*/ports/1/gids/[012]; }
"""


@pytest.fixture
def own(run):
    return own_network(run, f"ip link set lo up; ip addr add {ADDRESS}/32 dev lo; ")


def sh(run, script, *options):
    r = run("sh", "-ec", WATCH + script + "kill $watcher", options=options, cwd=run.folder)
    assert r.returncode == 0, r
    return r.stdout.splitlines(), r.stderr


def test_gid_goes_and_comes_with_the_machines_address(own):
    out, log = sh(own, f"""
ip addr del {ADDRESS}/32 dev lo; num 1; gids
ip addr add {ADDRESS}/32 dev lo; num 2; gids
tail -2 watched
""", "--persona", "rxe", "--ip", f"{ADDRESS},{VIRTUAL}")
    rest = [MAPPED[VIRTUAL], MAPPED["127.0.0.1"]]
    assert out == [NONE, *rest, MAPPED[ADDRESS], *rest, *["  event_type IBV_EVENT_GID_CHANGE (18), port 1"] * 2], out
    assert log.count(f"the machine has lost the address {ADDRESS}\n") == 1 and VIRTUAL not in log, log


def test_address_of_two_interfaces_is_lost_with_the_last_one(own):
    out, _ = sh(own, f"""
ip link add one type veth peer name two; ip addr add {ADDRESS}/32 dev one
ip addr del {ADDRESS}/32 dev lo; ip addr add 192.0.2.8/32 dev lo
ip addr del {ADDRESS}/32 dev one; num 1; gids
""", "--persona", "rxe", "--ip", ADDRESS)
    assert out[0] == NONE, out


def test_device_that_is_added_later_loses_its_address_too(own):
    out, _ = sh(own, f"""
$UVERBSCTL device add --persona rxe --name rxe7 --ip {ADDRESS} >/dev/null
ip addr del {ADDRESS}/32 dev lo
until [ $(cat /sys/class/infiniband/rxe7/ports/1/gids/0) = {NONE} ]; do sleep 0.02; done
$UVERBSCTL device remove rxe7 >/dev/null; $UVERBSCTL device add rxe7 >/dev/null
cat /sys/class/infiniband/rxe7/ports/1/gids/0
""".replace("$UVERBSCTL", own.argv([])[len(own.prefix)]), "--persona", "rxe")
    assert out == [NONE], out
