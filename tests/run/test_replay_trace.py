# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""uverbsctl replay of what `uverbsctl run --trace` recorded."""
import contextlib
import json
import os
import pathlib
import random
import re
import struct
import subprocess

import pytest

from conftest import SANITIZED, STUCK, UVERBSCTL
from test_trace import calls_of, pair, record, verb

ROOT = pathlib.Path(__file__).resolve().parents[2]
HFI1, RXE = ("--persona", "hfi1"), ("--persona", "rxe")
HEADER, ROW_SIZE, TREE, CALL = 24, 16, 1, 3  # struct uvd_trace_header; enum uvd_trace_kind
ROWS, NAME, PTR_OUT, CONST = 32, 24, 2, 3  # struct uvd_trace_tree; struct uverbsd_tree_row; enum uverbsd_tree_type
RESULT, PIECES = 32, 56  # in struct uvd_trace_call
WRITTEN = 2  # enum uvd_piece_kind

OBJECTS = """
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.cq import CQ, CompChannel
from pyverbs.mr import MR
from pyverbs.qp import QP, QPInitAttr, QPCap, QPAttr
from pyverbs.srq import SRQ, SrqInitAttr, SrqAttr
from pyverbs.addr import AHAttr, AH, GlobalRoute
import pyverbs.enums as e
with Context(name='%s') as c, PD(c) as p:
    c.query_device()
    lid = c.query_port(1).lid
    for _ in range(2):
        channel = CompChannel(c)
        cq = CQ(c, 7, None, channel, 0)
        cq.req_notify()
        mr = MR(p, 8192, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)
        srq = SRQ(p, SrqInitAttr(SrqAttr(max_wr=16, max_sge=1)))
        qp = QP(p, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, srq=srq, cap=QPCap(8, 0, 1, 0)))
        qp.to_init(QPAttr(port_num=1))
        qp.query(e.IBV_QP_STATE)
        ah = AH(p, attr=AHAttr(gr=GlobalRoute(dgid=c.query_gid(1, 0), sgid_index=0), is_global=1, port_num=1, dlid=lid))
        for o in ah, qp, srq, mr, cq, channel:
            o.close()
"""
PROGRAMS = {
    "pingpong-write": ((*HFI1, "--abi", "write"), "ibv_rc_pingpong -n 5 -p $port"),
    "pingpong": (HFI1, "ibv_rc_pingpong -n 5 -p $port"),
    "pingpong-rxe": (RXE, "ibv_rc_pingpong -g 0 -n 5 -p $port"),
    "send_bw": (HFI1, "ib_send_bw -n 5 -p $port"),
    "write_bw": (HFI1, "ib_write_bw -n 5 -p $port"),
    "atomic_bw": (HFI1, "ib_atomic_bw -n 5 -p $port"),
    "ud_pingpong": (HFI1, "ibv_ud_pingpong -n 5 -p $port"),
}


def persona(options):
    return options[options.index("--persona") + 1]


def replay(run, path, *options, device=HFI1):
    argv = run.argv([UVERBSCTL, "replay", *options, str(path)], (*device, "--log-level", "error"), ())
    r = subprocess.run(argv, capture_output=True, text=True, env=run.env, timeout=STUCK)
    return r.returncode, r.stdout + r.stderr


def replayed(run, path, device=HFI1):
    status, said = replay(run, path, "--json", device=device)
    assert status in (0, 1), said
    found = json.loads(said)
    assert (status == 1) == bool(found["differences"]) and found["num_differences"] == len(found["differences"]), said
    return found


def objects(run, device=HFI1):
    """Records a script that creates objects of each common kind twice, and destroys them."""
    pytest.importorskip("pyverbs")
    name = "rxe0" if device == RXE else "hfi1_0"
    script = pathlib.Path(run.folder, "objects.py")
    script.write_text(OBJECTS % name)
    script.chmod(0o644)
    return record(run, f"/usr/bin/python3 {script}", device)


