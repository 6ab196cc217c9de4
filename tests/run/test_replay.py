# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""uverbsctl replay: the examples of docs/replay.md, and what a replay accepts and refuses."""
import json
import pathlib
import re
import pytest
from conftest import UVERBSCTL

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/differential/corpus"


@pytest.fixture
def replay(run):
    """Runs replay on a device of its own, with a program of this text."""
    path = pathlib.Path(run.folder, "calls.prog")

    def start(text, *options, device=("--log-level", "error")):
        if text is not None:
            path.write_text(text)
            path.chmod(0o666)
        r = run(UVERBSCTL, "replay", *options, path.as_posix(), options=device)
        return r.returncode, r.stdout + r.stderr, path.read_text()

    return start


def test_the_first_example_of_the_documentation_is_true(run):
    text = (ROOT / "docs/replay.md").read_text()
    block = next(b for b in text.split("```\n") if b.startswith("$ cat calls.prog"))
    program, rest = block.split("$ uverbsctl run -- uverbsctl replay --record", 1)
    folder = pathlib.Path(run.folder, "example")
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    (folder / "calls.prog").write_text(program.split("\n", 1)[1])
    (folder / "calls.prog").chmod(0o666)
    shown = "$ uverbsctl run -- uverbsctl replay --record" + rest
    for command, said in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", shown, re.M):
        if command.startswith("sed"):
            (folder / "calls.prog").write_text((folder / "calls.prog").read_text().replace("= EBUSY", "= ok"))
            continue
        words = command.replace("uverbsctl", UVERBSCTL).replace("calls.prog", (folder / "calls.prog").as_posix()).split()
        done = run.without_persona(*words[3:]) if "run" in words else None
        out = done.stdout if done else (folder / "calls.prog").read_text()
        cpus = r"num_comp_vectors=\S+"  # depends on the machine
        assert re.sub(cpus, "", out) == re.sub(cpus, "", said), (command, done)


@pytest.mark.parametrize("name", ["life", "events", "connect-rc", "post-send", "methods-driver", "numbers-invoke-1"])
def test_what_was_recorded_is_replayed_without_a_difference(replay, name):
    status, text, recorded = replay((CORPUS / f"{name}.prog").read_text(), "--record")
    assert status == 0 and "\n= ok" in recorded, text
    status, text, after = replay(None)
    assert status == 0 and "no difference" in text and after == recorded, text


def test_a_result_and_an_output_that_differ_are_named(replay):
    text = "write GET_CONTEXT\npd: write ALLOC_PD\n= ok handle=7\n"
    status, said, _ = replay(text)
    assert status == 1 and "call 2, ALLOC_PD: handle is 0, 0x7 expected" in said.replace("0x0", "0"), said
    status, said, _ = replay(text.replace("ok handle=7", "EINVAL"), "--json")
    found = json.loads(said)["differences"]
    assert status == 1 and found == [{"call": 2, "target": "ALLOC_PD", "item": "result", "expected": "EINVAL",
                                      "result": "ok"}]


def test_the_results_of_the_kernel_may_differ_as_listed(replay):
    cq = "write GET_CONTEXT\nwrite CREATE_CQ cqe=16\n= ok cqe=31\n"
    status, said, _ = replay(cq)
    assert status == 1 and "cqe" in said, said
    status, said, _ = replay("device kernel\n" + cq, "--json")
    assert status == 0 and "cq-size" in json.loads(said)["listed"], said


def test_the_time_limit_of_a_program_is_an_option(replay):
    status, said, _ = replay("write GET_CONTEXT\n= ok\n", "--hang", "120")
    assert status == 0 and "1 calls, no difference" in said, said


@pytest.mark.parametrize("text,says", [
    ("write GET_CONTEXT\nwrite NO_SUCH_COMMAND\n", "call 2: no such command"),
    ("write ALLOC_PD pd_handle=1\n", "call 1: no such field"),
    ("= ok\n", ":1: a result without a call"),
    ("write GET_CONTEXT\n= EWHATEVER\n", "call 1: no such result: EWHATEVER"),
    ("write GET_CONTEXT\n= ok nothing=1\n", "call 1: no such output: ok nothing=1"),
    ("device of mine\n", ":1: no such kind of device"),
    ("write GET_CONTEXT\nwrite ALLOC_PD !flags=\x1b[2J\n", ":2: a byte that cannot be printed"),
    ("\0\1\2", "not a program"),
])
def test_a_wrong_program_is_refused_with_the_reason(replay, text, says):
    status, said, _ = replay(text)
    assert status == 1 and says in said, said


def test_a_creation_that_fails_now_is_a_difference_and_not_a_wrong_program(replay):
    text = "write GET_CONTEXT\nmethod CQ_CREATE create_cq_handle create_cq_cqe=16 create_cq_user_handle "
    text += "create_cq_comp_vector=0 create_cq_resp_cqe uhw_out=16\n"
    status, said, _ = replay(text, "--record")
    assert status == 0, said
    failing = ("--log-level", "error", "--filter", "error:create_cq=ENOMEM")
    status, said, _ = replay(None, device=failing)
    assert status == 1 and "call 2, CQ_CREATE: result is ENOMEM, ok expected" in said, said


def test_event_takes_no_descriptor_that_the_tool_was_started_with(replay):
    status, said, _ = replay("write GET_CONTEXT\nevent 0\n= EBADF\nevent 1\n= EBADF\nevent 2\n= EBADF\n")
    assert status == 0 and "4 calls, no difference" in said, said


def test_the_largest_command_fits_into_a_message(replay):
    call = "write EX_QUERY_DEVICE in=65528 uhw_in=65528 @65540=1 @65535=1\n"
    status, said, _ = replay("write GET_CONTEXT\n" + call)
    assert status == 0 and "2 calls" in said, said
