# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""scripts/mutants: which changes it finds in a small C file, which of them it chooses, and what it reports."""
import importlib.machinery
import importlib.util
import json
import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = """\
#include <errno.h>
#include <uverbsd/log.h>
#define TWICE(x) ((x) + (x))
_Static_assert(1 + 1 == 2, "sums");
static int table[3] = { 1, 2, 3 };

static void log_sum(int a)
{
    table[0] = a + 1;
}

int g(int a, int b);

int f(struct uvd_log *log, int a, int b)
{
    static int often = 1 + 2;
    int c[4];

    if (a < b && !often)
        return -EINVAL;
    while (a)
        if (a-- == 0x10)
            break;
        else
            continue;
    for (int i = 0; i < b; i++)
        a += i;
    c[0] = TWICE(a + 1);
    log_sum(a + 1);
    uvd_logf(log, UVD_ERR, "%d", b - EINVAL);
    g(a,
      b | 8U);
    switch (a ? b : 0) {
    case 1:
        break;
    }
    return ~c[0];
}
""".replace("    ", "\t")
FOUND = """\
19:6 negate: `a < b && !often` -> `!(a < b && !often)`
19:8 compare: `<` -> `<=`
19:12 logic: `&&` -> `||`
19:15 not: `!` -> ``
20:3 remove: `return -EINVAL` -> ``
20:11 errno: `EINVAL` -> `ENOMEM`
21:9 negate: `a` -> `!(a)`
22:8 arithmetic: `--` -> `++`
22:11 compare: `==` -> `!=`
22:14 constant+1: `0x10` -> `0x11`
22:14 constant-1: `0x10` -> `0xf`
23:4 jump: `break` -> `continue`
25:4 jump: `continue` -> `break`
26:15 constant+1: `0` -> `1`
26:20 compare: `<` -> `<=`
27:3 remove: `a += i` -> ``
27:5 arithmetic: `+=` -> `-=`
28:2 remove: `c[0] = TWICE(a + 1)` -> ``
28:4 constant+1: `0` -> `1`
31:2 remove: `g(a, b | 8U)` -> ``
32:6 bits: `|` -> `&`
32:8 constant+1: `8U` -> `9U`
32:8 constant-1: `8U` -> `7U`
33:10 negate: `a` -> `!(a)`
33:18 constant+1: `0` -> `1`
34:7 constant+1: `1` -> `2`
34:7 constant-1: `1` -> `0`
35:3 jump: `break` -> ``
37:9 bits: `~` -> ``
37:12 constant+1: `0` -> `1`
"""


