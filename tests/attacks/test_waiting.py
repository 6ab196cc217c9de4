# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Clients whose memory or files answer nobody, and calls whose client is gone by then."""
from conftest import Attack, attack, cuse

BUSY = ["loop-transfer", "loop-pd"]


def others_work(d):
    """Registering memory, transfers, event files, and the administrator's questions."""
    clients = [cuse.start_client(mode) for mode in BUSY]
    assert d.status()["devices"]
    cuse.run_client("channels", "2")
    for p in clients:
        assert p.poll() is None
        p.kill()
        p.wait()


def test_memory_of_a_borrowed_thread_that_died_is_not_the_next_programs(start):
    d = start()
    assert attack("dead", user=0) == "not reached\n"
    d.wait_idle()


def test_file_that_waits_for_its_close_holds_nobody_else_up(start):
    d = start()
    held = Attack("flush")
    others_work(d)
    assert d.stop() == 0
    held.end()
