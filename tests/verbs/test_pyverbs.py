# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
rdma-core's own tests (from Debian's package rdma-core), run by Debian's pyverbs on our device and on rxe0, its adapter. They need
--long (conftest.py). docs/hca-pyverbs.md says which module passes how many.
"""
import collections
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

import test_verbs as verbs
from test_borrow import fixture_daemon  # noqa: F401 pylint: disable=unused-import
from test_verbs import fixture_nothing_is_left, fixture_own  # noqa: F401 pylint: disable=unused-import

PROGRAMS = verbs.HERE.parent / "distribution"
DOCS = verbs.HERE.parents[1] / "docs" / "hca-pyverbs.md"


@pytest.fixture(name="folder")
def fixture_folder():
    """rdma-core's tests, and what runs them, where every user can read them."""
    spec = importlib.util.spec_from_file_location("rdma_core_tests", PROGRAMS / "rdma_core_tests.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with tempfile.TemporaryDirectory(prefix="uverbsd-pyverbs-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o777)
        module.unpack(folder)
        shutil.copy(PROGRAMS / "run_pyverbs.py", folder)
        yield folder


def results(folder, *program):
    command = [*program, "/usr/bin/python3", "-B", folder / "run_pyverbs.py", folder]
    done = subprocess.run(command, timeout=1800, check=False, **verbs.TEXT, **verbs.USER)
    assert done.returncode == 0, done.stdout
    return {name: (result, said) for name, result, said, _ in map(json.loads, re.findall("^RESULT (.*)$", done.stdout, re.M))}


def passes(found):
    return collections.Counter(name.partition(".")[0] for name, (result, _) in found.items() if result == "passed")


def test_pyverbs_fails_nowhere_and_passes_as_documented(daemon, folder):
    ours, plain = results(folder, *verbs.OURS), results(folder)
    for name in ours:
        print(f"{name}: {ours[name]} {plain.get(name)}")
    assert not [name for name, (result, _) in ours.items() if result == "failed"]
    mine, its = passes(ours), passes(plain)
    table = "".join(f"| {module} | {mine[module]} | {its[module]} |\n" for module in sorted(mine | its))
    table += f"| all | {mine.total()} | {its.total()} |\n"
    print(table)
    assert table in pathlib.Path(DOCS).read_text(), table
