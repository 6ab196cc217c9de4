# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""docs/tutorial-new-verb.md: every command works as it is written, and prints what the page says."""
import re
import subprocess

from conftest import ROOT, STUCK

PAGE = ROOT / "docs/tutorial-new-verb.md"


def blocks():
    """The commands of the page, each with the lines that it must print in this order."""
    found = re.findall(r"(?m)^```sh\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", PAGE.read_text(), re.S)
    assert len(found) > 8
    return found


def plain(text):
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]


def test_page_has_no_command_that_this_test_does_not_see():
    assert PAGE.read_text().count("```sh\n") == len(blocks())
    assert PAGE.read_text().count("```text\n") == sum(bool(text) for _, text in blocks())


def test_every_command_of_the_tutorial_works(installed, scratch):
    script = "".join(f"{commands}\necho '@@ {i}'\n" for i, (commands, _) in enumerate(blocks()))
    env = {k: v for k, v in installed.env.items() if k not in ("PKG_CONFIG_PATH", "PYTHONPATH")}
    done = subprocess.run(["bash", "-eu", "-c", script], cwd=scratch, env={**env, "PREFIX": str(installed.prefix)}, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=STUCK, check=False)
    assert done.returncode == 0, done.stdout
    outputs = re.split(r"(?m)^@@ \d+$", done.stdout)
    for (commands, want), output in zip(blocks(), outputs):
        lines = iter(plain(output))
        for line in plain(want):
            assert any(line in printed for printed in lines), f"{commands}\nprints no line with `{line}`:\n{output}"
