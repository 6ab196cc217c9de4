# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The rules of catalogue.json on a /dev/infiniband/rdma_cm: one run of rules.py for each user, and a test for each rule."""
import collections
import json
import pathlib
import re
import subprocess

import pytest

from places import DIFFERING, HERE, LONG, STUCK, TRANSPORT, place, users

RULES = {r["id"]: r for r in json.loads((HERE / "catalogue.json").read_text())["rules"]}
PROGRAM = {i: r for i, r in RULES.items() if "rules" in r.get("tests", ())}
# In a machine a case takes a twentieth of a second: there one case has all rules of a command.
COMMANDS = {r["command"]: None for r in PROGRAM.values()}
CASES = ({rule: [rule] for rule in PROGRAM} if TRANSPORT == "run" or LONG else
         {command: [i for i, r in PROGRAM.items() if r["command"] == command] for command in COMMANDS})
LINE = re.compile(r"(cm-\S+) (\S+) ?(.*)")


# What the program has said: its text, its number of lines about rules, and {id: (errno, what else was seen)}.
Said = collections.namedtuple("Said", "text lines results")


@pytest.fixture(scope="module", params=users())
def said(request, tmp_path_factory):
    folder = pathlib.Path(tmp_path_factory.mktemp("cm"))
    with place(request.param, folder) as (prefix, args):
        done = subprocess.run([*prefix, "/usr/bin/python3", "-S", folder / "rules.py", *args, *(["--slow"] if LONG else [])],
                              stdout=subprocess.PIPE, text=True, timeout=STUCK, check=False, cwd="/")
    lines = [m.groups() for m in map(LINE.fullmatch, done.stdout.splitlines()) if m]
    assert done.returncode == 0, done.stdout
    return Said(done.stdout, len(lines), {rule: (result, then) for rule, result, then in lines})


# ---- the rules --------------------------------------------------------------------------------------------------------

def expected(rule):
    """What the program says of it on this transport."""
    here = dict(PROGRAM[rule])
    for where in DIFFERING:
        here.update(PROGRAM[rule].get("differs", {}).get(where, {}))
    return here["errno"], here.get("then", "")


@pytest.mark.parametrize("rules", CASES.values(), ids=CASES.keys())
def test_rules_hold(said, rules):
    results = {rule: said.results.get(rule, ("(nothing)", "")) for rule in rules}
    skipped = {rule: then for rule, (result, then) in results.items() if result == "skip"}
    wrong = {rule: (result, "expected", expected(rule)) for rule, result in results.items()
             if rule not in skipped and result != expected(rule)}
    assert not wrong
    if len(skipped) == len(rules):
        pytest.skip("; ".join(skipped.values()))


def test_the_program_says_each_rule_once_and_no_other(said):
    assert said.lines == len(said.results) and set(said.results) == set(PROGRAM), said.text
