# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Quotas of devices, and docs/limits.md: its commands work as they are written.

Each case has a device of its own in one configuration. This file is also the client: it makes the calls of all cases by
contrib/python/uverbs.py, one process and one engine for several cases.
"""
import errno
import json
import mmap
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# ---- the client ------------------------------------------------------------------------------------------------------


class Client:
    def __init__(self, name):
        import uverbs  # pylint: disable=import-error,import-outside-toplevel
        self.uverbs, self.name, self.made, self.memory = uverbs, name, {}, []
        self.dev = uverbs.open(name)

    def first(self, what):
        return self.made[what][0] if self.made.get(what) else self.make(what)

    def make(self, what, length=4096):
        w = self.dev.write
        if what == "pd":
            made = w.ALLOC_PD()
        elif what == "cq":
            made = w.CREATE_CQ(cqe=16)
        elif what == "channel":
            made = w.CREATE_COMP_CHANNEL()
        elif what == "srq":
            made = w.CREATE_SRQ(pd_handle=self.first("pd"), max_wr=4, max_sge=1)
        elif what == "qp":
            made = w.CREATE_QP(pd_handle=self.first("pd"), send_cq_handle=self.first("cq"), recv_cq_handle=self.first("cq"),
                               max_send_wr=4, max_send_sge=1, qp_type="UD")
        else:
            self.memory.append(mmap.mmap(-1, length))
            at = self.uverbs.address(self.memory[-1])
            made = w.REG_MR(start=at, hca_va=at, length=length, pd_handle=self.first("pd"), access_flags=1)
        self.made.setdefault(what, []).append(made)
        return made

    def call(self, text):
        """Makes a `pd`, or an `mr LENGTH`. `-pd`: destroys the last. `fork pd`: in a child, by this descriptor; `exec pd`: by its own."""
        words = text.split()
        if words[0] == "exec":
            again = [sys.executable, __file__, json.dumps([[self.name, words[1:]]])]
            return json.loads(subprocess.run(again, check=True, stdout=subprocess.PIPE).stdout)[0][0]
        if words[0] == "fork":
            pid = os.fork()
            if not pid:
                name = self.call(" ".join(words[1:]))
                os._exit(getattr(errno, name, 0))
            return errno.errorcode.get(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), "0")
        try:
            if words[0][0] == "-":
                self.made[words[0][1:]].pop().handle.destroy()
            else:
                self.make(words[0], *map(int, words[1:]))
        except OSError as e:
            return errno.errorcode[e.errno]
        return "0"


def client(cases):
    clients = [Client(name) for name, _ in cases]
    print(json.dumps([[c.call(text) for text in calls] for c, (_, calls) in zip(clients, cases)]), flush=True)
    if "AFTER" in os.environ:
        subprocess.run(os.environ["AFTER"].split(), check=True)


if __name__ == "__main__":
    client(json.loads(sys.argv[1]))
    sys.exit()

# ---- the tests -------------------------------------------------------------------------------------------------------

import pytest  # noqa: E402
from conftest import BIN, STUCK, UVERBSCTL  # noqa: E402

for path in [*(ROOT / "contrib/python").glob("uverbs*"), pathlib.Path(__file__)]:
    shutil.copy(path, BIN)

PAGE = (ROOT / "docs/limits.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?m)^```sh\n(.*?)^```\n\n^```text\n(.*?)^```$", PAGE, re.S)

# The quotas, the calls with the errno of each, and the log line of the last one that is refused: its verb, its quota (the
# last word of both is what to raise), what the user holds, and asks for.
CASES = {
    "PDs": (["pds:2"], [("pd", "0"), ("pd", "0"), ("pd", "EAGAIN")], "ALLOC_PD pds:2 2 1"),
    "CQs, none at all": (["cqs:0"], [("pd", "0"), ("cq", "EAGAIN")], "CREATE_CQ cqs:0 0 1"),
    "QPs, of which one goes": (["qps:1"], [("qp", "0"), ("-qp", "0"), ("qp", "0"), ("qp", "EAGAIN")], "CREATE_QP qps:1 1 1"),
    "SRQs": (["srqs:1,qps:0"], [("srq", "0"), ("srq", "EAGAIN")], "CREATE_SRQ srqs:1 1 1"),
    "event files": (["channels:1"], [("channel", "0"), ("channel", "EMFILE")], "CREATE_COMP_CHANNEL channels:1 1 1"),
    "all types": (["objects:3"], [("pd", "0"), ("cq", "0"), ("pd", "0"), ("cq", "EAGAIN"), ("-pd", "0"), ("cq", "0")],
                  "CREATE_CQ objects:3 3 1"),
    "regions": (["mrs:1"], [("mr 8192", "0"), ("mr 1", "EAGAIN"), ("-mr", "0"), ("mr 1", "0")], "REG_MR mrs:1 1 1"),
    "registered bytes": (["registered:12288"], [("mr 8192", "0"), ("mr 4097", "ENOMEM"), ("mr 4096", "0")],
                         "REG_MR registered:12288 8192 8192"),
    "registered bytes come back": (["registered:8192"], [("mr 8192", "0"), ("-mr", "0"), ("mr 8192", "0"), ("mr 1", "ENOMEM")],
                                   "REG_MR registered:8192 8192 4096"),
    "a user's own": (["qps:9", "user:UID:qps:1"], [("qp", "0"), ("qp", "EAGAIN")], "CREATE_QP user:UID:qps:1 1 1"),
    "a user may more": (["user:UID:mrs:unlimited", "mrs:0,pds:1"], [("mr 1", "0"), ("mr 1", "0"), ("pd", "EAGAIN")], "ALLOC_PD pds:1 1 1"),
    "another user's": (["user:4242:pds:0", "pds:1"], [("pd", "0"), ("pd", "EAGAIN")], "ALLOC_PD pds:1 1 1"),
    "a later number": (["pds:0", "pds:1"], [("pd", "0"), ("pd", "EAGAIN")], "ALLOC_PD pds:1 1 1"),
    "two processes": (["pds:2"], [("pd", "0"), ("exec pd", "0"), ("pd", "0"), ("exec pd", "EAGAIN")], "ALLOC_PD pds:2 2 1"),
    "a descriptor that is passed on": (["pds:2"], [("pd", "0"), ("fork pd", "0"), ("fork pd", "EAGAIN"), ("pd", "EAGAIN")],
                                       "ALLOC_PD pds:2 2 1"),
    "beside an allow-list": (["allow objects:PD", "pds:1"], [("cq", "EPERM"), ("pd", "0"), ("pd", "EAGAIN")], "ALLOC_PD pds:1 1 1"),
}
WHAT = {"pds": "objects of type PD", "cqs": "objects of type CQ", "qps": "objects of type QP", "srqs": "objects of type SRQ",
        "channels": "objects of type COMP_CHANNEL", "objects": "objects of all types", "mrs": "objects of type MR",
        "registered": "bytes of registered memory, in whole pages"}
NAMES = list(CASES)


def configured(run, quotas):
    """The options of a run with a device for each list of quotas."""
    lines = ["[uverbsd]", "persona = hfi1", f"devices = {len(quotas)}"]
    for i, texts in enumerate(quotas):
        lines.append(f"[device {i}]")
        lines += [re.sub("^allow ", "allow = ", t) if t.startswith("allow ") else f"quota = {t}" for t in texts]
    path = pathlib.Path(run.folder, "quota.conf")
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
    path.chmod(0o644)
    return ["--config", str(path)]


def user_of(run):
    return 0 if run.privileged else 65534 if run.prefix else os.geteuid()


def run_client(run, options, calls, **env):
    argv = [sys.executable, str(BIN / "test_quota.py"), json.dumps([[f"hfi1_{i}", c] for i, c in enumerate(calls)])]
    r = run(*argv, options=options, env={**run.env, **env})
    assert r.returncode == 0, r.stderr
    first, *rest = r.stdout.splitlines()
    return json.loads(first), rest, r.stderr


# The log writes ten lines of clients in five seconds, so one engine serves only a few cases.
@pytest.mark.parametrize("names", [NAMES[i:i + 6] for i in range(0, len(NAMES), 6)], ids=lambda n: n[0])
def test_quotas_decide_the_errno_and_the_log_line(run, names):
    uid = str(user_of(run))
    options = configured(run, [[t.replace("UID", uid) for t in CASES[n][0]] for n in names])
    got, _, log = run_client(run, options, [[call for call, _ in CASES[n][1]] for n in names])
    for i, (name, answers) in enumerate(zip(names, got)):
        _, calls, line = CASES[name]
        assert answers == [want for _, want in calls], (name, log)
        verb, quota, holds, asks = line.replace("UID", uid).split()
        what = WHAT[quota.split(":")[-2]]
        said = (rf"warning: hfi1_{i}: {verb}: (E\w+): user {uid} is refused by the quota `{quota}`: it holds {holds} {what}, and asks for"
                rf" {asks} more; to allow it, raise `quota = {quota}` in the device's section, or use --quota, pid \d+\n")
        assert re.findall(said, log) == [want for _, want in calls if want in ("EAGAIN", "EMFILE", "ENOMEM")], (name, said, log)


def test_status_shows_quotas_and_refusals(run):
    options = configured(run, [["pds:3,mrs:1"], []])
    calls = ["pd", "mr 8192", "mr 8192"]
    _, lines, _ = run_client(run, options, [calls, calls], AFTER=f"{UVERBSCTL} status --accounts --json")
    status, uid = json.loads(lines[0]), user_of(run)
    assert sorted(status["quotas"], key=lambda q: q["resource"]) == [
        {"device": "hfi1_0", "uid": uid, "resource": "mrs", "used": 1, "limit": 1},
        {"device": "hfi1_0", "uid": uid, "resource": "pds", "used": 1, "limit": 3}]
    assert {a["resource"]: a["used"] for a in status["accounts"]}["registered"] == 3 * 8192
    _, lines, _ = run_client(run, options, [calls, calls], AFTER=f"{UVERBSCTL} status --accounts")
    assert f"user {uid}: 1 pds of 3 on hfi1_0" in lines and f"user {uid}: 24576 registered, without a limit" in lines, lines
    _, lines, _ = run_client(run, options, [calls, calls], AFTER=f"{UVERBSCTL} status --json")
    assert [d["refused"] for d in json.loads(lines[0])["devices"]] == [1, 0]


def test_device_that_is_added_has_the_quota_of_its_command(run):
    script = f'"$0" device add --persona hfi1 --name hfi1_7 --quota pds:0 && {sys.executable} {BIN}/test_quota.py \'[["hfi1_7", ["pd"]]]\''
    r = run("sh", "-c", script, UVERBSCTL)
    assert json.loads(r.stdout.splitlines()[-1]) == [["EAGAIN"]] and "by the quota `pds:0`" in r.stderr, r


@pytest.mark.parametrize("text, says", [
    ("qps", "`qps` has `qps` where RESOURCE:N belongs"),
    ("qps:-1", "`qps:-1` contains `-1`, which is neither a number nor `unlimited`"),
    ("files:1", "`files:1` contains `files`, of which a device has no quota: limit it for all devices, in [limits]"),
    ("ucap:perm:qps:1", "`ucap:perm:qps:1` names `ucap`, but a quota is a user's, or everybody's")])
def test_wrong_text_ends_the_start_with_a_message(run, text, says):
    r = run("true", options=["--quota", text])
    assert r.returncode and f"--quota: {says}" in r.stderr, r


@pytest.mark.parametrize("block", range(len(BLOCKS)))
def test_commands_of_the_page_print_what_it_says(block, tmp_path):
    commands, want = BLOCKS[block]
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    output = subprocess.run(["sh", "-c", commands], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=STUCK, check=False).stdout
    for line in want.splitlines():
        assert line in output, f"{commands}\nprints no line with `{line}`:\n{output}"


def test_page_has_no_command_that_these_tests_do_not_see():
    assert PAGE.count("```sh\n") == PAGE.count("```text\n") == len(BLOCKS) == 1
