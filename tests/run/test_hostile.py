# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs that attack the engine, the guardian and other members of --join. docs/security.md has the table of what was tried."""
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest
from conftest import BIN, BUILD, SANITIZED, STUCK, UVERBSCTL, children, sanitizer, until
from test_run import pingpong, port  # noqa: F401 (a fixture)


PYTHON = "/usr/bin/python3"

# ThreadSanitizer writes a file at the start, and has a thread, so that unshare(CLONE_NEWUSER) is EINVAL.
THREADS = sanitizer() == "thread"


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
    if THREADS and limit == "fsize=0":
        pytest.skip("ThreadSanitizer writes a file")
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


def test_run_that_may_start_too_few_processes_says_so_and_leaves_nothing(run):
    if os.geteuid() or not run.prefix:
        pytest.skip("it needs root, to be a user without processes, and a folder of all users")
    user = 65000 + os.getpid() % 500
    run.prefix = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "prlimit", "--nproc=1"]
    run.look_for_no_leaks()  # LeakSanitizer waits for every thread of the process that it checks
    for limit in (1, 2, 3):
        run.prefix[-1] = f"--nproc={limit}"
        for _ in range(5 if "UVERBSD_LONG" in os.environ else 2):
            r = run("true")
            assert r.returncode == 125 and "cannot start: EAGAIN" in r.stderr, (limit, r)
            assert until(lambda: not run.left()), run.left()


def needs_fuse(run):
    if run.privileged:
        pytest.skip("FUSE refuses root the files of a user namespace")
    if THREADS:
        pytest.skip("ThreadSanitizer has a thread, with which there is no new user namespace")


# ---- a hostile member of --join ------------------------------------------------------------------------------------

MEMBER = shutil.copy(BUILD / "tests/run/run_member", BIN / "run_member").as_posix()


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


@pytest.fixture
def member(run):
    """Starts a hostile member, which ends with the test."""
    started = []

    def start(attack, name="lab"):
        argv = [*run.prefix, MEMBER, f"{run.folder}/uverbsd/{name}.sock", attack]
        # Its file system answers a close() only to processes of its own session.
        started.append(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True))
        return started[-1]

    yield start
    for p in started:
        p.kill()
        p.communicate()


@pytest.mark.parametrize("attack", ["descriptors", "silence", "half_a_message", "no_listener", "short_notif", "silent_agent", "lying_agent",
                                    "silent_receiver", "lying_receiver", "no_receiver", "wide_window", "fuse", "fuse_path"])
def test_hostile_member_hurts_no_other(run, member, attack):
    if attack.startswith("fuse"):
        needs_fuse(run)
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


@pytest.mark.parametrize("attack", ["fuse_path", "silent_agent", "silent_receiver"])
def test_what_never_answers_does_not_keep_the_run(run, member, attack):
    if attack.startswith("fuse"):
        needs_fuse(run)
    if attack == "fuse_path":
        run.look_for_no_leaks()  # LeakSanitizer waits for every thread of the process that it checks
    first = run.start("sh", "-c", "echo ready; read line", options=["--join", "lab"])
    assert first.stdout.readline() == "ready\n"
    engine = run.engine(first)
    before = threads(engine)
    p = member(attack)
    assert p.stdout.readline() == "ready\n"
    # A thread in memory cannot be told to end, all others can.
    if attack.startswith("silent"):
        assert until(lambda: threads(engine) <= before, 60), "a thread waits for the agent"
    out, err = first.communicate("\n", timeout=STUCK)
    assert first.returncode == 0 and "hangs" not in err and until(lambda: not run.left()), (out, err)
    assert p.poll() is None


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
import itertools
import json
import os
files = [os.open("/dev/infiniband/uverbs0", os.O_RDWR) for _ in range(3)]
print(os.getpid(), *files, flush=True)
os.kill(os.getpid(), 19)
"""


def link_of(path):
    """Empty: it was closed meanwhile."""
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return ""


def test_last_close_is_seen_though_events_were_lost(run):
    p = run.start("sh", "-c", f"{PYTHON} -c '{THREE_FILES}' & read line; {UVERBSCTL} status --json")
    words = p.stdout.readline().split()
    engine = run.engine(p)
    os.kill(engine, signal.SIGSTOP)
    subprocess.run([*run.prefix, PYTHON, "-c", REOPEN, *words], check=True, timeout=STUCK)
    os.kill(int(words[0]), signal.SIGKILL)
    assert until(lambda: not os.path.exists(f"/proc/{words[0]}/fd/{words[1]}"))
    os.kill(engine, signal.SIGCONT)
    memfds = lambda: [f for f in os.listdir(f"/proc/{engine}/fd") if ":uverbs" in link_of(f"/proc/{engine}/fd/{f}")]  # noqa: E731
    assert until(lambda: not memfds(), 60), "the engine keeps files that nobody has open"
    out, err = p.communicate("\n", timeout=STUCK)
    assert p.returncode == 0 and json.loads(out)["devices"][0]["open"] == 0, err


# This program does all that it can with the file behind its device, while another one of the tree uses a device of its own.
ABUSE = """
import ctypes, fcntl, mmap, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
def refused(call, *args):
    try:
        call(*args)
    except (OSError, ValueError):
        return
    raise SystemExit(f"{call} works")
f = os.open("/dev/infiniband/uverbs0", os.O_RDWR)
for size in (0, 4096, 1 << 41):
    refused(os.ftruncate, f, size)
