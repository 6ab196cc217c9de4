# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks on a thread that the daemon has borrowed, by the client's other threads."""
import contextlib
import os
import re
import subprocess

import pytest

from conftest import Attack, USER, attack, cuse

SHARE = 8  # UVD_WAY_SHARE
TASKS = 60
TRIES = 300 if os.environ.get("UVERBSD_LONG") else 100


@pytest.mark.parametrize("how", ["jump", "i386"])
def test_borrowed_thread_executes_what_was_ordered_or_nothing(start, how):
    d = start()
    said = attack("flip", how, TRIES)
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


@contextlib.contextmanager
def late_duplicates(tmp_path, pid):
    """Delays by a second each duplication of a client's socket by this process and its new children."""
    strace = subprocess.Popen(["strace", "-f", "-o", tmp_path / "strace.log", "-e", "inject=pidfd_getfd:delay_enter=1000000",
                               "-p", str(pid)], stderr=subprocess.PIPE, text=True)
    assert "attached" in strace.stderr.readline()
    yield
    # SIGTERM would make it wait for what it traces.
    strace.kill()
    strace.communicate()


@pytest.fixture
def few_tasks(tmp_path):
    """A cgroup that has room for few tasks, as a service's TasksMax= makes it."""
    mount = tmp_path / "cgroup"
    mount.mkdir()
    subprocess.run(["mount", "-t", "cgroup2", "none", mount], check=True)
    (mount / "cgroup.subtree_control").write_text("+pids")
    group = mount / tmp_path.name
    group.mkdir()
    (group / "pids.max").write_text(str(TASKS))
    yield group
    subprocess.run(["umount", "--lazy", mount], check=True)


@pytest.mark.parametrize("separate", ["no", "yes"])
def test_user_has_few_senders_that_wait_for_its_files_and_pays_for_them_until_they_end(start, tmp_path, few_tasks, separate):
    into = f'echo $$ >{few_tasks}/cgroup.procs && exec "$@"'
    d = start("--separate", separate, *cuse.UNMAPPED, program=("sh", "-c", into, "sh", cuse.BUILD / "src" / "uverbsd"))
    held = Attack("places", says="ready")
    with late_duplicates(tmp_path, d.process.pid):
        held.tell()
        held.hear("stuck")
    cuse.wait_for("the charge", lambda: d.held()[USER]["loans"] == SHARE and not d.status()["grants"]["under_way"])
    cuse.run_client("channels", "2")
    # Another program of the same user waits for its turn, and then has no event file.
    held.tell()
    held.hear("async file -2")
    cuse.wait_for("the end of its loan", lambda: d.held()[USER]["loans"] == SHARE)
    assert held.end() == f"{SHARE} stuck\n"
    assert (few_tasks / "pids.events").read_text() == "max 0\n"
    d.wait_idle()
    cuse.run_client("channels", "1", user=USER)
