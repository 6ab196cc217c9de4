# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Our own clients of the distribution's libibverbs: every byte of transfers, memory protection, killed clients."""
import re
import shutil
import socket
import subprocess
import time

import pytest

from conftest import CLIENTS, CUSE, LIMIT, LONG, SANITIZED, UVERBSCTL, left_as_found, over_cuse, until

WAY = pytest.mark.parametrize("lasting_device", ["ioctl"], indirect=True)
PROTECTION = subprocess.run([CLIENTS["protection"], "--list"], capture_output=True, text=True).stdout.split()


@pytest.fixture(scope="session")
def protection(lasting_device):
    """The output for all cases of one run: starting the program takes longer than a case."""
    with left_as_found(lasting_device):
        return lasting_device.run(CLIENTS["protection"]).text


@over_cuse("write")
@pytest.mark.parametrize("case", PROTECTION)
def test_protection(protection, case):
    assert f"\n{case}: ok\n" in f"\n{protection}", protection


def test_there_are_cases_of_protection():
    assert len(PROTECTION) > 40


if LONG or not CUSE:
    @pytest.mark.parametrize("files", range(3))
    def test_every_byte_of_every_transfer_and_random_ones_against_a_model(device, files):
        """files: how many of the two clients have memory that the engine can map itself."""
        print(device.run(CLIENTS["payload"], 600 if LONG else 1, time.time_ns(), files, seconds=LIMIT).ok())


@WAY
def test_report_of_a_program_that_is_stuck_says_what_each_thread_does(device):
    p = device.start("sh", "-c", "echo begun; sleep 1000; :")
    until(p.text, "the program's output")
    with pytest.raises(AssertionError) as e:
        p.wait(0.1)
    report = str(e.value)
    assert "not within 0.1 s" in report and "begun\n" in report and "sleep 1000" in report
    threads = [line.split() for line in report.splitlines()]
    assert sum(t[0] == str(device.engine) for t in threads if t) > 1, report  # each thread of the engine
    assert not shutil.which("gdb") or re.search(r"^Thread 1 .*\n#0 ", report, re.M), report


@over_cuse("ioctl")
def test_memory_of_all_kinds_is_transferred_and_may_lose_its_pages(device):
    print(device.run(CLIENTS["shared"]).ok())


if not CUSE:
    def test_what_is_mapped_over_a_region_of_a_file_is_not_moved(device):
        device.run(CLIENTS["shared"], "pinned").ok()


def has_ipv6_loopback():
    with socket.socket(socket.AF_INET6) as s:
        try:
            s.bind(("::1", 0))
        except OSError:
            return False
    return True


def test_ud_message_is_answered_at_the_address_that_it_came_from(device):
    # By LID and by GID; on Ethernet by its IPv4 address, and by ::1 if the machine has it.
    expected = 2 if device.way != "rxe" or has_ipv6_loopback() else 1
    assert device.run(CLIENTS["reply"]).ok() == f"{expected} answered\n"


if not CUSE:
    def test_ud_message_over_ipv6_is_answered_at_the_address_that_it_came_from():
        done = subprocess.run([UVERBSCTL, "run", "--gid", "::1", "--", CLIENTS["reply"]], capture_output=True, text=True, timeout=300)
        assert done.stdout == "1 answered\n", done.stderr


@over_cuse("ioctl")
def test_lists_of_small_requests_arrive_once_in_order_and_whole(device):
    for p in [device.start(CLIENTS["lists"], 600 if LONG else 1, seed) for seed in (1, 2)]:
        print(p.wait(LIMIT).ok())


def kill_clients(device, rounds):
    """Runs two programs at once, so that the device serves other clients while one dies; `rounds` in all."""
    for p in [device.start(CLIENTS["killing"], max(rounds // 2, 1)) for _ in range(2)]:
        print(p.wait(3600).ok())
    until(device.idle, "an idle device")


@over_cuse("ioctl")
def test_killed_clients_leave_nothing_and_their_peers_are_told(device):
    kill_clients(device, 10)  # fills the caches that the engine keeps for later clients
    fds = device.num_fds()
    kill_clients(device, 1000 if LONG else 20 if CUSE else 50)
    until(lambda: device.num_fds() <= fds, f"no more than {fds} open files", tell=device.all_fds)
    # The heap takes a few batches to reach a steady size; with a leak it never does. A sanitizer delays the reuse of freed memory,
    # and detects leaks itself.
    rss = [device.rss()]
    while not SANITIZED and (len(rss) == 1 or rss[-1] - rss[-2] >= 128):
        assert len(rss) < 7, f"resident KiB after each batch: {rss}"
        kill_clients(device, 20)
        rss.append(device.rss())


if not CUSE:
    @pytest.mark.parametrize("lasting_device", ["rxe"], indirect=True)
    def test_garbage_in_mapped_queues_harms_nobody(device):
        """Two clients write garbage to their queues while two others check that their own transfers are right."""
        spoilers = [device.start(CLIENTS["garbage"], 600 if LONG else 2, seed) for seed in (1, 2)]
        until(lambda: all("seed" in p.text() or p.ended() for p in spoilers), "the spoilers' start")
        print(device.run(CLIENTS["payload"], 600 if LONG else 1, seconds=LIMIT).ok())
        for p in spoilers:
            p.wait(LIMIT).ok()
