#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""beside.py BUILD [OPTION...]: programs of rdma_cm's commands on the kernel's rdma_ucm, with rxe, and on ours, made like it by options,
under `uverbsctl run` or over CUSE.
In a machine with both, as root: tests/vm/run-in-vm --rxe --smp 1 -- tests/cm/beside.py BUILD OPTION...

What differs is shrunk, and fails, unless a row of differences.json explains it.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

import generate
import ucm

HERE = pathlib.Path(__file__).resolve().parent
ADDRESS, ADDRESS6 = generate.IP4, generate.IP6
PORT = pathlib.Path("/sys/class/infiniband/rxe0/ports/1")
KERNELS = f"{ucm.NODE}.kernel"  # the kernel's node, while ours has its name
STUCK = 600
TIMEWAIT = 1.9  # seconds: the kernel's shortest time-out
SLOW = 5


# ---- both sides -------------------------------------------------------------------------------------------------------

class Side:
    """Carries out programs, one after the other."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def carry_out(self, program):
        self.process.stdin.write(json.dumps(program) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"{self.process.args}: ended"
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        return self.process.wait(STUCK)


class Daemon:
    """uverbsd, which does not see that the kernel has a node of this name, too."""

    def __init__(self, program, options):
        os.rename(ucm.NODE, KERNELS)
        hidden = 'mount -t tmpfs none /sys/class/misc; exec "$@"'
        self.process = subprocess.Popen(["unshare", "--mount", "sh", "-ec", hidden, "sh", program, *options])
        end = time.monotonic() + STUCK
        while not os.path.exists(ucm.NODE):
            assert self.process.poll() is None and time.monotonic() < end
            time.sleep(0.02)

    def end(self):
        self.process.terminate()
        status = self.process.wait(STUCK)
        os.rename(KERNELS, ucm.NODE)
        return status


def gids():
    found = ((PORT / "gids" / str(i)).read_text().strip() for i in range(16))
    return [gid for gid in found if gid.strip("0:")]


def add_address():
    """rxe0 has an IPv6 address, too. An earlier beside.py may have given it."""
    subprocess.run(["ip", "-6", "addr", "replace", f"{ADDRESS6}/64", "dev", "dummy0", "nodad"], check=True)
    subprocess.run(["ip", "route", "replace", "224.0.0.0/4", "dev", "dummy0"], check=True)
    end = time.monotonic() + STUCK
    while not any(gid.startswith("fd99:") for gid in gids()):
        assert time.monotonic() < end
        time.sleep(0.02)


@contextlib.contextmanager
def one_processor():
    """Both sides and the kernel's threads work on one. On several a message can overtake another one."""
    mask = pathlib.Path("/sys/devices/virtual/workqueue/cpumask")
    before = mask.read_text()
    mask.write_text("1")
    os.sched_setaffinity(0, {0})
    try:
        yield
    finally:
        mask.write_text(before)


@contextlib.contextmanager
def sides(build, apart, cuse):
    """Ours, and the kernel's."""
    add_address()
    carry = ["/usr/bin/python3", "-S", HERE / "carry.py", *(["--apart"] if apart else []), *(["--cuse"] if cuse else [])]
    guid = (PORT.parents[1] / "node_guid").read_text().strip()
    options = ["--log-level", "error", "--link-layer", "ethernet", "--guid", guid, "--gid", ",".join(gids()), "--gid-table", "16",
               "--mtu", "1024"]
    daemon = Daemon(build / "src/uverbsd", options) if cuse else None
    both = Side(*([] if cuse else [build / "tools/uverbsctl", "run", *options, "--"]), *carry), \
        Side(*carry, "--barrier", ADDRESS, "--node", KERNELS if cuse else ucm.NODE)
    try:
        yield both
    finally:
        ends = [part.end() for part in (*both, *([daemon] if daemon else []))]
    assert not any(ends), ends


# ---- comparing --------------------------------------------------------------------------------------------------------

def by_identifier(events):
    """The order of events is that of each identifier: a partial one."""
    found = collections.defaultdict(list)
    for uid, event in events:
        found[uid].append(event)
    return found


def is_same(ours, kernels):
    """Of one op."""
    ours, kernels = ([by_identifier(x) if isinstance(x, list) else x for x in side] for side in (ours, kernels))
    return ours == kernels


class Difference:
    """The first of a program."""

    def __init__(self, ops, ours, kernels, number):
        self.ops, self.number, self.op, self.ours, self.kernels = ops, number, ops[number], ours[number], kernels[number]

    def kind(self):
        """What stays the same while the program is shrunk."""
        said = [side[0] for side in (self.ours, self.kernels)]
        if said[0] != said[1] and self.op[2] not in ("drain", "get"):
            return (self.op[2], *said)
        return (self.op[2], *sorted({e[1].split()[0] for side, other in ((self.ours, self.kernels), (self.kernels, self.ours))
                                     for e in side[1] if e not in other[1]})) if isinstance(self.ours[-1], list) else (self.op[2], "bytes")

    def may_be_chance(self):
        """The flow label of a port that the node has chosen can be one of those that have a meaning."""
        return len({"<flow" in json.dumps(side) for side in (self.ours, self.kernels)}) == 2

    def __str__(self):
        return f"op {self.number}: {json.dumps(self.op)}\n  ours:   {json.dumps(self.ours)}\n  kernel: {json.dumps(self.kernels)}"


