#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""coverage.py BUILD: how many lines and branches of each room the programs that ran in BUILD (meson -Db_coverage=true) have reached.

A branch counts if it was taken. scripts/fuzz --coverage runs it.
"""
import collections
import glob
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def reports(build):
    data = [os.path.abspath(f) for f in glob.glob(f"{build}/src/**/*.gcda", recursive=True)]
    out = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", *data], cwd=build, text=True, check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    for line in out.splitlines():
        if line.startswith("{"):
            yield from json.loads(line)["files"]


def main(build):
    lines, branches = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for file in reports(build):
        path = os.path.relpath(os.path.realpath(os.path.join(build, file["file"])), ROOT)
        if not path.startswith("src/") or not path.endswith(".c"):
            continue
        for line in file["lines"]:
            lines[path][line["line_number"]] += line["count"]
            for i, branch in enumerate(line["branches"]):
                if not branch["throw"]:
                    branches[path][line["line_number"], i] += branch["count"]
    rooms = collections.defaultdict(lambda: [0, 0, 0, 0])
    for path, counts in lines.items():
        room = rooms[os.path.dirname(path)]
        for at, counted in ((0, counts), (2, branches[path])):
            room[at] += sum(n > 0 for n in counted.values())
            room[at + 1] += len(counted)
    print(f"{'room':32} {'lines':>16} {'branches':>16}")
    for room, (l, of_l, b, of_b) in sorted(rooms.items()):
        if l:
            print(f"{room:32} {l:5} of {of_l:5} {100 * l // of_l:3}% {b:5} of {of_b:5} {100 * b // max(of_b, 1):3}%")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
