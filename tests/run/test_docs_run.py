# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Pages without a test of their own: each block that is marked `sh` works as it is written, and prints the lines of the next `text`."""
import os
import pathlib
import re
import subprocess

import pytest

from conftest import BIN, BUILD, SANITIZED, STUCK

ROOT = pathlib.Path(__file__).parents[2]
PAGES = ("docs/run.md", "docs/report.md", "docs/reasons.md", "docs/rdma-cm.md", "plugins/hello/README.md", "plugins/counter/README.md",
         "plugins/filter-example/README.md", "plugins/persona-example/README.md")

pytestmark = pytest.mark.skipif(SANITIZED, reason="the programs of the pages make no difference to a sanitizer")


def plain(text):
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_print_what_it_says(page, tmp_path):
    blocks = re.findall(r"(?m)^```sh\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", (ROOT / page).read_text(encoding="utf-8"), re.S)
    assert blocks
    (tmp_path / "build").symlink_to(BUILD)
    (tmp_path / "contrib").symlink_to(ROOT / "contrib")
    for commands, want in blocks:
        done = subprocess.run(["sh", "-c", commands], cwd=tmp_path, env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=STUCK, check=False)
        printed = plain(done.stdout)
        assert want or done.returncode == 0, done.stdout
        for line in plain(want):
            assert any(line in p for p in printed), f"{commands}\nprints no line with `{line}`:\n{done.stdout}"
