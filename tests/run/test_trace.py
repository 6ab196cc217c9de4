# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl run --trace` and `uverbsctl trace` on programs of the distribution."""
import collections
import json
import os
import pathlib
import re
import signal
import socket
import subprocess

import pytest

import perftest
from conftest import STUCK, UVERBSCTL, pair, until

HFI1, RXE = ("--persona", "hfi1"), ("--persona", "rxe")


def trace_file(run):
    return pathlib.Path(run.folder) / "trace"


def record(run, script, options):
    """Runs a shell script under --trace. Returns the path of the trace."""
    path = trace_file(run)
    argv = run.argv(["sh", "-c", script], [*options, "--trace", str(path)], ())
    r = perftest.undisturbed(lambda: subprocess.run(argv, capture_output=True, text=True, env=run.env, timeout=STUCK),
                             lambda r: r.stdout + r.stderr if r.returncode else "")
    assert r.returncode == 0, (r.stdout, r.stderr)
    return path


def shown(run, path, *options):
    r = subprocess.run([*run.prefix, UVERBSCTL, "trace", "-i", str(path), *options], capture_output=True, text=True, timeout=STUCK)
    assert (r.returncode, r.stderr) == (0, ""), r
    return r.stdout


def calls_of(run, path, *options):
    return [o for o in map(json.loads, shown(run, path, "--json", *options).splitlines()) if o["kind"] == "call"]


def verb(call):
    return f"{call['object']}.{call['verb']}"


@pytest.mark.parametrize("front", ["write", "ioctl"])
def test_each_work_request_and_completion_of_a_pingpong_is_in_the_trace(run, front):
    path = record(run, pair("ibv_rc_pingpong -n 5 -p $port"), (*HFI1, "--abi", front))
    calls = calls_of(run, path)
    assert not [c for c in calls if "cut" in c]
    assert all(re.fullmatch("[A-Z_0-9]+", c["object"]) and re.fullmatch("[A-Z_0-9]+", c["verb"]) for c in calls), calls
    sends = [c for c in calls if verb(c) == "QP.POST_SEND"]
    assert len(sends) == 10 and all(c["in"]["wr"]["0"]["opcode"] == "SEND" for c in sends), sends
    assert all(c["in"]["wr"]["0"]["sge"]["0"]["length"] == 4096 for c in sends)
    assert all("rdma" not in json.dumps(c["in"]) and "ud" not in c["in"]["wr"]["0"].get("wr", {}) for c in sends), sends
    done = [w for c in calls if verb(c) == "CQ.POLL" and c["out"].get("count") for w in c["out"]["wc"].values()]
    assert len(done) == 20 and collections.Counter(w["opcode"] for w in done) == {"SEND": 10, "RECV": 10}, done
    assert all(w["status"] == "SUCCESS" for w in done)
    states = [c["in"]["qp_state"] for c in calls if verb(c) == "QP.MODIFY"]
    assert sorted(states) == ["INIT", "INIT", "RTR", "RTR", "RTS", "RTS"]
    assert all(c["handles"]["qp_handle"].startswith("QP#") for c in sends)
    assert {c["front"] for c in calls} == ({"write"} if front == "write" else {"ioctl", "invoke_write"})


def test_the_text_reads_as_strace_does(run):
    path = record(run, pair("ibv_rc_pingpong -g 0 -n 3 -e -p $port"), RXE)
    text = shown(run, path)
    time, who = r"\d\d:\d\d:\d\d\.\d{6}", r"ibv_rc_pingpong\[\d+\] rxe0:\d"
    assert re.search(rf"^{time} {who} PD\.ALLOC\(\) = \{{pd_handle=PD#0\}} <0\.\d{{6}}>$", text, re.M), text
    assert re.search(r"QP\.CREATE\(pd_handle=PD#0, send_cq_handle=CQ#2, recv_cq_handle=CQ#2, type=RC, .*\) = "
                     r"\{handle=QP#3\(qpn (\d+)\), .*resp_qp_num=\1[,}]", text), text
    assert re.search(r"COMP_CHANNEL\.CREATE\(\) = \{fd=COMP_CHANNEL#0\(fd (\d+)\)\}(.*\n)*?.*"
                     r"CQ\.CREATE\(.*comp_channel=COMP_CHANNEL#0\(fd \1\).*\) = \{handle=CQ#2, ", text), text
    assert re.search(r"fd_handle=ASYNC_EVENT#0\(fd \d+\)", text), text
    assert re.search(r"MR\.CMD_REG_MR\(start=0x[0-9a-f]+, length=4096, .*, access_flags=LOCAL_WRITE\) = ", text), text
    assert re.search(r"QP\.MODIFY\(.*dgid=::ffff:127\.0\.0\.1.*qp_state=RTR", text), text
    assert re.search(r"DEVICE\.QUERY\(\) = -ENOSPC \(No space left on device\)", text), text
    assert re.search(rf"^\+\+\+ {who} open file of /dev/infiniband/uverbs0 \+\+\+$", text, re.M), text
    assert len(re.findall(rf"^{time} {who} close\(\) = 0$", text, re.M)) == 2, text


