#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Compares builds or options of `uverbsctl run` by what a doorbell costs stock programs: latencies, single posts, rates of messages.

  bench/doorbells.py --way before=../old/build/tools/uverbsctl --way now=build/tools/uverbsctl \\
                     --way calls=build/tools/uverbsctl,--doorbells,calls [--rounds N] [--busy 0,2,8,30] [--only REGEX] [--json FILE]

A way is a name, a path of uverbsctl, and options of its `run`. Every row asks all ways in turn, in alternating order, round after round;
both ends of a row run under one `run`. Figures are medians, with the ratio to the first way's behind them. The same build named twice
shows what is noise. A round of two ways takes about a minute. --busy repeats everything beside so many busy loops, with fewer iterations;
beside two of them a round takes two minutes, beside thirty much longer. The loops are in the programs' session, with which they share its
part of the processors (sched_autogroup).

A measurement that fails or takes too long is a failed one: it is listed, and the exit status is 1. The build folder, for the programs of
bench/, is $UVERBSD_BUILD, else build/. Needs perftest, libibverbs' examples, and a quiet machine for the rows without busy loops.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", ROOT / "build")).resolve()
LONGEST, LONGER = 60, 8  # seconds of one measurement, and so many more for each busy loop
SIGNALED = 100  # perftest signals each 100th request: with several QPs it never ends if the iterations are no multiple
FEWEST = 40  # iterations, and what they are a multiple of
MIB = 1.048576  # perftest's MB has 2^20 bytes
WORSE = 1.05  # this ratio to the first way is reported below the table
# Figures of a row: {behind its name: (column of perftest's, factor, unit)}.
LATENCY = {", typical": (4, 1, "us"), ", average": (5, 1, "us"), ", 99 %": (7, 1, "us")}
BANDWIDTH, RATE = {"": (3, MIB, "MB/s")}, {"": (4, 1e6, "1/s")}
BOTH = {"": BANDWIDTH[""], ", messages": RATE[""]}


def text_of(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


class Failed(Exception):
    pass


class Way:
    """One uverbsctl with options of `run`."""

    def __init__(self, text):
        self.name, equals, rest = text.partition("=")
        path, *self.options = rest.split(",")
        self.path = pathlib.Path(path).resolve()
        if not self.name or not equals or not os.access(self.path, os.X_OK):
            raise argparse.ArgumentTypeError(f"not NAME=PATH_TO_UVERBSCTL[,option...]: {text}")

    def run(self, *words):
        return [str(self.path), "run", "--persona", "rxe", *self.options, "--", *words]


def last_words(text):
    return " / ".join([line.strip() for line in text.splitlines() if re.search(r"\w", line)][-2:])[-160:] or "no output"


def ask(command, seconds, stdin=""):
    """The output of a command, which reads `stdin`. After so many seconds its process group is killed, so that it disturbs no later row."""
    # A group, not a session: another session would be another share of the processors.
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, process_group=0) as p:
        try:
            out, err = p.communicate(stdin, seconds)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            raise Failed(f"not over after {seconds} s") from None
    if p.returncode:
        raise Failed(f"exit status {p.returncode}: {last_words(out + err)}")
    return out


