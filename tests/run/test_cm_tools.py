# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The tools that know the commands of rdma_cm: `uverbsctl call`, `trace` and `tree`."""
import json
import subprocess

import pytest

from conftest import STUCK, UVERBSCTL

CONNECT = """
server = CM_ID CREATE_ID --ps TCP --qp_type RC --uid 7
CM_ID BIND --id $server --addr 127.0.0.1:7471
CM_ID LISTEN --id $server --backlog 5
client = CM_ID CREATE_ID --ps TCP --qp_type RC --uid 8
CM_ID RESOLVE_ADDR --id $client --dst_addr 127.0.0.1:7471 --timeout_ms 100
CM_ID GET_EVENT
CM_ID RESOLVE_ROUTE --id $client --timeout_ms 100
CM_ID GET_EVENT
CM_ID QUERY --id $client --option PATH
CM_ID CONNECT --id $client --conn_param.qp_num 77 --conn_param.valid 1 --conn_param.private_data 0102 --conn_param.private_data_len 2
child = CM_ID GET_EVENT
CM_ID REJECT --id $child --private_data 0a --private_data_len 1
CM_ID GET_EVENT
CM_ID DESTROY_ID --id $client
"""
DATAGRAM = """
id = CM_ID CREATE_ID --ps UDP --qp_type UD --uid 9
CM_ID BIND_IP --id $id --addr 127.0.0.1:7472
group = CM_MCAST JOIN_IP_MCAST --id $id --addr 239.1.2.3 --uid 10
CM_ID GET_EVENT
CM_MCAST LEAVE_MCAST --id $group
"""


def called(run, script, *options):
    """The lines that a script of `uverbsctl call` prints, as JSON."""
    r = run(UVERBSCTL, "call", "--json", "-f", "-", "rdma_cm", options=options, input=script.strip())
    assert r.returncode == 0, r.stderr
    return [json.loads(line) for line in r.stdout.splitlines()]


def traced(path, *options):
    r = subprocess.run([UVERBSCTL, "trace", "-i", path, *options], stdout=subprocess.PIPE, text=True, timeout=STUCK, check=True)
    return r.stdout


def test_script_connects_by_the_names_of_commands_and_fields(run):
    lines = called(run, CONNECT)
    assert [line["results"].get("event") for line in lines if (line["method"] or "").endswith("GET_EVENT")] == [
        "ADDR_RESOLVED", "ROUTE_RESOLVED", "CONNECT_REQUEST", "REJECTED"], lines
    request, rejected = lines[10]["results"], lines[12]["results"]
    assert request["param.conn.qp_num"] == 77 and request["param.conn.private_data"].startswith("010200")
    assert (rejected["status"], rejected["param.conn.private_data"][:4]) == (28, "0a00")
    assert lines[8]["results"]["num_paths"] == 1 and len(lines[8]["results"]["path_data.0.path_rec"]) == 128
    assert lines[13]["results"] == {"events_reported": 3}


def test_wrong_names_are_told_and_errnos_are_the_kernels(run):
    r = run(UVERBSCTL, "call", "rdma_cm", "CM_ID", "BINDD")
    assert "no method `BINDD`" in r.stderr and "BIND" in r.stderr
    r = run(UVERBSCTL, "call", "rdma_cm", "CM_ID", "LISTEN", "--id", "5")
    assert "ENOENT" in r.stderr
    r = run(UVERBSCTL, "call", "rdma_cm", "CM_ID", "BIND", "--addr", "127.0.0.1:70000")
    assert "addr" in r.stderr


@pytest.mark.parametrize("addr, size", [("192.0.2.1:7", 16), ("192.0.2.1", 16), ("[2001:db8::1]:7", 28), ("2001:db8::1", 28),
                                        ("ib:fe80::1/0x1060007", 48), ("ib:fe80::1/0x1060000/0xffffffffffff0000", 48)])
def test_trace_has_the_address_that_call_was_given(run, addr, size):
    trace = run.folder + "/trace"
    run(UVERBSCTL, "call", "rdma_cm", "CM_ID", "BIND", "--id", "5", "--addr", addr, options=("--trace", trace))
    call = next(o for o in map(json.loads, traced(trace, "--json").splitlines()) if o.get("verb") == "BIND")
    whole = addr + ("" if "]:" in addr or addr.endswith(":7") else ":0" if size == 16 else "")
    whole = f"[{addr}]:0" if addr == "2001:db8::1" else whole
    whole += "/0xffffffffffffffff" if size == 48 and addr.count("/") == 1 else ""
    assert (call["in"]["addr"], call["in"]["addr_size"], call["errno"]) == (whole, size, "ENOENT")


def test_trace_has_each_command_with_its_identifiers(run):
    trace = run.folder + "/trace"
    called(run, CONNECT, "--trace", trace)
    text = traced(trace)
    assert "open file of /dev/infiniband/rdma_cm" in text
    assert "CM_ID.CREATE_ID(uid=7, ps=TCP, qp_type=RC) = {id=CM_ID#0}" in text
    assert "CM_ID.RESOLVE_ADDR(id=CM_ID#1, timeout_ms=100, dst_size=16, dst_addr=127.0.0.1:7471)" in text
    assert "CM_ID.GET_EVENT() = {uid=7, id=CM_ID#2(qpn 77), event=CONNECT_REQUEST, " in text
    assert "CM_ID.REJECT(id=CM_ID#2(qpn 77), private_data_len=1, " in text
    assert "param={ud=" not in text
    calls = [o for o in map(json.loads, traced(trace, "--json", "-e", "CM_ID.*").splitlines()) if o["kind"] == "call"]
    assert len(calls) == 14 and {c["front"] for c in calls} == {"write"}


def test_trace_reads_an_event_by_the_type_of_its_identifier(run):
    trace = run.folder + "/trace"
    called(run, DATAGRAM, "--trace", trace)
    text = traced(trace)
    assert "event=MULTICAST_JOIN, " in text and "param={ud={" in text and "conn=" not in text
    assert "CM_MCAST.LEAVE_MCAST(id=CM_MCAST#0) = {events_reported=1}" in text


def test_tree_has_the_commands_without_a_node(run):
    r = subprocess.run([UVERBSCTL, "tree", "--device", "rdma_cm", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    assert r.stdout.count("RDMA_USER_CM_CMD_") == 22
