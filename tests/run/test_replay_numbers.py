# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""uverbsctl replay: numbers that a device chooses stand for the recorded ones, and a wrong one is a difference."""
import pathlib
import struct

import pytest

from test_replay import replay  # noqa: F401, a fixture  # pylint: disable=unused-import
from test_replay_trace import CALL, HFI1, RXE, WRITTEN, calls_of, changed, pieces, records, replayed
from test_trace import pair, record, verb
from conftest import UVERBSCTL

HEAD = "write GET_CONTEXT\npd: write ALLOC_PD\n"
REGION = "write REG_MR pd_handle=pd start=mem length=4096 hca_va=mem\n"
KEYS = "query_mr_resp_lkey query_mr_resp_rkey query_mr_resp_length query_mr_resp_iova\n"
WC_QP = 28  # offset of qp_num in struct ib_uverbs_wc
TWO_REGIONS = f"""{HEAD}mr: {REGION}= ok lkey=0x7001 rkey=0x7002
mr2: {REGION}= ok lkey=0x7003 rkey=0x7004
method QUERY_MR query_mr_handle=mr {KEYS}= ok lkey=0x7001 rkey=0x7002
method QUERY_MR query_mr_handle=mr2 {KEYS}= ok lkey=0x7003 rkey=0x7004
"""
REREG = f"""{HEAD}pd2: write ALLOC_PD
first: {REGION}
mr: {REGION}
method QUERY_MR query_mr_handle=mr {KEYS}
write REREG_MR mr_handle=mr flags=1 start=mem+8192 length=8192 hca_va=mem+8192
method QUERY_MR query_mr_handle=mr {KEYS}
write REREG_MR mr_handle=mr flags=2 pd_handle=pd2
write REREG_MR mr_handle=mr flags=4 access_flags=1
write REREG_MR mr_handle=mr flags=1 start=none length=8192 hca_va=none
write DEREG_MR mr_handle=first
write DEALLOC_PD pd_handle=pd
write DEALLOC_PD pd_handle=pd2
method QUERY_MR query_mr_handle=mr {KEYS}
write DEREG_MR mr_handle=mr
write DEALLOC_PD pd_handle=pd2
"""


# ---- programs ---------------------------------------------------------------------------------------------------------


def test_each_number_of_a_program_stands_for_the_device_s_own(replay):  # noqa: F811
    status, said, _ = replay(TWO_REGIONS)
    assert (status, said) == (0, "6 calls, no difference\n")


@pytest.mark.parametrize("was, wrong", [("lkey=0x7001", "lkey=0x7009"), ("lkey=0x7001", "lkey=0x7003"), ("rkey=0x7002", "rkey=0x7001")])
def test_a_query_that_answers_another_number_is_a_difference(replay, was, wrong):  # noqa: F811
    begin, end = TWO_REGIONS.split("method", 1)
    status, said, _ = replay(begin + "method" + end.replace(was, wrong, 1))
    assert status == 1 and f"call 5, QUERY_MR: {wrong[:4]} is " in said and f"{wrong[5:]} expected" in said, said


def test_a_query_that_answers_the_file_s_number_and_not_the_device_s_is_a_difference(replay):  # noqa: F811
    _, _, recorded = replay(HEAD + f"mr: {REGION}method QUERY_MR query_mr_handle=mr {KEYS}", "--record")
    lines = recorded.splitlines(keepends=True)
    made = next(i for i, line in enumerate(lines) if line.startswith("mr: ")) + 1
    lkey = next(word for word in lines[made].split() if word.startswith("lkey="))
    lines[made] = lines[made].replace(lkey, "lkey=0x7001")
    status, said, _ = replay("".join(lines))
    assert status == 1 and f"call 4, QUERY_MR: lkey is {lkey[5:]}, {lkey[5:]} expected" in said, said


def test_a_number_that_two_objects_have_at_a_time_is_a_difference(replay):  # noqa: F811
    text = TWO_REGIONS.split("method", maxsplit=1)[0].replace("lkey=0x7003", "lkey=0x7001")
    status, said, _ = replay(text)
    assert status == 1 and "call 4, REG_MR: lkey is " in said and ", 0x7001 expected" in said, said
    status, said, _ = replay(text.replace("mr2: ", "write DEREG_MR mr_handle=mr\nmr2: "))
    assert (status, said) == (0, "5 calls, no difference\n")


@pytest.mark.parametrize("line", ["", "= ok handle=0x1\n"])
def test_an_output_that_no_line_names_has_no_part_in_the_comparison(replay, line):  # noqa: F811
    _, _, recorded = replay(HEAD + f"mr: {REGION}", "--record")
    lkey = next(word for word in recorded.splitlines()[-1].split() if word.startswith("lkey="))
    status, said, _ = replay(f"{HEAD}mr: {REGION}{line}mr2: {REGION}= ok {lkey} rkey=0x7777\n")
    assert (status, said) == (0, "4 calls, no difference\n")


