# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""UCX between two processes (ucx.c): tagged and active messages, put and get, every byte checked, RC and UD."""
import pytest

from conftest import CAN_LOCK, CLIENTS, CUSE, over_cuse, documented_command

pytestmark = pytest.mark.skipif(not CAN_LOCK, reason="UCX wants 64 MiB of locked memory: RLIMIT_MEMLOCK unlimited, or root")


@over_cuse("ioctl")
@pytest.mark.parametrize("transport", ["rc_v", "ud_v"])
def test_ucx_moves_every_byte(device, transport):
    """Over rc_v, put and get are RDMA WRITE and READ; over ud_v, UCX emulates them by messages."""
    ucx = documented_command(f"env UCX_TLS={transport}", CLIENTS["ucx"])
    said = device.start(*ucx, 1 if CUSE else 3, locks=True).wait().ok()
    lanes = [line for line in said.splitlines() if "lane[" in line]
    assert lanes and all(device.name in line for line in lanes), said
    assert any(f"{transport[:2]}_verbs/" in line for line in lanes), said
