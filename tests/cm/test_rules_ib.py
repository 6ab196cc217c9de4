# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The rules of catalogue.json for InfiniBand ports: one run of rules_ib.py for each user, and a test for each rule."""
import json
import pathlib
import re
import subprocess

import pytest

from places import HERE, INFINIBAND, STUCK, TRANSPORT, place, users

RULES = {r["id"]: r for r in json.loads((HERE / "catalogue.json").read_text())["rules"] if "rules_ib" in r.get("tests", ())}
LINE = re.compile(r"(cm-\S+) (\S+) ?(.*)")

if TRANSPORT == "kernel":
    pytest.skip("the kernel has no such device here", allow_module_level=True)


@pytest.fixture(scope="module", params=users())
def said(request, tmp_path_factory):
    folder = pathlib.Path(tmp_path_factory.mktemp("cm_ib"))
    with place(request.param, folder, INFINIBAND) as (prefix, _):
        done = subprocess.run([*prefix, "/usr/bin/python3", "-S", folder / "rules_ib.py", "hfi1_0"], stdout=subprocess.PIPE, text=True,
                              timeout=STUCK, check=False, cwd="/")
    assert done.returncode == 0, done.stdout
    return [m.groups() for m in map(LINE.fullmatch, done.stdout.splitlines()) if m], done.stdout


@pytest.mark.parametrize("rule", RULES)
def test_rule_holds(said, rule):
    results = [(result, then) for name, result, then in said[0] if name == rule]
    assert results == [(RULES[rule]["errno"], RULES[rule].get("then", ""))], said[1]


def test_the_program_says_each_rule_once_and_no_other(said):
    assert sorted(name for name, _, _ in said[0]) == sorted(RULES)
