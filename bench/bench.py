#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Times the ways into the device beside the least that each way can cost.

  bench.py dispatch   parsing and tables alone, in one process
  bench.py run        under `uverbsctl run`, beside a null notification
  bench.py cuse       through uverbsd's nodes, beside a null CUSE device (root and /dev/cuse: see tests/vm/run-in-vm)
  bench.py hca        --backend verbs on rxe0 beside rxe0 itself, with borrow and with bounce (root, in tests/vm/run-in-vm --rxe)
  bench.py cm         connections by librdmacm at once (cmtime) and one after another, under `uverbsctl run`, and in
                      tests/vm/run-in-vm --rxe beside the kernel's
  bench.py scale      a million objects in one open file, ten thousand open files, in one process; --rounds 5 will do
  bench.py idle       resident memory of an idle daemon (root and /dev/cuse)
  bench.py wire       packets of RoCE v2 and their checksum; over loopback beside plain datagrams. In processor time. Then two
                      engines over loopback, if there are perftest and qperf
  bench.py sim        requesters and responders on the wire in networks of up to 1,000 engines, in virtual time; takes no rounds
  bench.py fuzz       executions of the in-process fuzz targets, in processor time: the corpus in git again and again (replay), and inputs
                      that are each one change away from the last (mutate), which includes the change

All programs of one table are asked in turn, round after round (bench/clock.h); figures are medians over the rounds.
The build folder is $UVERBSD_BUILD, else build/. With --against BUILD the programs of dispatch, run and cuse are asked in that build
too, in the same rounds, and a second table has the medians of the differences: this build less that one. `cuse --against build
--options "--separate no"` shows what an option costs; --against-options are those of the other build's daemon, whose defaults may differ.
"""
import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", ROOT / "build")).resolve()
VERBS = ("pd", "poll_cq", "post_send")  # and poll_cq without libibverbs, to see what that takes


class Program:
    """One program that serves benchmarks."""

    def __init__(self, argv, env=None):
        self.p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, **(env or {})})
        if self.p.stdout.readline() != "ready\n":
            raise SystemExit(f"bench: {' '.join(map(str, argv))} did not start")

    def time(self, name, count):
        self.p.stdin.write(f"{name} {count}\n")
        self.p.stdin.flush()
        return float(self.p.stdout.readline())

    def stop(self):
        self.p.stdin.close()
        self.p.wait(10)


def measure(cases, rounds, count):
    """cases: {label: (program, benchmark)}. All times in ns, after one round to warm up."""
    seen = {label: [] for label in cases}
    for n in range(rounds + 1):
        for label, (program, name) in cases.items():
            t = program.time(name, count)
            if n:
                seen[label].append(t)
    return seen


OLD = ", before"  # behind the label of a case in --against's build


def table(seen, base_of):
    print(f"{'':40} {'median':>9} {'min':>9} {'max':>9}  ratio")
    median = {label: statistics.median(times) for label, times in seen.items()}
    for label, times in seen.items():
        base = base_of(label.removesuffix(OLD))
        ratio = f"{median[label] / median[base]:5.2f} of {base}" if base else ""
        print(f"{label:40} {median[label] / 1000:9.2f} {min(times) / 1000:9.2f} {max(times) / 1000:9.2f}  {ratio}")
    print("(us a call)")
    for label in seen:
        if label + OLD not in seen:
            continue
        more = statistics.median(now - before for now, before in zip(seen[label], seen[label + OLD]))
        base = base_of(label)
        print(f"{label:40} {more / 1000:+9.3f} us more{f', {more / median[base]:+.3f} of {base}' if base else ''}")


def builds(args):
    """{behind the label: build folder}"""
    return {"": BUILD} if args.against is None else {"": BUILD, OLD: args.against.resolve()}


def bench_dispatch(args):
    programs = {behind: Program([build / "bench/dispatch"]) for behind, build in builds(args).items()}
    cases = {}
    for name in ("alloc_pd+dealloc_pd by ioctl", "alloc_pd+dealloc_pd by write", "poll_cq by write"):
        for behind, p in programs.items():
            cases[name + behind] = (p, name.replace(" ", "_"))
    table(measure(cases, args.rounds, args.count * 100), lambda label: None)
    for p in programs.values():
        p.stop()


def add_verbs(cases, programs):
    """programs: {(abi, behind the label): one that serves bench/verbs.c}"""
    for verb in VERBS:
        for (abi, behind), p in programs.items():
            cases[f"{verb}, {abi}{behind}"] = (p, verb)
    cases["poll_cq by write(), write"] = (programs["write", ""], "poll_cq_raw")


def for_anybody(folder, build):
    """What `run` is for is a user without rights: programs where such a one can reach them, and how to become one."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    for name in ("tools/uverbsctl", "bench/null_notify", "bench/verbs"):
        shutil.copy(build / name, folder)
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"] if os.geteuid() == 0 else []


