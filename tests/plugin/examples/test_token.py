# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Made-up calls (token.c): their rows, and the roles of their fields, are all that trace, call, replay, fuzz, syzlang and Python need."""
import json
import os
import re
import struct
import sys

import pytest

from conftest import BUILD, ROOT, SANITIZER, UVERBSCTL, said

sys.path.append(str(ROOT / "tests/tree"))

TOKEN, BARE = (BUILD / f"tests/plugin/examples/{name}.so" for name in ("token", "token_bare"))
HFI1 = "--persona", "hfi1"  # the same keys in each run
HEADER, TREE, CALL, ROLES = 24, 1, 3, 7  # struct uvd_trace_header; enum uvd_trace_kind
ENV = {**os.environ, "PYTHONPATH": str(ROOT / "contrib/python")}

SCRIPT = """
pd = PD ALLOC
m = memory 4096
r = MR CMD_REG_MR --pd_handle $pd --start $m --length 4096 --hca_va $m --access_flags LOCAL_WRITE
t = TOKEN MAKE --mask MR|QP|MEMORY --pd_handle $pd --mr_handle $r --mr_lkey 257 --qpn 17 --colour RED --plain $pd --start $m --length 64
TOKEN CMD_CHECK_TOKEN --token_handle $t --rkey 0x5000
u = TOKEN CREATE --made_of mask=0,pd_handle=$pd,colour=GREEN,mr_handle=9
TOKEN EX_COUNT_TOKENS --tokens $t,$u
TOKEN CHECK --handle $u --rkey 0x5001 --colour GREEN
TOKEN END --token_handle $t
TOKEN DESTROY --handle $u
"""

# Each second object is used: without the first ones, the device chooses other handles, keys and QP numbers for them.
NUMBERS = """
import uverbs
with uverbs.open() as dev:
    pds = [dev.write.ALLOC_PD() for _ in range(2)]
    cq = dev.write.CREATE_CQ(cqe=1)
    memory = bytearray(4096)
    mrs = [dev.write.REG_MR(pd_handle=pds[1], start=memory, length=4096, hca_va=memory, access_flags="LOCAL_WRITE") for _ in range(2)]
    qps = [dev.write.CREATE_QP(pd_handle=pds[1], send_cq_handle=cq, recv_cq_handle=cq, qp_type="RC", max_send_wr=1, max_recv_wr=1)
           for _ in range(2)]
    of = {"mask": "MR|QP|MEMORY", "pd_handle": pds[1], "mr_handle": mrs[1], "mr_lkey": mrs[1].lkey, "qpn": qps[1].qpn, "colour": "RED",
          "plain": mrs[1].lkey, "start": memory, "length": 64}
    tokens = [dev.write.MAKE_TOKEN(**of) for _ in range(2)]
    made = dev.TOKEN.CREATE(made_of=of)
    dev.write.CHECK_TOKEN(token_handle=tokens[1], rkey=tokens[1].rkey)
    dev.TOKEN.CHECK(handle=made, rkey=made.resp_rkey)
    dev.write.EX_COUNT_TOKENS(tokens=[tokens[1], made])
    dev.write.END_TOKEN(token_handle=tokens[1])
    made.handle.destroy()
"""
NO_THREADS = pytest.mark.skipif(SANITIZER == "thread", reason="programs run in a child that starts threads, and race on purpose")


def with_token(*program, plugin=TOKEN, values=(), options=HFI1, **kw):
    return said(UVERBSCTL, "run", *options, "--log-level", "error", "--plugin", plugin, *values, "--", *program, env=ENV, **kw)


def recorded(scratch, *program, **kw):
    path = scratch / "trace"
    path.unlink(missing_ok=True)
    with_token(*program, options=(*HFI1, "--trace", path), **kw)
    return path


def calls_of(path):
    lines = said(UVERBSCTL, "trace", "-i", path, "--json").splitlines()
    return [c for c in map(json.loads, lines) if c["kind"] == "call"]


def records(data, kind):
    """(offset, length) of each record of a kind."""
    at = HEADER
    while at < len(data):
        length, is_ = struct.unpack_from("=II", data, at)
        if is_ == kind:
            yield at, length
        at += length


def without(data, places):
    for at, size in sorted(places, reverse=True):
        data = data[:at] + data[at + size:]
    return data


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("token") / "script"
    path.write_text(SCRIPT)
    return path


