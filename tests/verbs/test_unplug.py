# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The adapter, rxe0, is removed while clients work on the devices that forward to it."""
import contextlib
import os
import pathlib
import subprocess
import sys

import pytest

import test_verbs as verbs
from conftest import HERE, cuse
from test_kills import worker
from test_verbs import fixture_own  # noqa: F401 pylint: disable=unused-import

LONG = [("borrow", "no"), ("bounce", "yes")] if os.environ.get("UVERBSD_LONG") else []
CONTROL = cuse.BUILD / "tools" / "uverbsctl"


def requests(daemon):
    return sum(device["requests"] for device in daemon.status()["devices"])


@contextlib.contextmanager
def traffic(daemon):
    """Two clients of the device that send to each other, until the device is gone: then they must end with an error."""
    port, before = verbs.free_port(), requests(daemon)
    command = verbs.on("ours", "ibv_rc_pingpong", "-g", verbs.GID, "-n", "100000000", "-r", "16", "-p", str(port))
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(subprocess.Popen(command, **verbs.TEXT, **verbs.USER))
        stack.callback(server.kill)
        cuse.wait_for("the server", lambda: verbs.listens(port) or server.poll() is not None)
        client = stack.enter_context(subprocess.Popen([*command, "localhost"], **verbs.TEXT, **verbs.USER))
        stack.callback(client.kill)
        # Before they send, the two make less than half of these calls.
        cuse.wait_for("traffic", lambda: requests(daemon) > before + 500 or server.poll() is not None)
        assert server.poll() is None, server.communicate()[0]
        yield
        for process in (server, client):
            text = process.communicate(timeout=verbs.STUCK)[0]
            assert process.returncode > 0, text


@contextlib.contextmanager
def holder(program):
    """A client that has a PD, and tries to allocate another when the device is gone."""
    with subprocess.Popen([*program, sys.executable, HERE / "hold.py"], stdin=subprocess.PIPE, **verbs.TEXT, **verbs.USER) as process:
        try:
            assert "ready\n" in process.stdout, "the client allocates a PD"
            yield
            text = process.communicate("\n", timeout=verbs.STUCK)[0]
            assert "errno 5\n" in text and process.returncode == 0, text
        finally:
            process.kill()


@contextlib.contextmanager
def watcher(said):
    """A client that waits for events. It must get DEVICE_FATAL."""
    command = [*verbs.OURS, "stdbuf", "-oL", "ibv_asyncwatch", "-d", verbs.DEVICE]
    with open(said, "wb") as out, subprocess.Popen(command, stdout=out, stderr=out, **verbs.USER) as process:
        try:
            cuse.wait_for("a client that waits", lambda: "async event" in said.read_text())
            yield
            cuse.wait_for("the event", lambda: "IBV_EVENT_DEVICE_FATAL" in said.read_text())
        finally:
            process.kill()


def control(*words):
    done = subprocess.run([CONTROL, *words], timeout=verbs.STUCK, check=False, **verbs.TEXT)
    assert done.returncode == 0, done.stdout


def plug_in():
    subprocess.run(["rdma", "link", "add", verbs.ADAPTER, "type", "rxe", "netdev", "dummy0"], check=True)
    gid = pathlib.Path(f"/sys/class/infiniband/{verbs.ADAPTER}/ports/1/gids/{verbs.GID}")
    cuse.wait_for("the adapter's GIDs", lambda: gid.exists() and "0a63:0001" in gid.read_text())
    pathlib.Path("/dev/infiniband/uverbs0").chmod(0o666)


def published():
    return os.listdir("/run/uverbsd/sysfs/class/infiniband")


@pytest.mark.parametrize("memory, separate", [("bounce", "no"), ("borrow", "yes"), *LONG])
def test_unplugged_adapter_takes_its_devices_and_no_others(own, tmp_path, memory, separate):
    d = cuse.Daemon(tmp_path, "--backend", "verbs", "--hca", verbs.ADAPTER, "--memory", memory, "--separate", separate)
    try:
        control("device", "add", "--backend", "soft", "--name", "other0")
        # The worker is the last, so that it does not count as traffic.
        with (holder(verbs.OURS), holder([*verbs.RUN, "--"]), watcher(tmp_path / "events"), traffic(d),
              worker(verbs.OURS, **verbs.USER) as client):
            # It waits, and no signal ends it, until no process has a context of the adapter.
            removal = subprocess.Popen(["rdma", "link", "delete", verbs.ADAPTER])  # pylint: disable=consider-using-with
            cuse.wait_for("the removal of the device", lambda: published() == ["other0"])
            assert removal.wait(verbs.STUCK) == 0
            plug_in()
        assert client.returncode > 0, "the worker has crashed"
        d.wait_idle()
        assert f"the adapter {verbs.ADAPTER} is gone" in d.log.read_text()
        assert f"`uverbsctl device add {verbs.DEVICE}` adds the device again" in d.log.read_text()
        control("device", "add", verbs.DEVICE)
        verbs.pingpong("ours", "plain", "ibv_rc_pingpong")
    finally:
        status = d.stop()
    assert status == 0, d.log.read_text()
    assert verbs.resources() == own