def bench_run(args):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="uverbsd-bench."))
    folder.chmod(0o755)
    programs = {}
    for n, (behind, build) in enumerate(builds(args).items()):
        place = folder / str(n)
        who = for_anybody(place, build)
        for abi in ("write", "ioctl"):
            programs[abi, behind] = Program([*who, place / "uverbsctl", "run", "--backend", "null", "--abi", abi, "--",
                                             place / "verbs", "hfi1_0"])
    null = Program([*who, folder / "0" / "null_notify"])
    cases = {"null notification": (null, "null_notify"), "null notification, read": (null, "null_notify_read"),
             "null notification, read and write": (null, "null_notify_write"),
             "null notification, read and write of an ioctl": (null, "null_notify_ioctl")}
    add_verbs(cases, programs)
    seen = measure(cases, args.rounds, args.count)
    table(seen, lambda label: None if label == "null notification" else "null notification")
    for p in (null, *programs.values()):
        p.stop()
    shutil.rmtree(folder)


def start_daemon(folder, *options, build=BUILD):
    folder.mkdir(exist_ok=True)
    log = open(folder / "uverbsd.log", "w+")
    p = subprocess.Popen([build / "src/uverbsd", "--sysfs", folder / "sysfs", "--control", folder / "control", *options],
                         stderr=log)
    for _ in range(200):
        if "ready" in (folder / "uverbsd.log").read_text():
            return p
        if p.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit("bench: uverbsd did not start:\n" + (folder / "uverbsd.log").read_text())


def forbid_netlink():
    """In the VM, whose kernel would load ib_core for libibverbs and so hide our devices: contrib/modprobe.d says why."""
    if "RUN_IN_VM" in os.environ:
        os.makedirs("/run/modprobe.d", exist_ok=True)
        shutil.copy(ROOT / "contrib/modprobe.d/uverbsd.conf", "/run/modprobe.d/")


def wait_for(path):
    for _ in range(100):
        if os.path.exists(path):
            return
        time.sleep(0.1)
    raise SystemExit(f"bench: {path} is not there after 10 s")


def bench_cuse(args):
    forbid_netlink()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="uverbsd-bench."))
    (folder / "ini").write_text("[uverbsd]\ndevices = 2\nbackend = null\n[device 0]\nabi = write\n[device 1]\nabi = ioctl\n")
    servers = [subprocess.Popen([BUILD / "bench/null_cuse", "uvd_null"])]
    programs = {}
    try:
        wait_for("/dev/uvd_null")
        null = Program([BUILD / "bench/null_client", "/dev/uvd_null"])
        for n, (behind, build) in enumerate(builds(args).items()):
            place = folder / str(n)
            options = args.against_options if behind else args.options
            servers.append(start_daemon(place, "--config", folder / "ini", *options.split(), build=build))
            for device, abi in (("hfi1_0", "write"), ("hfi1_1", "ioctl")):
                programs[abi, behind] = Program([BUILD / "bench/verbs", device], {"SYSFS_PATH": str(place / "sysfs")})
        cases = {"null write": (null, "null_write"), "null ioctl": (null, "null_ioctl")}
        add_verbs(cases, programs)
        seen = measure(cases, args.rounds, args.count)
        table(seen, lambda label: None if label.startswith("null") else "null " + label.split(", ")[1])
        for p in (null, *programs.values()):
            p.stop()
    finally:
        for p in reversed(servers):
            p.terminate()
            p.wait(20)
        shutil.rmtree(folder)


HCA_VERBS = ("pd", "mr_4k", "mr_1m", "cq", "qp", "poll", "send_64", "send_64k", "write_64", "write_64k")


def bench_hca(args):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="uverbsd-bench."))
    (folder / "ini").write_text("[uverbsd]\ndevices = 2\nbackend = verbs\nhca = rxe0\n[device 0]\nmemory = borrow\n"
                                "[device 1]\nmemory = bounce\n")
    daemon = start_daemon(folder, "--config", folder / "ini")
    ours = [BUILD / "tests/verbs/no_netlink", BUILD / "bench/hca"]
    try:
        programs = {"rxe0": Program([BUILD / "bench/hca", "rxe0", "1"])}
        for how, device, local in (("borrow", "hfi1_0", []), ("bounce", "hfi1_1", ["local"])):
            programs[how] = Program([*ours, device, "1", *local], {"SYSFS_PATH": str(folder / "sysfs")})
        cases = {f"{verb}, {how}": (p, verb) for verb in HCA_VERBS for how, p in programs.items()
                 if how != "bounce" or not verb.startswith("write")}
        seen = measure(cases, args.rounds, args.count)
        table(seen, lambda label: None if label.endswith(", rxe0") else label.split(", ")[0] + ", rxe0")
        for p in programs.values():
            p.stop()
    finally:
        daemon.terminate()
        daemon.wait(20)
        shutil.rmtree(folder)


