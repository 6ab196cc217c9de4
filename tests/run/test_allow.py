# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Allow-lists with the stock libibverbs, and docs/access-control.md: its commands work as they are written."""
import json
import os
import pathlib
import re
import subprocess

import pytest

from conftest import BIN, STUCK, UVERBSCTL, pair

PAGE = (pathlib.Path(__file__).parents[2] / "docs/access-control.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?m)^```sh\n(.*?)^```\n\n^```text\n(.*?)^```$", PAGE, re.S)
RC = ["verbs:base,ALLOC_PD,CREATE_COMP_CHANNEL,CREATE_CQ,REG_MR,CREATE_QP,MODIFY_QP,QUERY_QP",
      "verbs:POST_SEND,POST_RECV,POLL_CQ,REQ_NOTIFY_CQ", "objects:PD,CQ,MR,QP,COMP_CHANNEL", "access:LOCAL_WRITE",
      "qp-types:RC", "pkeys:0xffff"]


def allow(*texts):
    return [word for text in texts for word in ("--allow", text)]


@pytest.mark.parametrize("block", range(len(BLOCKS)))
def test_commands_of_the_page_print_what_it_says(block, tmp_path):
    commands, want = BLOCKS[block]
    path = f"{BIN}:{os.environ['PATH']}"
    output = subprocess.run(["sh", "-c", commands], cwd=tmp_path, env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=STUCK, check=False).stdout
    for line in want.splitlines():
        assert line in output, f"{commands}\nprints no line with `{line}`:\n{output}"


def test_page_has_no_command_that_these_tests_do_not_see():
    assert PAGE.count("```sh\n") == PAGE.count("```text\n") == len(BLOCKS) == 2


@pytest.mark.parametrize("persona", ["hfi1", "rxe"])
def test_pingpong_runs_with_the_lists_that_it_needs(run, persona):
    options = [*allow(*RC), "--persona", persona]
    gid = "-g 0 " if persona == "rxe" else ""
    r = run("sh", "-c", pair(f"ibv_rc_pingpong {gid}-n 50 -p $port"), options=options)
    assert r.returncode == 0 and "refused" not in r.stderr, r


@pytest.mark.parametrize("missing, says, abi", [("objects:MR", "object MR", "ioctl"),
                                                ("access:LOCAL_WRITE", "access_flags LOCAL_WRITE", "write")])
def test_program_gets_eperm_and_the_log_a_line(run, missing, says, abi):
    kind, word = missing.split(":")
    texts = [t for t in RC if not t.startswith(kind)] + [
        re.sub(rf"\b{word}\b,?", "", t).rstrip(",:") if re.search(rf"\b{word}\b", t) else t for t in RC if t.startswith(kind)]
    texts = [f"{t}:none" if t == kind else t for t in texts]
    r = run("sh", "-c", "ibv_rc_pingpong; exec \"$0\" status --json", UVERBSCTL, options=[*allow(*texts), "--abi", abi])
    assert "Couldn't" in r.stderr, r
    assert f"is refused by the allow-list `{kind}:`: {says}" in r.stderr, r.stderr
    assert f"add `allow = {missing}`" in r.stderr, r.stderr
    assert [d["refused"] for d in json.loads(r.stdout.splitlines()[-1])["devices"]] == [1], r.stdout


@pytest.mark.parametrize("option, verb, code, values", [
    (["--allow", "none"], "GET_CONTEXT", ("EPERM", "allow-list"), {"list": "verbs:", "what": "verb GET_CONTEXT", "word": "GET_CONTEXT"}),
    (["--quota", "qps:0"], "CREATE_QP", ("EAGAIN", "quota"), {"quota": "qps:0", "used": 0, "what": "objects of type QP", "more": 1})])
def test_refusal_is_explained_once_as_other_calls_are(run, option, verb, code, values):
    r = run("ibv_rc_pingpong", options=[*option, "--explain", "json"])
    why, = [json.loads(line) for line in r.stderr.splitlines() if line.startswith("{")]
    assert (why["explains"], why["verb"], why["errno"], why["reason"]) == ("call", verb, *code)
    assert values.items() <= why["values"].items() and "to allow it, " in why["text"], why
    assert "is refused" not in run("ibv_rc_pingpong", options=[*option, "--explain", "off"]).stderr


def test_none_lets_nobody_open_a_context(run):
    r = run("ibv_devinfo", options=allow("none"))
    assert r.returncode and "Failed to open device" in r.stderr and "verb GET_CONTEXT" in r.stderr, r


def test_wrong_text_ends_the_start_with_a_message(run):
    r = run("true", options=allow("access:WRITE"))
    assert r.returncode and "--allow: `access:WRITE` contains `WRITE`, which is no access flag such as LOCAL_WRITE" in r.stderr, r


def test_section_of_a_user_has_only_allow(run):
    path = pathlib.Path(run.folder, "allow.conf")
    path.write_text("[device 0 user root]\nmax-qp = 3\n", encoding="ascii")
    path.chmod(0o644)
    r = run("true", options=["--config", str(path)])
    assert r.returncode and ":2: `max-qp` belongs in [device 0]" in r.stderr, r
