# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""scripts/tap-wrap: how programs that libcheck or nobody reports on are counted by scripts/summary."""
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PASSED = 'echo "ok 1 - t.c:case:test_a: Passed\nok 2 - t.c:case:test_a: Passed\nok 3 - t.c:case:test_ab: Passed" >"$CK_TAP_LOG_FILE_NAME"\n'
FAILED = 'echo "not ok 1 - t.c:case:test_a: no" >"$CK_TAP_LOG_FILE_NAME"\n'


def skip(test):
    return f'printf "{test}\\tno root\\n" >>"$CK_TAP_LOG_FILE_NAME.skipped"\n'


@pytest.mark.parametrize("script, status, passed, failed, skipped", [
    (PASSED, 0, 3, 0, 0),
    (PASSED + skip("test_a"), 0, 2, 0, 1),
    (PASSED + skip("test_a") * 2 + skip("test_ab"), 0, 0, 0, 3),
    (PASSED + skip("test_a") * 3, 0, 1, 1, 2),  # more than there are
    (PASSED + skip("test_b"), 0, 3, 1, 0),
    (FAILED + skip("test_a") + "exit 1", 1, 0, 2, 0),  # a failure stays one
    (FAILED + "exit 1", 1, 0, 1, 0),
    (PASSED + "exit 1", 1, 3, 1, 0),
    ("exit 0", 0, 1, 0, 0),
    ("exit 1", 1, 0, 1, 0),
    ("exit 77", 77, 0, 0, 1),  # meson's status of a test that has not run
], ids=str)
def test_what_a_program_counts_as(tmp_path, script, status, passed, failed, skipped):
    program, step = tmp_path / "program", tmp_path / "results/step"
    program.write_text(f"#!/bin/sh\n{script}")
    program.chmod(0o755)
    step.mkdir(parents=True)
    # A record of an earlier run says nothing of this one.
    (step / "program.tap.skipped").write_text("test_z\tno reason\n")
    (step / "other.tap").write_text("ok 1 - other\n")  # nothing but skips is a failure
    done = subprocess.run([ROOT / "scripts/tap-wrap", step, program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=300)
    assert done.returncode == status, done.stdout
    (step / "status").write_text(str(int(status not in (0, 77))))
    out = subprocess.run([ROOT / "scripts/summary", step.parent], stdout=subprocess.PIPE, text=True, timeout=300).stdout
    assert out.endswith(f"{passed + 1} passed, {failed} failed, {skipped} skipped\n"), out
