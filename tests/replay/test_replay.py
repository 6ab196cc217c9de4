# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Traces of programs on the kernel's rxe and on uverbsd over CUSE: they differ only in what docs/abi-differences.md lists."""
import errno
import struct

import pytest

from conftest import KERNELS, calls_of, record, replay, replayed

HEADER, CALL, RESULT = 24, 3, 32  # struct uvd_trace_header; enum uvd_trace_kind; in struct uvd_trace_call
# Calls that the kernel's rxe does not have, as its clients post and poll in mapped memory.
ABSENT = {"QP.POST_RECV", "SRQ.POST_RECV", "CQ.POLL"}
# Calls that no device can be asked for again, and the reason.
NOT_MADE = {"MR.CMD_REG_MR": "it registers more memory than a replay may have",
            "TREE.QUERY": "only devices of uverbsd have it", "TREE.ROLES": "only devices of uverbsd have it",
            "object_0xfff.method_0x0": "this version of uverbsctl does not know it",
            "AH.CREATE": "an address without a GID is valid on this port"}
# Rows that a trace must show on the kernel's device: they prove that it was compared with the list.
LISTED = {"pingpong-hfi1": {"qp-mtu"}, "pingpong-rxe": {"mapped-queue-size", "port"}, "send_bw-rxe": {"mapped-queue-size"},
          "pyverbs-rxe": {"mapped-queue-size", "device-extended"},
          "mcast-unbound": {"mcast-unbound"}, "query-after-send": {"qp-after-send"}}
MANY = {"pyverbs-hfi1": 300, "pyverbs-rxe": 300, "pingpong-hfi1": 80}


def result_of(trace, path, number, result):
    """Writes a copy of the trace in which call `number`, from 0, has this result."""
    data, at, calls = bytearray(trace.read_bytes()), HEADER, 0
    while at < len(data):
        size, kind = struct.unpack_from("=II", data, at)
        if kind == CALL and calls == number:
            struct.pack_into("=q", data, at + RESULT, result)
        calls += kind == CALL
        at += size
    path.write_bytes(data)


BOTH = [(node, name) for node in ("kernel", "uverbsd") for name in record.RECORDED
        if node == "kernel" or name not in record.PROGRAMS]


@pytest.mark.parametrize("node, name", BOTH, indirect=["node"])
def test_a_trace_differs_only_in_what_is_listed(node, name, traces):
    found = replayed(node, traces[name])
    assert not found["differences"], found
    assert found["kind"] == ("kernel" if node == KERNELS else "uverbsd") and found["calls"] >= MANY.get(name, 9), found
    known = dict.fromkeys(ABSENT, "the device does not have it") if node == KERNELS else {}
    lost = {d["target"] for d in found["not_made"] if d["why"] == "it uses an object that was not created again"}
    other = {d["target"]: d["why"] for d in found["not_made"] if d["target"] not in lost}
    assert other.items() <= {**known, **NOT_MADE}.items() and lost <= {"MR.DESTROY"}, found
    assert node != KERNELS or LISTED.get(name, set()) <= set(found["listed"]), found


@pytest.mark.parametrize("node", ["kernel", "uverbsd"], indirect=True)
def test_a_result_that_the_device_does_not_return_is_a_difference(node, traces, tmp_path):
    path, calls = tmp_path / "changed.trace", calls_of(traces["pingpong-rxe"])
    number = next(i for i, c in enumerate(calls) if (c["object"], c["verb"]) == ("PD", "ALLOC"))
    result_of(traces["pingpong-rxe"], path, number, -errno.ENOMEM)
    status, said = replay(node, path)
    assert status == 1 and f"call {number + 1}, PD.ALLOC: result is ok, ENOMEM expected\n" in said, said


def test_a_row_about_the_state_of_a_qp_is_for_that_state_alone(traces, tmp_path):
    # The first ATTACH_MCAST is on a QP in INIT, and the row `mcast-unbound` is for RESET.
    path, calls = tmp_path / "changed.trace", calls_of(traces["mcast-unbound"])
    attached = [i for i, c in enumerate(calls) if c["verb"] == "ATTACH_MCAST"]
    assert [calls[i]["result"] < 0 for i in attached] == [False, True], calls
    result_of(traces["mcast-unbound"], path, attached[0], -errno.EINVAL)
    found = replayed(KERNELS, path)
    assert [(d["call"], d["expected"], d["result"]) for d in found["differences"]] == [(attached[0] + 1, "EINVAL", "ok")], found
