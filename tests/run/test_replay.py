# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""uverbsctl replay: the examples of docs/replay.md, and what a replay accepts and refuses."""
import errno
import json
import os
import pathlib
import re
import subprocess
import pytest
from conftest import STUCK, UVERBSCTL

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


def test_a_device_in_the_process_has_the_results_of_run(run, replay):
    names = "life", "events", "connect-rc", "post-send", "methods-driver", "numbers-invoke-1"
    for name in names:
        status, text, _ = replay((CORPUS / f"{name}.prog").read_text(), "--record")
        assert status == 0, text
        r = subprocess.run([*run.prefix, UVERBSCTL, "replay", "--in-process", "calls.prog", "--", "--persona", "hfi1"], cwd=run.folder,
                           env=run.env, capture_output=True, text=True, timeout=STUCK)
        assert r.returncode == 0 and "no difference\n" in r.stdout, (name, r)


@pytest.mark.parametrize("options, says", [
    (("--in-process", "--device", "uverbs0", "calls.prog"), "uverbsctl replay: --device and --in-process exclude each other"),
    (("calls.prog", "--", "--backend", "null"), "uverbsctl replay: RUN-OPTION `--backend` is for --in-process"),
    (("--in-process", "calls.prog", "--", "--nothing"), "uverbsctl replay --in-process: unknown option `--nothing`; the nearest are"),
    (("--in-process", "calls.prog", "other"), "uverbsctl replay: `other` is too much"),
])
def test_wrong_options_of_a_device_in_the_process_are_2(run, options, says):
    r = subprocess.run([UVERBSCTL, "replay", *options], cwd=run.folder, env=run.env, capture_output=True, text=True, timeout=STUCK)
    assert r.returncode == 2 and r.stderr.startswith(says), r


def test_the_example_of_a_program_in_c_is_true(run, replay):
    blocks = (ROOT / "docs/replay.md").read_text().split("```\n")
    program = next(b for b in blocks if b.startswith("$ cat calls.prog")).split("$ ")[1].split("\n", 1)[1]
    said = next(b for b in blocks if "--emit-c" in b and b.startswith("$")).split("./a.out\n")[1]
    folder = pathlib.Path(run.folder, "example")
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    status, text, _ = replay(program, "--emit-c", (folder / "calls.c").as_posix(), device=("--persona", "rxe"))
    assert status == 0 and text == "", text
    subprocess.run(["cc", "-pthread", "-o", folder / "a.out", folder / "calls.c"], check=True, timeout=STUCK)
    (folder / "a.out").chmod(0o755)
    assert run.without_persona((folder / "a.out").as_posix()).stdout == said


# Each kind of call: receives that are flushed, their event, descriptors that are none, and calls beside each other.
ALL_KINDS = """context: write GET_CONTEXT
ch: write CREATE_COMP_CHANNEL
other: write CREATE_COMP_CHANNEL
async: method ASYNC_EVENT_ALLOC async_event_alloc_fd_handle
pd: write ALLOC_PD
mr: invoke REG_MR pd_handle=pd
write REG_MR pd_handle=pd start=none
write DEALLOC_PD pd_handle=77
cq: write CREATE_CQ comp_channel=ch
qp: write CREATE_QP pd_handle=pd send_cq_handle=cq recv_cq_handle=cq
write REQ_NOTIFY_CQ cq_handle=cq
write MODIFY_QP qp_handle=qp qp_state=1 attr_mask=0x39 qp_access_flags=7
recv qp
recv qp
recv cq
write MODIFY_QP qp_handle=qp qp_state=6 attr_mask=1
event ch wait=60000
event ch
event other.fd
event async
event 777
& close other
write DEALLOC_PD pd_handle=pd
close other
event other
close context.fd
close context.fd
close 0
write ALLOC_PD
"""


@pytest.mark.parametrize("name, persona", [("", "rxe"), ("", "hfi1"), ("life", "rxe")])
def test_the_program_in_c_gets_the_same_results(run, replay, name, persona):
    device, folder = ("--log-level", "error", "--persona", persona), pathlib.Path(run.folder, "emitted")
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    text = ALL_KINDS if not name else (CORPUS / f"{name}.prog").read_text()
    status, shown, _ = replay(text, "--show", device=device)
    results = re.findall(r"^(?:& )?(?:\S+: )?(\w+ [^\s=]+)[^\n]*\n= (\w+)$", shown, re.M)
    assert len(results) == len(re.findall("^= ", shown, re.M)) > 5, shown
    status, said, _ = replay(text, "--emit-c", (folder / "calls.c").as_posix(), device=device)
    assert status == 0 and said == "", said
    warnings = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-function")
    subprocess.run(["cc", *warnings, "-pthread", "-o", folder / "calls", folder / "calls.c"], check=True, timeout=STUCK)
    os.chmod(folder / "calls", 0o755)
    r = run.without_persona((folder / "calls").as_posix(), options=device)
    expected = [f"{call}: {'ok' if result == 'ok' else os.strerror(getattr(errno, result))}" for call, result in results]
    assert sorted(re.sub(r": -?\d+ ", ": ", line) for line in r.stdout.splitlines()) == sorted(expected), (r, shown)


