# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
Two processes: the engine process in its sandbox has the adapter, rxe0. Some tests of one process are made here again; with --long
those modules make all of theirs with two.
"""
import pathlib
import stat
import subprocess

import pytest

import test_borrow as borrow
import test_verbs as verbs
from conftest import cuse
# pylint: disable=unused-import
from test_verbs import (fixture_nothing_is_left, fixture_own,  # noqa: F401
                        test_killed_client_leaves_nothing_on_the_adapter, test_what_a_device_publishes_follows_its_adapter)

NODE = pathlib.Path("/dev/infiniband/uverbs0")
OPTIONS = ["--separate", "yes", "--backend", "verbs", "--hca", verbs.ADAPTER]


@pytest.fixture(name="daemon", scope="module")
def fixture_daemon(own, tmp_path_factory):
    d = cuse.Daemon(tmp_path_factory.mktemp("separate"), *OPTIONS)
    yield d
    assert d.stop() == 0, d.log.read_text()
    assert verbs.resources() == own


def test_engine_process_has_the_adapter_and_no_rights(daemon, engine_user):
    status, root = cuse.status_of(daemon.serving), pathlib.Path(f"/proc/{daemon.serving}/root")
    assert status["Uid"].split() == [str(engine_user)] * 4 and status["CapEff"] == status["CapBnd"] == "0" * 16
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    tree = sorted(str(p.relative_to(root)) for top in ("*", "*/*", "*/*/*") for p in root.glob(top) if "sys/devices/" not in str(p))
    classes = ["sys/class/infiniband", "sys/class/infiniband_verbs"]
    assert tree == ["dev", "dev/infiniband", "dev/infiniband/uverbs0", "sys", "sys/class", *classes, "sys/devices"]
    node = (root / "dev/infiniband/uverbs0").stat()
    assert (node.st_rdev, node.st_uid, stat.S_IMODE(node.st_mode)) == (NODE.stat().st_rdev, engine_user, 0o600)
    assert "Max locked memory         unlimited" in pathlib.Path(f"/proc/{daemon.serving}/limits").read_text()


@pytest.mark.parametrize("program, size", borrow.PERFTESTS)
def test_perftest_reaches_the_memory_of_its_peer(daemon, program, size):
    borrow.test_perftest_reaches_the_memory_of_its_peer(daemon, verbs.SIDES[0], program, size)


def test_clients_killed_while_they_register_leave_nothing(daemon, own):
    borrow.kill_clients_that_register(daemon, own, 3)


def test_client_killed_at_a_random_moment_leaves_nothing_although_its_descriptor_was_kept(daemon, own):
    borrow.kill_clients_whose_descriptor_is_kept(daemon, own, 1)


def test_node_of_the_adapter_can_be_roots_alone(daemon):
    NODE.chmod(0o600)
    try:
        verbs.pingpong("ours", "ours", "ibv_rc_pingpong")
    finally:
        NODE.chmod(0o666)


def device_add(*words):
    done = subprocess.run([cuse.BUILD / "tools" / "uverbsctl", "device", "add", *words], timeout=verbs.STUCK, check=False, **verbs.TEXT)
    return done.stdout if done.returncode else ""


def test_devices_that_are_added_have_the_adapters_of_the_options(daemon):
    node = pathlib.Path(f"/proc/{daemon.serving}/root/dev/infiniband/uverbs0")
    inode = node.stat().st_ino
    assert not device_add("--backend", "verbs", "--hca", verbs.ADAPTER, "--memory", "borrow", "--name", "hfi1_5")
    subprocess.run([cuse.BUILD / "tools" / "uverbsctl", "device", "remove", "hfi1_5"], check=True)
    # The other device would take another node for the removal of the adapter.
    assert node.stat().st_ino == inode and not daemon.text_of("is gone")
    text = device_add("--backend", "verbs", "--hca", "mlx5_7", "--name", "hfi1_6")
    assert "the adapter must be that of a configured device" in text
