# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Quotas and allow-lists before an adapter: with the default --memory no client gets at the adapter itself, which knows no rule."""
import os
import subprocess
import sys
import time

import pytest

import test_verbs as verbs
from conftest import cuse
from test_verbs import fixture_own  # noqa: F401 pylint: disable=unused-import

RULES = [("--quota", "mrs:1"), ("--allow", "access:LOCAL_WRITE")]


@pytest.fixture(name="daemon", params=RULES, ids=["quota", "allow"])
def fixture_daemon(own, tmp_path, request):
    d = cuse.Daemon(tmp_path, "--backend", "verbs", "--hca", verbs.ADAPTER, *request.param)
    yield d
    assert d.stop() == 0, d.log.read_text()
    assert verbs.resources() == own


def register(access):
    command = [*verbs.OURS, sys.executable, verbs.HERE / "register.py", access]
    return subprocess.run(command, timeout=verbs.STUCK, check=False, **verbs.TEXT, **verbs.USER).stdout


def test_rule_of_a_device_keeps_its_clients_from_the_adapter(daemon):
    assert "hfi1_0: --memory=bounce: data is copied, and peers cannot access clients' memory: it has an allow-list or a quota" \
        in daemon.log.read_text()
    assert verbs.thief("race") == 0
    assert "registered" in register("local")
    assert "registered" not in register("remote")
    verbs.pingpong("ours", "plain", "ibv_rc_pingpong")


def test_rule_is_enforced_and_logged_before_the_adapter(own, tmp_path):
    d = cuse.Daemon(tmp_path, "--backend", "verbs", "--hca", verbs.ADAPTER, "--quota", "user:nobody:mrs:0")
    try:
        assert "errno 11" in register("local"), "not EAGAIN"
        assert "is refused by the quota `user:65534:mrs:0`" in d.log.read_text()
    finally:
        assert d.stop() == 0, d.log.read_text()
    assert verbs.resources() == own


def test_registration_waits_for_its_turn_while_the_only_loan_waits_for_memory(own, tmp_path):
    os.chmod("/dev/fuse", 0o666)
    d = cuse.Daemon(tmp_path, "--backend", "verbs", "--hca", verbs.ADAPTER, "--limit-loans", "1")
    try:
        done = subprocess.run([cuse.BUILD / "tests" / "verbs" / "loans", "page"], input="w", timeout=verbs.STUCK, check=True,
                              env=dict(os.environ, UVERBS_NODE=d.nodes[0]), **verbs.TEXT, **verbs.USER)
        assert all(line in done.stdout for line in ("remote 0\n", "local 0\n", "registered, as the file")), done.stdout
    finally:
        assert d.stop() == 0, d.log.read_text()
    assert verbs.resources() == own


def test_registrations_wait_for_their_turn(own, tmp_path):
    """Four programs register all the time, and one thread may be borrowed at once."""
    d = cuse.Daemon(tmp_path, "--backend", "verbs", "--hca", verbs.ADAPTER, "--limit-loans", "1")
    try:
        command = [*verbs.OURS, sys.executable, verbs.HERE / "register_often.py", verbs.DEVICE]
        programs = [subprocess.Popen(command, stdin=subprocess.PIPE, **verbs.TEXT, **verbs.USER) for _ in range(4)]
        assert [p.stdout.readline() for p in programs] == ["begun\n"] * 4
        time.sleep(2)
        ends = [(p.communicate(timeout=verbs.STUCK)[0], p.returncode) for p in programs]
        assert ends == [("", 0)] * 4 and "can be borrowed" not in d.log.read_text()
    finally:
        assert d.stop() == 0, d.log.read_text()