def created(run, device=HFI1, script=f"{UVERBSCTL} call CQ CREATE --cqe 16"):
    return record(run, script, device)


def records(data, kind):
    """Yields offset and length of each record of this kind."""
    at = HEADER
    while at < len(data):
        size, is_kind = struct.unpack_from("=II", data, at)
        if is_kind == kind:
            yield at, size
        at += size


def changed(run, path, call, change):
    """Lets change(data, offset, length) alter one call of the trace. Returns its number as a replay counts."""
    data = bytearray(path.read_bytes())
    number = next(i for i, c in enumerate(calls_of(run, path)) if call(c))
    at, size = list(records(data, CALL))[number]
    change(data, at, size)
    path.write_bytes(data)
    return number + 1


def pieces(data, at, size):
    """Yields the offset of the bytes, the kind and the length of each piece of a call."""
    end, at = at + size, at + PIECES
    while at < end:
        _, _, kept, kind, _ = struct.unpack_from("=QIIII", data, at)
        yield at + 24, kind, kept
        at += 24 + (kept + 7) // 8 * 8


@pytest.mark.parametrize("name", PROGRAMS if not SANITIZED else ["pingpong-write", "pingpong-rxe"])
def test_a_program_of_two_sides_is_replayed_without_a_difference(run, name):
    options, program = PROGRAMS[name]
    path = record(run, pair(program), options)
    found = replayed(run, path, ("--persona", persona(options)))
    assert not found["differences"] and not found["not_made"] and found["calls"] == len(calls_of(run, path)), found


@pytest.mark.parametrize("device", [HFI1, RXE], ids=persona)
def test_the_objects_of_a_script_are_created_again_on_either_persona(run, device):
    path = objects(run, device)
    for other in HFI1, RXE:
        found = replayed(run, path, other)
        assert found["calls"] > 35 and not found["differences"] and not found["not_made"], (other, found)


def test_a_pingpong_of_another_persona_differs_only_in_what_is_listed(run):
    path = record(run, pair("ibv_rc_pingpong -n 5 -p $port"), HFI1)
    found = replayed(run, path, RXE)
    assert not found["differences"] and not found["not_made"], found


def test_a_result_that_the_trace_does_not_have_is_a_difference(run):
    path = created(run)
    call = changed(run, path, lambda c: verb(c) == "CQ.CREATE", lambda data, at, _: struct.pack_into("=q", data, at + RESULT, -12))
    assert replayed(run, path)["differences"] == [
        {"call": call, "target": "CQ.CREATE", "item": "result", "expected": "ENOMEM", "result": "ok"}]
    status, said = replay(run, path)
    assert status == 1 and f"call {call}, CQ.CREATE: result is ok, ENOMEM expected\n{call} calls, 1 difference\n" in said, said


def test_an_output_that_the_trace_does_not_have_is_a_difference(run):
    path = created(run)

    def write(data, at, size):
        cqe = [a for a, kind, kept in pieces(data, at, size)
               if kind == WRITTEN and kept == 4 and struct.unpack_from("=I", data, a) == (16,)]
        assert cqe
        for a in cqe:
            struct.pack_into("=I", data, a, 99)

    call = changed(run, path, lambda c: verb(c) == "CQ.CREATE", write)
    assert replayed(run, path)["differences"] == [
        {"call": call, "target": "CQ.CREATE", "item": "resp_cqe", "expected": "99", "result": "16"}]


@pytest.mark.parametrize("call", ["QUERY_PORT", "CMD_QUERY_PORT"])
def test_an_output_in_words_that_the_trace_does_not_have_is_a_difference(run, call):
    path = created(run, script=f"{UVERBSCTL} call DEVICE {call} --port_num 1")

    def write(data, at, size):
        """Changes the link layer."""
        port = [a for a, kind, kept in pieces(data, at, size) if kind == WRITTEN and kept in (40, 48)]
        assert port and all(data[a + 37] == 1 for a in port)
        for a in port:
            data[a + 37] = 2

    number = changed(run, path, lambda c: verb(c) == f"DEVICE.{call}", write)
    item = "resp.link_layer" if call == "QUERY_PORT" else "link_layer"
    assert replayed(run, path)["differences"] == [
        {"call": number, "target": f"DEVICE.{call}", "item": item, "expected": '"ETHERNET"', "result": '"INFINIBAND"'}]


