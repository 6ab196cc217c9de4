# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl run --report`: what a process leaves, what has failed, and what is a finding."""
import json
import pathlib
import platform
import shutil
import subprocess
import xml.etree.ElementTree

import pytest

from conftest import BIN, BUILD, CLIENT as OTHER, UVERBSCTL, pair

CLIENT = shutil.copy(BUILD / "tests/run/report_client", BIN / "report_client").as_posix()
NO_ID, OTHER_ID = (shutil.copy(BUILD / f"tests/run/report_client_{name}", BIN) for name in ("no_id", "other_id"))
pytestmark = pytest.mark.parametrize("run", ["self"], indirect=True)


class Report:
    """The report of one run of the client, which makes this mistake."""

    def __init__(self, run, *program, options=()):
        path = pathlib.Path(run.folder, "report")
        self.run = run.without_persona(*program, options=[f"--report={path}", "--report-format", "json", "--report-fails", *options])
        self.all = json.loads(path.read_text(encoding="utf-8"))
        self.processes = self.all["processes"]

    @property
    def process(self):
        process, = self.processes
        return process

    def codes(self, kind="findings"):
        return [issue["code"] for issue in self.process[kind]]


def left(process):
    return sorted(o["type"] for o in process["objects_left"])


@pytest.mark.parametrize("options", [(), ("--persona", "hfi1")], ids=["rxe", "hfi1"])
def test_a_program_that_destroys_all_has_no_findings(run, options):
    r = Report(run, CLIENT, "none", options=options if not options else [*options, "--link-layer", "ethernet"])
    assert (r.run.returncode, r.all["findings"], r.process["objects_left"]) == (0, 0, []), r.run
    assert (r.process["program"], r.process["end"], r.process["status"]) == ("report_client", "exited", 0)
    sends, = r.process["messages"]
    assert sends == {"operation": "SEND", "messages": 5, "bytes": 5 * 64}
    assert {"code": "receives-unused", "count": 1} == {k: v for k, v in r.process["notices"][0].items() if k != "text"}
    calls = {c["verb"].rsplit("_CMD_")[-1]: c for c in r.process["calls"]}
    assert calls["ALLOC_PD"]["calls"] == 1 and calls["ALLOC_PD"]["failed"] == 0 and calls["ALLOC_PD"]["bytes"] > 0


def test_a_region_that_is_left_at_a_successful_exit_is_a_finding(run):
    r = Report(run, CLIENT, "leak")
    assert (r.run.returncode, r.codes(), left(r.process)) == (99, ["objects-left"], ["MR", "PD"])
    region = r.process["objects_left"][0]
    assert (region["length"], region["access"]) == (8192, "LOCAL_WRITE")
    assert "8192 bytes registered" in r.process["findings"][0]["text"]


def test_a_region_that_is_left_when_its_device_is_closed_is_a_finding(run):
    r = Report(run, CLIENT, "close")
    assert (r.run.returncode, r.codes(), left(r.process)) == (99, ["objects-left"], ["MR", "PD"])


@pytest.mark.parametrize("mistake, status, end", [("leak-and-fail", 3, "exited"), ("leak-and-die", 128 + 9, "killed")])
def test_what_a_process_leaves_that_fails_is_no_finding(run, mistake, status, end):
    r = Report(run, CLIENT, mistake)
    assert (r.run.returncode, r.codes(), r.codes("notices"), r.process["end"]) == (status, [], ["left-by-failure"], end)


def test_cqs_and_pds_that_nothing_uses_are_no_finding(run):
    r = Report(run, CLIENT, "idle")
    assert (r.run.returncode, r.codes(), r.codes("notices"), left(r.process)) == (0, [], ["left-idle"], ["CQ", "PD"])


def test_what_a_process_leaves_that_has_only_served_its_peers_is_no_finding(run):
    r = Report(run, CLIENT, "leak-served")
    assert (r.run.returncode, r.codes(), r.codes("notices")) == (0, [], ["left-by-responder"])
    r = Report(run, CLIENT, "leak-used")
    assert (r.run.returncode, r.codes(), left(r.process)) == (99, ["objects-left"], ["CQ", "MR", "PD", "QP", "QP"])


@pytest.mark.parametrize("options", [(), ("--persona", "hfi1", "--link-layer", "ethernet")], ids=["rxe", "hfi1"])
def test_a_qp_whose_sends_never_complete_is_a_finding_when_it_is_destroyed(run, options):
    r = Report(run, CLIENT, "stuck", options=options)
    assert (r.run.returncode, r.codes()) == (99, ["sends-in-flight"])
    assert "3 sends in flight" in r.process["findings"][0]["text"]