def entries_of(run, path, *options):
    return [o for o in map(json.loads, shown(run, path, "--json", *options).splitlines()) if o["kind"] == "entry"]


def test_each_work_request_and_completion_in_mapped_queues_is_in_the_trace(run):
    path = record(run, pair("ibv_rc_pingpong -g 0 -n 5 -p $port"), RXE)
    entries, calls = entries_of(run, path), calls_of(run, path)
    sends, done = ([e for e in entries if verb(e) == name] for name in ("QP.send_wr", "CQ.wc"))
    received = [e for e in entries if verb(e) == "QP.recv_wr"]
    # The engine takes a receive when a message comes for it.
    assert (len(sends), len(received), len(done), len(entries)) == (10, 10, 20, 40)
    qps = {(c["file"], c["out"]["handle"]): c["handles"]["handle"] for c in calls if verb(c) == "QP.CREATE"}
    cqs = {(c["file"], c["out"]["handle"]) for c in calls if verb(c) == "CQ.CREATE"}
    pids = {c["file"]: c["pid"] for c in calls}
    assert all((e["program"], e["device"], e["pid"]) == ("ibv_rc_pingpong", "rxe0", pids[e["file"]]) for e in entries)
    for e in (*sends, *received):
        assert e["handles"]["qp_handle"] == qps[e["file"], e["in"]["qp_handle"]]
        assert [s["length"] for s in e["in"]["wr"]["sge"].values()] == [4096] and not {"wr", "inline"} & {*e["in"]["wr"]}
    assert {(e["in"]["wr"]["opcode"], e["in"]["wr"]["send_flags"]) for e in sends} == {("SEND", "SIGNALED")}
    assert all((e["file"], e["in"]["cq_handle"]) in cqs and e["handles"]["cq_handle"] == f"CQ#{e['in']['cq_handle']}" for e in done)
    completions = [e["out"]["wc"] for e in done]
    assert {w["status"] for w in completions} == {"SUCCESS"}
    assert sorted(collections.Counter((f"qpn {w['qp_num']}", w["opcode"]) for w in completions).items()) == \
        sorted(((re.search(r"qpn \d+", qp)[0], opcode), 5) for qp in qps.values() for opcode in ("SEND", "RECV"))
    order = [verb(e) for e in entries if e["file"] == sends[0]["file"]]
    assert order.index("QP.send_wr") < order.index("CQ.wc")


def test_an_entry_has_the_values_of_its_operation(run):
    path = record(run, pair("ibv_ud_pingpong -g 0 -n 3 -p $port"), RXE)
    sends = [e["in"]["wr"] for e in entries_of(run, path, "-e", "QP.send_wr")]
    assert len(sends) == 6 and all({*s["wr"]} == {"ud"} and s["wr"]["ud"]["remote_qpn"] and "ah" not in s["wr"]["ud"] for s in sends), sends
    path = record(run, pair("ibv_srq_pingpong -g 0 -n 3 -q 2 -p $port"), RXE)
    received = entries_of(run, path, "-e", "recv_wr")
    assert received and all(e["handles"]["srq_handle"].startswith("SRQ#") for e in received), received
    path = record(run, pair("ib_write_lat -x 0 -n 5 -s 8 -p $port"), RXE)
    writes = [e["in"]["wr"] for e in entries_of(run, path, "-e", "QP.send_wr")]
    assert writes and all(w["opcode"] == "RDMA_WRITE" and w["wr"]["rdma"]["rkey"] and "ud" not in w["wr"] for w in writes), writes


