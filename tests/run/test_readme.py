# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""README.md: its commands print what docs/terminal.svg shows, and it stays short."""
import pathlib
import re
import subprocess

import pytest

from conftest import BUILD, SANITIZED

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.skipif(SANITIZED, reason="the programs of the page make no difference to a sanitizer")
def test_the_drawing_shows_what_the_commands_of_the_page_print():
    done = subprocess.run([ROOT / "scripts" / "record", "--check", BUILD], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stdout


def test_the_page_is_two_screens_and_has_both_scripts_that_set_up():
    assert len(README.splitlines()) <= 100
    assert re.search(r"(?m)^scripts/demo +#", README) and re.search(r"(?m)^scripts/test +#", README)
