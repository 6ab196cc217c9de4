# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""UCX and Open MPI over two engines of an ordinary user in two network namespaces: nothing else than the wire connects the QPs."""
import os
import re
import shutil
import subprocess

import pytest

from conftest import BIN, BUILD, STUCK, UVERBSCTL
from wirenet import ADDRESSES, NOBODY, Net

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="makes network namespaces")


@pytest.fixture(name="net", scope="module")
def fixture_net():
    net = Net()
    yield net
    net.close()


def run(end):
    return [*NOBODY, UVERBSCTL, "run", "--persona", "rxe", "--wire", ADDRESSES[end][0], "--"]


@pytest.mark.parametrize("transport", ["rc_v", "ud_v"])
@pytest.mark.parametrize("test", ["tag_bw -s 65536 -n 300 -w 10", "tag_lat -s 8 -n 500 -w 10", "ucp_put_bw -s 4096 -n 500 -w 10",
                                  "ucp_get -s 100000 -n 50 -w 5", "ucp_fadd -s 8 -n 200 -w 10"])
def test_ucx_between_two_engines(net, transport, test):
    ucx = ["env", f"UCX_TLS={transport}", "UCX_NET_DEVICES=rxe0:1", "UCX_WARN_UNUSED_ENV_VARS=n", "ucx_perftest", "-t", *test.split()]
    assert re.search(r"^Final:", net.pair(run(0), run(1), ucx, port=13337), re.M)


# mpirun starts the agent as its own user, who may not enter the other namespace. A shell waits there for the command.
AGENT = """#!/bin/sh
shift
echo "$*" >{fifo}
"""


@pytest.fixture(name="agent")
def fixture_agent(net):
    """A program instead of ssh that reaches the second namespace, which is a host of another name for MPI."""
    fifo, agent = BIN / "commands", BIN / "agent"
    os.mkfifo(fifo)
    fifo.chmod(0o666)
    agent.write_text(AGENT.format(fifo=fifo))
    agent.chmod(0o755)
    there = f"hostname there && exec \"$@\" sh -c 'read -r command <{fifo}; eval \"$command\"'"
    with subprocess.Popen([*net.enter(1), "unshare", "--uts", "sh", "-c", there, "sh", *run(1)], cwd="/") as waiting:
        yield agent
        waiting.terminate()
    agent.unlink()
    fifo.unlink()


def test_every_value_of_collectives_of_eight_ranks_arrives_over_two_engines(net, agent):
    program = BUILD / "tests/distribution/mpi-openmpi"
    assert program.exists(), "not installed when build/ was made: scripts/packages"
    options = ["--host", ",".join(f"{four}:4" for four, _ in ADDRESSES), "--oversubscribe", "-n", "8", "--mca", "plm_rsh_agent", agent,
               "--mca", "oob_tcp_if_include", f"{ADDRESSES[0][0]}/24", "--mca", "pml", "ucx", "--mca", "btl", "self",
               "-x", "UCX_TLS=rc,self", "-x", "UCX_LOG_LEVEL=info"]
    said = subprocess.run([*net.enter(0), *run(0), "mpirun.openmpi", *options, shutil.copy(program, BIN), "8"], cwd="/", timeout=STUCK,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
    assert re.search(r"^8 ranks: \d{6,} values compared, 0 wrong$", said, re.M), said
    assert len(re.findall(r"\[there:\d+ *:.*: tag\(rc_verbs/rxe0:1\)", said)) == 4, said