def test_text_filters_and_summary_of_entries(run):
    path = record(run, pair("ibv_rc_pingpong -g 0 -n 3 -p $port"), RXE)
    text = shown(run, path, "-e", "QP.send_wr,CQ.wc")
    assert re.search(r"^.* rxe0:\d QP\.send_wr\(qp_handle=QP#3\(qpn \d+\), wr=\{wr_id=2, num_sge=1, opcode=SEND, send_flags=SIGNALED, "
                     r"sge=\[\{addr=0x\w+, length=4096, lkey=\w+\}\]\}\)$", text, re.M), text
    assert re.search(r"^.* rxe0:\d CQ\.wc\(cq_handle=CQ#2\) = \{wc=\{wr_id=1, status=SUCCESS, opcode=RECV, byte_len=4096, .*\}\}$", text,
                     re.M), text
    entries = entries_of(run, path)
    pid = entries[0]["pid"]
    mine = entries_of(run, path, "-p", str(pid))
    assert mine and mine == [e for e in entries if e["pid"] == pid] and len(mine) < len(entries)
    assert all(v.isupper() for v in json.loads(shown(run, path, "--summary", "--json")))


def test_filters_choose_calls_by_object_verb_errno_and_process(run):
    path = record(run, pair("ibv_rc_pingpong -n 3 -p $port"), HFI1)
    calls = calls_of(run, path)
    for terms, keep in (("PD", lambda c: c["object"] == "PD"), ("pd.alloc", lambda c: verb(c) == "PD.ALLOC"),
                        ("probe", lambda c: c["result"] < 0), ("ENOSPC", lambda c: c.get("errno") == "ENOSPC"),
                        ("!QP", lambda c: c["object"] != "QP"), ("QP,!POST_*", lambda c: c["object"] == "QP" and "POST" not in c["verb"]),
                        ("IB_USER_VERBS_CMD_ALLOC_PD", lambda c: c["name"] == "IB_USER_VERBS_CMD_ALLOC_PD")):
        wanted = [c for c in calls if keep(c)]
        assert wanted and calls_of(run, path, "-e", terms) == wanted, terms
    assert shown(run, path, "-e", "failed") == ""
    pid = calls[0]["pid"]
    mine = calls_of(run, path, "-p", str(pid))
    assert mine and mine == [c for c in calls if c["pid"] == pid] and len(mine) < len(calls)


def test_the_summary_counts_calls_errors_and_times(run):
    path = record(run, pair("ibv_rc_pingpong -n 3 -p $port"), HFI1)
    calls = calls_of(run, path)
    summary = json.loads(shown(run, path, "--summary", "--json"))
    assert {v: s["calls"] for v, s in summary.items()} == collections.Counter(map(verb, calls))
    assert sum(s["errors"] for s in summary.values()) == sum(c["result"] < 0 for c in calls)
    assert sum(s["ns"] for s in summary.values()) == sum(c["duration_ns"] for c in calls)
    text = shown(run, path, "-c").splitlines()
    assert text[0].split() == ["%", "time", "seconds", "usecs/call", "calls", "errors", "verb"], text
    assert text[-1].split()[3:] == [str(len(calls)), str(sum(c["result"] < 0 for c in calls)), "total"], text


def test_a_message_larger_than_what_is_kept_is_marked(run):
    path = record(run, pair("ib_send_bw -n 5 -p $port"), HFI1)
    calls = calls_of(run, path)
    posted = sum(int(c["in"]["wr_count"]) for c in calls if verb(c) == "QP.POST_SEND")
    assert posted == 5
    assert {c["program"] for c in calls} == {"ib_send_bw"}


def test_pyverbs_is_traced(run):
    pytest.importorskip("pyverbs")
    script = "from pyverbs.device import Context; from pyverbs.pd import PD; from pyverbs.cq import CQ, CompChannel\n" \
             "with Context(name='hfi1_0') as c, PD(c) as p:\n" \
             "  CompChannel(c).close()\n" \
             "  with CompChannel(c) as e: q = CQ(c, 7, channel=e)"
    path = record(run, f"/usr/bin/python3 -c \"{script}\"", HFI1)
    created = [c for c in calls_of(run, path) if c["object"] in ("CQ", "COMP_CHANNEL") and "CREATE" in c["verb"]]
    assert [verb(c) for c in created] == ["COMP_CHANNEL.CREATE", "COMP_CHANNEL.CREATE", "CQ.CREATE"], created
    fd = created[0]["out"]["fd"]
    # A new object has the descriptor that was closed.
    assert [c["out"].get("fd") for c in created] == [fd, fd, None] and created[2]["in"] | {"cqe": 7, "comp_channel": fd} == created[2]["in"]
    assert [c["handles"]["fd"] for c in created[:2]] == [f"COMP_CHANNEL#{n}(fd {fd})" for n in (0, 1)]
    assert created[2]["handles"]["comp_channel"] == f"COMP_CHANNEL#1(fd {fd})"


