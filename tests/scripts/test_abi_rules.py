# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""scripts/abi-rules: every rule that is cited exists, every rule has its test, and docs/abi-rules.md says so."""
import json
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(root=ROOT):
    """(exit status, output)"""
    done = subprocess.run([root / "scripts" / "abi-rules", "--check"], stdout=subprocess.PIPE, text=True, timeout=120, check=False)
    return done.returncode, done.stdout


@pytest.fixture
def copy(tmp_path):
    for folder in ("src", "include", "tests", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "abi-rules", tmp_path / "scripts")
    return tmp_path


def replace(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_every_rule_is_tested_and_every_citation_is_a_rule():
    status, said = check()
    assert status == 0, said


def test_a_citation_of_no_rule_is_found(copy):
    replace(copy / "src" / "objects" / "cq_poll.c", "regression-01", "regression-" + "77")
    status, said = check(copy)
    assert status == 1 and "src/objects/cq_poll.c" in said and "does not exist" in said


def test_a_rule_without_a_test_is_found(copy):
    replace(copy / "tests" / "abi" / "rules_cq.c", "test_cq_02_", "test_")
    status, said = check(copy)
    assert status == 1 and "cq-02 has no test" in said


def test_a_test_of_no_rule_is_found(copy):
    replace(copy / "tests" / "abi" / "rules_cq.c", "test_cq_02_", "test_cq_" + "77_")
    status, said = check(copy)
    assert status == 1 and "cq-" + "77, which does not exist" in said


def test_a_reason_for_no_test_goes_when_the_test_comes(copy):
    rules = json.loads((copy / "tests" / "abi" / "rules.json").read_text())
    rules[0]["unseen"] = "it is hard"
    (copy / "tests" / "abi" / "rules.json").write_text(json.dumps(rules))
    status, said = check(copy)
    assert status == 1 and f"{rules[0]['id']} has a test in tests/abi, and a reason" in said


def test_a_page_that_is_not_up_to_date_is_found(copy):
    replace(copy / "tests" / "abi" / "rules.json", "header unreadable", "header that cannot be read")
    status, said = check(copy)
    assert status == 1 and "run scripts/abi-rules" in said
