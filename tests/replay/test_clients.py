# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Traces of clients of a daemon: of 32 bits, and with two processes and with one."""
import contextlib
import signal
import subprocess

import pytest

from conftest import KERNELS, calls_of, record, replayed

VERBS = ["CMD_GET_CONTEXT", "ALLOC", "CMD_REG_MR", "QUERY", "DEALLOC", "DEREG", "DEALLOC"]

# Calls of the client that the kernel's device does not have.
ABSENT = {"QP.POST_RECV", "CQ.POLL", "TREE.QUERY", "TREE.ROLES"}


@contextlib.contextmanager
def tracing(daemon, path):
    """Records in the file what programs call on the daemon's device meanwhile."""
    with subprocess.Popen([record.UVERBSCTL, "trace", "--control", daemon.control, "-o", path], stderr=subprocess.PIPE,
                          text=True) as trace:
        try:
            assert "it has begun" in trace.stderr.readline()
            yield
            daemon.wait_idle(but=["traces"])
        finally:
            trace.send_signal(signal.SIGINT)
        assert trace.wait(record.STUCK) == 0, trace.stderr.read()


@pytest.mark.parametrize("name", ["daemon", "single"])
def test_the_trace_of_a_client_of_32_bits_is_replayed_like_others(name, client32, request, tmp_path):
    daemon, path = request.getfixturevalue(name), tmp_path / "t.trace"
    with tracing(daemon, path):
        assert subprocess.run([client32, daemon.nodes[0]], check=False, timeout=record.STUCK).returncode == 0
    calls = calls_of(path)
    verbs = [c["verb"] for c in calls]
    assert verbs == VERBS and calls[4]["errno"] == "EBUSY", verbs
    for node in KERNELS, daemon.nodes[0]:
        found = replayed(node, path)
        assert found["calls"] == len(VERBS) and not found["differences"] and not found["not_made"], found


def test_the_trace_of_a_client_of_a_daemon_is_replayed_like_others(daemon, traces, tmp_path):
    # The client makes the calls of ibv_rc_pingpong, and starts faster in the virtual machine than two programs of libibverbs.
    path = tmp_path / "t.trace"
    with tracing(daemon, path):
        found = replayed(daemon.nodes[0], traces["pingpong-hfi1"])
        assert not found["differences"] and not found["not_made"], found
    calls = calls_of(path)
    assert {"CQ.POLL", "QP.POST_SEND", "QP.MODIFY"} <= {f"{c['object']}.{c['verb']}" for c in calls}
    for node in KERNELS, daemon.nodes[0]:
        found = replayed(node, path)
        assert found["calls"] == len(calls) > 80 and not found["differences"], found
        assert {d["target"] for d in found["not_made"]} == (ABSENT if node == KERNELS else set()), found
