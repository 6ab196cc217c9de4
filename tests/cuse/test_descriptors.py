# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A daemon whose descriptor table is full, and paths that another user could change."""
import os
import resource
import subprocess
import time

import pytest

import conftest
from conftest import BUILD, NOBODY


def close_table(pid):
    """Sets the limit so that the process can open no further descriptor. Returns the previous limits."""
    used = {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}
    free = next(n for n in range(len(used) + 1) if n not in used)
    return resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]))


def seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("processes", [1, 2])
def test_full_table_of_the_daemon_is_the_fallback_and_nothing_spins(start, processes):
    d = start("--separate", "yes" if processes == 2 else "no")
    client = subprocess.Popen([conftest.CLIENT, "full-daemon", str(processes)], env=conftest.environment(), user=NOBODY, group=NOBODY,
                              extra_groups=[], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert client.stdout.readline() == "ready\n"
    before = close_table(d.serving)
    client.stdin.write("\n")
    client.stdin.flush()
    assert client.stdout.readline() == "ready\n"
    asker = subprocess.Popen([BUILD / "tools" / "uverbsctl", "status"], stdout=subprocess.PIPE)
    time.sleep(1)
    used = seconds(d.serving)
    time.sleep(2)
    assert seconds(d.serving) - used < 0.5, "it spins"
    resource.prlimit(d.serving, resource.RLIMIT_NOFILE, before)
    assert client.communicate("\n", timeout=conftest.STUCK)[0] == "" and client.returncode == 0
    assert (conftest.NAMES[0] if processes == 2 else "hfi1_0").encode() in asker.communicate(timeout=conftest.STUCK)[0]
    d.wait_idle()


@pytest.mark.parametrize("option, name", [("--control", "control"), ("--sysfs", "sysfs")])
def test_folder_of_another_user_is_refused(tmp_path, option, name):
    folder = tmp_path / "his"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    done = subprocess.run([BUILD / "src" / "uverbsd", option, folder / name], stderr=subprocess.PIPE, text=True,
                          timeout=conftest.STUCK)
    assert done.returncode == 1 and f"{option} {folder / name}: refused" in done.stderr, done.stderr
    assert not list(folder.iterdir())
