# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Our engine on the wire with the kernel's rxe at the other end, in both directions. Runs in the virtual machine."""
import pathlib
import subprocess
import time

import pytest

from conftest import BUILD, LONG, ROOT, end, gid_of_rxe, run_at
from wirenet import ADDRESSES, STUCK, Net

COUNTERS = pathlib.Path("/sys/class/infiniband/wire_rxe/ports/1/hw_counters")


def both_ways(net, program, gid_option, version=4):
    rxe = end([], f"-d wire_rxe {gid_option} {gid_of_rxe(version)}")
    ours = end(run_at(1), f"{gid_option} {0 if version == 4 else 1}")
    net.pair(rxe, ours, program.split(), server_end=0)
    net.pair(ours, rxe, program.split(), server_end=1)


@pytest.mark.parametrize("version", [4, 6] if LONG else [6])
@pytest.mark.parametrize("program", ["ibv_rc_pingpong -c -n 100", "ibv_ud_pingpong -c -n 50 -s 1000"]
                         + ["ibv_uc_pingpong -c -n 100", "ibv_srq_pingpong -c -n 100"] * LONG)
def test_pingpong_with_rxe(net, program, version):
    both_ways(net, program, "-g", version)


SIZES = (2, 64, 1000, 4096, 65536, 8 << 20)
PROGRAMS = [f"{program} -s {size} -n {1000 if size <= 4096 else 100 if size <= 65536 else 5}"
            for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_lat", "ib_read_lat", "ib_send_lat") for size in SIZES]
PROGRAMS += ["ib_atomic_bw -n 1000", "ib_atomic_lat -n 1000"]


@pytest.mark.parametrize("program", PROGRAMS if LONG else ["ib_read_bw -s 65536 -n 20", "ib_atomic_bw -n 50"])
def test_perftest_with_rxe(net, program):
    before = int((COUNTERS / "out_of_seq_request").read_text()), int((COUNTERS / "rcvd_seq_err").read_text())
    both_ways(net, program + " -F", "-x")
    after = int((COUNTERS / "out_of_seq_request").read_text()), int((COUNTERS / "rcvd_seq_err").read_text())
    assert after == before


@pytest.fixture(name="daemon")
def fixture_daemon(net):
    """uverbsd with two processes, whose broker has a socket in the other namespace. Its devices have names beside the kernel's."""
    sysfs = pathlib.Path("/run/uverbsd/sysfs")
    with subprocess.Popen([*net.enter(1), BUILD / "src/uverbsd", "--wire", ",".join(ADDRESSES[1])]) as daemon:
        end_of_wait = time.monotonic() + STUCK
        while not list(sysfs.glob("class/infiniband_verbs/uverbs*")) and time.monotonic() < end_of_wait:
            time.sleep(0.05)
        yield ["env", f"SYSFS_PATH={sysfs}", ROOT / "scripts/sysfs-first"]
        daemon.terminate()
    assert daemon.returncode == 0


@pytest.mark.parametrize("program", ["ibv_rc_pingpong -c -n 50"] + ["ibv_ud_pingpong -c -n 50 -s 1000", "ibv_uc_pingpong -c -n 50"] * LONG)
def test_pingpong_over_cuse_with_rxe(net, daemon, program):
    rxe, ours = end([], f"-d wire_rxe -g {gid_of_rxe(4)}"), end(daemon, "-d hfi1_0 -g 0")
    net.pair(rxe, ours, program.split(), server_end=0)
    net.pair(ours, rxe, program.split(), server_end=1)


@pytest.fixture(name="link")
def fixture_link():
    net = Net()
    yield net
    net.close()


TROUBLES = pytest.mark.parametrize("trouble", ["delay 0", "loss 0.1%", "loss 1%", "loss 5%", "duplicate 3%", "delay 1ms reorder 25% 50%",
                                               "delay 10ms"])
SLOW = pytest.mark.skipif(not LONG, reason="takes minutes; UVERBSD_LONG=1")


def trouble_both(link, trouble):
    for number in (0, 1):
        link.trouble(number, *trouble.split())


def pair_on_lossy_link(link, program):
    """
    Both sides of a program. Its last acknowledgement may be lost, and the end that sent it has done its work and is gone: nobody sends it
    again. So there are five attempts.
    """
    for attempt in range(5):
        try:
            return link.pair(run_at(0), run_at(1), program.split())
        except AssertionError as e:
            if attempt == 4 or "is its engine running?" not in str(e) or "retry counter exceeded" not in str(e):
                raise


@SLOW
@TROUBLES
@pytest.mark.parametrize("program", ["ibv_rc_pingpong -c -n 200 -g 0", "ib_write_bw -s 65536 -n 50 -F -x 0",
                                     "ib_read_bw -s 65536 -n 50 -F -x 0"])
def test_payload_survives_what_a_link_does(link, program, trouble):
    trouble_both(link, trouble)
    assert pair_on_lossy_link(link, program)


@SLOW
@TROUBLES
def test_each_opcode_does_the_same_whatever_a_link_does(link, trouble):
    """All bytes of both ends are compared: a WRITE or an atomic that came twice would show, too."""
    ends = [end(run_at(number), "-d rxe0 -g 0") for number in (0, 1)]
    least = link.pair(*ends, [BUILD / "tests/rxe/opcodes", "-n", "1"])
    trouble_both(link, trouble)
    assert link.pair(*ends, [BUILD / "tests/rxe/opcodes", "-n", "10"]) == least * 10
