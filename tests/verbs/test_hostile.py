# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
Two users attack a device that forwards to rxe0 (tests/attacks/chaos.c): every verb, from several threads and processes, with memory
that goes, changes or does not answer. Then the adapter is removed under such calls.
"""
import collections
import contextlib
import os
import resource
import subprocess

import pytest

import test_verbs as verbs
from conftest import cuse
from test_unplug import plug_in, published
from test_verbs import fixture_own  # noqa: F401 pylint: disable=unused-import

LONG = bool(os.environ.get("UVERBSD_LONG"))
SECONDS = int(os.environ.get("UVERBSD_CHAOS", 120 if LONG else 1))
SEED = int(os.environ.get("UVERBSD_SEED", 1))
USERS = 1001, 1002
CASES = [("borrow", "yes"), *([("borrow", "no"), ("bounce", "yes"), ("bounce", "no")] if LONG else [])]


@pytest.fixture(autouse=True)
def fixture_hostile_memory():
    """FUSE for everybody, as on Debian; and a client that holds the lock of its memory locks all of it first (slow.c)."""
    os.chmod("/dev/fuse", 0o666)
    before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    yield
    resource.setrlimit(resource.RLIMIT_MEMLOCK, before)


class Chaos:
    """One chaos of each user."""

    def __init__(self, node, tmp_path, seconds):
        self.said = [tmp_path / str(user) for user in USERS]
        env = {**os.environ, "UVERBS_NODE": node}
        command = [cuse.BUILD / "tests" / "attacks" / "attack-chaos", str(seconds)]
        self.processes = []
        for user, path in zip(USERS, self.said):
            with open(path, "wb") as out:
                self.processes.append(subprocess.Popen([*command, str(SEED + user)], env=env, stdout=out, stderr=out,
                                                       user=user, group=user, extra_groups=[]))

    def runs(self):
        return all(p.poll() is None for p in self.processes)

    def end(self):
        """Its processes must end by themselves, whatever they wait for: nobody kills them."""
        status = [p.wait(cuse.STUCK) for p in self.processes]
        said = [path.read_text() for path in self.said]
        assert status == [0, 0] and all(text.endswith(" rounds\n") and text.count("\n") == 1 for text in said), said


def descriptors(daemon):
    """What broker and engine process have open. Children of the broker are kept for later questions, and each has a socket."""
    links = []
    for pid in {daemon.process.pid, daemon.serving}:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return collections.Counter(link.split(":")[0] if link.startswith("pipe:") else link for link in links
                               if not link.startswith("socket:") and link != "anon_inode:[pidfd]")


def wait_for_descriptors(daemon, before):
    """Those of the processes that clients had are closed."""
    try:
        cuse.wait_for("as many descriptors as before", lambda: not descriptors(daemon) - before)
    except AssertionError as e:
        raise AssertionError(f"{e}: {descriptors(daemon) - before}") from None


def clients_have_objects(own):
    there = verbs.resources()
    return all(there[kind] > own[kind] for kind in ("pd", "cq", "qp", "srq", "mr"))


def clients_have_nothing(daemon, own):
    daemon.wait_idle()
    # The daemon has a context of its own on the adapter, for queries.
    cuse.wait_for("an adapter without clients' objects", lambda: {**verbs.resources(), "ctx": 0} == {**own, "ctx": 0})


@pytest.mark.parametrize("memory, separate", CASES)
def test_chaos_leaves_nothing_and_outlives_no_adapter(own, tmp_path, memory, separate):
    d = cuse.Daemon(tmp_path, "--backend", "verbs", "--hca", verbs.ADAPTER, "--memory", memory, "--separate", separate)
    chaos = None
    try:
        engine, before = d.serving, descriptors(d)
        Chaos(d.nodes[0], tmp_path, SECONDS).end()
        clients_have_nothing(d, own)
        wait_for_descriptors(d, before)
        chaos = Chaos(d.nodes[0], tmp_path, 3600)
        cuse.wait_for("objects of all kinds on the adapter",
                      lambda: not chaos.runs() or clients_have_objects(own))
        assert chaos.runs(), [path.read_text() for path in chaos.said]
        # It ends when no process has a context of the adapter.
        removal = subprocess.Popen(["rdma", "link", "delete", verbs.ADAPTER])  # pylint: disable=consider-using-with
        cuse.wait_for("the removal of the device", lambda: not published())
        for process in chaos.processes:
            process.terminate()
        chaos.end()
        assert removal.wait(cuse.STUCK) == 0
        d.wait_idle()
        plug_in()
        assert d.serving == engine, "the engine process has crashed"
        wait_for_descriptors(d, before)
    finally:
        for process in chaos.processes if chaos else ():
            process.kill()
        status = d.stop()
    assert status == 0, d.log.read_text()
    assert verbs.resources() == own
