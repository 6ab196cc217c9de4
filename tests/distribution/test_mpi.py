# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""MPI between four processes (mpi.c): allreduce and alltoall, every value checked, with the commands of docs/programs.md.

UCX logs which transport carries what. Nothing else than the device can: no command lets MPI use its own shared memory or
TCP, and without the device's transport all fail.
"""
import re

import pytest

from conftest import CAN_LOCK, CLIENTS, CUSE, LIMIT, LONG, default_device, device_with_ip, documented_command, until

pytestmark = pytest.mark.skipif(not CAN_LOCK, reason="UCX wants 64 MiB of locked memory: RLIMIT_MEMLOCK unlimited, or root")
EVERY = 4 if CUSE and not LONG else 1
REFUSALS = {"openmpi": "PML ucx cannot be selected", "mpich": "Destination is unreachable"}
OVER_UCX = {"openmpi": "-x", "mpich": "-genv"}
IMPLEMENTATIONS = list(REFUSALS) if LONG else ["openmpi"]


def command(implementation):
    assert f"mpi-{implementation}" in CLIENTS, "not installed when build/ was made: scripts/packages"
    return documented_command(f"mpirun.{implementation} {OVER_UCX[implementation]}", CLIENTS[f"mpi-{implementation}"])


def lanes(said):
    """The transports of each endpoint that UCX made, as in `ep_cfg[1]: tag(self/memory rc_verbs/rxe0:1)`."""
    return [set(re.findall(r"\w+/[\w:]+", line)) for line in said.splitlines() if " ep_cfg[" in line]


@default_device
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_every_value_of_collectives_of_four_ranks_arrives_over_the_device(device, implementation):
    said = device.start("env", "UCX_LOG_LEVEL=info", *command(implementation), EVERY, locks=True).wait().ok()
    assert re.search(r"^4 ranks: \d{7,} values compared, 0 wrong$", said, re.M), said
    to_others = f"rc_verbs/{device.name}:1"
    assert sum({to_others} == lane for lane in lanes(said)) >= 4, said  # each rank to the others
    assert all(lane <= {to_others, "self/memory0"} for lane in lanes(said)), said


@device_with_ip
def test_every_value_arrives_over_connections_of_librdmacm(device):
    """Open MPI has libfabric connect each rank to the others."""
    mpi = device.start(*documented_command("mpirun.openmpi --mca pml cm", CLIENTS["mpi-openmpi"]), EVERY, locks=True)
    connected = until(lambda: mpi.ended() or any(i["state"] == "CONNECT" for i in device.cm_ids()), "a connection", LIMIT, mpi.text)
    said = mpi.wait(LIMIT).ok()
    assert connected is True and re.search(r"^4 ranks: \d{7,} values compared, 0 wrong$", said, re.M), said


if LONG or not CUSE:
    @default_device
    @pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
    def test_ranks_that_may_not_use_the_device_reach_nobody(device, implementation):
        argv = [a.replace("rc,self", "self") for a in command(implementation)]
        done = device.start(*argv, locks=True).wait()
        assert done.status != 0 and REFUSALS[implementation] in done.text, done.text
