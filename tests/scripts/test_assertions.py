# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""scripts/assertions on this source tree, and on small trees that have one fault each."""
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
C_TEST = "START_TEST(test_it)\n{\n\tint x = 0;\n\n%s}\nEND_TEST\n\nint main(void)\n{\n\ttcase_add_test(t, test_it);\n}\n"
SHARED = "static inline void expect_ok(int x)\n{\n\tck_assert_int_eq(x, 0);\n}\n#define EXPECT(x) expect_ok(x)\n"
# A macro, a shared function, and one of another file that only this file may call.
OTHER = "static void mine(void)\n{\n\tck_assert(1);\n}\n\nint shared_one(void)\n{\n\tck_assert(1);\n}\n"
GOOD_C = [
    "\tck_assert(x == 0);\n",
    "\texpect_ok(x);\n",
    "\tEXPECT(x);\n",
    "\tshared_one();\n",
    "\tcalls[x]();\n",
    '\tif (geteuid())\n\t\tSKIP("only root may");\n\texpect_ok(x);\n',
    "\texpect_ok(x);\n\tif (x)\n\t\treturn;\n",
    "\tif (x) {\n\t\texpect_ok(x);\n\t\treturn;\n\t}\n\texpect_ok(x);\n",
    "\tck_assert_msg(\n\t\tx, \"x\");\n\tif (x &&\n\t    !x)\n\t\treturn;\n",
    "\texpect_ok(x); /* return; */\n",
]
BAD_C = [
    ("\tx++;\n", 1, "asserts nothing"),
    ("\tmine();\n", 1, "asserts nothing"),
    ("\t/* ck_assert(x); */\n", 1, "asserts nothing"),
    ("\tputs(\"ck_assert(x)\");\n", 1, "asserts nothing"),
    ("\tif (x)\n\t\treturn;\n\tck_assert(x == 0);\n", 6, "returns early"),
    ("\texpect_ok(x);\n\tx++;\n\tif (x)\n\t\treturn;\n\texpect_ok(x);\n", 8, "returns early"),
    ("\texpect_ok(x);\n\tif (geteuid())\n\t\treturn; /* why */\n\texpect_ok(x);\n", 7, "returns early"),
    ("\texpect_ok(x);\n\n\tif (x)\n\t\treturn;\n", 8, "returns early"),
    ('\tif (x)\n\t\tSKIP("");\n\texpect_ok(x);\n', 6, "skips without a reason"),
]
GOOD_PYTHON = [
    "def test_it():\n    assert True\n",
    "def test_it(run):\n    run.client('x')\n",
    "def test_it():\n    with pytest.raises(OSError):\n        f()\n",
    "def test_it():\n    subprocess.run(['x'], check=True)\n",
    "@pytest.mark.skipif(f(), reason='no x')\ndef test_it():\n    assert f()\n",
    "def test_it():\n    if f():\n        pytest.skip('no x')\n    assert g()\n",
    "def test_it():\n    def inner():\n        return\n    assert inner() is None\n",
]
BAD_PYTHON = [
    ("def test_it():\n    f()\n", 1, "asserts nothing"),
    ("def test_it(client):\n    client\n", 1, "asserts nothing"),
    ("def test_it():\n    elsewhere()\n", 1, "asserts nothing"),
    ("def test_it():\n    subprocess.run(['x'], check=False)\n", 1, "asserts nothing"),
    ("def test_it():\n    assert f()\n    if g():\n        return\n    assert h()\n", 4, "returns early"),
    ("def test_it():\n    pytest.skip()\n    assert f()\n", 2, "skip without a reason"),
    ("@pytest.mark.skip\ndef test_it():\n    assert f()\n", 1, "skip without a reason"),
    ("@pytest.mark.skipif(f())\ndef test_it():\n    assert f()\n", 1, "skipif without a reason"),
    ("@pytest.mark.xfail(reason='')\ndef test_it():\n    assert f()\n", 1, "xfail without a reason"),
]


def assertions(root):
    done = subprocess.run([ROOT / "scripts/assertions", root], stdout=subprocess.PIPE, text=True, timeout=300)
    return done.returncode, done.stdout.splitlines()


@pytest.fixture
def tree(tmp_path):
    room = tmp_path / "tests/room"
    room.mkdir(parents=True)
    (room / "shared.h").write_text(SHARED)
    (room / "other.c").write_text(OTHER)
    (room / "conftest.py").write_text("class Run:\n    def client(self, what):\n        assert what\n")
    (room / "test_other.py").write_text("def elsewhere():\n    assert True\n\n\ndef test_other():\n    elsewhere()\n")
    return tmp_path


def test_this_tree_has_no_fault():
    status, lines = assertions(ROOT)
    assert status == 0, "\n".join(lines)
    assert int(lines[-1].split()[0]) > 2000


@pytest.mark.parametrize("body", GOOD_C)
def test_c_test_that_asserts_passes(tree, body):
    table = "static void (*const calls[])(void) = {\n\tshared_one,\n};\n\n"
    (tree / "tests/room/test_it.c").write_text(table + C_TEST % body)
    assert assertions(tree) == (0, ["2 tests, 0 faults"])


@pytest.mark.parametrize("body, line, says", BAD_C)
def test_c_test_that_can_prove_nothing_is_reported(tree, body, line, says):
    (tree / "tests/room/test_it.c").write_text(C_TEST % body)
    status, lines = assertions(tree)
    assert status == 1 and lines[0].startswith(f"tests/room/test_it.c:{line}: test_it: {says}"), lines
    assert lines[1:] == ["2 tests, 1 faults"]


def test_c_test_of_no_test_case_is_reported(tree):
    (tree / "tests/room/test_it.c").write_text(C_TEST.replace("tcase_add_test(t, test_it)", "0") % "\texpect_ok(x);\n")
    assert assertions(tree) == (1, ["tests/room/test_it.c:1: test_it: is in no test case", "2 tests, 1 faults"])


@pytest.mark.parametrize("text", GOOD_PYTHON)
def test_python_test_that_asserts_passes(tree, text):
    (tree / "tests/room/test_it.py").write_text(text)
    assert assertions(tree) == (0, ["2 tests, 0 faults"])


@pytest.mark.parametrize("text, line, says", BAD_PYTHON)
def test_python_test_that_can_prove_nothing_is_reported(tree, text, line, says):
    (tree / "tests/room/test_it.py").write_text(text)
    status, lines = assertions(tree)
    assert status == 1 and lines[0].startswith(f"tests/room/test_it.py:{line}: test_it: {says}"), lines
    assert lines[1:] == ["2 tests, 1 faults"]


def test_module_that_another_test_imports_lends_its_functions(tree):
    (tree / "tests/room/test_it.py").write_text("import test_other\n\n\ndef test_it():\n    test_other.elsewhere()\n")
    assert assertions(tree) == (0, ["2 tests, 0 faults"])
