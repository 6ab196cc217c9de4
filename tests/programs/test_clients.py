# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs of ours on the distribution's libibverbs: every byte of a transfer, what protects memory, clients that are killed."""
import subprocess
import time

import pytest

from conftest import CLIENTS, CUSE, LONG, SANITIZED, left_as_found, over_cuse, until

PROTECTION = subprocess.run([CLIENTS["protection"], "--list"], capture_output=True, text=True).stdout.split()


@pytest.fixture(scope="session")
def protection(lasting_device):
    """What the program says of all cases at once: starting it is most of what one costs."""
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
        """files: how many of the two clients have memory that the engine can map, too."""
        print(device.run(CLIENTS["payload"], 600 if LONG else 3, time.time_ns(), files, seconds=1800).ok())


@over_cuse("ioctl")
def test_memory_of_all_kinds_is_transferred_and_may_lose_its_pages(device):
    print(device.run(CLIENTS["shared"]).ok())


if not CUSE:
    def test_what_is_mapped_over_a_region_of_a_file_is_not_moved(device):
        device.run(CLIENTS["shared"], "pinned").ok()


@over_cuse("ioctl")
def test_lists_of_small_requests_arrive_once_in_order_and_whole(device):
    for p in [device.start(CLIENTS["lists"], 600 if LONG else 3, seed) for seed in (1, 2)]:
        print(p.wait(1800).ok())


def kill_clients(device, rounds):
    """Two at once, so that the device is busy with others while one dies; `rounds` in all."""
    for p in [device.start(CLIENTS["killing"], max(rounds // 2, 1)) for _ in range(2)]:
        print(p.wait(3600).ok())
    until(device.idle, "an idle device")


@over_cuse("ioctl")
def test_killed_clients_leave_nothing_and_their_peers_are_told(device):
    kill_clients(device, 10)  # what is kept for the next ones is there after these
    fds = device.num_fds()
    kill_clients(device, 1000 if LONG else 20 if CUSE else 50)
    until(lambda: device.num_fds() <= fds, f"no more than {fds} open files")
    if SANITIZED:  # keeps freed memory for a while on purpose, and looks for leaks itself
        return
    # The allocator takes its time to find its size; what leaks never does.
    rss = [device.rss()]
    for _ in range(6):
        kill_clients(device, 20)
        rss.append(device.rss())
        if rss[-1] - rss[-2] < 128:
            return
    pytest.fail(f"resident KiB after each batch: {rss}")


if not CUSE:
    @pytest.mark.parametrize("lasting_device", ["rxe"], indirect=True)
    def test_garbage_in_mapped_queues_harms_nobody(device):
        """Two clients write garbage into their queues, while a third one's transfers are right."""
        spoilers = [device.start(CLIENTS["garbage"], 600 if LONG else 3, seed) for seed in (1, 2)]
        until(lambda: all("seed" in p.text() or p.ended() for p in spoilers), "the spoilers' start")
        print(device.run(CLIENTS["payload"], 600 if LONG else 2, seconds=1800).ok())
        for p in spoilers:
            p.wait(1800).ok()
