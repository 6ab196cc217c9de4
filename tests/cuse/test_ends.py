# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A client or the daemon ends at any moment: no process hangs, and nothing is left behind."""
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

from conftest import (CLIENT, MAPPED, NOBODY, ONE_PROCESS, STUCK, UNMAPPED, environment, ids_of, left_behind, serves, start_client,
                      stopped_after, wait_for)

LONG = bool(os.environ.get("UVERBSD_LONG"))
ROUNDS = 5 if LONG else 2
LOOPS = ["loop-pd", "loop-open", "loop-channel", "loop-transfer"]
CHANNELS = ["node", *(["queues"] if MAPPED else [])]
FEW = LOOPS if LONG else LOOPS[2:]  # each call makes a grant; each call accesses the client's memory


@pytest.mark.parametrize("mode", LOOPS)
def test_killed_client_leaves_nothing(start, mode):
    d = start()
    for _ in range(ROUNDS):
        p = start_client(mode)
        time.sleep(random.random() / 10)
        p.kill()
        p.wait(STUCK)
        assert d.idle_after_an_end(), d.status()
    assert serves()
    grants = d.status()["grants"]
    assert grants["late"] == 0


def stopped_clients(clients):
    """Returns each client's exit status and output. A client whose thread the daemon has borrowed is killed with the daemon."""
    return [(p.wait(STUCK), p.stdout.read().strip()) for p in clients]


@pytest.mark.parametrize("mode", FEW)
def test_killed_daemon_is_an_error_for_clients(start, mode):
    for _ in range(ROUNDS // 2):
        d = start()
        clients = [start_client(mode) for _ in range(2)]
        time.sleep(random.random() / 10)
        d.stop(signal.SIGKILL)
        for status, text in stopped_clients(clients):
            killed_with_us = status == -signal.SIGKILL and mode in ("loop-channel", "loop-open")
            assert (status == 0 and text.startswith("error")) or killed_with_us, (status, text)


@pytest.mark.parametrize("mode", FEW)
def test_sigterm_under_load_removes_nodes_and_tree(start, mode):
    for _ in range(ROUNDS // 2):
        d = start("--devices", "2")
        clients = [start_client(mode) for _ in range(3)]
        time.sleep(random.random() / 5)
        assert d.stop() == 0, d.log.read_text()
        assert not left_behind()
        for status, text in stopped_clients(clients):
            assert status == 0 and text.startswith("error"), (status, text)


def test_stopped_client_holds_nobody_up(start):
    d = start()
    p = start_client("loop-channel")
    p.send_signal(signal.SIGSTOP)
    assert serves()
    p.send_signal(signal.SIGCONT)
    # The stopped client is served again.
    requests = d.status()["devices"][0]["requests"]
    wait_for("10 more requests", lambda: d.status()["devices"][0]["requests"] > requests + 10)
    assert p.poll() is None
    p.kill()
    p.wait()
    d.wait_idle()


def test_client_whose_memory_waits_for_ever_holds_nobody_up_and_can_be_killed(start):
    # Its memory is behind userfaultfd, which with two processes is EFAULT. tests/attacks has memory that waits with both.
    d = start("--workers", "1", *ONE_PROCESS)
    held = [start_client("hold-up", user=0) for _ in range(2)]
    wait_for("a worker more", lambda: d.status()["devices"][0]["workers"] > 1)
    assert serves()
    assert all(p.poll() is None for p in held)
    for p in held:
        p.kill()
    for p in held:
        assert p.wait(STUCK) == -signal.SIGKILL
    d.wait_idle()


def abort(channel):
    """Ends a node's connection, or that of the machine's only FUSE file system, the files of queues."""
    connections = pathlib.Path("/sys/fs/fuse/connections")
    if channel == "queues" and not any(connections.iterdir()):
        subprocess.run(["mount", "-t", "fusectl", "fusectl", connections], check=True, timeout=STUCK)
    (file,) = connections.glob("*/abort") if channel == "queues" else [pathlib.Path("/sys/class/cuse/infiniband!uverbs0/abort")]
    file.write_text("1")


@pytest.mark.parametrize("channel", CHANNELS)
def test_abort_in_sysfs_ends_the_daemon_and_frees_clients(start, channel):
    d = start()
    p = start_client("loop-pd")
    abort(channel)
    assert d.process.wait(STUCK) == 1
    assert p.wait(STUCK) == 0
    assert "aborted from outside" in d.log.read_text()
    assert not left_behind()


def test_nothing_is_written_after_an_abort(start, tmp_path):
    """Its client makes commands by write(), which a file of queues does not have."""
    d = start(*UNMAPPED)
    client = subprocess.Popen([CLIENT, "late"], env=environment(), **ids_of(NOBODY), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True)
    assert client.stdout.readline() == "ready\n"
    # pread64() reads the opener's pagemap. The daemon has then read all that it needs from the client, and has written nothing.
    with stopped_after(tmp_path, d.serving, "pread64") as stopped:
        client.stdin.write("\n")
        client.stdin.flush()
    abort("node")
    assert client.stdout.readline() == "ready\n"  # its call has failed
    os.kill(stopped[0], signal.SIGCONT)
    assert d.process.wait(STUCK) == 1
    assert client.communicate("\n", timeout=STUCK)[0] == "" and client.returncode == 0
