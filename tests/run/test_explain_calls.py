# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Refused calls as a program's user sees them: in the log, by `uverbsctl explain`, and in a trace, where probes are no failures."""
import json
import pathlib
import re
import subprocess

import pytest

from conftest import BUILD, STUCK, UVERBSCTL, until

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Two connected QPs; a send with a wrong l_key; then a change of that QP that lacks attributes. WAIT: it reads a line before that.
PROGRAM = """
import sys
from pyverbs import enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR
ctx = Context(name=get_device_list()[0].name.decode())
pd, cq = PD(ctx), CQ(ctx, 16)
mr = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE)
a, b = (QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(4, 4, 1, 1)), QPAttr(port_num=1)) for _ in range(2))
for qp, peer in (a, b), (b, a):
    grh = GlobalRoute(dgid=ctx.query_gid(1, 0), sgid_index=0)
    attr = QPAttr(port_num=1)
    attr.ah_attr = AHAttr(port_num=1, is_global=1, gr=grh, dlid=ctx.query_port(1).lid)
    attr.path_mtu, attr.dest_qp_num, attr.timeout, attr.retry_cnt, attr.max_dest_rd_atomic = e.IBV_MTU_1024, peer.qp_num, 14, 7, 1
    attr.max_rd_atomic = 1
    qp.to_rts(attr)
a.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(mr.buf, 64, mr.lkey + 17)], wr_id=7, send_flags=e.IBV_SEND_SIGNALED))
done = []
while not done:
    done = cq.poll(1)[1]
assert done[0].status == e.IBV_WC_LOC_PROT_ERR
a.modify(QPAttr(qp_state=e.IBV_QPS_RESET), e.IBV_QP_STATE)
if sys.argv[1:] == ["WAIT"]:
    sys.stdin.readline()
attr = QPAttr(port_num=1)
attr.qp_state = e.IBV_QPS_INIT
try:
    a.modify(attr, e.IBV_QP_STATE | e.IBV_QP_PORT)
except PyverbsRDMAError as error:
    assert "22" in str(error), error
print(a.qp_num, b.qp_num)
"""
LACKS = "RESET to INIT lacks ACCESS_FLAGS, PKEY_INDEX; set these attributes, and their bits in attr_mask"


def python(*args):
    return ["/usr/bin/python3", "-c", PROGRAM, *args]


def traced(run, persona, *options):
    """Runs the program under --trace. Returns the run, the numbers of both QPs, and the path of the trace."""
    path = pathlib.Path(run.folder) / "trace"
    r = subprocess.run(run.argv(python(), [*options, "--trace", str(path)], ("--persona", persona)), capture_output=True, text=True,
                       env=run.env, timeout=STUCK)
    assert r.returncode == 0, r
    return r, [int(n) for n in r.stdout.split()], path