def test_a_trace_that_cannot_be_written_ends_the_run(run):
    r = subprocess.run(run.argv(["true"], ["--trace", "/nowhere/trace"]), capture_output=True, text=True, env=run.env, timeout=STUCK)
    assert r.returncode == 125 and "--trace /nowhere/trace: ENOENT" in r.stderr, r


def test_what_is_no_trace_is_refused(run):
    for path, said in (("/etc/passwd", "it is not a trace of uverbsd"), ("/nowhere", "ENOENT")):
        r = subprocess.run([UVERBSCTL, "trace", "-i", path], capture_output=True, text=True, timeout=STUCK)
        assert (r.returncode, r.stdout) == (1, "") and said in r.stderr, r
    for options in (["-i", "/etc/passwd", "-p", "x"], ["-i", "/etc/passwd", "more"]):
        assert subprocess.run([UVERBSCTL, "trace", *options], capture_output=True, timeout=STUCK).returncode == 2


def test_a_run_that_joins_another_cannot_record_it(run):
    p = run.start("sh", "-c", "read x", options=("--join", "traced"))
    assert p.stdin
    try:
        run.engine(p)
        r = run("true", options=("--join", "traced", "--trace", os.path.join(run.folder, "t")))
        assert r.returncode == 125 and "uverbsctl trace --run traced" in r.stderr, r
    finally:
        p.communicate("\n", timeout=STUCK)


# ---- a trace of what runs already -------------------------------------------------------------------------------------