# ---- call and trace ---------------------------------------------------------------------------------------------------


def test_made_up_calls_are_called_and_traced_by_name(scratch, script):
    path = recorded(scratch, UVERBSCTL, "call", "-f", script)
    text = re.sub(r"0x[0-9a-f]{9,}", "ADDRESS", said(UVERBSCTL, "trace", "-i", path))
    lines = [line.split(" TOKEN.")[1].split(" <")[0] for line in text.splitlines() if " TOKEN." in line]
    assert lines == [
        "MAKE(mask=MR|QP|MEMORY, pd_handle=PD#0, mr_handle=MR#1, mr_lkey=257, qpn=17, colour=RED, plain=0, start=ADDRESS, length=64)"
        " = {token_handle=TOKEN#2, rkey=20480, colour=RED}".replace(", plain=0", ""),
        "CMD_CHECK_TOKEN(token_handle=TOKEN#2, rkey=20480) = {rkey=20480, qpn=17, plain=0, colour=RED}",
        "CREATE(made_of={mask=0, pd_handle=PD#0, colour=GREEN, plain=0}) = {handle=TOKEN#3, resp_rkey=20481}",
        "EX_COUNT_TOKENS(num_tokens=2, tokens=[TOKEN#2, TOKEN#3]) = {red=1, green=1}",
        "CHECK(handle=TOKEN#3, rkey=20481, colour=GREEN) = {resp={rkey=20481, qpn=0, plain=0, colour=GREEN}}",
        "END(token_handle=TOKEN#2) = 0", "DESTROY(handle=TOKEN#3) = 0"]


def test_a_field_without_a_role_is_a_number_and_no_handle(scratch, script):
    make, = (c for c in calls_of(recorded(scratch, UVERBSCTL, "call", "-f", script)) if c["verb"] == "MAKE")
    assert make["in"]["plain"] == 0 and make["in"]["pd_handle"] == 0  # both the handle of the PD
    assert make["handles"] == {"pd_handle": "PD#0", "mr_handle": "MR#1", "token_handle": "TOKEN#2"}


def test_a_plug_in_without_roles_is_traced_and_called_as_before(scratch):
    request = "u64:0+u32:0,0,0,0,0,1,7,0+u64:0,0"
    script = f"pd = PD ALLOC\nTOKEN MAKE --in {request}\n"
    path = recorded(scratch, UVERBSCTL, "call", "-f", "-", plugin=BARE, input=script)
    make, = (c for c in calls_of(path) if c["verb"] == "MAKE")
    assert set(make["in"]) == {"in"} and make["out"] == {} and make["handles"] == {}, make
    assert not list(records(path.read_bytes(), ROLES))


def test_a_trace_of_before_is_read(scratch, script):
    path = recorded(scratch, UVERBSCTL, "call", "-f", script)
    data = path.read_bytes()
    places = list(records(data, ROLES))
    assert places
    path.write_bytes(without(data, places))
    make, = (c for c in calls_of(path) if c["verb"] == "MAKE")
    assert set(make["in"]) == {"in"} and not make["handles"]


# ---- replay -----------------------------------------------------------------------------------------------------------


def replayed(path, *values, **kw):
    out = with_token("sh", "-c", f"{UVERBSCTL} replay --json {path} || test $? = 1", values=values, **kw)
    return json.loads(out)


def first_objects(path):
    """The calls that made, and ended, each first object of two."""
    calls, drop = calls_of(path), set()
    for key in "pd_handle", "mr_handle", "qp_handle", "token_handle":
        made = [i for i, c in enumerate(calls) if key in c["out"]]
        assert len(made) == 2, (key, made)
        name = calls[made[0]]["handles"][key]
        drop |= {made[0]} | {i for i, c in enumerate(calls) if name in c["handles"].values() and "DESTROY" in c["name"]}
    return drop


def test_a_replay_maps_handles_keys_and_qp_numbers_of_made_up_calls(scratch):
    path = recorded(scratch, "/usr/bin/python3", "-c", NUMBERS)
    found = replayed(path, "first=0x7000")
    assert not found["differences"] and not found["not_made"] and found["calls"] > 15, found
    drop, data = first_objects(path), path.read_bytes()
    path.write_bytes(without(data, [place for i, place in enumerate(records(data, CALL)) if i in drop]))
    found = replayed(path, "first=0x7000")
    # The one field without a role is the recorded number, whatever stands for it now.
    assert not found["differences"] and not found["not_made"] and found["calls"] > 10, found


