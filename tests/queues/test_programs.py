# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The distribution's programs with mapped queues over CUSE, as two ordinary users."""
import subprocess

import pytest

from conftest import NOBODY, OTHER, STUCK, cuse

PINGPONGS = ["ibv_rc_pingpong -c -n 200", "ibv_rc_pingpong -c -e -n 50", "ibv_uc_pingpong -c -n 100", "ibv_ud_pingpong -c -n 100 -s 1000",
             "ibv_srq_pingpong -c -n 200"]
PERFTEST = ["ib_write_bw -s 65536 -n 100", "ib_read_bw -s 65536 -n 100", "ib_send_bw -s 4096 -n 200", "ib_atomic_bw -n 100",
            "ib_write_lat -n 100", "ib_read_lat -n 100", "ib_send_lat -n 100", "ib_atomic_lat -n 100"]


def pair(program):
    """Runs both sides of a program, the second as another user, until the first one listens."""
    with subprocess.Popen(program, env=cuse.environment(), **cuse.ids_of(NOBODY), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as server:
        port = "4853" if program[0].startswith("ib") else None
        cuse.wait_for("a server", lambda: server.poll() is not None or any(
            f":{port} " in line and " 0A " in line for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}", encoding="ascii")))
        client = subprocess.run([*program, "127.0.0.1"], env=cuse.environment(), **cuse.ids_of(OTHER), stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=STUCK, check=False)
        said = server.communicate(timeout=STUCK)[0]
    assert client.returncode == server.returncode == 0, f"{client.stdout}\n{said}"
    return client.stdout


@pytest.mark.parametrize("doorbells", ["auto", "calls"])
@pytest.mark.parametrize("program", PINGPONGS)
def test_pingpong(start, doorbells, program):
    start("--doorbells", doorbells)
    pair([*program.split(), "-g", "0"])


def test_perftest(start):
    start()
    for program in PERFTEST:
        pair([*program.split(), "-F", "-x", "0"])