CM_PORT = 7471


def cm_times(prefix, address, connections):
    """Runs both sides of cmtime. Returns us for each connection, by step."""
    script = (f"cmtime -p {CM_PORT} >/dev/null & server=$!; sleep 1; cmtime -s {address} -p {CM_PORT} -c {connections}; status=$?; "
              "kill $server; exit $status")
    done = subprocess.run([*prefix, "sh", "-c", f"ulimit -n {4 * connections + 100}; {script}"], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"bench: cmtime failed:\n{done.stdout}")
    return {step.strip(): float(us) for step, us in re.findall(r"^([a-z ]+):.* ([0-9.]+)$", done.stdout, re.M)}


def cm_cycle(prefix, address, number):
    """us for a connection that comes and goes, one after another."""
    argv = [*prefix, BUILD / "tests/distribution/cycles", address, str(number), str(number // 10)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
    return float(re.search(r"([0-9.]+) us each", done.stdout)[1])


def bench_cm(args):
    ours = [BUILD / "tools/uverbsctl", "run", "--"]
    ways = {"run": (ours, "127.0.0.1")}
    if os.path.exists("/dev/infiniband/rdma_cm"):
        ways["kernel"] = ([], "10.99.0.1")  # that tests/vm gives rxe's interface
    seen = {way: [] for way in ways}
    for _ in range(args.rounds):
        for way, (prefix, address) in ways.items():
            times = cm_times(prefix, address, args.count or 1000)
            seen[way].append({**times, "one after another": cm_cycle(prefix, address, args.count or 1000)})
    print(f"{'us for each of ' + str(args.count or 1000) + ' connections at once':45}" + "".join(f"{way:>10}" for way in ways))
    for step in seen["run"][0]:
        print(f"{step:45}" + "".join(f"{statistics.median(t[step] for t in seen[way]):10.1f}" for way in ways))


def bench_idle(args):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="uverbsd-bench."))
    daemon = start_daemon(folder, "--devices", "1")
    try:
        time.sleep(1)
        engines = pathlib.Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text().split()
        kib = [int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) for pid in (daemon.pid, *engines)]
        print(f"idle daemon, one device: {sum(kib) / 1024:.1f} MiB resident in {len(kib)} processes")
    finally:
        daemon.terminate()
        daemon.wait(20)
        shutil.rmtree(folder)


def bench_scale(args):
    subprocess.run([BUILD / "bench/scale", str(args.rounds)], check=True)


FUZZ_TARGETS = ("ioctl", "write", "calls", "queue", "broker", "options", "proc", "control")


def bench_fuzz(args):
    seen = {}
    for target in FUZZ_TARGETS:
        corpus = ROOT / "fuzz/corpus" / target
        program = Program([BUILD / f"fuzz/fuzz-{target}", "--bench", corpus])
        count = args.count * (50 if target in ("ioctl", "write", "queue") else 1)
        seen |= measure({f"{target}, {name}": (program, name) for name in ("replay", "mutate")}, args.rounds, count)
        program.stop()
    print(f"{'':24} {'median':>9} {'min':>9} {'executions/s':>13}")
    for label, times in seen.items():
        median = statistics.median(times)
        print(f"{label:24} {median / 1000:9.2f} {min(times) / 1000:9.2f} {1e9 / median:13,.0f}")
    print("(us of processor time an execution)")


