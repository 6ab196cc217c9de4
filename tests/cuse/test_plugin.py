# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Plug-ins of the daemon: with one process while it runs, with --separate yes from its options only."""
import os
import re
import shutil
import subprocess
import tempfile

import pytest

from conftest import BUILD, STUCK, environment, wait_for

UVERBSCTL = str(BUILD / "tools" / "uverbsctl")


@pytest.fixture
def toy():
    """A folder that only root can change; /tmp is none."""
    with tempfile.TemporaryDirectory(prefix="uverbsd-tests-", dir="/run") as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "toy.so")
        shutil.copy(BUILD / "tests/run/toy.so", path)
        os.chmod(path, 0o755)
        yield path


def ctl(d, command, *words):
    return subprocess.run([UVERBSCTL, command, "--control", str(d.control), *words], capture_output=True, text=True, timeout=STUCK)


def ask(d, method="ASK", *words):
    return subprocess.run([UVERBSCTL, "call", "--control", str(d.control), "TOY", method, *words], capture_output=True, text=True,
                          env=environment(), timeout=STUCK)


def test_one_process_loads_and_unloads_while_it_runs(start, toy):
    d = start()
    assert ctl(d, "plugin", "load", toy, "answer=12").stdout == "toy 1.0 generation 1\n"
    assert ask(d, "ASK", "--answer", "8").stdout == "TOY ASK answer=12\n"
    assert ctl(d, "plugin", "reload", "toy", "answer=13").stdout == "toy 1.0 generation 2\n"
    assert ask(d, "ASK", "--answer", "8").stdout == "TOY ASK answer=13\n"
    assert ctl(d, "plugin", "unload", "toy", "--wait").returncode == 0
    assert "no object" in ask(d).stderr


@pytest.mark.parametrize("separate", ["no", "yes"])
def test_a_plugin_of_the_options_brings_a_backend_and_a_persona(start, toy, separate):
    d = start("--separate", separate, "--plugin", toy, "answer=7", "--backend", "toyback", "--persona", "toyface")
    device = d.status()["devices"][0]
    assert (device["device"], device["backend"], device["persona"]) == ("toy_0", "toyback", "toyface")
    assert ask(d, "ASK", "--answer", "8").stdout == "TOY ASK answer=7\n"


def test_a_running_engine_process_refuses_to_load_and_names_the_remedy(start, toy):
    d = start("--separate", "yes", "--plugin", toy)
    for words in (["load", toy], ["reload", "toy"]):
        r = ctl(d, "plugin", *words)
        assert r.returncode == 1 and "add `--plugin FILE`" in r.stderr, r
    assert "toy " in ctl(d, "plugin", "list").stdout
    assert ctl(d, "plugin", "unload", "toy").returncode == 0
    assert "toy " not in ctl(d, "plugin", "list").stdout


@pytest.mark.parametrize("separate", ["no", "yes"])
def test_a_crash_names_plugin_method_and_client(start, toy, separate):
    d = start("--separate", separate, "--plugin", toy)
    ask(d, "CRASH")
    wait_for("the line", lambda: re.search(r"uverbsd: error: plug-in toy crashed with SIGSEGV in UVERBS_METHOD_TOY_CRASH, "
                                           r"called by thread \d+\n", d.log.read_text()))
    if separate == "yes":
        wait_for("another engine process", lambda: d.starts() == 2)
        assert ask(d, "ASK", "--answer", "8").stdout == "TOY ASK answer=1\n"