@pytest.fixture(scope="module")
def mutants():
    loader = importlib.machinery.SourceFileLoader("mutants", str(ROOT / "scripts/mutants"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutants", loader))
    sys.modules["mutants"] = module    # dataclasses looks there
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("tree")
    (root / "include").symlink_to(ROOT / "include")
    for room in ("pin", "core"):
        (root / "src" / room).mkdir(parents=True)
        (root / "src" / room / "tiny.c").write_text(SOURCE)
    return root


def test_finds_all_changes_outside_of_messages_macros_and_static_data(mutants, tree):
    assert "".join(f"{m}\n" for m in mutants.points(tree, "src/pin/tiny.c")) == "".join(
        f"src/pin/tiny.c:{line}\n" for line in FOUND.splitlines())


def test_a_change_is_in_one_place_and_keeps_the_line_numbers(mutants, tree):
    source = SOURCE.encode()
    for mutant in mutants.points(tree, "src/pin/tiny.c"):
        changed = mutant.apply(source)
        assert changed != source and changed.count(b"\n") == source.count(b"\n")
    call = next(m for m in mutants.points(tree, "src/pin/tiny.c") if m.before.startswith("g("))
    assert call.apply(source) == source.replace(b"g(a,\n\t  b | 8U);", b"\n;")


def test_a_seed_chooses_the_same_changes_again_and_equally_many_of_each_folder(mutants, tree):
    found = [m for room in ("pin", "core") for m in mutants.points(tree, f"src/{room}/tiny.c")]
    chosen = mutants.choose(found, 10, 1)
    assert chosen == mutants.choose(found, 10, 1) and len(set(chosen)) == 10
    assert sum(m.file.startswith("src/pin/") for m in chosen) == 5
    assert chosen != mutants.choose(found, 10, 2)
    assert len(mutants.choose(found, 1000, 1)) == len(found)


def test_a_mutant_runs_the_tests_that_reach_its_line_or_the_statement_that_begins_above(mutants, tree):
    bench = object.__new__(mutants.Bench)
    file = "src/pin/tiny.c"
    bench.code = {file: [16, 22, 34]}
    bench.tests = [mutants.Test(str(line), [], {}, [], 0, {file: {line}}) for line in bench.code[file]]
    reached = {m.line: [t.name for t in bench.reaching(m)] for m in mutants.points(tree, file)}
    assert reached[22] == ["22"] and reached[35] == ["34"]


def test_a_mutant_of_code_that_may_leave_no_counts_runs_the_other_tests_of_its_file_as_well(mutants):
    bench = object.__new__(mutants.Bench)
    for file, others in (("src/run/tiny.c", ["2"]), ("src/pin/tiny.c", [])):
        mutant = mutants.Mutant(file, 1, 1, "errno", "EINVAL", "ENOMEM", "", 0, 1)
        bench.code = {file: [1, 2]}
        bench.tests = [mutants.Test(str(line), [], {}, [], 0, {name: {line}})
                       for line, name in ((1, file), (2, file), (3, "src/run/other.c"))]
        reaching = bench.reaching(mutant)
        assert [t.name for t in reaching] == ["1"]
        assert [t.name for t in bench.beside(mutant, reaching)] == others


def test_a_mutant_of_code_that_may_leave_no_counts_runs_the_tests_of_its_room_last(mutants):
    bench = object.__new__(mutants.Bench)
    mutant = mutants.Mutant("src/run/tiny.c", 1, 1, "errno", "EINVAL", "ENOMEM", "", 0, 1)
    bench.tests = [mutants.Test(name, [], {}, [], 0, lines) for name, lines in
                   (("run unit", {}), ("core tree", {}), ("trace run", {"src/run/tiny.c": {2}}), ("run files", {}))]
    assert [t.name for t in bench.beside(mutant, [bench.tests[3]])] == ["trace run", "run unit"]


def test_each_file_that_meson_gives_to_pytest_is_a_test(mutants, tmp_path):
    (tmp_path / "meson-info").mkdir()
    (tmp_path / "meson-info/intro-targets.json").write_text(json.dumps(
        [{"id": "a@exe", "filename": [str(tmp_path / "tools/a")]}, {"id": "b@exe", "filename": [str(tmp_path / "b")]}]))
    for name in ("test_one.py", "test_two.py", "conftest.py"):
        (tmp_path / name).touch()
    build = object.__new__(mutants.Build)
    build.path = tmp_path
    one, two = build.scripts(tmp_path, {"name": "run", "env": {"E": "1"}, "depends": ["a@exe"]})
    assert (one.name, two.name) == ("run test_one", "run test_two")
    assert one.command[-1] == str(tmp_path / "test_one.py") and one.env == {"E": "1"} and one.targets == ["tools/a"]
    assert one.scripts == [tmp_path / "test_one.py", tmp_path / "conftest.py"]


def test_a_session_ends_although_a_process_has_a_name_of_any_bytes(mutants):
    program = "open('/proc/self/comm', 'wb').write(b'a) \\xff'); print(flush=True); __import__('time').sleep(1000)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            process.stdout.readline()
            mutants.end_session(process.pid)
            assert process.wait(60) == -signal.SIGKILL
        finally:
            process.kill()


def test_several_places_can_be_chosen(mutants, tree):
    found = [m for room in ("pin", "core") for m in mutants.points(tree, f"src/{room}/tiny.c")]
    assert all(mutants.is_wanted(m, None) and mutants.is_wanted(m, ["src/core", "src/pin/"]) for m in found)
    assert {m.file for m in found if mutants.is_wanted(m, ["src/core", "src/run"])} == {"src/core/tiny.c"}
    assert {m.line for m in found if mutants.is_wanted(m, ["src/pin/tiny.c:19", "src/pin/tiny.c:22"])} == {19, 22}
    assert not mutants.is_wanted(found[0], ["src/pi"])


def test_the_report_counts_each_result_and_names_the_survivors(mutants):
    result = {"file": "src/pin/tiny.c", "line": 3, "column": 1, "operator": "errno", "before": "EINVAL", "after": "ENOMEM",
              "text": "return -EINVAL;"}
    text = mutants.report([{**result, "result": r} for r in ("killed", "killed", "timed out", "survived", "equivalent")])
    assert "| src/pin | 5 | 2 | 1 | 0 | 1 | 0 | 1 |" in text
    assert "- src/pin/tiny.c:3:1 errno: `EINVAL` to `ENOMEM`, in `return -EINVAL;`" in text
