# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""docs/testing-*.md: every command works as it is written, and prints what the pages say."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import perftest
from conftest import BIN, SANITIZED, STUCK

ROOT = pathlib.Path(__file__).parents[2]
PAGES = "testing-your-program", "testing-calls", "testing-links"
PAGE = "\n".join((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in PAGES)
BLOCKS = re.findall(r"(?m)^```sh\n(.*?)^```\n\n^```text\n(.*?)^```$", PAGE, re.S)
JOBS = re.findall(r"(?m)^```yaml\n(.*?)^```$", PAGE, re.S)

pytestmark = pytest.mark.skipif(SANITIZED, reason="the programs of the page make no difference to a sanitizer")


def plain(text):
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]


def sh(script, folder, **env):
    path = f"{BIN}:{os.environ['PATH']}"
    return subprocess.run(["sh", "-c", script], cwd=folder, env={**os.environ, "PATH": path, **env},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=STUCK,
                          check=False)


def test_page_has_no_command_that_these_tests_do_not_see():
    assert PAGE.count("```sh\n") == PAGE.count("```text\n") == len(BLOCKS) > 6 and len(JOBS) == 2


@pytest.mark.parametrize("block", range(len(BLOCKS)))
def test_commands_of_the_page_print_what_it_says(block, tmp_path):
    commands, want = BLOCKS[block]
    (tmp_path / "contrib").mkdir()
    shutil.copy(ROOT / "contrib/datagrams.py", tmp_path / "contrib")
    output = perftest.undisturbed(lambda: sh(commands, tmp_path).stdout, lambda out: "" if "Failed status" in out else out)
    for line in plain(want):
        assert any(line in printed for printed in plain(output)), f"{commands}\nprints no line with `{line}`:\n{output}"


@pytest.mark.parametrize("job, words", ((0, "${{ matrix.filter }}"), (1, "$FILTER")))
def test_jobs_of_the_page_run_the_tests_of_a_project_with_their_filters(job, words, tmp_path):
    text = JOBS[job]
    commands = [c for c in re.findall(r"- (?:run: )?(meson .*)", text)]
    assert len(commands) == 2 and words in commands[1], commands
    (tmp_path / "meson.build").write_text("project('example')\ntest('devinfo', find_program('ibv_devinfo'))\n", encoding="ascii")
    for number, value in enumerate([*re.findall(r'"([a-z]+:[^"]+)"', text), "error:alloc_context=EMFILE"]):
        script = commands[1].replace(words, "$FILTER") if number else " && ".join(commands).replace(words, "$FILTER")
        done = sh(script, tmp_path, FILTER=value)
        assert re.search(r"Ok: +\d|Fail: +1", done.stdout) and "is wrong" not in done.stdout, done.stdout
    assert done.returncode == 1 and re.search(r"Fail: +1", done.stdout), done.stdout
