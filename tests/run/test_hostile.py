# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs that attack the engine, the guardian and other members of --join. docs/security.md has the table of what was tried."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest
from conftest import BIN, BUILD, STUCK, UVERBSCTL, children, until


PYTHON = "/usr/bin/python3"


# ---- paths and limits ----------------------------------------------------------------------------------------------

# The link of such a descriptor in /proc is no path: the text grew beyond the engine's stack, and then the guardian's.
NO_FOLDER = """
import errno, os, socket, subprocess
for fd in (*os.pipe(), socket.socket().fileno(), os.eventfd(0), os.memfd_create("/x"), os.pidfd_open(os.getpid())):
    for path in ("infiniband", "uverbs0", "../dev/infiniband/uverbs0"):
        for call in (os.open, os.stat, os.access, os.readlink):
            try:
                call(path, *([os.O_RDONLY] if call in (os.open, os.access) else []), dir_fd=fd)
            except OSError as e:
                assert e.errno in (errno.ENOTDIR, errno.EBADF), e
subprocess.run(["ibv_devinfo"], check=True, stdout=subprocess.DEVNULL)
"""


def test_path_that_begins_at_no_folder_leaves_the_engine_alive(run):
    r = run(PYTHON, "-c", NO_FOLDER)
    assert (r.returncode, r.stderr) == (0, ""), r


@pytest.mark.parametrize("limit", ["fsize=0", "fsize=1000000", "cpu=100000", "nofile=64"])
def test_soft_limit_is_the_programs_and_not_the_engines(run, limit):
    """A device's file has 1 TiB: SIGXFSZ ended the engine."""
    name, value = limit.split("=")
    run.prefix = [*run.prefix, "prlimit", f"--{name}={value}:"]
    r = run("sh", "-c", f"prlimit --{name} --output SOFT --noheadings; exec ibv_devinfo")
    assert (r.returncode, r.stderr) == (0, "") and r.stdout.split()[0] == value, r


def test_hard_limit_of_file_sizes_bounds_the_devices_file(run):
    run.prefix = [*run.prefix, "prlimit", f"--fsize={64 << 20}"]
    r = run("ibv_devinfo")
    assert (r.returncode, r.stderr) == (0, ""), r


def test_hard_limit_of_file_sizes_that_is_too_low_is_named(run):
    run.prefix = [*run.prefix, "prlimit", "--fsize=1000000"]
    r = run("true")
    assert r.returncode == 125 and r.stderr == ("uverbsctl run: the hard limit of file sizes is 1000000 bytes, and 67108864 are needed "
                                                "(ulimit -Hf)\n"), r


# ---- a hostile member of --join ------------------------------------------------------------------------------------

MEMBER = shutil.copy(BUILD / "tests/run/run_member", BIN / "run_member").as_posix()


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


@pytest.fixture
def member(run):
    """Starts a hostile member, which ends with the test."""
    started = []

    def start(attack, name="lab"):
        argv = [*run.prefix, MEMBER, f"{run.folder}/uverbsd/{name}.sock", attack]
        started.append(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for p in started:
        p.kill()
        p.communicate()


@pytest.mark.parametrize("attack", ["descriptors", "silence", "half_a_message", "no_listener", "short_notif", "silent_agent", "lying_agent",
                                    "wide_window", "fuse", "fuse_path"])
def test_hostile_member_hurts_no_other(run, member, attack):
    if attack.startswith("fuse") and run.privileged:
        pytest.skip("FUSE refuses root the files of a user namespace")
    first = run.start("sh", "-c", "echo ready; read line; ibv_devinfo", options=["--join", "lab"])
    assert first.stdout.readline() == "ready\n"
    engine = run.engine(first)
    assert run("ibv_devinfo", options=["--join", "lab"]).returncode == 0
    before = descriptors(engine)
    p = member(attack)
    assert p.stdout.readline() == "ready\n"
    # Others join, work and end beside it.
    r = run("ibv_devinfo", options=["--join", "lab"])
    assert r.returncode == 0 and "PORT_ACTIVE" in r.stdout and not r.stderr, r
    p.communicate("\n", timeout=STUCK)
    assert p.returncode == 0
    assert until(lambda: descriptors(engine) <= before, 60), (before, descriptors(engine))
    out, err = first.communicate("\n", timeout=STUCK)
    assert first.returncode == 0 and "PORT_ACTIVE" in out and "died" not in err and "hangs" not in err, err


def test_connection_that_says_nothing_does_not_keep_the_engine(run, member):
    run.env["UVERBSD_RUN_SILENT_MS"] = "100"
    first = run.start("sh", "-c", "echo ready; read line", options=["--join", "lab"])
    assert first.stdout.readline() == "ready\n"
    p = member("silence")
    assert p.stdout.readline() == "ready\n"
    first.communicate("\n", timeout=STUCK)
    assert first.returncode == 0 and until(lambda: not run.left()), run.left()
    assert p.poll() is None


def test_lock_that_another_process_holds_does_not_keep_the_engine_from_its_members(run):
    """The engine takes the lock of --join before it ends: while another process had it, nobody could join."""
    first = run.start("sh", "-c", "echo ready; read line", options=["--join", "lab"])
    assert first.stdout.readline() == "ready\n"
    engine = run.engine(first)
    script = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print('ready', flush=True); input()"
    with subprocess.Popen([*run.prefix, PYTHON, "-c", script, f"{run.folder}/uverbsd/lab.lock"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "ready\n"
        first.stdin.write("\n")
        first.stdin.flush()
        # It still looks after its children: it sleeps in poll(), and not in flock().
        assert until(lambda: not children(engine))
        calls = [pathlib.Path(f"/proc/{engine}/syscall").read_text().split()[0] for _ in range(20) if not time.sleep(0.05)]
        assert "73" not in calls, "flock() waits"
        holder.communicate("\n")
    first.communicate(timeout=STUCK)
    assert first.returncode == 0


# ---- files that are opened again -----------------------------------------------------------------------------------

# Opens two files of another process again, and closes them, in turn: the kernel keeps 16,384 such events. The close of a third
# file is then lost.
REOPEN = """
import os, sys
for i in range(20000):
    os.close(os.open(f"/proc/{sys.argv[1]}/fd/{sys.argv[2 + i % 2]}", os.O_RDONLY))
"""
THREE_FILES = """
import json
import os
files = [os.open("/dev/infiniband/uverbs0", os.O_RDWR) for _ in range(3)]
print(os.getpid(), *files, flush=True)
os.kill(os.getpid(), 19)
"""


def test_last_close_is_seen_though_events_were_lost(run):
    p = run.start("sh", "-c", f"{PYTHON} -c '{THREE_FILES}' & read line; {UVERBSCTL} status --json")
    words = p.stdout.readline().split()
    engine = run.engine(p)
    os.kill(engine, signal.SIGSTOP)
    subprocess.run([*run.prefix, PYTHON, "-c", REOPEN, *words], check=True, timeout=STUCK)
    os.kill(int(words[0]), signal.SIGKILL)
    assert until(lambda: not os.path.exists(f"/proc/{words[0]}/fd/{words[1]}"))
    os.kill(engine, signal.SIGCONT)
    memfds = lambda: [f for f in os.listdir(f"/proc/{engine}/fd") if ":uverbs" in os.readlink(f"/proc/{engine}/fd/{f}")]  # noqa: E731
    assert until(lambda: not memfds(), 60), "the engine keeps files that nobody has open"
    out, err = p.communicate("\n", timeout=STUCK)
    assert p.returncode == 0 and json.loads(out)["devices"][0]["open"] == 0, err
