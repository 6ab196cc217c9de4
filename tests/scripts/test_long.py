# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""tests/long.txt and what reads it: a step leaves out what the table names, and every row names tests that there are."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("long_tests", ROOT / "tests/long.py")
long_tests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(long_tests)

ROWS = long_tests.rows()


def test_every_row_names_steps_of_scripts_test():
    known = re.search(r"^here_steps=\((.*)\)$", (ROOT / "scripts/test").read_text(), re.MULTILINE)[1].split()
    known += re.search(r"^machines=\"(.*)\"$", (ROOT / "scripts/test").read_text(), re.MULTILINE)[1].split()
    assert ROWS and not [row for row in ROWS if not set(row[0]) <= set(known)]


BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build"))
OF_SANITIZERS = ("broker reports",)  # no other build has them


def c_tests():
    return [*OF_SANITIZERS, *(test["name"] for test in json.loads((BUILD / "meson-info/intro-tests.json").read_text()))]


def is_there(pattern):
    file, _, name = pattern.partition("::")
    if not file.endswith(".py"):
        return pattern in c_tests()
    names = re.findall(r"def (test_\w+)\(", (ROOT / "tests" / file).read_text())
    return name.startswith("*") or any(re.fullmatch(re.escape(name.split("[")[0]).replace(r"\*", ".*"), n) for n in names + [""])


def test_every_row_names_tests_that_there_are():
    assert not [pattern for _, pattern in ROWS if not is_there(pattern)]


def test_no_row_is_there_twice():
    patterns = [(step, pattern) for steps, pattern in ROWS for step in steps]
    assert len(patterns) == len(set(patterns)), sorted(p for p in patterns if patterns.count(p) > 1)


FAKE = """
import pytest


@pytest.mark.parametrize("n", [1, 2])
def test_a(n):
    pass


def test_b():
    pass
"""


@pytest.fixture
def project(tmp_path):
    """A folder of tests with the files that choose."""
    (tmp_path / "tests/room").mkdir(parents=True)
    for name in ("pytest.ini", "tests/long.py", "tests/conftest.py"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "tests/room/test_first.py").write_text(FAKE)
    (tmp_path / "tests/room/test_second.py").write_text(FAKE)
    (tmp_path / "tests/long.txt").write_text("# a comment\nplain asan: room/test_first.py::test_a[2]\nasan: room/test_second.py  # why\n"
                                             "tsan: room/*::test_b\n")
    return tmp_path


@pytest.mark.parametrize("step, number", [(None, 6), ("plain", 5), ("asan", 2), ("tsan", 4), ("vm-cuse", 6)])
def test_a_step_runs_what_no_row_of_it_names(project, step, number):
    env = {name: value for name, value in os.environ.items() if name not in ("UVERBSD_STEP", "PYTEST_CURRENT_TEST")}
    env |= {"UVERBSD_STEP": step} if step else {}
    done = subprocess.run(["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/room"], cwd=project, env=env,
                          capture_output=True, text=True, check=False)
    assert f"{number} passed" in done.stdout, done.stdout


@pytest.mark.parametrize("step, names", [("", ["core a", "core b", "run"]), ("asan", ["core b"]), ("tsan", ["core a", "core b"])])
def test_tests_of_meson_are_chosen_alike_and_so_is_what_they_need(project, step, names):
    info = project / "build/meson-info"
    info.mkdir(parents=True)
    (info / "intro-tests.json").write_text(json.dumps(
        [{"name": name, "suite": ["uverbsd:" + suite], "depends": [name]} for name, suite in
         (("core a", "core"), ("core b", "core"), ("run", "programs"))]))
    (info / "intro-targets.json").write_text(json.dumps(
        [{"id": name, "filename": [f"{project}/build/tests/{name}"]} for name in ("core a", "core b", "run")]))
    (project / "tests/long.txt").write_text("asan: core a\nasan tsan: run\n")

    def said(*options):
        return subprocess.run([project / "tests/long.py", *options, project / "build"], env={**os.environ, "UVERBSD_STEP": step},
                              capture_output=True, text=True, check=True).stdout.splitlines()
    (project / "tests/long.py").chmod(0o755)
    assert said() == names
    assert said("--targets") == [f"tests/{name}" for name in names]
    if step != "asan":
        assert said("--beside", "asan") == [name for name in names if name != "core b"]
        assert not [name for name in said("--beside", "asan", "--beside", "tsan") if name.startswith("core")]
