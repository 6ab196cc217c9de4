#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""record.py FOLDER: records FOLDER/NAME.trace for each program in RECORDED, under `uverbsctl run`, and compiles FOLDER/client32.

tests/vm/suite runs it before the virtual machine boots, where programs are ten times as fast as inside.
"""
import gzip
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", ROOT / "build")).resolve()
UVERBSCTL = str(BUILD / "tools" / "uverbsctl")
STUCK = 300  # seconds: a limit for what is stuck, and not for what is slow
# The limits of the kernel's rxe, so that QUERY_DEVICE can be compared. Each device has a vector 0.
OPTIONS = [*(ROOT / "tests/differential/rxe.options").read_text().split(), "--comp-vectors", "1"]
TABLES = [pathlib.Path("/proc/net/tcp"), pathlib.Path("/proc/net/tcp6")]
CORPUS = ROOT / "tests" / "differential" / "corpus"
# rdma-core's own tests of these modules: few of them transfer data, and none is of one vendor's hardware.
PYVERBS = ["test_addr", "test_cq", "test_mr", "test_pd"]


def pair(program):
    """The command that runs both sides of a program, in a process tree of `uverbsctl run`."""
    return [sys.executable, __file__, "--pair", *shlex.split(program)]


# Programs of tests/differential, which are for a port like rxe's. They test the replay on the kernel's device.
PROGRAMS = ["mcast-unbound", "query-after-send"]
ETHERNET = ["--link-layer", "ethernet", "--gid", "fe80::1,::ffff:10.99.0.1", "--gid-table", "16"]
RECORDED = {  # name: persona, command
    "pingpong-hfi1": ("hfi1", pair("ibv_rc_pingpong -r 20 -n 5")),
    "pingpong-rxe": ("rxe", pair("ibv_rc_pingpong -g 0 -r 20 -n 5")),
    "send_bw-hfi1": ("hfi1", pair("ib_send_bw -n 5")),
    "send_bw-rxe": ("rxe", pair("ib_send_bw -x 0 -n 5")),
    "write_bw-hfi1": ("hfi1", pair("ib_write_bw -n 5")),
    "pyverbs-hfi1": ("hfi1", ["/usr/bin/python3", "-B", ROOT / "tests/distribution/run_pyverbs.py", "FOLDER"]),
    "pyverbs-rxe": ("rxe", ["/usr/bin/python3", "-B", ROOT / "tests/distribution/run_pyverbs.py", "FOLDER"]),
    **{name: ("hfi1", [UVERBSCTL, "replay", CORPUS / f"{name}.prog"]) for name in PROGRAMS},
}


def run_pair(argv):
    """Runs both sides of a program on a free port. Returns 0 if both succeed."""
    with socket.socket() as s:
        s.bind(("", 0))
        port = s.getsockname()[1]
    argv = [*argv, "-p", str(port)]
    with subprocess.Popen(argv) as server:
        listens = re.compile(rf":{port:04X} \w+:0000 0A ")
        while server.poll() is None and not any(listens.search(table.read_text()) for table in TABLES):
            time.sleep(0.02)
        done = subprocess.run([*argv, "localhost"], check=False)
        return done.returncode or server.wait(STUCK)


def unpack_pyverbs(folder):
    tests = pathlib.Path("/usr/share/doc/rdma-core/tests")
    (folder / "tests").mkdir()
    for f in tests.iterdir():
        name = f.name.removesuffix(".gz")
        if not name.startswith("test_") or name.removesuffix(".py") in PYVERBS:
            data = f.read_bytes()
            (folder / "tests" / name).write_bytes(gzip.decompress(data) if f.suffix == ".gz" else data)


def client32(folder):
    """Compiles the client of 32 bits. Returns its path."""
    path = folder / "client32"
    options = ["-m32", "-nostdlib", "-ffreestanding", "-static", "-fno-pie", "-no-pie", "-fno-stack-protector", "-O1"]
    subprocess.run(["cc", *options, "-o", path, HERE / "client32.c"], check=True, timeout=STUCK)
    return path


def record(folder, names=tuple(RECORDED)):
    """Records these traces. Returns their paths by name."""
    paths = {}
    if any(name.startswith("pyverbs") for name in names):
        unpack_pyverbs(folder)
    for name in names:
        persona, argv = RECORDED[name]
        paths[name] = folder / f"{name}.trace"
        argv = [folder if word == "FOLDER" else word for word in argv]
        options = ["--persona", persona, *OPTIONS, *(ETHERNET if name in PROGRAMS else [])]
        done = subprocess.run([UVERBSCTL, "run", *options, "--log-level", "error", "--trace", paths[name], "--", *argv],
                              check=True, stdout=subprocess.PIPE, text=True, timeout=STUCK)
        assert '"failed"' not in done.stdout, done.stdout  # of run_pyverbs.py
    return paths


if __name__ == "__main__":
    if sys.argv[1] == "--pair":
        sys.exit(run_pair(sys.argv[2:]))
    record(pathlib.Path(sys.argv[1]))
    client32(pathlib.Path(sys.argv[1]))
