# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""bench/doorbells.py with its shortest row."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", ROOT / "build")).resolve()
CTL = BUILD / "tools/uverbsctl"

pytestmark = pytest.mark.skipif(not shutil.which("ibv_rc_pingpong"), reason="libibverbs' examples are not installed")


def doorbells(tmp_path, *words):
    """The exit status, the printed tables, and the figures of the first table."""
    command = [ROOT / "bench/doorbells.py", "--rounds", "1", "--only", "^ibv_rc_pingpong 4 KiB$", "--json", tmp_path / "json", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=100, env={**os.environ, "UVERBSD_BUILD": str(BUILD)},
                          check=False)
    return done.returncode, done.stdout, json.loads((tmp_path / "json").read_text())["busy"][0]


def test_every_way_has_a_figure_and_the_second_a_ratio_to_the_first(tmp_path):
    status, text, table = doorbells(tmp_path, "--way", f"first={CTL}", "--way", f"second={CTL},--abi,write", "--busy", "1")
    assert status == 0 and not table["failures"]
    figures = {row["way"]: row["median"] for row in table["rows"]}
    assert set(figures) == {"first", "second"} and min(figures.values()) > 0
    row = next(line for line in text.splitlines() if line.startswith("| ibv_rc_pingpong"))
    assert f"({figures['second'] / figures['first']:.2f})" in row
    assert "Beside 1 busy loops" in text


def test_a_way_that_fails_is_reported_and_the_others_have_figures(tmp_path):
    status, text, table = doorbells(tmp_path, "--way", f"good={CTL}", "--way", f"bad={CTL},--no-such-option")
    assert status == 1
    assert [row["way"] for row in table["rows"]] == ["good"]
    assert [failure["who"] for failure in table["failures"]] == ["bad"]
    assert "FAILED, round 1: ibv_rc_pingpong 4 KiB, bad: exit status 2" in text and "--no-such-option" in text
