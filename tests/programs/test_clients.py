# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs of ours on the distribution's libibverbs: every byte of a transfer, what protects memory, clients that are killed."""
import subprocess

import pytest

from conftest import CLIENTS, LONG, SANITIZED, until

PROTECTION = subprocess.run([CLIENTS["protection"], "--list"], capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("case", PROTECTION)
def test_protection(device, case):
    device.run(CLIENTS["protection"], case).ok()


def test_there_are_cases_of_protection():
    assert len(PROTECTION) > 40


def test_every_byte_of_every_transfer_and_random_ones_against_a_model(device):
    print(device.run(CLIENTS["payload"], 600 if LONG else 5, seconds=1200 if LONG else 180).ok())


def test_killed_clients_leave_nothing_and_their_peers_are_told(device):
    """Several at once, so that the device is busy with others while one dies."""
    device.run(CLIENTS["killing"], 20, seconds=300).ok()  # what is kept for the next ones is there after these
    until(device.idle, "an idle device")
    fds, rss = device.num_fds(), device.rss()
    rounds = 500 if LONG else 25
    for p in [device.start(CLIENTS["killing"], rounds) for _ in range(2)]:
        print(p.wait(3600 if LONG else 300).ok())
    until(device.idle, "an idle device")
    until(lambda: device.num_fds() <= fds, f"no more than {fds} open files")
    # A sanitizer keeps freed memory for a while on purpose, and looks for leaks itself.
    assert SANITIZED or device.rss() - rss < 1024, (rss, device.rss())
