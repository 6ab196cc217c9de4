# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Engines on the wire that run many programs at once: the distribution's, which may be killed at any moment."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from conftest import UVERBSCTL, children, until
from perftest import was_disturbed
from wirenet import ADDRESSES, NOBODY, WRONG

STUCK = 300  # seconds: for what must end by itself
RETRIES = re.compile(r"\(12\)|status 12")  # transport retry counter exceeded
WAITS = 15 if "UVERBSD_LONG" in os.environ else 2  # seconds that a survivor gets which may wait for its peer for ever

# Starts and kills programs in an engine's tree. They poll: `nice` leaves the engines a processor on a busy machine. Its lines are
# `start NAME LOG PROGRAM...` and `kill NAME`. It answers `NAME STATUS` at a program's end.
AGENT = r"""
import subprocess, sys, threading
programs, lock = {}, threading.Lock()
def wait(name, p):
    status = p.wait()
    with lock:
        print(name, status, flush=True)
print("ready", 0, flush=True)
for line in sys.stdin:
    verb, name, *words = line.split()
    if verb == "kill":
        programs[name].kill()
    else:
        with open(words[0], "w") as log:
            programs[name] = subprocess.Popen(["nice", "-n", "2", *words[1:]], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        threading.Thread(target=wait, args=(name, programs[name])).start()
for p in programs.values():
    p.kill()
"""


class Engine:
    """One end of the link, with the agent in its tree."""

    def __init__(self, net, end, folder, persona="rxe", options=(), addresses=None):
        self.net, self.end, self.folder = net, end, folder
        env = {**os.environ, "TMPDIR": folder, "XDG_RUNTIME_DIR": folder}
        for name, more in (("ASAN_OPTIONS", "quarantine_size_mb=4"), ("TSAN_OPTIONS", "exitcode=66")):
            env[name] = ":".join(filter(None, [env.get(name), more, f"log_path={folder}/sanitizer"]))
        self.log = open(f"{folder}/engine{end}", "w")
        self.run = subprocess.Popen([*net.enter(end), *NOBODY, UVERBSCTL, "run", "--persona", persona, "--wire",
                                     ",".join(addresses or ADDRESSES[end]),
                                     *options, "--", sys.executable, "-c", AGENT],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=env, cwd=folder)
        os.set_blocking(self.run.stdout.fileno(), False)
        self.said, self.ended = b"", {}
        assert until(lambda: self.has_ended("ready")), self.words()
        guardian = children(self.run.pid)[0]
        self.pid = children(guardian)[0]

    def words(self):
        lines = pathlib.Path(f"{self.folder}/engine{self.end}").read_text().splitlines()
        return "\n".join(line for line in lines if "filter loss" not in line)

    def tell(self, *words):
        self.run.stdin.write(" ".join(map(str, words)).encode() + b"\n")
        self.run.stdin.flush()

    def has_ended(self, name):
        """Returns True or False; self.ended[name] has its exit status."""
        self.said += self.run.stdout.read() or b""
        *lines, self.said = self.said.split(b"\n")
        self.ended.update((line.split()[0].decode(), int(line.split()[1])) for line in lines)
        assert name in self.ended or self.run.poll() is None, self.words()
        return name in self.ended

    def start(self, name, *words):
        """Returns a function that tells what the program has printed."""
        log = pathlib.Path(f"{self.folder}/{name}.{self.end}")
        self.ended.pop(name, None)
        self.tell("start", name, log, *words)
        return lambda: log.read_text() if log.exists() else ""

    def status(self, *options):
        said = self.start("status", UVERBSCTL, "status", "--json", *options)
        assert until(lambda: self.has_ended("status")) and self.ended["status"] == 0, self.words()
        return json.loads(said().splitlines()[-1])

    def looks(self):
        """Its descriptors, its threads, and its memory in KiB."""
        proc = pathlib.Path(f"/proc/{self.pid}")
        # It remembers some callers by descriptors of /proc (src/run/slot.c), no matter whether they still exist.
        return (sum(not os.readlink(fd).startswith("/proc/") for fd in (proc / "fd").iterdir()), len(os.listdir(proc / "task")),
                int(re.search(r"VmRSS:\s+(\d+)", (proc / "status").read_text())[1]))

    def dropped(self):
        """Packets that found no room: of the kernel's sockets and queues, and of the engine."""
        lines = [line.split() for name in ("udp", "udp6") for line in pathlib.Path(f"/proc/{self.pid}/net/{name}").read_text().splitlines()]
        queues = sum(int(line.split()[1], 16) for line in pathlib.Path("/proc/net/softnet_stat").read_text().splitlines())
        reasons = [w["dropped"] for w in self.status()["wire"]]
        return queues + sum(int(w[-1]) for w in lines if w[1].endswith(":12B7")) + \
            sum(r.get(name, 0) for r in reasons for name in ("inbox full", "no memory"))

    def close(self):
        """Ends the programs that still run. Returns the exit status of the run."""
        self.run.stdin.close()
        status = self.run.wait(STUCK)
        self.log.close()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.close()


