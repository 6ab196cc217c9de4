# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two engines of an ordinary user on the wire: the distribution's programs, and links that lose packets."""
import os
import subprocess

import pytest

from conftest import BUILD, UVERBSCTL
from wirenet import ADDRESSES, NOBODY, STUCK, Net

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="makes network namespaces")
LONG = "UVERBSD_LONG" in os.environ


@pytest.fixture(name="net", scope="module")
def fixture_net():
    net = Net()
    yield net
    net.close()


def run(end, *options, persona="rxe"):
    return [*NOBODY, UVERBSCTL, "run", "--persona", persona, "--wire", ",".join(ADDRESSES[end]), *options, "--"]


PINGPONGS = ["ibv_rc_pingpong -c -n 200", "ibv_uc_pingpong -c -n 100", "ibv_ud_pingpong -c -n 100 -s 1000", "ibv_srq_pingpong -c -n 200"]
PERFTEST = ["ib_write_bw -s 65536 -n 100", "ib_read_bw -s 65536 -n 100", "ib_send_bw -s 4096 -n 200", "ib_atomic_bw -n 200",
            "ib_send_lat -s 64 -n 200", "ib_write_lat -s 64 -n 200", "ib_read_lat -s 64 -n 200", "ib_atomic_lat -n 200"]


@pytest.mark.parametrize("gid", [0, 1], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("program", PINGPONGS)
def test_pingpong_between_two_engines(net, program, gid):
    net.pair(run(0), run(1), [*program.split(), "-g", str(gid)])


@pytest.mark.parametrize("program", PERFTEST)
def test_perftest_between_two_engines(net, program):
    net.pair(run(0), run(1), [*program.split(), "-F", "-x", "0"])


def test_each_opcode_and_error_ends_as_within_one_engine(net):
    """tests/rxe compares them with the kernel's rxe."""
    opcodes, options = BUILD / "tests/rxe/opcodes", "-d rxe0 -g 0".split()
    listens = 'grep -q "^ *[0-9]*: [0-9A-F]*:4853 .* 0A " /proc/net/tcp*'
    both = f'"$@" >/dev/null & until {listens}; do sleep 0.01; done; "$@" 127.0.0.1 && wait $!'
    within = subprocess.run([*net.enter(0), *NOBODY, UVERBSCTL, "run", "--explain", "off", "--", "sh", "-c", both, "sh", opcodes, *options],
                            stdout=subprocess.PIPE, text=True, timeout=STUCK, check=True).stdout
    assert within.count(": requester: ") > 60
    assert net.pair(run(0, "--explain", "off"), run(1, "--explain", "off"), [opcodes, *options]) == within


def test_persona_hfi1_reaches_rxe(net):
    net.pair(run(0, persona="hfi1"), run(1), "ibv_rc_pingpong -c -n 200 -g 0".split())


@pytest.mark.parametrize("program", ["ib_write_bw -s 65536 -n 50 -F -x 0",
                                     "ib_read_bw -s 65536 -n 50 -F -x 0", "ib_atomic_bw -n 200 -F -x 0"])
def test_what_packets_carry_survives_their_loss(net, program):
    lossy = ("--filter", "loss:rc=%2")
    net.pair(run(0, *lossy), run(1, *lossy), program.split())


def test_payload_survives_lost_packets(net):
    """None of the last ones: one end is gone when the other asks for a last acknowledgement again."""
    numbers = (7, 30, 31, 100, 177, 233, 377)
    lossy = [word for number in numbers for word in ("--filter", f"loss:rc=@{number}")]
    said = net.pair(run(0, *lossy), run(1, *lossy), "ibv_rc_pingpong -c -n 200 -g 0".split())
    assert said.count(" bytes: lost\n") == len(numbers), said


@pytest.mark.parametrize("trouble", ["reorder:when=%5", "delay:packet=2ms@3+"])
def test_what_packets_carry_survives_another_order_and_delays(net, trouble):
    net.pair(run(0, "--filter", trouble), run(1, "--filter", trouble), "ibv_rc_pingpong -c -n 50 -s 20000 -g 0".split())
