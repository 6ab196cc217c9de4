# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The planted faults of scripts/planted: each patch still applies to the source, and the script ends what it has started."""
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys

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


def load():
    loader = importlib.machinery.SourceFileLoader("planted", str(ROOT / "scripts/planted"))
    planted = importlib.util.module_from_spec(importlib.util.spec_from_loader("planted", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(planted)
    return planted


@pytest.mark.parametrize("patch", PATCHES, ids=lambda p: p.stem)
def test_only_the_patched_files_differ_in_the_copy(patch):
    changed = load().patched(patch)
    assert changed
    for name, content in changed.items():
        assert content != (ROOT / name).read_bytes(), name


def test_a_file_that_did_not_change_is_not_written(tmp_path):
    planted, path = load(), tmp_path / "folder/file"
    planted.write_changed(path, b"one", 0o644)
    before = path.stat().st_mtime_ns
    planted.write_changed(path, b"one", 0o644)
    assert path.stat().st_mtime_ns == before
    planted.write_changed(path, b"two", 0o644)
    assert path.read_bytes() == b"two"


# In a process of its own: its orphans become its children.
LIMITED = """
import importlib.machinery, importlib.util, pathlib, signal, sys
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("planted", sys.argv[1])
planted = importlib.util.module_from_spec(importlib.util.spec_from_loader("planted", loader))
loader.exec_module(planted)
planted.RESULTS = pathlib.Path(sys.argv[2])
planted.adopt_orphans()
heard = []
status = planted.limited(["sh", "-c", "setsid sh -c 'sleep 1000 & wait' & echo started; wait"], int(sys.argv[3]),
                         planted.RESULTS / "log", heard.append)
print(status, heard, planted.descendants())
"""


def test_what_takes_too_long_is_ended_with_all_that_it_has_started(tmp_path):
    done = subprocess.run([sys.executable, "-c", LIMITED, ROOT / "scripts/planted", tmp_path, "5"], capture_output=True, text=True,
                          timeout=300)
    assert done.stdout in ("None ['started\\n'] []\n", "None [] []\n"), done