def program_of(rng):
    """Returns a program, and which of its ends (0: the server) must end by itself when the other is killed: it waits for no receive."""
    gid, size = rng.choice("01"), rng.choice((1, 64, 1000, 4096, 20000, 65536, 300000))
    events = "" if rng.random() < 0.2 else "-e "
    few = 30 if size > 50000 else 200
    kind = rng.randrange(9)
    if kind < 3:
        which = ("rc", "rc", "srq")[kind]
        return f"ibv_{which}_pingpong {events}-c -n {few} -s {size} -g {gid}", ()
    if kind == 3:
        return f"ibv_uc_pingpong {events}-c -n 50 -s {min(size, 20000)} -g {gid}", ()
    if kind == 4:
        return f"ibv_ud_pingpong {events}-c -n 100 -s {min(size, 1000)} -g {gid}", ()
    name, ends = (("ib_write_bw", (0, 1)), ("ib_read_bw", (0, 1)), ("ib_send_bw", (1,)), ("ib_atomic_bw", (0, 1)))[kind - 5]
    options = f"{'' if kind == 5 else events}-F -x {gid} -u 17 -n {few * 3} -q {rng.choice((1, 1, 4))}"
    if kind != 8:
        options += f" -s {max(size, 2)}"
    if rng.random() < 0.3 and "_send_" not in name:
        options += " -b"  # both ways
    return f"{name} {options}", ends


class Pair:
    """Both sides of a program."""

    def __init__(self, engines, rng, number, kills):
        """kills: the part of pairs of which one side is killed."""
        self.name, self.port = f"pair{number}", 20000 + number % 10000
        self.program, self.must_end = program_of(rng)
        self.sides = engines if rng.random() < 0.5 else engines[::-1]  # the server's, the client's
        self.killed = rng.randrange(2) if rng.random() < kills else None
        self.kill_after = rng.uniform(0, 2 if rng.random() < 0.5 else 0.3)
        self.lost = [e.dropped() for e in engines] if "_uc_" in self.program or "_ud_" in self.program else []
        self.words = [None, None]  # functions: what each side has printed
        self.kill_time = None
        self.began = time.monotonic()
        self.result = None
        self.start(0)

    def start(self, side):
        words = [*self.program.split(), "-p", self.port]
        self.words[side] = self.sides[side].start(self.name, *words, *([ADDRESSES[self.sides[0].end][0]] * side))
        self.start_time = time.monotonic()

    def listens(self):
        return self.sides[0].net.listens(self.sides[0].end, self.port)

    def ended(self, side):
        return not self.words[side] or self.sides[side].has_ended(self.name)

    def said(self):
        return "\n--- client:\n".join(words() for words in self.words if words)

    def kill(self, side):
        self.sides[side].tell("kill", self.name)

    def abandon(self):
        for side in (0, 1):
            if not self.ended(side):
                self.kill(side)

    def step(self):
        """Returns True when both sides have ended, and self.result is what that was."""
        now = time.monotonic()
        if not self.words[1] and not self.ended(0) and self.listens():
            self.start(1)
        if self.killed is not None and self.kill_time is None and self.words[1] and now > self.start_time + self.kill_after:
            if not self.ended(self.killed):
                self.kill(self.killed)
            self.kill_time = now
        if self.ended(0) and self.ended(1):
            self.judge()
            return True
        if self.kill_time is not None and self.result is None and not self.ended(1 - self.killed):
            survivor = 1 - self.killed
            may_wait = survivor not in self.must_end or (survivor == 0 and self.listens())
            if now > self.kill_time + (WAITS if may_wait else STUCK):
                assert may_wait, f"{self.program}: the survivor, side {survivor}, does not end: {self.said()}"
                self.kill(survivor)
                self.result = "survivor waited for its peer"
        elif self.kill_time is None and now > self.began + STUCK and self.lost:
            # Nothing repeats what is lost of UC and UD.
            lost = sum(e.dropped() for e in self.sides) - sum(self.lost)
            assert lost, f"{self.program} waits, and no packet was dropped: {self.said()}"
            self.killed, self.kill_time, self.result = 0, now, "lost a packet that nothing repeats"
            self.abandon()
        assert now < self.began + 3 * STUCK, f"{self.program} does not end: {self.said()}"
        return False

    def judge(self):
        said, statuses = self.said(), [e.ended.get(self.name) for e in self.sides]
        if self.kill_time is None or statuses[self.killed] != -signal.SIGKILL:
            if was_disturbed(said):
                self.result = "disturbed"
                return
            # The peer of a program that has all that it waits for repeats its last request in vain, if the acknowledgement is lost.
            if sorted(statuses) == [0, 1] and RETRIES.search(self.words[statuses.index(1)]()):
                self.result = "last acknowledgement lost"
                return
            assert statuses == [0, 0] and not WRONG.search(said), f"{self.program}, server on {self.sides[0].end}: {statuses}\n{said}"
            self.result = "whole"
        else:
            # What has arrived is right although the peer died in the middle of it.
            assert not re.search("(?i)invalid data|mismatch", said), f"{self.program}: {said}"
            self.result = self.result or ("survivor's retries were exceeded" if RETRIES.search(said) else "survivor ended")
        for engine in self.sides:
            pathlib.Path(f"{engine.folder}/{self.name}.{engine.end}").unlink(missing_ok=True)


def idle(engine):
    """Waits until nothing is charged and no object is left."""
    left = []

    def is_idle():
        left[:] = engine.status("--accounts")["accounts"]
        return not left

    assert until(is_idle), left
    return engine.looks()


def reports_in(folder):
    """What the sanitizers have said of the engines."""
    return "".join(path.read_text() for path in pathlib.Path(folder).glob("sanitizer*"))
