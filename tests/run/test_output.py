# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What uverbsctl says when its output cannot be written."""
import pathlib
import subprocess

import pytest

from conftest import STUCK, UVERBSCTL

RECORD = f"{UVERBSCTL} run --persona hfi1 --log-level error --trace t.trace -- {UVERBSCTL} call CQ CREATE --cqe 16"
DEVICE = f"{UVERBSCTL} run --persona hfi1 --log-level error --"
COMMANDS = {
    "trace": (f"{RECORD} >record.out", "trace -i t.trace"),
    "trace-json": (f"{RECORD} >record.out", "trace -i t.trace --json"),
    "replay-trace": (f"{RECORD} >record.out", "replay t.trace"),
    "replay": ("echo write GET_CONTEXT >calls.prog", "replay calls.prog"),
    "replay-json": ("echo write GET_CONTEXT >calls.prog", "replay --json calls.prog"),
    "status": ("true", "status"),
    "status-json": ("true", "status --json"),
    "status-watch": ("true", "status --watch --once"),
    "call": ("true", "call CQ CREATE --cqe 16"),
    "tree": ("true", "tree"),
    "tree-json": ("true", "tree --format json"),
    "tree-syzlang": ("true", "tree --format syzlang"),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("run", ["self"], indirect=True)
def test_a_command_whose_output_cannot_be_written_fails(run, name):
    before, command = COMMANDS[name]
    script = f"cd {run.folder} && {before} && exec {DEVICE} sh -c 'exec {UVERBSCTL} {command} >/dev/full'"
    r = subprocess.run([*run.prefix, "sh", "-c", script], capture_output=True, text=True, env=run.env, timeout=STUCK)
    assert r.returncode == 1 and r.stderr.count("\n") == 1, r
    assert r.stderr.startswith(f"uverbsctl {command.split()[0]}: cannot write all of the output"), r


@pytest.mark.parametrize("option", ["--help", "--version", "replay --help"])
def test_help_that_cannot_be_written_fails(option):
    with pathlib.Path("/dev/full").open("w", encoding="utf-8") as full:
        r = subprocess.run([UVERBSCTL, *option.split()], stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=STUCK)
    assert r.returncode == 1 and "cannot write all of the output: ENOSPC" in r.stderr, r