def test_a_completion_that_the_trace_does_not_have_is_a_difference(run):
    path = record(run, pair("ibv_rc_pingpong -n 5 -p $port"), HFI1)

    def write(data, at, size):
        """Changes the first completion, which may stand behind their number."""
        wc = [a + kept % 48 for a, kind, kept in pieces(data, at, size) if kind == WRITTEN and kept >= 48]
        struct.pack_into("=Q", data, wc[0], 4711)

    changed(run, path, lambda c: verb(c) == "CQ.POLL" and c["out"].get("count"), write)
    found = replayed(run, path)["differences"]
    assert len(found) == 2 and all(d["target"] == "CQ.DESTROY" and d["item"] == "completion" for d in found), found
    assert found[0]["expected"].startswith("wr_id 4711: ") and found[0]["result"] == "missing", found
    assert found[1]["expected"] == "none" and re.match("wr_id [12]: ", found[1]["result"]), found


def test_calls_on_what_was_not_created_again_are_not_made(run):
    path = objects(run)
    found = replayed(run, path, (*HFI1, "--filter", "error:create_cq=ENOMEM@2"))
    assert [(d["target"], d["result"]) for d in found["differences"]] == [("CQ.CREATE", "ENOMEM")], found
    assert sorted(d["target"] for d in found["not_made"]) == [
        "CQ.DESTROY", "CQ.REQ_NOTIFY", "QP.CREATE", "QP.DESTROY", "QP.MODIFY", "QP.QUERY"], found


def test_the_numbers_that_the_device_chooses_now_are_used(run):
    path = objects(run)
    data, calls = path.read_bytes(), calls_of(run, path)
    # Without the first region, the device chooses another handle and other keys for the second one, and so on.
    region = next(c["out"]["mr_handle"] for c in calls if "mr_handle" in c["out"])
    drop = [i for i, c in enumerate(calls) if f"MR#{region}" in c["handles"].values()][:2]
    at = [records_at for i, records_at in enumerate(records(data, CALL)) if i in drop]
    path.write_bytes(data[:at[0][0]] + data[sum(at[0]):at[1][0]] + data[sum(at[1]):])
    assert [verb(calls[i]) for i in drop] == ["MR.CMD_REG_MR", "MR.DESTROY"]
    found = replayed(run, path)
    assert found["calls"] == len(calls) - 2 and not found["differences"], found


def test_the_memory_that_a_method_registers_is_the_replayer_s(run):
    script = pathlib.Path(run.folder, "script")
    script.write_text("pd = PD ALLOC\nm = memory 8192\nMR REG_MR --pd_handle $pd --addr $m --length 8192 --iova $m"
                      " --access_flags LOCAL_WRITE\n")
    script.chmod(0o644)
    path = record(run, f"{UVERBSCTL} call -f {script}", HFI1)
    found = replayed(run, path)  # with the client's address the call is EFAULT
    assert not found["differences"] and not found["not_made"], found


def test_the_device_tells_which_attributes_are_addresses_and_not_the_trace(run):
    path = created(run)
    data, rows = bytearray(path.read_bytes()), 0
    size, = struct.unpack_from("=I", data, ROW_SIZE)
    for at, length in records(data, TREE):
        for row in range(at + ROWS, at + length, size):
            if data[row + NAME:].startswith(b"UVERBS_ATTR_CREATE_CQ_RESP_CQE\0"):
                assert data[row + 1] == PTR_OUT
                data[row + 1] = CONST
                rows += 1
    assert rows == 1
    path.write_bytes(data)
    found = replayed(run, path)  # with the client's address in it the call is EFAULT
    assert not found["differences"] and not found["not_made"], found


