# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""--memory=borrow: the client's own thread registers its memory with the adapter, so that peers reach it. rxe0 is the adapter."""
import errno
import json
import re
import subprocess
import sys

import pytest

import test_verbs as verbs
from conftest import cuse
from test_verbs import fixture_nothing_is_left, fixture_own  # noqa: F401 pylint: disable=unused-import

GID = verbs.GID


@pytest.fixture(name="daemon", scope="module")
def fixture_daemon(own, tmp_path_factory):
    d = cuse.Daemon(tmp_path_factory.mktemp("borrow"), "--backend", "verbs", "--hca", verbs.ADAPTER, "--memory", "borrow")
    yield d
    assert d.stop() == 0, d.log.read_text()
    assert verbs.resources() == own


@pytest.mark.parametrize("sides", verbs.SIDES, ids="-".join)
@pytest.mark.parametrize("program", ["ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong"])
def test_pingpong_with_checked_payload(daemon, sides, program):
    verbs.pingpong(*sides, program, *{"ibv_ud_pingpong": ["-s", "1024"], "ibv_srq_pingpong": ["-q", "2"]}.get(program, []))


@pytest.mark.parametrize("sides", verbs.SIDES, ids="-".join)
@pytest.mark.parametrize("program, size", [("ib_write_bw", 65536), ("ib_read_bw", 65536), ("ib_send_bw", 65536),
                                           ("ib_atomic_bw", 8)])
def test_perftest_reaches_the_memory_of_its_peer(daemon, sides, program, size):
    port = verbs.free_port()
    args = ["-x", GID, "-n", "20", "-t", "16", "-p", str(port), "-F", *([] if program == "ib_atomic_bw" else ["-s", str(size)])]
    server, client = sides
    text = verbs.pair(verbs.on(server, program, *args), [*verbs.on(client, program, *args), "127.0.0.1"], port)
    assert re.search(rf"^ *{size} +20 ", text, re.M), text


# "execute" replaces the program, so it is the last.
SCENES = ["write", "fork", "munmap", "mprotect", "refused", "memlock", "execute"]


def scenes(side):
    command = [*(verbs.OURS if side == "ours" else []), sys.executable, verbs.HERE / "memory.py",
               verbs.DEVICE if side == "ours" else verbs.ADAPTER, *SCENES]
    done = subprocess.run(command, timeout=verbs.STUCK, check=False, **verbs.TEXT, **verbs.USER)
    assert done.returncode == 0, done.stdout
    out = {}
    for line in done.stdout.splitlines():
        out.update(json.loads(line))
    return out


def test_registration_is_that_of_the_adapter_itself(daemon):
    ours, plain = scenes("ours"), scenes("plain")
    size = 64 << 10
    assert ours["write"] == dict(status=0, seen=True, pinned=size, left=0)
    assert ours["fork"] == dict(status=[0, 0], parent=True, child_keeps_its_own=True)
    assert ours["munmap"] == dict(status=0, new_memory_is_untouched=True, pinned=size)
    assert ours["mprotect"] == dict(status=0, seen=True)
    assert ours["refused"] == dict(readonly=errno.EFAULT, unmapped=errno.EFAULT, nothing=errno.EFAULT)
    assert ours["memlock"] == dict(above=errno.ENOMEM, below=True)
    assert ours["after_exec"] == dict(pinned=0)
    assert ours == plain
