# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs of rdma_cm: `uverbsctl fuzz --rdma-cm`, and the replay of their text."""
import pathlib
import re
import subprocess

import pytest

from conftest import STUCK, UVERBSCTL
from test_trace import calls_of, trace_file

pytestmark = pytest.mark.parametrize("run", ["self"], indirect=True)
CONNECT = """
server: cm CREATE_ID ps=0x106 qp_type=2 uid=7
cm BIND id=server addr=127.0.0.1:7471
cm LISTEN id=server
client: cm CREATE_ID ps=0x106 qp_type=2 uid=8
cm RESOLVE_ADDR id=client dst_addr=127.0.0.1:7471
cm GET_EVENT wait=60000
cm RESOLVE_ROUTE id=client
cm GET_EVENT wait=60000
cm CONNECT id=client conn_param.qp_num=77 conn_param.valid=1
child: cm GET_EVENT wait=60000
cm REJECT id=child
rejected: cm GET_EVENT wait=60000
cm DESTROY_ID id=client
cm DESTROY_ID id=client
cm DESTROY_ID id=server in=8
cm GET_EVENT out=8
cm GET_EVENT
check model
"""


def program(run, text):
    path = pathlib.Path(run.folder, "cm.prog")
    path.write_text(text)
    path.chmod(0o666)
    return path


def replayed(run, path, *options):
    r = run(UVERBSCTL, "replay", *options, str(path), options=["--log-level", "error", "--persona", "rxe"])
    return r.returncode, r.stdout + r.stderr


def test_program_of_rdma_cm_has_the_recorded_results_again(run):
    path = program(run, CONNECT)
    assert replayed(run, path, "--record")[0] == 0
    lines = path.read_text().splitlines()
    results = {line: lines[i + 1] for i, line in enumerate(lines) if lines[i + 1:]}
    assert " handle=0x2 event=0x4 status=0 param.conn.qp_num=0x4d " in results["child: cm GET_EVENT wait=60000"]
    assert " event=0x8 status=0x1c " in results["rejected: cm GET_EVENT wait=60000"]
    assert [results[f"cm {call}"] for call in ("DESTROY_ID id=server in=8", "GET_EVENT out=8", "GET_EVENT")] == [
        "= ok events_reported=0x1", "= ENOSPC untouched", "= EAGAIN untouched"]
    assert replayed(run, path) == (0, "17 calls, no difference\n")
    path.write_text(path.read_text().replace("= ENOSPC untouched", "= ok"))
    assert replayed(run, path) == (1, "call 16, GET_EVENT: result is ENOSPC, ok expected\n")


def test_command_or_field_that_is_none_is_refused(run):
    for text, why in (("cm CREATE_QP", "no such command"), ("cm LISTEN backlogg=1", "no such field")):
        status, said = replayed(run, program(run, text + "\n"))
        assert status == 1 and why in said, said


def test_random_programs_reach_each_side_of_a_connection_and_find_nothing(run):
    r = subprocess.run([*run.prefix, UVERBSCTL, "fuzz", "--rdma-cm", "--programs", "30", "--seconds", str(STUCK), "--hang", str(STUCK),
                        "--", "--trace", str(trace_file(run))], cwd=run.folder, env=run.env, capture_output=True, text=True, timeout=STUCK)
    assert r.returncode == 0 and re.fullmatch(r"30 programs, \d+ calls, seeds from 1, nothing found\n", r.stdout), r
    events = {c["out"].get("event") for c in calls_of(run, trace_file(run)) if c["verb"] == "GET_EVENT"}
    assert {"CONNECT_REQUEST", "CONNECT_RESPONSE", "ESTABLISHED", "REJECTED", "MULTICAST_JOIN"} <= events, events


def test_device_in_the_process_has_no_rdma_cm(run):
    r = subprocess.run([UVERBSCTL, "fuzz", "--rdma-cm", "--in-process"], capture_output=True, text=True, timeout=STUCK)
    assert r.returncode == 2 and "--rdma-cm and --in-process exclude each other" in r.stderr, r