def test_a_result_and_an_output_that_differ_are_named(replay):
    text = "write GET_CONTEXT\npd: write ALLOC_PD\n= ok handle=7\n"
    status, said, _ = replay(text)
    assert status == 1 and "call 2, ALLOC_PD: handle is 0, 0x7 expected" in said.replace("0x0", "0"), said
    status, said, _ = replay(text.replace("ok handle=7", "EINVAL"), "--json")
    found = json.loads(said)["differences"]
    assert status == 1 and found == [{"call": 2, "target": "ALLOC_PD", "item": "result", "expected": "EINVAL",
                                      "result": "ok"}]


def test_properties_of_the_machine_are_not_compared(replay):
    text = "method GET_CONTEXT get_context_num_comp_vectors\nwrite QUERY_DEVICE\nwrite QUERY_PORT port_num=1\nmethod QUERY_GID_ENTRY "
    text += "query_gid_entry_port=1 query_gid_entry_gid_index=0 query_gid_entry_flags=0 query_gid_entry_resp_entry\n"
    status, said, recorded = replay(text, "--record")
    assert status == 0, said
    changed, number = re.subn(r" (num_comp_vectors|node_guid|sys_image_guid|lid|gid|netdev_ifindex)=\w+", r" \1=0x77", recorded)
    assert number == 6, recorded
    status, said, _ = replay(changed)
    assert (status, said) == (0, "4 calls, no difference\n"), said
    # Of objects another user can have another number.
    changed, number = re.subn(r" (max_qp|max_mr|max_mcast_grp)=\w+", r" \1=0x77", changed)
    status, said, _ = replay(changed)
    assert (number, status, said) == (3, 0, "4 calls, no difference\n"), said
    status, said, _ = replay(re.sub(r" max_qp_wr=\w+", " max_qp_wr=0x77", changed))
    assert status == 1 and "call 2, QUERY_DEVICE: max_qp_wr is " in said, said


def test_the_results_of_the_kernel_may_differ_as_listed(replay):
    cq = "write GET_CONTEXT\nwrite CREATE_CQ cqe=16\n= ok cqe=31\n"
    status, said, _ = replay(cq)
    assert status == 1 and "cqe" in said, said
    status, said, _ = replay("device kernel\n" + cq, "--json")
    assert status == 0 and "cq-size" in json.loads(said)["listed"], said


def test_what_is_recorded_keeps_its_comments(replay):
    text = "# head\n\ndevice kernel\n# context\nwrite GET_CONTEXT\n= EINVAL\n# a result\n\n"
    text += "check model\npd:  write ALLOC_PD\nwrite DEALLOC_PD pd_handle=pd\n# end\n"
    status, said, after = replay(text, "--record")
    expected = "# head\n\ndevice uverbsd\n# context\nwrite GET_CONTEXT\n= ok\n# a result\n\ncheck model\npd:  write ALLOC_PD\n= ok\n"
    assert status == 0 and re.sub(r"= ok .*", "= ok", after) == expected + "write DEALLOC_PD pd_handle=pd\n= ok\n# end\n", (said, after)
    status, _, again = replay(None, "--record")
    assert status == 0 and again == after


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


def test_leaks_are_not_denied_when_nobody_can_be_asked(replay):
    status, said, _ = replay("check leaks\nwrite GET_CONTEXT\n", "--control", "/nowhere")
    assert status == 1 and "leak: unknown, as nobody answers at /nowhere" in said, said


def test_results_of_a_run_with_a_finding_are_not_recorded(replay):
    text = "check leaks\n# why\nwrite GET_CONTEXT\n"
    status, said, after = replay(text, "--record", "--control", "/nowhere")
    assert status == 1 and "nothing is recorded: leak" in said and after == text, said


@pytest.mark.parametrize("seconds", ["soon", "", "-1", "0", "5s"])
def test_a_time_limit_that_is_no_number_of_seconds_is_refused(replay, seconds):
    assert replay("write GET_CONTEXT\n", "--hang", seconds)[0] == 2