def test_a_trace_that_is_no_trace_is_refused(run):
    path = created(run)
    good = path.read_bytes()
    first = next(records(good, CALL))
    for data, why in ((good[:-4], "it ends within a record"), (good[:8], "it is not a trace"),
                      (good[:12] + b"\xff" + good[13:], "a later version"),
                      (good[:HEADER] + struct.pack("=II", 12, 9) + good[HEADER:], "a wrong length"),
                      (good[:first[0] + 8] + b"\xff" * 8 + good[first[0] + 16:], "a call is on no open file"),
                      (good[:first[0] + PIECES + 12] + b"\xff" * 4 + good[first[0] + PIECES + 16:], "a call is malformed")):
        path.write_bytes(data)
        status, said = replay(run, path)
        assert status == 2 and why in said, (why, said)
    path.write_bytes(good)
    status, said = replay(run, path, "--record")
    assert status == 2 and "--record and --emit-c are for programs" in said, said
    assert path.read_bytes() == good


def test_a_trace_with_wrong_bytes_harms_nothing(run):
    path = objects(run)
    good = path.read_bytes()
    calls = [at for at, _ in records(good, CALL)]
    for seed in range(6 if SANITIZED else 20):
        chance, data = random.Random(seed), bytearray(good)
        for _ in range(40):
            at = chance.choice(calls)
            data[at + chance.randrange(PIECES, 400) if at + 400 < len(data) else at + PIECES] = chance.choice((0, 1, 127, 255))
        path.write_bytes(data)
        status, said = replay(run, path)
        assert status in (0, 1, 2) and ("difference" in said or "uverbsctl" in said), (seed, status, said)


# ---- --hang -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", ["self"], indirect=True)
def test_a_call_that_takes_longer_than_hang_ends_the_replay_and_show_has_the_calls_before(run):
    path = created(run)
    calls = [verb(c) for c in calls_of(run, path)]
    number = calls.index("CQ.CREATE")
    status, said = replay(run, path, "--hang", "1", "--show", device=(*HFI1, "--filter", "delay:create_cq=3s"))
    assert (status, said.splitlines()) == (1, [
        *(f"{name} = ok" for name in calls[:number]),
        f"uverbsctl replay: hang: call {number + 1}, CQ.CREATE, did not return in 1 seconds"])


@pytest.mark.parametrize("run", ["self"], indirect=True)
def test_the_time_for_which_nobody_reads_the_output_is_not_a_call_s(run):
    path = created(run)
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, b"-" * 4096)
    os.set_blocking(write, True)
    argv = run.argv([UVERBSCTL, "replay", "--show", "--hang", "1", str(path)], (*HFI1, "--log-level", "error"), ())
    with subprocess.Popen(argv, stdout=write, stderr=subprocess.PIPE, text=True, env=run.env) as process:
        os.close(write)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)  # longer than --hang allows
        with os.fdopen(read) as reader:
            said = reader.read()
        assert process.wait(STUCK) == 0, process.stderr.read()
    assert said.endswith("no difference\n")


# ---- docs/replay.md ---------------------------------------------------------------------------------------------------


def test_the_example_of_traces_in_the_documentation_is_true(run):
    text = (ROOT / "docs/replay.md").read_text(encoding="utf-8")
    block = re.search(r"^## Traces$.*?^```\n(.*?)^```$", text, re.M | re.S).group(1)
    env = {**run.env, "PATH": f"{pathlib.Path(UVERBSCTL).parent}:{run.env['PATH']}"}
    said = []
    for line in block.splitlines():
        if line.startswith("$ "):
            r = subprocess.run([*run.prefix, "sh", "-c", line[2:]], capture_output=True, text=True, env=env, cwd=run.folder,
                               timeout=STUCK)
            said += [line, *r.stdout.splitlines()]
    assert said == block.splitlines()