refused(os.posix_fallocate, f, 1 << 62, 4096)
refused(fcntl.fcntl, f, 1033, 8)                         # F_ADD_SEALS, F_SEAL_WRITE
memory = mmap.mmap(f, 1 << 20)
memory[:] = b"x" * len(memory)
libc.fallocate(f, 3, ctypes.c_long(0), ctypes.c_long(1 << 62))       # a hole
memory.madvise(9)                                        # MADV_REMOVE
fcntl.fcntl(f, fcntl.F_SETFL, 0)                         # not in append mode any more
low = os.dup2(f, 20)
os.pwrite(low, b"y" * 65536, 0)
os.fchmod(f, 0)
again = os.open(f"/proc/self/fd/{f}", os.O_RDWR) if not os.geteuid() else f
libc.fcntl(f, 1024, 1)                                   # F_SETLEASE
fcntl.flock(f, fcntl.LOCK_UN)                            # closes its own device
os.close(again)
ring = ctypes.create_string_buffer(120)
libc.syscall(425, 8, ring)                               # io_uring_setup
libc.unshare(0x400)                                      # CLONE_FILES
libc.syscall(436, 3, 1 << 31, 0)                         # close_range
if os.fork():
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(1)
os.kill(os.getppid(), signal.SIGKILL)
"""


def test_abuse_of_the_devices_file_hurts_no_other_program(run, port):  # noqa: F811
    r = run("sh", "-c", f"{PYTHON} -c \"$1\"; shift; exec \"$@\"", "sh", ABUSE, *pingpong("-n 20 -p", port), cwd=run.folder)
    assert r.returncode == 0 and r.stdout.count("20 iters") == 2 and not re.search("works|died|Error", r.stderr), r


# A path in memory that does not answer, of a program that is killed then: programs of the tree wait until it is.
def test_program_whose_path_does_not_answer_is_killed_and_its_tree_goes_on(run):
    needs_fuse(run)
    script = f"{MEMBER} - path & read line; kill -9 $!; wait; exec ibv_devinfo"
    p = run.start("sh", "-c", script)
    assert p.stdout.readline() == "ready\n"
    out, err = p.communicate("\n", timeout=STUCK)
    assert p.returncode == 0 and "PORT_ACTIVE" in out and "died" not in err, (out, err)


# ---- what listens on a socket that `uverbsctl` asks ----------------------------------------------------------------

CONTROLS = "".join(map(chr, [*range(1, 32), *range(0x80, 0xa0)]))


class Liar:
    """Answers each command on a socket with the same bytes."""

    def __init__(self, path, answer):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.answer = answer
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            with self.listener.accept()[0] as client:
                client.recv(4096)
                try:
                    for part in self.answer():
                        client.sendall(part)
                except (BrokenPipeError, ConnectionResetError):
                    pass


def hostile_answer():
    """All that any command prints, with control characters in each text and each name."""
    evil = "x" + CONTROLS
    device = {key: evil for key in ("device", "node", "rdev", "backend", "persona", "abi", "transport")}
    device |= {"open": 2 ** 63 - 1, "objects": {evil: 1 << 62}, "requests": -1}
    device |= {"files": [{"program": evil, "objects": -5, "types": {evil: 1},
               "tree": [{"type": evil, "access": evil, "length": 1, "qp_type": evil, "qp_num": 1}]}], "rules": [{"rule": evil}],
               "filters": [{"filter": evil, "rules": [{"rule": evil}]}]}
    rows = [{"uid": 1, "used": 2, "limit": 3, "resource": evil, "device": evil}]
    return {**device, "sysfs": evil, "devices": [device, evil, [], None, {}], "memlock": [{"program": evil, "pages": 1 << 62}],
            "accounts": rows, "quotas": rows, "plugins": [{key: evil for key in ("name", "version", "file")}], "filters": [device],
            "known": [{"name": evil, "description": evil}], "grants": evil}


COMMANDS = [["status"], ["status", "--json"], ["status", "--objects"], ["status", "--accounts"], ["status", "--watch", "--once"],
            ["device", "remove", "rxe0"], ["device", "add", "rxe0"], ["filter", "list"], ["filter", "list", "--json"], ["plugin", "list"],
            ["plugin", "list", "--json"], ["port", "down", "rxe0", "1"], ["trace"]]


@pytest.mark.parametrize("kind", ["answer", "error"])
def test_answer_of_a_hostile_socket_changes_no_terminal(tmp_path, kind):
    answer = hostile_answer() if kind == "answer" else {"error": "x" + CONTROLS}
    for form in (json.dumps(answer), json.dumps(answer, ensure_ascii=False)):
        path = f"{tmp_path}/{kind}{len(form)}"
        Liar(path, lambda form=form: [form.encode() + b"\n"])
        for command in COMMANDS:
            r = subprocess.run([UVERBSCTL, *command], env={**os.environ, "UVERBSD_CONTROL": path}, stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, timeout=STUCK)
            assert r.returncode in (0, 1, 2), (command, r)
            bad = [c for c in r.stdout + r.stderr if c in CONTROLS and c != "\n"]
            assert not bad, (command, r)


@pytest.mark.skipif(SANITIZED, reason="AddressSanitizer needs terabytes of addresses")
def test_answer_without_end_is_refused(tmp_path):
    path = f"{tmp_path}/endless"
    Liar(path, lambda: itertools.repeat(b"x" * 65536))
    for command in ("status", "device remove x", "trace"):
        r = subprocess.run(["prlimit", f"--as={1 << 30}", UVERBSCTL, *command.split()], env={**os.environ, "UVERBSD_CONTROL": path},
                           capture_output=True, text=True, timeout=STUCK)
        assert r.returncode == 1 and "EMSGSIZE" in r.stderr, (command, r)
