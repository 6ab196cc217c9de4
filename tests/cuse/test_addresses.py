# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Addresses of a device (--ip) that the machine loses and gets back, as clients over CUSE see it; tests/run has more of them."""
import pathlib
import select
import subprocess

import pytest

from conftest import NAMES, NOBODY, STUCK, environment

ADDRESS = "192.0.2.9"
ROCE = ("--link-layer", "ethernet", "--gid", f"::ffff:{ADDRESS},::ffff:127.0.0.1", "--ip", ADDRESS)
GID = pathlib.Path(f"/run/uverbsd/sysfs/class/infiniband/{NAMES[0]}/ports/1/gids/0")
MAPPED = "0000:0000:0000:0000:0000:ffff:c000:0209"
NONE = ":".join(["0000"] * 8)


def address(word, check=True):
    subprocess.run(["ip", "addr", word, f"{ADDRESS}/32", "dev", "lo"], check=check, timeout=STUCK)


@pytest.fixture
def own_address():
    address("add")
    yield
    address("del", check=False)


def next_line(process):
    """Of one that writes a line at a time."""
    assert select.select([process.stdout], [], [], STUCK)[0], "it says nothing"
    return process.stdout.readline()


@pytest.mark.usefixtures("own_address")
def test_client_is_told_that_the_gid_of_a_lost_address_goes_and_comes_back(start):
    d = start(*ROCE)
    assert GID.read_text().strip() == MAPPED
    watch = subprocess.Popen(["stdbuf", "-oL", "ibv_asyncwatch", "-d", NAMES[0]], env=environment(), user=NOBODY, group=NOBODY,
                             extra_groups=[], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert "async event FD" in next_line(watch)
    for word, then in ("del", NONE), ("add", MAPPED):
        address(word)
        assert "IBV_EVENT_GID_CHANGE (18), port 1" in next_line(watch)
        assert GID.read_text().strip() == then
    assert watch.poll() is None
    watch.kill()
    watch.wait(STUCK)
    assert d.log.read_text().count(f"the machine has lost the address {ADDRESS}\n") == 1
