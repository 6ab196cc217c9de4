# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The planted faults of scripts/planted: each patch still applies to the source."""
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATCHES = sorted((ROOT / "tests/fuzz/planted").glob("*.patch"))


def test_there_are_ten():
    assert len(PATCHES) == 10


@pytest.mark.parametrize("patch", PATCHES, ids=lambda p: p.stem)
def test_a_planted_fault_applies(patch):
    done = subprocess.run(["git", "apply", "--check", patch], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert not patch.read_text().startswith("---"), "the first line says what the fault is"
