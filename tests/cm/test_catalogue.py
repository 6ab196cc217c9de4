# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""catalogue.json, the rules of /dev/infiniband/rdma_cm: each names its tests, or a reason why it has none."""
import json
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
RULES = json.loads((HERE / "catalogue.json").read_text())["rules"]
# Programs by their names in the catalogue, and what their texts are.
PROGRAMS = {"rules": sorted(set(HERE.glob("rules*.py")) - {HERE / "rules_ib.py"}), "rules_ib": [HERE / "rules_ib.py"]}
TRANSPORTS = {"run", "cuse", "cuse, two processes", "kernel"}


def is_there(test):
    """Is there a test of this name? A program: one of its lines says the rule; else FILE::NAME, seen from tests/."""
    file, _, name = test.partition("::")
    path = HERE.parent / file
    return test in PROGRAMS or (path.is_file() and re.search(rf"\b{re.escape(name)}\b", path.read_text()) is not None)


def test_each_rule_names_tests_that_there_are_or_a_reason_why_it_has_none():
    assert not [r["id"] for r in RULES if not all(map(is_there, r.get("tests", ())))]
    assert not [r["id"] for r in RULES if bool(r.get("tests")) == bool(r.get("unseen"))]


def test_each_program_says_the_rules_that_name_it_and_no_other():
    for program, files in PROGRAMS.items():
        said = set(re.findall(r'"(cm-[a-z0-9-]+)"', "".join(f.read_text() for f in files)))
        assert said == {r["id"] for r in RULES if program in r.get("tests", ())}


def test_each_rule_was_seen_or_read():
    assert not [r["id"] for r in RULES if not r.get("seen") and not r.get("read")]


def test_each_difference_is_of_a_transport_and_has_a_reason():
    assert not [r["id"] for r in RULES for where, d in r.get("differs", {}).items() if where not in TRANSPORTS or not d["reason"]]


def test_no_rule_is_there_twice():
    assert len({r["id"] for r in RULES}) == len(RULES)
