# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Clients and servers that are killed at any moment leave nothing behind, and their peers go on."""
import pathlib
import subprocess

import pytest

from places import LONG, STUCK, place, users


@pytest.mark.parametrize("user", users())
def test_killed_clients_leave_no_identifier_and_no_port(user, tmp_path_factory):
    folder = pathlib.Path(tmp_path_factory.mktemp("kills"))
    with place(user, folder) as (prefix, args):
        done = subprocess.run([*prefix, "/usr/bin/python3", "-S", folder / "kills.py", args[0], str(1000 if LONG else 150)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=STUCK, check=False, cwd="/")
    assert done.returncode == 0 and "nothing is left" in done.stdout, done.stdout
    assert " is still charged for " not in done.stdout
