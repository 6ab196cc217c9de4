# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks on a thread that the daemon has borrowed, by the client's other threads."""
import os
import re

import pytest

from conftest import attack, cuse


@pytest.mark.parametrize("how", ["jump", "i386"])
def test_borrowed_thread_executes_what_was_ordered_or_nothing(start, how):
    d = start()
    said = attack("flip", how, 300)
    assert said.startswith("refused"), said
    grants = d.status()["grants"]
    assert grants["fell_back"] > 0, f"it was never tried: {said} {grants}"
    d.wait_idle()


def test_borrowed_thread_that_does_not_come_back_is_killed(start):
    d = start()
    assert attack("flip", "spin", 3000) == "killed\n"
    assert d.status()["grants"]["killed"] == 1
    cuse.run_client("channels", "2")
    d.wait_idle()


def test_what_a_client_grabs_of_a_grant_keeps_nothing_open(start):
    d = start()
    before = len(os.listdir(f"/proc/{d.serving}/fd"))
    said = attack("grab", 200)
    assert not said.startswith("0 grabbed"), f"it was never tried: {said}"
    d.wait_idle()
    # The engine process keeps a few sockets to the broker, for later requests.
    kept = 16 if cuse.SEPARATE else 0
    cuse.wait_for("its descriptors", lambda: len(os.listdir(f"/proc/{d.serving}/fd")) <= before + kept)


def test_file_behind_the_socket_of_a_grant_leads_nowhere(start):
    """A client with a network namespace of its own may get a descriptor of it. Nor does what it keeps take the files of others."""
    d = start("--separate", "yes")
    said = attack("unixfile", 20)
    files, ways, room = map(int, re.fullmatch(r"(\d+) files, (\d+) ways out of them, room for (\d+)\n", said).groups())
    assert files, f"it was never tried: {said}"
    assert not ways and not room, said
    d.wait_idle()