class WireEnd:
    """One end of a program of perftest, in an engine of its own on the wire over loopback."""

    RUN = 'f=$1; shift; "$@" >$f 2>&1; p=$("$0" status --json | sed "s/.*.pid.:\\([0-9]*\\).*/\\1/"); cat /proc/$p/stat >>$f'

    def __init__(self, folder, end, mtu, words):
        self.out = folder / f"end{end}"
        ctl = BUILD / "tools/uverbsctl"
        command = [ctl, "run", "--persona", "rxe", "--mtu", str(mtu), "--wire", f"127.0.0.{2 + end}", "--", "sh", "-c", self.RUN]
        self.process = subprocess.Popen([*command, ctl, self.out, *words, *["127.0.0.2"] * end], stderr=subprocess.DEVNULL)

    def said(self):
        """The program's row, and the engine's processor time in seconds."""
        self.process.wait(100)
        *lines, stat = self.out.read_text().splitlines()
        row = [line.split() for line in lines if re.match(r" *[0-9]+ +[0-9]+ +[0-9.]+ ", line)]
        if not row:
            raise SystemExit("bench: " + "\n".join(lines))
        return row[0], sum(map(int, stat.rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def wire_engines(mtu, words):
    """Returns the client's row, and the processor time of both engines in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        ends = []
        for end in (0, 1):
            ends.append(WireEnd(pathlib.Path(folder), end, mtu, words))
            while not end and not any(":4855 " in line and " 0A " in line for line in open("/proc/net/tcp", encoding="ascii")):
                time.sleep(0.02)
        said = [end.said() for end in ends]
    return said[1][0], sum(cpu for _, cpu in said)


def udp_latency():
    """qperf's half round trip of a blocking ping-pong by plain UDP, in us."""
    with subprocess.Popen(["qperf"]) as server:
        time.sleep(0.3)
        said = subprocess.run(["qperf", "127.0.0.1", "-t", "1", "-m", "64", "udp_lat"], capture_output=True, text=True, check=True).stdout
        server.terminate()
    number, unit = re.search(r"latency *= *([0-9.]+) (\w+)", said).groups()
    return float(number) * {"us": 1, "ms": 1000}[unit]


def bench_wire_engines(program, args):
    """Beside plain datagrams between two processes, in the same rounds."""
    seen = {}
    for _ in range(min(args.rounds, 7)):
        for mtu, size, num in (4096, 1 << 20, 2000), (1024, 1 << 20, 1000):
            row, cpu = wire_engines(mtu, ["ib_write_bw", "-F", "-x", "0", "-p", "18517", "-s", str(size), "-n", str(num)])
            seen.setdefault((mtu, "engines s/GB"), []).append(cpu / (size * num / 1e9))
            seen.setdefault((mtu, "engines MB/s"), []).append(float(row[3]))
            for kind in ("plain", "pair"):
                seen.setdefault((mtu, f"{kind} s/GB"), []).append(program.time(f"{kind}_{mtu}", args.count // 2) / mtu)
        row, _ = wire_engines(1024, ["ib_send_lat", "-F", "-e", "-x", "0", "-p", "18517", "-s", "64", "-n", "2000"])
        seen.setdefault((64, "engines us"), []).append(float(row[4]))
        seen.setdefault((64, "plain us"), []).append(udp_latency())
    for (size, kind), values in seen.items():
        print(f"{size:6} {kind:16} {statistics.median(values):9.3f} {min(values):9.3f} {max(values):9.3f}")
    print("(ib_write_bw of 1 MiB by path MTU, processor time of both engines; ib_send_lat of 64 bytes with events, and qperf udp_lat)")


def bench_wire(args):
    program, sizes = Program([BUILD / "bench/wire"]), (64, 1024, 4096)
    print(f"{'':24} {'median':>9} {'min':>9} {'max':>9} {'s/GB':>9}")
    for kinds, count in (("crc", "crc_tables", "packet", "packet_id"), args.count * 10), (("plain", "pair", "roce"), args.count // 10):
        seen = measure({f"{kind}_{size}": (program, f"{kind}_{size}") for size in sizes for kind in kinds}, args.rounds, count)
        for label, times in seen.items():
            median, size = statistics.median(times), int(label.rsplit("_", 1)[1])
            print(f"{label:24} {median / 1000:9.3f} {min(times) / 1000:9.3f} {max(times) / 1000:9.3f} {median / size:9.3f}")
    print("(us of processor time for one piece or packet: plain, pair and roce send and receive it)")
    if shutil.which("ib_write_bw") and shutil.which("qperf"):
        bench_wire_engines(program, args)
    program.stop()


def bench_sim(args):
    subprocess.run([BUILD / "tests/wire_sim/wire-sim"], check=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("what", choices=["dispatch", "run", "cuse", "hca", "cm", "scale", "idle", "wire", "sim", "fuzz"])
    ap.add_argument("--rounds", type=int, default=15)
    ap.add_argument("--count", type=int, default=2000, help="calls a round")
    ap.add_argument("--options", default="", help="more options for the daemon of `cuse`, but not for that of --against")
    ap.add_argument("--against-options", default="", metavar="OPTIONS", help="more options for the daemon of --against")
    ap.add_argument("--against", type=pathlib.Path, metavar="BUILD", help="another build folder, for dispatch, run and cuse")
    args = ap.parse_args()
    if subprocess.run([ROOT / "scripts/require-tests", BUILD], check=False).returncode:
        return 1
    {"dispatch": bench_dispatch, "run": bench_run, "cuse": bench_cuse, "hca": bench_hca, "cm": bench_cm, "scale": bench_scale,
     "idle": bench_idle, "wire": bench_wire, "sim": bench_sim,
     "fuzz": bench_fuzz}[args.what](args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
