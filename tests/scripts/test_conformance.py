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
    words = {w for ext in ("c", "py") for p in (ROOT / "tests").rglob(f"*.{ext}") for w in re.findall(r"\w+", p.read_text())}
    names = set(re.findall(r"\b(?:test_|[a-z_]+(?=`))\w*", " ".join(row[5] for row in ROWS)))
    assert len(names) > 100 and not names - words


# ---- queues: with which of them the tests of a statement run -------------------------------------------------------

MESON = (ROOT / "tests/backends/meson.build").read_text()
MAPPED = set(re.findall(r"'(\w+)'", re.search(r"backends_mapped = \[(.*?)\]", MESON, re.S).group(1)))
# Files whose tests run once, and why that is enough.
ONCE = {
    "backends/test_xrc.c": "the provider of mapped queues has no XRC",
    "backends/test_raw.c": "the provider of mapped queues has no RAW_PACKET",
    "objects/test_queue.c": "mapped",
}
CODE = {path: path.read_text() for path in sorted((ROOT / "tests").rglob("*.c"))}
NO_QUEUE = "no queue takes part in it"
MISSING = "not run with mapped queues"
# The rules of the ABI run on hfi1, with own rings, and on rxe, with mapped queues, but for those of posts: rxe's provider posts
# without calls.
RULES_HAVE_BOTH = all(f"--persona {p}" in (ROOT / "scripts/test").read_text() for p in ("hfi1", "rxe"))
RULES_OF_POSTS = ["abi/rules_post.c", "abi/data.c"]
# tests/distribution run each case on hfi1, with own rings, and under `run` on rxe, with mapped queues.
PROTECTION_HAS_BOTH = '["ioctl", "write"] + (["rxe"] if MAPS else [])' in (ROOT / "tests/distribution/conftest.py").read_text()


def way_of(name):
    """Returns "both", "mapped" (a test of mapped queues alone), or the reason why the test runs with own rings alone."""
    if name.startswith("protection:"):
        return "both" if PROTECTION_HAS_BOTH else "run with one persona"
    for path, code in CODE.items():
        if f"START_TEST({name})" not in code:
            continue
        file = str(path.relative_to(ROOT / "tests"))
        own = re.search(rf'add_own_queue_(?:loop_)?test\(\w+, {name},[^;]*?"([^"]+)"\);', code)
        if own:
            return own.group(1)
        if re.search(rf"test\(mapped_queue, {name}\b", code):
            return "mapped"
        if path.parent.name == "backends" and path.stem.removeprefix("test_") in MAPPED:
            return "both"
        if path.parent.name == "abi" and RULES_HAVE_BOTH and file not in RULES_OF_POSTS:
            return "both"
        return ONCE.get(file, NO_QUEUE if path.parent.name != "backends" else MISSING)
    of_each_device = any(f"\ndef {name}(device)" in path.read_text() for path in (ROOT / "tests/distribution").glob("*.py"))
    return "both" if of_each_device and PROTECTION_HAS_BOTH else NO_QUEUE


def queues_of(row):
    names = re.findall(r"(?:protection: )?`\w+`", row[5])
    ways = [way_of(n.replace("`", "")) for n in names]
    if "both" in ways or {"mapped"} < set(ways):
        return "both"
    if set(ways) == {"mapped"}:
        return "mapped"
    return "own: " + next((w for w in ways if w != NO_QUEUE), NO_QUEUE)


def test_each_test_that_runs_with_own_rings_alone_is_one_of_a_file_that_runs_both_ways():
    for path in (ROOT / "tests/backends").glob("test_*.c"):
        assert "add_own_queue_" not in path.read_text() or path.stem.removeprefix("test_") in MAPPED, path


def test_the_queues_of_each_statement_are_those_that_its_tests_run_with():
    wrong = {row[0]: (row[6].rstrip(" |"), queues_of(row)) for row in ROWS if row[6].rstrip(" |") != queues_of(row)}
    assert not wrong


def test_a_statement_that_is_tested_with_own_rings_alone_says_why():
    assert not [row[0] for row in ROWS if MISSING in row[6]]


def test_the_number_of_statements_tested_both_ways_is_that_of_the_rows():
    said = re.search(r"(\d+) are tested with own rings and with mapped queues", PAGE)
    assert int(said.group(1)) == sum(row[6].rstrip(" |") == "both" for row in ROWS)
