# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Filters of a run's commands of rdma_cm."""
import json
import shutil

import pytest

from conftest import SANITIZED, UVERBSCTL
from test_cm_tools import called

CLIENT = """
client = CM_ID CREATE_ID --ps TCP --qp_type RC --uid 8
CM_ID RESOLVE_ADDR --id $client --dst_addr 127.0.0.1:7471 --timeout_ms 100
CM_ID GET_EVENT
CM_ID RESOLVE_ROUTE --id $client --timeout_ms 100
CM_ID GET_EVENT
"""
CONNECT = "CM_ID CONNECT --id $client --conn_param.valid 1\n"
GET_EVENT = "CM_ID GET_EVENT\n"


def filtered(*filters):
    return [word for f in filters for word in ("--filter", f)]


def test_command_has_the_errno_of_its_rule_and_the_log_says_so(run):
    r = run(UVERBSCTL, "call", "-f", "-", "rdma_cm", input=(CLIENT + CONNECT).strip(),
            options=filtered("error:connect=ECONNREFUSED@1", "delay:resolve_route=1ms"))
    assert r.returncode == 1 and "CM_ID CONNECT: ECONNREFUSED" in r.stderr, r
    for line in ("filter error: connect, call 1: ECONNREFUSED", "filter error: connect=ECONNREFUSED@1: 1 of 1",
                 "filter delay: resolve_route, call 1: 1000 us", "filter delay: resolve_route=1ms: 1 of 1"):
        assert line in r.stderr, r


def test_events_are_those_of_the_rules(run):
    script = CLIENT + "CM_ID RESOLVE_ROUTE --id $client --timeout_ms 100\n" + GET_EVENT + CONNECT + GET_EVENT
    lines = called(run, script, *filtered("error:route_error=ETIMEDOUT@1,rejected=28"))
    events = [(line["results"]["event"], line["results"]["status"]) for line in lines if line["method"].endswith("GET_EVENT")]
    assert events == [("ADDR_RESOLVED", 0), ("ROUTE_ERROR", 2**32 - 110), ("ROUTE_RESOLVED", 0), ("REJECTED", 28)], lines


# The first connection of rping finds no listener, the second one is rejected by the filter, and all others find a listener. What rping says
# about an event ends in one line more if its other thread is quick.
RPING = """
rping -c -a 127.0.0.1 -p 7471 -C 1 2>real; echo "$? $(head -1 real)"
rping -s -p 7471 -C 1 >&2 & server=$!
rping -c -a 127.0.0.1 -p 7471 -C 1 2>made; echo "$? $(head -1 made)"
until rping -c -a 127.0.0.1 -p 7471 -C 1 2>/dev/null; do sleep 0.05; done
wait $server; echo "server $?"
$UVERBSCTL filter list --json
"""


@pytest.mark.skipif(SANITIZED, reason="rping makes no difference to a sanitizer")
@pytest.mark.skipif(not shutil.which("rping"), reason="rping is not installed")
def test_rping_sees_no_difference_to_a_peer_that_rejects(run):
    r = run("sh", "-c", RPING, options=filtered("error:rejected=8@2"), env={**run.env, "UVERBSCTL": UVERBSCTL}, cwd=run.folder)
    real, made, server, *listed = r.stdout.splitlines()
    assert real == made and "REJECTED, error 8" in real and not real.startswith("0 "), r
    assert server == "server 0" and "filter error: rejected, call 2: reason 8" in r.stderr, r
    rule = json.loads("\n".join(listed))["devices"][0]["filters"][0]["rules"][0]
    assert rule["rule"] == "rejected=8@2" and rule["seen"] >= 3 and rule["done"] == 1, rule