def test_the_last_sends_of_a_qp_are_no_finding_when_it_is_destroyed(run):
    r = Report(run, CLIENT, "last-in-flight")
    assert (r.run.returncode, r.codes()) == (0, []) and "last-sends-in-flight" in r.codes("notices")


def test_objects_beyond_those_listed_are_counted(run):
    process = Report(run, CLIENT, "leak-regions").process
    assert (len(process["objects_left"]), process["objects_left_cut"], process["findings"][0]["count"]) == (64, 101 - 64, 101)


def test_each_process_has_a_part_of_its_own(run):
    r = Report(run, CLIENT, "many", "child", "3")
    assert (r.run.returncode, r.all["findings"], len({p["pid"] for p in r.processes})) == (99, 3, 3)
    assert all(left(p) == ["MR", "PD"] and p["program"] == "child" for p in r.processes)


HOSTILE = b"<&\"'>\x1b[1m\xff]]>"


@pytest.mark.parametrize("form", ["text", "json", "junit"])
def test_a_hostile_name_of_a_program_breaks_no_format(run, form):
    path = pathlib.Path(run.folder, "report")
    run.without_persona(CLIENT, "leak", HOSTILE, options=[f"--report={path}", "--report-format", form])
    text, name = path.read_text(encoding="ascii"), "<&\"'>?[1m?]]>"
    assert all(c.isprintable() for c in text.replace("\n", ""))
    if form == "json":
        assert json.loads(text)["processes"][0]["program"] == name
    elif form == "junit":
        suite = xml.etree.ElementTree.fromstring(text)
        case, = suite.findall("testcase")
        failure, = case.findall("failure")
        assert case.get("name").startswith(f"{name} (") and failure.get("type") == "objects-left"
        assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    else:
        assert f"({name}) exited with 0" in text and "  finding: objects-left: 2 objects left" in text


def test_without_a_file_the_report_is_on_stderr_behind_the_program_s_lines(run):
    r = run.without_persona("sh", "-c", f"{CLIENT} leak; echo last >&2", options=["--report"])
    lines = r.stderr.splitlines()
    assert r.returncode == 0 and lines[:2] == ["last", "report: 1 process, 1 finding, 0 notices"], r


def test_findings_replace_no_status_but_success(run):
    assert run.without_persona("sh", "-c", f"{CLIENT} leak; exit 7", options=["--report-fails"]).returncode == 7
    assert run.without_persona(CLIENT, "leak", options=["--report"]).returncode == 0


def test_a_report_that_cannot_be_written_is_a_failure(run):
    r = run.without_persona("true", options=["--report=/no/such/folder/report"])
    assert r.returncode == 125 and "--report=/no/such/folder/report: ENOENT" in r.stderr, r
    r = run.without_persona("true", options=["--report=/dev/full", "--report-fails"])
    assert r.returncode == 99 and "--report: not written: ENOSPC" in r.stderr, r


# ---- stacks ----------------------------------------------------------------------------------------------------------

SOURCE = pathlib.Path(__file__).with_name("report_client.c")
HAS_STACKS = subprocess.run(["ldd", BUILD / "tools/uverbsctl"], capture_output=True, text=True, check=True).stdout.count("libdw.so")
stacks = pytest.mark.skipif(not HAS_STACKS or platform.machine() != "x86_64", reason="needs libdw and x86-64")


def line_of(text):
    number, = [i for i, line in enumerate(SOURCE.read_text(encoding="utf-8").splitlines(), 1) if text in line]
    return number


def stack_of(report, kind):
    found, = [o for o in report.process["objects_left"] if o["type"] == kind]
    return found["stack"]


def own(stack):
    """(function, line) of the frames in the client's source"""
    return [(f["function"], f["line"]) for f in stack if f.get("file", "").endswith("report_client.c")]


@stacks
@pytest.mark.parametrize("options", [(), ("--persona", "hfi1"), ("--abi", "write")], ids=["rxe", "hfi1", "write"])
def test_the_line_that_created_what_is_left_is_named(run, options):
    r = Report(run, CLIENT, "leak", options=["--report-stacks", *options])
    assert own(stack_of(r, "MR"))[0] == ("register_buffer", line_of("/* the leak */"))
    assert own(stack_of(r, "MR"))[1] == ("main", line_of("mr = register_buffer(pd);"))
    assert own(stack_of(r, "PD")) == [("main", line_of("pd = need(ibv_alloc_pd(c));"))]


@stacks
def test_a_stack_has_32_frames_at_most(run):
    r = Report(run, CLIENT, "leak-deeply", options=["--report-stacks"])
    assert len(stack_of(r, "MR")) == 32 and {f for f, _ in own(stack_of(r, "MR"))} == {"register_buffer", "register_deeply"}