@pytest.mark.parametrize("value, items", [("wrong=1", ["rkey", "resp.rkey"]), ("wrong-qpn=1", ["qpn", "resp.qpn"])])
def test_a_wrong_number_of_a_made_up_call_is_a_difference(scratch, value, items):
    path = recorded(scratch, "/usr/bin/python3", "-c", NUMBERS)
    found = replayed(path, value)
    assert [d["item"] for d in found["differences"]] == items, found
    assert {d["target"] for d in found["differences"]} == {"TOKEN.CMD_CHECK_TOKEN", "TOKEN.CHECK"}, found


OTHER_DEVICES = [("moved=1", [], []), ("rounded=1", ["capacity"], []), ("wrong-plain=1", ["plain"], ["plain"])]


@pytest.mark.parametrize("value, items, items_of_rxe", OTHER_DEVICES)
def test_the_role_of_a_made_up_output_says_if_a_trace_is_compared(scratch, value, items, items_of_rxe):
    """Of another machine, of the same driver; and of another driver."""
    path = recorded(scratch, UVERBSCTL, "call", "TOKEN", "QUERY")
    for options, wanted in (HFI1, items), (("--persona", "rxe"), items_of_rxe):
        found = replayed(path, value, options=options)
        assert [d["item"] for d in found["differences"]] == [f"resp.{item}" for item in wanted], found


@pytest.mark.parametrize("value, items, _", OTHER_DEVICES)
def test_the_role_of_a_made_up_output_says_if_a_program_is_compared(scratch, value, items, _):
    """Its file does not name the driver."""
    path = scratch / "roles.prog"
    path.write_text("write GET_CONTEXT\nmethod TOKEN_QUERY query_token_resp query_token_resp_slot\n")
    with_token(UVERBSCTL, "replay", "--record", path)
    results = path.read_text().splitlines()[-1]
    assert all(f" {name}=" in results for name in ("own_gid", "guid", "clock", "machine", "share", "capacity", "own_lid", "part", "value"))
    found = replayed(path, value)
    assert [d["item"] for d in found["differences"]] == items, found


# ---- fuzz -------------------------------------------------------------------------------------------------------------


@NO_THREADS
def test_a_fuzz_run_in_the_process_finds_what_only_right_arguments_reach(scratch):
    """The plug-in dies in a check that succeeds of a token with a memory region: its PD, region, memory and key were right."""
    out = said(UVERBSCTL, "fuzz", "--in-process", "--seconds", "240", "--output", scratch / "F", "--", *HFI1, "--plugin", TOKEN, "bug=1",
               status=1)
    program = (scratch / "F.prog").read_text()
    assert "lost: the engine died by SIGABRT" in program, out + program
    made, region = re.search(r"(?m)^(\w+): .*(?:MAKE_TOKEN|TOKEN_CREATE).*mr_handle=(\w+)", program).groups()
    assert f"{region}: " in program and re.search(rf"CHECK_?.*token_handle={made} .*rkey={made}\.rkey", program), program
    # The made-up calls have names in a file, too.
    again = with_token(UVERBSCTL, "replay", scratch / "F.prog")
    assert "calls, no difference" in again or "no results" in again, again


@NO_THREADS
def test_a_fuzz_run_makes_made_up_calls_by_the_roles_of_their_fields(scratch):
    path = scratch / "trace"
    said(UVERBSCTL, "fuzz", "--programs", "400", "--seconds", "600", "--", *HFI1, "--plugin", TOKEN, "--trace", path)
    calls = [c for c in calls_of(path) if c["object"] == "TOKEN"]
    good = {verb: [c for c in calls if c["verb"] == verb and not c["result"] < 0] for verb in {c["verb"] for c in calls}}
    assert {v for v, found in good.items() if found} == {
        "MAKE", "CMD_CHECK_TOKEN", "EX_COUNT_TOKENS", "END", "CREATE", "CHECK", "DESTROY", "QUERY"}, {v: len(c) for v, c in good.items()}
    assert any(c["in"].get("mr_lkey") for c in good["MAKE"]) and any(c["in"].get("qpn", 0xffffffff) < 1 << 24 for c in good["MAKE"])
    assert all(c["handles"]["pd_handle"].startswith("PD#") for c in good["MAKE"])
    # An object that a call has ended is hardly used again: by calls that try that, a second destruction, or one at the same time.
    named = [c for c in calls if any(h.startswith("TOKEN#") for h in c["handles"].values())]
    gone = [c for c in named if any(h.endswith("(destroyed)") for h in c["handles"].values())]
    assert len(named) > 150 and len(gone) * 50 < len(named), (len(gone), len(named))