def free_ports(number):
    """Others on this machine may use perftest's default port."""
    sockets = [socket.socket() for _ in range(number)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def pair(line, port):
    """A shell's words for a server and its client, which starts as soon as the server listens."""
    listens = f"grep -q ':{port:04X} .* 0A ' /proc/net/tcp /proc/net/tcp6"
    line = f"{line} -p {port}"
    return f"{line} >&2 & s=$!; until {listens}; do kill -0 $s 2>/dev/null || exit 1; sleep 0.02; done; {line} localhost && wait $s"


class Load:
    """Iterations and time limits beside so many busy loops."""

    def __init__(self, busy):
        self.busy, self.seconds = busy, LONGEST + LONGER * busy

    def iterations(self, count, fewest=FEWEST, in_turn=False):
        """A multiple of `fewest`, as perftest wants for lists. Ends that poll in turn lose a time slice each time, so they make fewer."""
        return max(1, count // (1 + self.busy) ** (1 + in_turn) // fewest) * fewest


def perftest(test, size, count, columns, *more, before=(), fewest=FEWEST):
    """Returns a measurement."""
    def measure(way, load):
        line = f"{test} -F -x 0 -s {size} -n {load.iterations(count, fewest, test.endswith('lat'))} {' '.join(more)}"
        out = ask(way.run(*before, "sh", "-c", pair(line, *free_ports(1))), load.seconds)
        rows = [row.split() for row in out.splitlines() if re.match(rf"\s*{size}\s+\d", row)]
        if not rows:
            raise Failed(f"no figures: {last_words(out)}")
        return {behind: (float(rows[-1][column]) * factor, unit) for behind, (column, factor, unit) in columns.items()}
    return measure


def pingpong(count, *more, before=()):
    def measure(way, load):
        line = f"ibv_rc_pingpong -g 0 -c -n {load.iterations(count, in_turn=True)} {' '.join(more)}"
        out = ask(way.run(*before, "sh", "-c", pair(line, *free_ports(1))), load.seconds)
        found = re.search(r"([\d.]+) usec/iter", out)
        if not found:
            raise Failed(f"no figures: {last_words(out)}")
        return {"": (float(found[1]), "us")}
    return measure


def processes(pairs, count):
    """The rate of so many pairs at the same time, in all."""
    def measure(way, load):
        line = f"ib_write_bw -F -x 0 -s 64 -n {load.iterations(count)}"
        # Each client's output is in a variable of its subshell: lines of several would mix in a pipe.
        each = [f"(o=$({pair(line, port)}) || exit; echo \"$o\" | grep -E '^ *64 +[0-9]') & p=\"$p $!\"" for port in free_ports(pairs)]
        out = ask(way.run("sh", "-c", f"{'; '.join(each).replace('&;', '&')}; for i in $p; do wait $i || exit; done"), load.seconds)
        column, factor, unit = RATE[""]
        rates = [float(row.split()[column]) for row in out.splitlines()]
        if len(rates) != pairs:
            raise Failed(f"figures of {len(rates)} of {pairs} pairs")
        return {"": (sum(rates) * factor, unit)}
    return measure


def beside_files(number):
    """Words before a command that run it while others have the device open so many times, a few hundred a process: more do not fit into
    the numbers of descriptors below a limit of 1024 (docs/architecture.md)."""
    most, words = 200, []
    while number:
        words += [str(BUILD / "bench/objects"), "rxe0", "0", "hold", str(min(number, most))]
        number -= min(number, most)
    return words


def rows():
    """[(name, measurement)]: a measurement takes a way and a load, and returns {behind the name: (value, unit)}."""
    found = [("ibv_rc_pingpong 4 KiB", pingpong(3000)),
             ("ibv_rc_pingpong 4 KiB -e", pingpong(3000, "-e")),
             ("ib_send_lat 64 B", perftest("ib_send_lat", 64, 5000, LATENCY)),
             ("ib_send_lat 64 B -e", perftest("ib_send_lat", 64, 3000, LATENCY, "-e")),
             ("ib_write_lat 64 B", perftest("ib_write_lat", 64, 5000, LATENCY)),
             ("ib_read_lat 64 B", perftest("ib_read_lat", 64, 5000, LATENCY))]
    for test, size, count in (("ib_send_bw", 64, 10000), ("ib_send_bw", 4096, 10000), ("ib_send_bw", 65536, 5000),
                              ("ib_write_bw", 64, 10000), ("ib_write_bw", 4096, 10000), ("ib_write_bw", 65536, 5000),
                              ("ib_read_bw", 4096, 10000)):
        found.append((f"{test} {f'{size >> 10} KiB' if size >= 1024 else f'{size} B'}",
                      perftest(test, size, count, BOTH if size == 64 else BANDWIDTH)))
    lists = "-l 32 -t 128"
    found += [("messages of 64 B, 1 QP, lists of 32", perftest("ib_write_bw", 64, 320000, RATE, lists, fewest=128)),
              ("messages of 64 B, 16 QPs", perftest("ib_write_bw", 64, 600, RATE, "-q 16", fewest=SIGNALED)),
              ("messages of 64 B, 256 QPs", perftest("ib_write_bw", 64, 100, RATE, "-q 256", fewest=SIGNALED)),
              ("messages of 64 B, 256 QPs, lists of 32", perftest("ib_write_bw", 64, 1280, RATE, "-q 256", lists, fewest=128)),
              ("messages of 64 B, 16 processes", processes(8, 2000))]
    for files in (1, 1000):
        before = beside_files(files)
        beside = f"beside {files} open file{'s' * (files > 1)}"
        found += [(f"ibv_rc_pingpong 4 KiB, {beside}", pingpong(3000, before=before)),
                  (f"messages of 64 B, {beside}", perftest("ib_write_bw", 64, 10000, RATE, before=before))]
    return found


def served(program, name, count, in_turn=False):
    """ns an iteration, of a program that serves benchmarks (bench/clock.h)."""
    def measure(load):
        number = load.iterations(count, in_turn=True) if in_turn else count
        return float(ask([BUILD / "bench" / program], load.seconds, f"{name} {number}\n").split()[1])
    return measure


NULL, BELL, COPIES = "null notification", "null doorbell", "two copies of 64 KiB"


def bounds():
    """What no way can be better at, [(name, measurement)]. A measurement takes a load, and returns a value and its unit."""
    null, copies = served("null_notify", "null_notify", 20000), served("copies", "process_vm_65536", 20000)
    bell = served("null_doorbell", "null_doorbell", 5000, in_turn=True)
    return [(NULL, lambda load: (null(load) / 1000, "us")), (BELL, lambda load: (bell(load) / 1000, "us")),
            (COPIES, lambda load: (65536 / copies(load) * 1000, "MB/s"))]


# Figures, and what they are compared with.
COMPARED = [(f"ib_{test}_lat 64 B, {which}", bound)
            for test in ("send", "write", "read") for which, bound in (("typical", NULL), ("average", BELL))]
COMPARED += [("ib_send_bw 64 KiB", COPIES), ("ib_write_bw 64 KiB", COPIES)]


class Table:
    """All figures beside one number of busy loops."""

    def __init__(self, load, names):
        """names: of the ways."""
        self.load, self.names, self.failures = load, names, []
        self.values, self.units = {}, {}  # by figure and way, by figure
        self.figures = {}  # of each row

    def add(self, what, who, number, measure):
        """number: of the round."""
        began, figures = time.monotonic(), {}
        try:
            figures = measure()
        except (Failed, OSError, ValueError, IndexError) as e:
            self.failures.append({"what": what, "who": who, "round": number, "why": str(e)})
        for behind, (value, unit) in figures.items():
            self.units[what + behind] = unit
            self.values.setdefault((what + behind, who), []).append(value)
        if figures or what not in self.figures:
            self.figures[what] = [what + behind for behind in figures] or [what]
        said = ", ".join(text_of(value) for value, _ in figures.values()) or f"FAILED: {self.failures[-1]['why']}"
        print(f"{what}{f', {who}' if who else ''}: {said} ({time.monotonic() - began:.1f} s)", file=sys.stderr, flush=True)

    def median(self, what, who):
        values = self.values.get((what, who))
        return statistics.median(values) if values else None

    def ratio(self, what, who, base):
        """Of the medians; None if there is none."""
        value, least = self.median(what, who), self.median(what, base)
        return value / least if value is not None and least else None

    def cell(self, row, what, who, spread):
        value, ratio = self.median(what, who), self.ratio(what, who, self.names[0])
        failures = sum(f["what"] == row and f["who"] == who for f in self.failures)
        if value is None:
            return f"{failures} failed"
        text = text_of(value)
        if ratio is not None and who != self.names[0]:
            text += f" ({ratio:.2f})"
        if spread:
            seen = self.values[what, who]
            text += f" [{text_of(min(seen))} to {text_of(max(seen))}]"
        return text + f", {failures} failed" * bool(failures)

    def worse(self):
        """Names of rows, with the ratio, where a way is worse than the first one by WORSE or more."""
        for what, unit in self.units.items():
            for who in self.names[1:]:
                ratio = self.ratio(what, who, self.names[0])
                if not ratio or (ratio if unit == "us" else 1 / ratio) < WORSE:
                    continue
                base, seen = self.values[what, self.names[0]], self.values[what, who]
                always = min(seen) > max(base) if unit == "us" else max(seen) < min(base)
                yield f"{what}, {who}: {ratio:.2f}{', in every round' if always and len(seen) > 1 else ''}"

    def text(self, spread):
        lines = [f"Beside {self.load.busy} busy loops" if self.load.busy else "Idle", "",
                 "| | | " + " | ".join(self.names) + " |", "| --- | --- |" + " ---: |" * len(self.names)]
        for row, figures in self.figures.items():
            for what in figures if row not in (NULL, BELL, COPIES) else ():
                cells = " | ".join(self.cell(row, what, who, spread) for who in self.names)
                lines.append(f"| {what} | {self.units.get(what, '')} | {cells} |")
        least = [(what, bound, self.median(bound, "")) for what, bound in COMPARED if what in self.units and bound in self.units]
        if least:
            lines += ["", "| beside the least | | " + " | ".join(self.names) + " |", "| --- | --- |" + " ---: |" * len(self.names)]
        for what, bound, value in least:
            ratios = [self.median(what, who) for who in self.names]
            lines.append(f"| {what} / {bound} | {text_of(value)} {self.units[bound]} | "
                         + " | ".join("–" if ratio is None else f"{ratio / value:.2f}" for ratio in ratios) + " |")
        lines += ["", *(f"Worse than {self.names[0]}: {line}" for line in self.worse())]
        lines += [f"FAILED, round {f['round']}: {f['what']}, {f['who'] or 'without a device'}: {f['why']}" for f in self.failures]
        return "\n".join(lines) + "\n"

    def as_json(self):
        return {"busy": self.load.busy, "failures": self.failures,
                "rows": [{"what": what, "unit": self.units[what], "way": who, "median": statistics.median(values), "values": values}
                         for (what, who), values in self.values.items()]}


class Loops:
    """So many processes that do nothing but run. They end with this one, however it ends."""

    def __init__(self, number):
        command = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", "while :; do :; done"]
        self.processes = [subprocess.Popen(command) for _ in range(number)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.processes:
            p.kill()
        for p in self.processes:
            p.wait()


def machine():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {"kernel": platform.release(), "cpus": len(os.sched_getaffinity(0)), "cpu": cpu[1] if cpu else platform.machine(),
            "load": os.getloadavg()[0], "date": time.strftime("%Y-%m-%d %H:%M")}


def measure_beside(busy, args):
    load = Load(busy)
    table = Table(load, [way.name for way in args.way])
    chosen = [row for row in rows() if not args.only or re.search(args.only, row[0])]
    least = [row for row in bounds() if not args.only or re.search(args.only, row[0]) or
             any(bound == row[0] and what.startswith(r[0]) for what, bound in COMPARED for r in chosen)]
    with Loops(busy):
        for number in range(1, args.rounds + 1):
            began = time.monotonic()
            for what, measure in least:
                table.add(what, "", number, lambda m=measure: {"": m(load)})
            for what, measure in chosen:
                for way in args.way if number % 2 else reversed(args.way):
                    table.add(what, way.name, number, lambda m=measure, w=way: m(w, load))
            print(f"round {number}, {busy} busy loops: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return table


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--way", type=Way, action="append", required=True, metavar="NAME=UVERBSCTL[,OPTION...]")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--busy", type=numbers, default=[0], metavar="N,...", help="numbers of busy loops beside (default: 0)")
    ap.add_argument("--only", metavar="REGEX", help="only rows whose name matches it")
    ap.add_argument("--spread", action="store_true", help="least and greatest value in the table, too")
    ap.add_argument("--json", type=pathlib.Path)
    args = ap.parse_args()
    if len({way.name for way in args.way}) < len(args.way):
        ap.error("two ways have the same name")
    if subprocess.run([ROOT / "scripts/require-tests", BUILD], check=False).returncode:
        return 1
    about, tables = machine(), []
    print(f"{about['cpus']} CPUs, {about['cpu']}, {about['kernel']}; load {about['load']:.2f}; medians of {args.rounds} rounds")
    for way in args.way:
        print(f"{way.name}: {way.path} {shlex.join(way.options)}".rstrip())
    for busy in args.busy:
        tables.append(measure_beside(busy, args))
        print("\n" + tables[-1].text(args.spread), flush=True)
        if args.json:
            args.json.write_text(json.dumps({"machine": about, "ways": {way.name: [str(way.path), *way.options] for way in args.way},
                                             "busy": [table.as_json() for table in tables]}, indent=1) + "\n")
    if not any(table.values for table in tables):
        print("no row was measured", file=sys.stderr)
        return 1
    return 1 if any(table.failures for table in tables) else 0


if __name__ == "__main__":
    sys.exit(main())