@stacks
@pytest.mark.parametrize("then", ["rm %s", f"cp {OTHER} %s", "rm %s; mkfifo %s", "rm %s; head -c 5000 /dev/urandom >%s"],
                         ids=["gone", "another", "fifo", "garbage"])
def test_a_file_that_is_not_what_was_mapped_names_nothing(run, then):
    copy = shutil.copy(CLIENT, run.folder)
    r = Report(run, "sh", "-c", f"{copy} leak; " + then.replace("%s", copy), options=["--report-stacks"])
    last = stack_of(r, "MR")[-1]
    assert last["module"] == "report_client" and not {"function", "file"} & set(last) and last["offset"] > 0
    assert own(stack_of(r, "MR")) == []


@stacks
def test_a_file_without_a_build_id_is_used_if_it_has_none_now(run):
    r = Report(run, NO_ID, "leak", options=["--report-stacks"])
    assert own(stack_of(r, "MR"))[0] == ("register_buffer", line_of("/* the leak */"))


@stacks
@pytest.mark.parametrize("mapped, then", [(NO_ID, CLIENT), (CLIENT, NO_ID), (CLIENT, OTHER_ID)], ids=["now", "before", "another"])
def test_a_file_whose_build_id_is_not_that_of_what_was_mapped_names_nothing(run, mapped, then):
    copy = pathlib.Path(run.folder, "copy")
    shutil.copy(mapped, copy)
    r = Report(run, "sh", "-c", f"{copy} leak; cp --remove-destination {then} {copy}", options=["--report-stacks"])
    assert own(stack_of(r, "MR")) == [] and stack_of(r, "MR")[-1]["module"] == "copy"


def test_a_build_without_libdw_refuses_stacks(run):
    argv = run.argv(["true"], ["--report-stacks"])
    argv[argv.index(UVERBSCTL)] = BUILD / "tests/run/uverbsctl_without_libdw"
    r = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert r.returncode == 125 and "--report-stacks: this uverbsctl was built without libdw" in r.stderr, r


@stacks
def test_what_is_not_left_needs_no_stack_at_the_end(run):
    r = Report(run, CLIENT, "none", options=["--report-stacks"])
    assert (r.run.returncode, r.process["objects_left"], r.all["stacks_lost"]) == (0, [], 0)


# ---- programs of docs/programs.md ----------------------------------------------------------------------------------------------

PROGRAMS = ["ibv_rc_pingpong -g 0 -n 20", "ibv_ud_pingpong -g 0 -n 20", "ibv_srq_pingpong -g 0 -n 20", "ibv_rc_pingpong -g 0 -e -n 20",
            "ib_send_bw -x 0 -n 20", "ib_write_lat -x 0 -n 20"]
MORE = ["ibv_uc_pingpong -g 0 -n 20", "ibv_rc_pingpong -g 0 -c -n 20", "ib_read_bw -x 0 -n 20", "ib_atomic_bw -x 0 -n 20",
        "ib_write_bw -x 0 -n 20", "ib_send_lat -x 0 -n 20", "ib_read_lat -x 0 -n 20", "ib_atomic_lat -x 0 -n 20",
        "ib_send_bw -x 0 -n 20 -c UD", "ib_send_bw -x 0 -n 20 -c UC", "ib_send_bw -x 0 -n 20 -e", "ib_write_bw -x 0 -n 20 -q 4"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_stock_programs_have_no_findings(run, program):
    r = Report(run, "bash", "-c", pair(f"{program} -p $port"))
    assert (r.run.returncode, r.all["findings"], len(r.processes)) == (0, 0, 2), (r.run, r.all)


@pytest.mark.parametrize("program", MORE)
def test_more_stock_programs_have_no_findings(run, program):
    test_stock_programs_have_no_findings(run, program)


# Its tests of bandwidth end by time, and leave requests in flight.
QPERF = """qperf -lp $port & server=$!
for i in $(seq 3000); do grep -q ":$(printf %04X $port) .* 0A " /proc/net/tcp /proc/net/tcp6 && break; sleep 0.1; done
qperf localhost -lp $port -cp 1 -t 1 rc_bw rc_lat uc_bw ud_bw rc_rdma_write_bw; status=$?
qperf localhost -lp $port quit; wait $server; exit $status"""


def test_qperf_has_no_findings(run):
    port = pair("").split("\n")[0]
    r = Report(run, "bash", "-c", f"{port}\n{QPERF}", options=["--persona", "hfi1"])
    assert (r.run.returncode, r.all["findings"], len(r.processes) > 5) == (0, 0, True), (r.run, r.all)