def tracer(run, *options):
    p = subprocess.Popen([*run.prefix, UVERBSCTL, "trace", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=run.env)
    assert "it has begun" in p.stderr.readline()
    return p


def joined(run, program="read x; %s call PD ALLOC" % UVERBSCTL):
    """Starts a run, which waits for a line before it calls."""
    p = run.start("sh", "-c", program, options=("--join", "traced"))
    run.engine(p)
    ask = [*run.prefix, UVERBSCTL, "plugin", "--run", "traced", "list"]
    assert until(lambda: subprocess.run(ask, capture_output=True, env=run.env).returncode == 0)
    return p


def test_a_trace_of_a_run_has_all_until_its_end(run):
    p = joined(run)
    path = trace_file(run)
    live, saved = tracer(run, "--run", "traced", "--json"), tracer(run, "--run", "traced", "-o", str(path))
    p.communicate("\n", timeout=STUCK)
    assert p.returncode == 0
    out, err = live.communicate(timeout=STUCK)
    assert (live.returncode, err) == (0, ""), err
    assert saved.communicate(timeout=STUCK) == ("", "") and saved.returncode == 0
    calls = [o for o in map(json.loads, out.splitlines()) if o["kind"] == "call"]
    assert [verb(c) for c in calls][-1] == "PD.ALLOC" and calls == calls_of(run, path)


def test_an_interrupt_ends_a_trace_with_its_summary(run):
    p = joined(run)
    live = tracer(run, "--run", "traced", "-c", "-e", "QP")
    live.send_signal(signal.SIGINT)
    out, err = live.communicate(timeout=STUCK)
    assert (live.returncode, err) == (0, "") and out.splitlines()[-1].endswith("total"), (out, err)
    p.communicate("\n", timeout=STUCK)
    assert p.returncode == 0


def test_there_are_four_traces_at_most(run):
    p = joined(run)
    tracers = [tracer(run, "--run", "traced") for _ in range(4)]
    r = subprocess.run([*run.prefix, UVERBSCTL, "trace", "--run", "traced"], capture_output=True, text=True, env=run.env, timeout=STUCK)
    assert r.returncode == 1 and "too many traces are running" in r.stderr, r
    p.communicate("\n", timeout=STUCK)
    for t in tracers:
        out, _ = t.communicate(timeout=STUCK)
        assert t.returncode == 0 and "PD.ALLOC() = {pd_handle=PD#0}" in out


def test_options_that_exclude_each_other_are_refused(run):
    for options in (["-i", "x", "-o", "y"], ["-o", "y", "-e", "QP"], ["-o", "y", "--json"], ["-i", "x", "--control", "y"]):
        assert subprocess.run([UVERBSCTL, "trace", *options], capture_output=True, timeout=STUCK).returncode == 2
    r = subprocess.run([UVERBSCTL, "trace", "--control", "/nowhere"], capture_output=True, text=True, timeout=STUCK)
    assert r.returncode == 1 and "no uverbsd answers on /nowhere: ENOENT" in r.stderr, r


# ---- docs/trace.md ----------------------------------------------------------------------------------------------------


def without_chance(line):
    """A line without what differs from run to run: times and processes."""
    line = re.sub(r"\d\d:\d\d:\d\d\.\d{6}", "TIME", re.sub(r"<\d\.\d{6}>", "<TIME>", line))
    line = re.sub(r'("(?:time_ns|duration_ns|pid|tid)":)\d+', r"\1N", re.sub(r"\[\d+\]", "[PID]", line))
    line = re.sub(r"(addr=|lkey=|qp_num=|src_qp=|qpn )\w+", r"\1N", re.sub(r" rxe0:\d+ ", " rxe0:N ", line))
    return re.sub(r"^(100\.00) +\d\.\d{6} +\d+\.\d ", r"\1 TIME ", line)


def test_the_examples_of_the_documentation_print_what_it_says(run):
    page = pathlib.Path(__file__).parents[2] / "docs/trace.md"
    blocks = re.findall(r"^```\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    env = {**run.env, "PATH": f"{os.path.dirname(UVERBSCTL)}:{os.environ['PATH']}", "PORT": str(port)}
    for block in blocks:
        said = []
        for line in block.splitlines():
            if line.startswith("$ "):
                r = subprocess.run([*run.prefix, "sh", "-c", line[2:]], capture_output=True, text=True, env=env, cwd=run.folder,
                                   timeout=STUCK)
                assert r.returncode == 0, (line, r)
                said.append(line)
                said += r.stdout.splitlines()
        assert [without_chance(s) for s in said] == [without_chance(s) for s in block.splitlines()], block
    assert len(blocks) == 5


# An indirection table, whose handles no name tells; a QP with an SRQ; and requests with fields that nothing selects.
FIELDS = """pd = PD ALLOC
cq = CQ EX_CREATE --cqe 16
wq = WQ EX_CREATE --wq_type RQ --pd_handle $pd --cq_handle $cq --max_wr 4 --max_sge 1
ind = RWQ_IND_TBL EX_CREATE --wq_handles $wq
qp = QP EX_CREATE --pd_handle $pd --send_cq_handle $cq --recv_cq_handle $cq --qp_type RC --max_send_wr 1 --max_recv_wr 1
QP MODIFY --qp_handle $qp --attr_mask STATE|PKEY_INDEX|PORT|ACCESS_FLAGS --qp_state INIT --port_num 1 --cur_qp_state RTS --qkey 5
xrcd = XRCD OPEN --oflags CREAT
tgt = QP EX_CREATE --pd_handle $xrcd --qp_type XRC_TGT
RWQ_IND_TBL EX_DESTROY --ind_tbl_handle $ind
"""


@pytest.fixture(name="fields")
def fixture_fields(run):
    """The lines of a trace of FIELDS, by the verb, and its JSON objects."""
    script = pathlib.Path(run.folder) / "fields"
    script.write_text(FIELDS)
    script.chmod(0o644)
    path = record(run, f"{UVERBSCTL} call -f {script}", ("--backend", "null"))
    found = (re.search(r" (\w+\.\w+)\(.*", line) for line in shown(run, path).splitlines())
    return {m[1]: m[0] for m in found if m}, calls_of(run, path)


def test_handles_of_an_array_are_named_and_counted(fields):
    assert re.search(r"wq_handles=\[WQ#\d+(\(wqn \d+\))?\]\)", fields[0]["RWQ_IND_TBL.EX_CREATE"]), fields[0]


def test_an_object_is_named_where_it_is_destroyed(fields):
    assert re.search(r"ind_tbl_handle=RWQ_IND_TBL#\d+\)", fields[0]["RWQ_IND_TBL.EX_DESTROY"]), fields[0]


def test_what_attr_mask_does_not_select_is_not_shown(fields):
    line = fields[0]["QP.MODIFY"]
    assert "qp_state=INIT" in line and "port_num=1" in line, line
    assert not re.search("cur_qp_state|qkey|path_mig_state|dest|RTS", line), line


def test_pd_handle_of_an_xrc_target_is_a_domain(fields):
    targets = [c for c in fields[1] if c["in"].get("qp_type") == "XRC_TGT"]
    assert len(targets) == 1 and targets[0]["handles"]["pd_handle"].startswith("XRCD#"), targets