class Both:
    def __init__(self, ours, kernel, verbose=False):
        self.ours, self.kernel, self.verbose, self.base, self.seconds, self.again = ours, kernel, verbose, 0, [0, 0], 0

    def difference(self, ops):
        """A program that takes as long as the kernel's shortest time-out is carried out again, and one that may differ by chance."""
        for _ in range(3):
            found = self.once(ops)
            if not found or max(self.seconds) < TIMEWAIT and not found.may_be_chance():
                break
            self.again += 1
        return found

    def once(self, ops):
        self.base = self.base % 0xefff + 1
        program = {"ops": ops, "base": self.base}
        ours = self.ours.carry_out(program)
        expect = [len(t[1]) if len(t) > 1 and isinstance(t[1], list) else 0 for t in ours["trace"]]
        kernels = self.kernel.carry_out({**program, "expect": expect})
        slept = sum(op[3]["seconds"] for op in ops if op[2] == "sleep")
        self.seconds = [ours["seconds"] - slept, kernels["seconds"] - slept]
        if self.verbose:
            for op, a, b in zip(ops, ours["trace"], kernels["trace"]):
                print(json.dumps(op), "\n   ", json.dumps(a), "" if is_same(a, b) else "\n    kernel: " + json.dumps(b))
        for number, (a, b) in enumerate(zip(ours["trace"], kernels["trace"])):
            if not is_same(a, b):
                return Difference(ops, ours["trace"], kernels["trace"], number)
        return None

    def shrunk(self, found, most=150):
        """Leaves out what the difference does not need."""
        kind, ops, size = found.kind(), found.ops[:found.number + 1], 8
        while size:
            at = 0
            while at < len(ops):
                less = ops[:at] + ops[at + size:]
                most -= 1
                other = self.difference(less) if less and most > 0 else None
                if other and other.kind() == kind:
                    ops, found = less[:other.number + 1], other
                else:
                    at += size
            size //= 2
        return found


class Tally:
    """What is said of many programs: each kind of difference once, shrunk."""

    def __init__(self, both, keep):
        self.both, self.keep, self.began = both, keep, time.monotonic()
        self.programs, self.ops, self.slow, self.kinds = 0, 0, 0, collections.Counter()

    def carry_out(self, name, ops):
        found = self.both.difference(ops)
        self.programs += 1
        self.ops += len(ops)
        if max(self.both.seconds) > SLOW:
            self.slow += 1
            print(f"{name}: took {max(self.both.seconds):.1f} s", flush=True)
        if found:
            self.kinds[found.kind()] += 1
            if self.kinds[found.kind()] == 1:
                self.explain(name, self.both.shrunk(found))
        if self.programs % 250 == 0:
            self.say()
        return bool(found)

    def explain(self, name, found):
        print(f"{name}: {' '.join(found.kind())}", generate.text(found.ops) + str(found), sep="\n", flush=True)
        if self.keep:
            (self.keep / f"{name.replace(' ', '-')}.prog").write_text(f"# {name}\n{generate.text(found.ops)}")

    def say(self):
        differ = sum(self.kinds.values())
        print(f"{self.programs} programs of {self.ops} commands in {time.monotonic() - self.began:.0f} s: {differ} differ, "
              f"{self.slow} slow, {self.both.again} again", flush=True)
        for kind, number in self.kinds.most_common():
            print(" ", number, *kind, flush=True)
        return differ > 0


def read(file):
    return [json.loads(line) for line in file.read_text().splitlines() if not line.startswith("#")]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("build", type=pathlib.Path)
    ap.add_argument("--random", type=int, default=0, metavar="N", help="so many random programs of each number of processes")
    ap.add_argument("--seed", type=int, default=1, help="of the first")
    ap.add_argument("--processes", type=int, choices=(1, 2), nargs="+", default=[1, 2])
    ap.add_argument("--corpus", type=pathlib.Path, metavar="DIR", help="first all programs of this folder")
    ap.add_argument("--show", type=pathlib.Path, metavar="FILE", help="one program, and what both sides answer")
    ap.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="where programs go that differ")
    ap.add_argument("--cuse", action="store_true", help="ours over CUSE")
    ap.add_argument("--apart", action="store_true", help="programs for which Linux may wait for minutes, too")
    ap.add_argument("--tap", type=pathlib.Path, metavar="FILE", help="where each program's result goes, and that of the random ones")
    args = ap.parse_args()
    with one_processor(), sides(args.build.resolve(), args.apart, args.cuse) as both:
        return carry_out_all(args, Both(*both, verbose=args.show))


def carry_out_all(args, both):
    if args.show:
        print(both.difference(read(args.show)))
    tally, results = Tally(both, args.keep), []
    for file in sorted(args.corpus.glob("*.prog")) if args.corpus else ():
        results.append((tally.carry_out(file.name, read(file)), file.stem))
    for processes in args.processes:
        differ = [tally.carry_out(f"seed {seed} of {processes}", generate.program(seed, processes, args.apart))
                  for seed in range(args.seed, args.seed + args.random)]
        results.append((any(differ), f"{args.random} random programs of {processes} processes"))
    failed = tally.say()
    if args.tap:
        where = "over CUSE " if args.cuse else ""
        lines = [f"{'not ok' if differs else 'ok'} {n} - rdma_cm {where}beside the kernel: {name}\n"
                 for n, (differs, name) in enumerate(results, 1)]
        args.tap.write_text(f"1..{len(lines)}\n{''.join(lines)}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
