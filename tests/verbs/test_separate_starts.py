# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two processes with the adapter, rxe0: tests that start daemons of their own. test_separate.py has those that share one."""
import os

import pytest

import test_verbs as verbs
from conftest import cuse
from test_separate import OPTIONS, device_add
from test_sizes import fixture_memlock, run_at_all_sizes  # noqa: F401 pylint: disable=unused-import
from test_verbs import fixture_own  # noqa: F401 pylint: disable=unused-import


def test_perftest_runs_at_all_sizes(own, tmp_path):
    d = cuse.Daemon(tmp_path, *OPTIONS)
    run_at_all_sizes("ib_read_bw", *verbs.SIDES[0])
    assert d.stop() == 0, d.log.read_text()
    assert verbs.resources() == own


def test_copied_data(own, tmp_path):
    d = cuse.Daemon(tmp_path, *OPTIONS, "--memory", "bounce")
    verbs.pingpong("ours", "plain", "ibv_rc_pingpong")
    assert d.stop() == 0, d.log.read_text()
    assert verbs.resources() == own


@pytest.mark.parametrize("hca, why", [("mlx5_7", "there is no such adapter"), (verbs.DEVICE, "there is no such adapter")])
def test_adapter_that_does_not_exist_is_refused(hca, why):
    text = verbs.refused("--separate", "yes", "--backend", "verbs", "--hca", hca)
    assert f"{verbs.DEVICE}: --hca {hca}: {why}" in text


def test_backend_without_configured_adapter_is_refused(tmp_path):
    d = cuse.Daemon(tmp_path, "--separate", "yes", "--backend", "soft")
    assert "the adapter must be that of a configured device" in device_add(
        "--backend", "verbs", "--hca", verbs.ADAPTER, "--name", "hfi1_6")
    assert not os.path.exists(f"/proc/{d.serving}/root/dev")
    assert d.stop() == 0, d.log.read_text()