# ---- traces -----------------------------------------------------------------------------------------------------------


def recorded_program(run, text, device):
    """Records `uverbsctl replay` with this program, so that each call of it is in the trace."""
    path = pathlib.Path(run.folder, "calls.prog")
    path.write_text(text)
    path.chmod(0o644)
    return record(run, f"{UVERBSCTL} replay {path}", device)


def word_changed(was, now):
    """Changes the 4 bytes that have this value in what the call wrote."""

    def write(data, at, size):
        found = [a for a, kind, kept in pieces(data, at, size)
                 if kind == WRITTEN and kept == 4 and struct.unpack_from("=I", data, a) == (was,)]
        assert found
        struct.pack_into("=I", data, found[0], now)

    return write


@pytest.mark.parametrize("run", ["self"], indirect=True)
def test_a_query_that_answers_another_number_than_the_trace_is_a_difference(run):
    path = recorded_program(run, TWO_REGIONS.replace("= ok", "# "), HFI1)
    assert not replayed(run, path)["differences"]
    query = [c for c in calls_of(run, path) if verb(c) == "MR.QUERY"]
    keys = [c["out"]["resp_lkey"] for c in query]
    for wrong in 4711, keys[1]:  # a number of nobody, and of the other region
        path = recorded_program(run, TWO_REGIONS.replace("= ok", "# "), HFI1)
        number = changed(run, path, lambda c: verb(c) == "MR.QUERY", word_changed(keys[0], wrong))
        assert replayed(run, path)["differences"] == [
            {"call": number, "target": "MR.QUERY", "item": "resp_lkey", "expected": str(wrong), "result": str(keys[0])}]


@pytest.mark.parametrize("run", ["self"], indirect=True)
def test_a_completion_of_another_qp_is_a_difference(run):
    path = record(run, pair("ibv_rc_pingpong -n 5 -p $port"), HFI1)

    def write(data, at, size):
        wc = [a + kept % 48 for a, kind, kept in pieces(data, at, size) if kind == WRITTEN and kept >= 48]
        struct.pack_into("=I", data, wc[0] + WC_QP, 4711)

    changed(run, path, lambda c: verb(c) == "CQ.POLL" and c["out"].get("count"), write)
    found = replayed(run, path)["differences"]
    assert len(found) == 2 and all(d["item"] == "completion" for d in found), found
    assert found[0]["expected"].endswith(", QP 4711") and found[0]["result"] == "missing", found


@pytest.mark.parametrize("device", [HFI1, RXE], ids=["hfi1", "rxe"])
@pytest.mark.parametrize("run", ["self"], indirect=True)
def test_a_region_that_is_registered_again_is_the_replayer_s_own_memory(run, device):
    path = recorded_program(run, REREG, device)
    calls = calls_of(run, path)
    assert [c.get("errno") for c in calls if c["verb"] in ("REREG", "DEALLOC")] == [None, None, None, "EFAULT", None, "EBUSY", None]
    found = replayed(run, path, device)
    assert not found["differences"] and not found["not_made"] and found["calls"] == len(calls), found
    # Without the first region, the device chooses other keys.
    data, drop = path.read_bytes(), [c["handles"].get("mr_handle") for c in calls]
    first = next(c["out"]["mr_handle"] for c in calls if "mr_handle" in c["out"])
    places = [at for i, at in enumerate(records(data, CALL))
              if drop[i] == f"MR#{first}" or calls[i]["out"].get("mr_handle") == first]
    for at, size in reversed(places):
        data = data[:at] + data[at + size:]
    path.write_bytes(data)
    found = replayed(run, path, device)
    assert len(places) == 2 and not found["differences"] and found["calls"] == len(calls) - 2, found


@pytest.mark.parametrize("run", ["self"], indirect=True)
def test_the_wrong_address_of_a_region_is_a_difference(run):
    path = recorded_program(run, REREG, HFI1)
    queries = [c for c in calls_of(run, path) if verb(c) == "MR.QUERY"]
    iova = queries[0]["out"]["resp_iova"]

    def write(data, at, size):
        found = [a for a, kind, kept in pieces(data, at, size)
                 if kind == WRITTEN and kept == 8 and struct.unpack_from("=Q", data, a) == (iova,)]
        struct.pack_into("=Q", data, found[0], iova + 4096)

    number = changed(run, path, lambda c: verb(c) == "MR.QUERY", write)
    found = replayed(run, path)["differences"]
    assert [(d["call"], d["item"], d["expected"]) for d in found] == [(number, "resp_iova", str(iova + 4096))], found
