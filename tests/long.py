#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""long.py [--beside STEP] [--targets] BUILD: names the tests of meson that the step $UVERBSD_STEP of scripts/test runs.

tests/long.txt names those that a step leaves out. Without a step nothing is left out. tests/conftest.py asks the same table
for the tests of pytest. With --beside, the C tests that a STEP runs are left to it. With --targets: what ninja must build.
"""
import argparse
import functools
import json
import os
import pathlib
import re

TABLE = pathlib.Path(__file__).resolve().with_name("long.txt")


def rows():
    """Returns (steps, pattern) of each row."""
    lines = (line.split("#")[0].strip() for line in TABLE.read_text().splitlines())
    parts = (line.partition(": ") for line in lines if line)
    return [(steps.split(), pattern.strip()) for steps, _, pattern in parts]


def expression(pattern):
    """A regular expression: "*" stands for anything, and a test without [parameters] or a file for all that it has."""
    return ".*".join(map(re.escape, pattern.split("*"))) + r"(::.*|\[.*)?"


@functools.lru_cache
def left_out(step):
    """Returns what matches the names of the tests that the step leaves out."""
    found = [expression(pattern) for steps, pattern in rows() if step in steps]
    return re.compile("|".join(found) or "(?!)", re.DOTALL).fullmatch


def is_wanted(test, step, beside):
    is_c_test = not any(suite.endswith(":programs") for suite in test["suite"])
    return not left_out(step)(test["name"]) and not (is_c_test and any(not left_out(other)(test["name"]) for other in beside))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--beside", metavar="STEP", action="append", default=[])
    ap.add_argument("--targets", action="store_true")
    ap.add_argument("build", type=pathlib.Path)
    args = ap.parse_args()
    info, step = args.build / "meson-info", os.environ.get("UVERBSD_STEP", "")
    tests = [t for t in json.loads((info / "intro-tests.json").read_text()) if is_wanted(t, step, args.beside)]
    if args.targets:
        files = {t["id"]: t["filename"] for t in json.loads((info / "intro-targets.json").read_text())}
        print("\n".join(sorted({os.path.relpath(f, args.build) for t in tests for i in t["depends"] for f in files[i]})))
    else:
        print("\n".join(t["name"] for t in tests))


if __name__ == "__main__":
    main()
