# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""scripts/rooms on this source tree, and on copies of it that contain one violation of the table each."""
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def rooms(root):
    done = subprocess.run([ROOT / "scripts/rooms", root], stdout=subprocess.PIPE, text=True, timeout=300)
    return done.returncode, done.stdout


@pytest.fixture
def copy(tmp_path):
    for folder in ("docs", "include", "src", "tools"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "CONTRIBUTING.md", tmp_path)
    for folder in (ROOT / "tests").iterdir():
        if folder.is_dir():
            (tmp_path / "tests" / folder.name).mkdir(parents=True)
    return tmp_path


def plant(root, file, line):
    path = root / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(line + "\n" + (path.read_text() if path.exists() else ""))


def test_this_tree_follows_its_table():
    status, text = rooms(ROOT)
    assert status == 0, text


@pytest.mark.parametrize("file,line,says", [
    ("src/core/file.c", '#include "objects/objects.h"', "src/core (level 17) may not use src/objects (level 19)"),
    ("src/options/rows.c", '#include "cuse/cuse.h"', "src/options (level 20) may not use src/cuse (level 20)"),
    ("src/objects/pd.c", '#include "core/handles.h"', "src/core/handles.h, which is internal to src/core"),
    ("src/cuse_dev.c", '#include "broker/node.h"', "src/broker/node.h, which is internal to src/broker"),
    ("include/uverbsd/config.h", '#include "util/util.h"', "may not use src/util"),
    ("src/cellar/wine.c", "int red;", "src/cellar: the table has no such room"),
    ("src/loose.c", "int end;", "src/loose.c: belongs to no room"),
    ("src/pin/umem.c", '#include "gone.h"', "includes gone.h, which is not in the tree"),
])
def test_what_the_table_forbids_fails(copy, file, line, says):
    plant(copy, file, line)
    status, text = rooms(copy)
    assert status == 1 and says in text, text


def test_a_room_of_the_table_that_is_not_in_the_tree_fails(copy):
    shutil.rmtree(copy / "src/control")
    status, text = rooms(copy)
    assert status == 1 and "src/control: is in the table, but not in the tree" in text, text


def test_a_folder_of_tests_that_is_not_in_its_table_fails(copy):
    (copy / "tests/cellar").mkdir()
    (copy / "tests/pin").rmdir()
    status, text = rooms(copy)
    assert status == 1 and "tests/cellar: the table of tests has no such folder" in text, text
    assert "tests/pin: is in the table, but not in the tree" in text, text


def test_a_room_without_tests_fails(copy):
    table = (copy / "CONTRIBUTING.md").read_text()
    assert table.count("`src/grant`") == 1
    (copy / "CONTRIBUTING.md").write_text(table.replace("`src/grant`", "`src/gone`"))
    status, text = rooms(copy)
    assert status == 1 and "src/grant: the table of tests has no folder for it" in text, text
    assert "src/gone: is in the table of tests, and is no room" in text, text