def asked(run, command, path, *options):
    r = subprocess.run([*run.prefix, UVERBSCTL, command, "-i", str(path), *options], capture_output=True, text=True, timeout=STUCK)
    assert (r.returncode, r.stderr) == (0, ""), r
    return r.stdout


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def test_the_page_of_reasons_is_that_of_the_build():
    r = subprocess.run([ROOT / "scripts/reasons", "--check", BUILD], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr


def test_the_list_has_each_reason_once_as_text_and_as_json():
    text, rows = (subprocess.run([UVERBSCTL, "explain", "--list", *options], capture_output=True, text=True, check=True).stdout
                  for options in ([], ["--json"]))
    rows = objects(rows)
    codes = [r["code"] for r in rows]
    assert len(codes) == len(set(codes)) and {"modify-missing", "range", "post-full"} <= set(codes)
    assert re.findall(r"^(\S+)$", text, re.M) == codes
    assert all(r["text"] in text and (r["remedy"] or "") in text and f"({r['source']})" in text for r in rows)


@pytest.mark.parametrize("form", ["text", "json", "off"])
def test_the_log_explains_a_refused_call_in_the_chosen_form(run, form):
    r, (a, _), _ = traced(run, "rxe", "--explain", form)
    lines = [line for line in r.stderr.splitlines() if "MODIFY_QP" in line]
    if form == "off":
        assert lines == []
    elif form == "text":
        assert len(lines) == 1 and f"warning: rxe0: IB_USER_VERBS_CMD_MODIFY_QP: EINVAL: QP {a:#x}: {LACKS}, pid " in lines[0]
    else:
        why, = objects("\n".join(lines))
        assert (why["explains"], why["object"], why["number"], why["reason"]) == ("call", "QP", a, "modify-missing")
        assert why["values"] == {"from": "RESET", "to": "INIT", "missing": "ACCESS_FLAGS, PKEY_INDEX"} and why["text"] == LACKS


@pytest.mark.parametrize("persona", ["rxe", "hfi1"])
def test_failed_is_what_failed_and_no_probe(run, persona):
    _, (a, _), path = traced(run, persona)
    failed = [o for o in objects(asked(run, "trace", path, "-e", "failed", "--json")) if o["kind"] != "why"]
    assert [(o["object"], o["verb"]) for o in failed] == [("CQ", "wc" if persona == "rxe" else "POLL"), ("QP", "MODIFY")], failed
    completion = failed[0]["out"]["wc"] if persona == "rxe" else failed[0]["out"]["wc"]["0"]
    assert (completion["status"], completion["wr_id"], completion["qp_num"]) == ("LOC_PROT_ERR", 7, a)
    assert failed[1]["errno"] == "EINVAL" and not any("probe" in o for o in failed)
    assert asked(run, "trace", path, "-e", "LOC_PROT_ERR") == "".join(
        line + "\n" for line in asked(run, "trace", path).splitlines() if "status=LOC_PROT_ERR" in line)
    probes = objects(asked(run, "trace", path, "-e", "probe", "--json"))
    assert probes and all(o["probe"] and o["result"] < 0 for o in probes)
    assert ("DEVICE", "QUERY", "ENOSPC") in {(o["object"], o["verb"], o["errno"]) for o in probes}
    text = asked(run, "trace", path, "-e", "probe")
    assert all(re.search(r" = -E[A-Z]+ \(.*\) probe <\d", line) for line in text.splitlines()) and len(text.splitlines()) == len(probes)
    # Nothing else that has failed is lost between the two.
    everything = [o for o in objects(asked(run, "trace", path, "--json")) if o.get("result", 0) < 0]
    assert len(everything) == len(probes) + 1


def test_why_shows_what_both_ends_did(run):
    _, (a, b), path = traced(run, "rxe")
    why, = [o for o in objects(asked(run, "trace", path, "--why", "--json")) if o["explains"] == "call"]
    assert (why["kind"], why["reason"], why["number"], why["peer"]) == ("why", "modify-missing", a, b)
    for calls, qpn in (why["calls"], a), (why["peer_calls"], b):
        assert calls[0]["verb"] == "CREATE" and calls[0]["out"]["resp_qp_num"] == qpn
        assert [c["in"]["qp_state"] for c in calls if c["verb"] == "MODIFY"][:3] == ["INIT", "RTR", "RTS"]
    assert [c["in"]["wr"]["wr_id"] for c in why["calls"] if c["verb"] == "send_wr"] == [7]
    text = asked(run, "trace", path, "--why")
    assert re.search(rf" why: IB_USER_VERBS_CMD_MODIFY_QP: EINVAL: QP {a:#x}: {LACKS}\n(    .*\n)+  the peer:\n(    .*\n)+$", text), text
    only = asked(run, "explain", path)
    assert re.fullmatch(r"(.* why: .*\n)+", only) and LACKS in only and "QP.CREATE" not in only


def test_explain_prints_what_fails_from_now_on(run):
    p = run.start(*python("WAIT"), options=("--join", "explained"))
    run.engine(p)
    ask = [*run.prefix, UVERBSCTL, "explain", "--run", "explained", "--json"]
    assert until(lambda: subprocess.run([*run.prefix, UVERBSCTL, "plugin", "--run", "explained", "list"], capture_output=True,
                                        env=run.env).returncode == 0)
    watches = [subprocess.Popen([*ask, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=run.env)
               for more in ([], ["-p", "1"])]
    for w in watches:
        assert "uverbsctl explain: it has begun" in w.stderr.readline()
    out, err = p.communicate("\n", timeout=STUCK)
    assert p.returncode == 0, err
    (told, _), (nothing, _) = (w.communicate(timeout=STUCK) for w in watches)
    why = [o for o in objects(told) if o.get("reason") == "modify-missing"]
    assert len(why) == 1 and why[0]["number"] == int(out.split()[0]) and why[0]["program"].startswith("python3"), told
    assert nothing == "" and [w.returncode for w in watches] == [0, 0]


def test_wrong_command_lines_of_explain_are_refused(run):
    for options in (["more"], ["-p", "x"], ["--list", "-p", "1"], ["-i", "a", "--control", "b"]):
        assert subprocess.run([UVERBSCTL, "explain", *options], capture_output=True, timeout=STUCK).returncode == 2, options
    r = subprocess.run([UVERBSCTL, "explain", "-i", "/etc/passwd"], capture_output=True, text=True, timeout=STUCK)
    assert r.returncode == 1 and "it is not a trace" in r.stderr, r