# ---- descriptions -----------------------------------------------------------------------------------------------------


def test_syzlang_describes_made_up_calls():
    import syzlang  # pylint: disable=import-outside-toplevel

    text = with_token(UVERBSCTL, "tree", "--open", "/dev/infiniband/uverbs0", "--format", "syzlang")
    described = syzlang.Description(text)
    assert {"write$uverbs_MAKE_TOKEN", "ioctl$uverbs_INVOKE_MAKE_TOKEN", "ioctl$uverbs_TOKEN_CREATE"} <= set(described.calls)

    def fields(name):
        return [tuple(line.split(None, 1)) for line in re.search(rf"(?m)^{name} {{\n(.*?)^}}", text, re.S)[1].splitlines()]

    assert fields("uverbs_token_of")[:6] == [
        ("mask", "flags[uverbs_token_mask, int32]"), ("pd_handle", "uverbs_pd_handle"), ("mr_handle", "uverbs_mr_handle"),
        ("mr_lkey", "uverbs_lkey"), ("qpn", "int32"), ("colour", "flags[uverbs_token_colour, int32]")]
    assert fields("uverbs_count_tokens") == [
        ("num_tokens", "len[tokens, int32]"), ("reserved4", "const[0, int32]"), ("tokens", "array[uverbs_token_handle]")]
    assert ("token_handle", "uverbs_token_handle") in fields("uverbs_make_token_resp")
    assert "resource uverbs_token_handle[" in text


def test_json_of_the_tree_has_the_fields_of_made_up_calls():
    tree = json.loads(with_token(UVERBSCTL, "tree", "--open", "/dev/infiniband/uverbs0", "--json"))
    token, = (o for o in tree["objects"] if o["name"] == "UVERBS_OBJECT_TOKEN")
    make = next(c for c in token["commands"] if c["name"] == "IB_USER_VERBS_CMD_MAKE_TOKEN")
    assert [(f["name"], f.get("role", "number")) for f in make["response"]["fields"]] == [
        ("token_handle", "handle"), ("rkey", "rkey"), ("colour", "words")]
    check = next(m for m in token["methods"] if m["name"] == "UVERBS_METHOD_TOKEN_CHECK")
    colour = next(a for a in check["attributes"] if a["name"] == "UVERBS_ATTR_CHECK_TOKEN_COLOUR")
    assert colour["role"] == "words" and colour["value"]["enum"]["words"] == {"RED": 1, "GREEN": 2}
    assert not any("request" in c for o in tree["objects"] for c in o["commands"] if o is not token)


PYTHON = """
import uverbs
with uverbs.open() as dev:
    pd = dev.write.ALLOC_PD()
    t = dev.write.MAKE_TOKEN(mask="QP", pd_handle=pd, qpn=17, colour="RED", plain=5)
    print(t, t.handle.object.short, dev.write.CHECK_TOKEN(token_handle=t, rkey=t.rkey))
    u = dev.TOKEN.CREATE(made_of={"pd_handle": pd, "colour": "GREEN"})
    print(dev.TOKEN.CHECK(handle=u, rkey=u.resp_rkey, colour="GREEN").resp.colour == "GREEN", dev.write.EX_COUNT_TOKENS(tokens=[t, u]))
    dev.write.END_TOKEN(token_handle=t)
    u.handle.destroy()
"""


def test_python_calls_made_up_calls_by_name():
    assert with_token("/usr/bin/python3", "-c", PYTHON).splitlines() == [
        "{'token_handle': <TOKEN 1>, 'rkey': 20480, 'colour': RED} TOKEN {'rkey': 20480, 'qpn': 17, 'plain': 5, 'colour': RED}",
        "True {'red': 1, 'green': 1}"]
