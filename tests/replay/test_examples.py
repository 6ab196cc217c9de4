# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The examples of docs/replay.md for the kernel's own device."""
import os
import re
import subprocess

from conftest import HERE, record

TEXT = (HERE.parents[1] / "docs/replay.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```$", TEXT, re.M | re.S)


def shown(block, folder):
    """Runs the commands of a block in the folder. Returns them with what they print, as the block has it."""
    env = {**os.environ, "PATH": f"{os.path.dirname(record.UVERBSCTL)}:{os.environ['PATH']}"}
    lines = []
    for line in block.splitlines():
        if line.startswith(("$ ", "# ")):
            done = subprocess.run(["sh", "-c", line[2:]], stdout=subprocess.PIPE, text=True, check=False, env=env, cwd=folder,
                                  timeout=10 * record.STUCK)
            lines += [line, *done.stdout.splitlines()]
    return lines


def test_a_program_whose_results_are_ours_replays_on_the_kernels_device_as_the_documentation_says(tmp_path):
    recorded = next(b for b in BLOCKS if b.startswith("$ cat calls.prog")).split("$ cat calls.prog\n")[2].split("$ ")[0]
    (tmp_path / "calls.prog").write_text(recorded, encoding="utf-8")
    block, = (b for b in BLOCKS if "replay --device /dev/infiniband/uverbs0" in b)
    assert shown(block, tmp_path) == block.splitlines()


def test_a_trace_replays_on_the_kernels_device_as_the_documentation_says(tmp_path):
    block, = (b for b in BLOCKS if "replay --device rxe0" in b)
    assert shown(block, tmp_path) == block.splitlines()
