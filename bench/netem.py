#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Goodput of two engines of ours over a link that loses, doubles, reorders and delays packets, and of an engine and the kernel's rxe
over the same link. As root: tests/vm/run-in-vm --timeout 3000 --rxe --modprobe veth --modprobe sch_netem -- bench/netem.py [ROUNDS]

Prints a table: MB/s of messages of 64 KiB, path MTU 1024, medians. Both ends of the link do what a row says.
"""
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/rxe"), str(ROOT / "tests")]
os.environ.setdefault("UVERBSD_BUILD", str(ROOT / "build"))
from conftest import end, gid_of_rxe, run_at  # noqa: E402 pylint: disable=wrong-import-position
from wirenet import Net  # noqa: E402 pylint: disable=wrong-import-position

TROUBLES = ["delay 0", "loss 0.1%", "loss 1%", "loss 5%", "duplicate 3%", "delay 1ms reorder 25% 50%", "delay 10ms"]
PROGRAMS = ["ib_write_bw", "ib_read_bw", "ib_send_bw"]


def goodput(net, server, client, program):
    """MB/s, or what went wrong."""
    try:
        said = net.pair(server, client, [program, "-s", "65536", "-n", "100", "-F"])
    except (AssertionError, subprocess.TimeoutExpired) as e:
        return str(e).strip().splitlines()[0][:40]
    return float(next(line.split()[3] for line in said.splitlines() if line.split()[:1] == ["65536"]))


def cell(values):
    wrong = [v for v in values if isinstance(v, str)]
    return f"{len(wrong)} failed: {wrong[0]}" if wrong else f"{statistics.median(values):.1f}"


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    link = Net()
    ours = [end(run_at(number), "-x 0") for number in (0, 1)]
    sides = {"ours to ours": (link, ours[0], ours[1])}
    net = Net(first_is_ours=True)
    subprocess.run(["rdma", "link", "add", "wire_rxe", "type", "rxe", "netdev", "wire0"], check=True)
    rxe = end([], f"-d wire_rxe -x {gid_of_rxe(4)}")
    sides["ours to rxe"] = (net, rxe, ours[1])
    print("| link |", " | ".join(f"{side}, {program[3:-3]}" for side in sides for program in PROGRAMS), "|", flush=True)
    print("| --- |", " | ".join("---" for _ in sides for _ in PROGRAMS), "|")
    for trouble in TROUBLES:
        for both in (link, net):
            for number in (0, 1):
                both.trouble(number, *trouble.split())
        seen = [[goodput(*side, program) for _ in range(rounds)] for side in sides.values() for program in PROGRAMS]
        print(f"| {trouble if trouble != 'delay 0' else 'as it is'} |", " | ".join(map(cell, seen)), "|", flush=True)
    subprocess.run(["rdma", "link", "delete", "wire_rxe"], check=False)
    net.close()
    link.close()


if __name__ == "__main__":
    main()
