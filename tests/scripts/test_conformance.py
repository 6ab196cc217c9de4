# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""docs/conformance.md: its counts, and that the tests which it names exist."""
import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs/conformance.md").read_text()
ROWS = [line.split(" | ") for line in PAGE.splitlines() if re.match(r"\| \w+-\d+ \|", line)]


def test_the_counts_are_those_of_the_rows():
    said = re.search(r"(\d+) statements: (\d+) the same, (\d+) different on purpose, (\d+) deviations, (\d+) without a test", PAGE)
    kinds = collections.Counter(re.match(r"\w+", row[4]).group() for row in ROWS)
    without = sum(row[5].rstrip(" |") == "none" for row in ROWS)
    assert list(map(int, said.groups())) == [len(ROWS), kinds["same"], kinds["differs"], kinds["deviation"], without]
    assert set(kinds) <= {"same", "differs", "deviation"}


def test_each_deviation_is_in_the_list():
    listed = set(re.findall(r"^- \*\*([\w-]+)\*\*", PAGE.split("## Deviations")[1], re.M))
    assert listed == {row[0].strip("| ") for row in ROWS if row[4].startswith("deviation")}


def test_the_tests_that_it_names_exist():
    code = "\n".join(p.read_text() for ext in ("c", "py") for p in (ROOT / "tests").rglob(f"*.{ext}"))
    names = set(re.findall(r"\b(?:test_|[a-z_]+(?=`))\w*", " ".join(row[5] for row in ROWS)))
    assert len(names) > 100 and not [n for n in names if not re.search(rf"\b{n}\b", code)]
