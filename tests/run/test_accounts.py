# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The limits of a process tree, and what `uverbsctl status` shows of its account."""
import errno
import json
import os
import pathlib
import re
import subprocess
import pytest
from conftest import UVERBSCTL

NODE = "/dev/infiniband/uverbs0"
OPEN = f"""
import os, sys
fds = []
try:
    while len(fds) < 5:
        fds.append(os.open("{NODE}", os.O_RDWR))
except OSError as e:
    print(len(fds), e.errno, flush=True)
os.execvp(sys.argv[1], sys.argv[1:]) if sys.argv[1:] else None
"""
OPEN_AND_CLOSE = f"""
import os
for i in range(50):
    os.close(os.open("{NODE}", os.O_RDWR))
"""


def test_open_files_have_a_limit(run):
    r = run("python3", "-c", OPEN, options=["--limit-files", "2", "--limit-root", "yes"])
    assert r.stdout.split() == ["2", str(errno.EMFILE)], r
    assert "--limit-files, or `files` of [limits]" in r.stderr, r.stderr


def test_files_that_are_closed_do_not_count(run):
    r = run("python3", "-c", OPEN_AND_CLOSE, options=["--limit-files", "1", "--limit-root", "yes"])
    assert r.returncode == 0, r.stderr


def test_limits_in_the_file(run):
    path = os.path.join(run.folder, "run.conf")
    with open(path, "w") as f:
        f.write("[limits]\nfiles = 3\nroot = yes\n")
    os.chmod(path, 0o644)
    assert run("python3", "-c", OPEN, options=["--config", path]).stdout.split() == ["3", str(errno.EMFILE)]


@pytest.mark.parametrize("root", ["yes", "no"])
def test_status_tells_what_is_held(run, root):
    keep = f"import os, subprocess, sys; fd = os.open(\"{NODE}\", os.O_RDWR); sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    options = ["--limit-files", "7", "--limit-root", root]
    uid = 0 if run.privileged else 65534 if run.prefix else os.geteuid()
    r = run("python3", "-c", keep, UVERBSCTL, "status", "--accounts", options=options)
    limited = root == "yes" or uid
    assert f"user {uid}: 1 files{' of 7' if limited else ', without a limit'}\n" in r.stdout, r
    r = run("python3", "-c", keep, UVERBSCTL, "status", "--accounts", "--json", options=options)
    row = next(a for a in json.loads(r.stdout)["accounts"] if a["resource"] == "files")
    assert row == {"uid": uid, "resource": "files", "used": 1, "limit": 7 if limited else None}
    r = run(UVERBSCTL, "status", "--accounts")
    assert r.returncode == 0 and r.stdout == ""


def test_every_limit_is_in_docs_limits_md():
    text = subprocess.run([UVERBSCTL, "internal-tables"], capture_output=True, text=True, check=True).stdout
    limits = [(o["name"][len("limit-"):], o["help"], o["preset"]) for o in json.loads(text)["options"] if o["scope"] == "limit"]
    page = (pathlib.Path(__file__).parents[2] / "docs/limits.md").read_text()
    assert len(limits) > 20 and limits == re.findall(r"^\| `(.*)` \| (.*) \| (.*) \|$", page, re.M)
