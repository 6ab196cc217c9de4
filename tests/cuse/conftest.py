# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Fixtures that start a daemon on real CUSE: these tests run as root in the virtual machine (tests/vm/suite)."""
import collections
import contextlib
import json
import os
import pathlib
import pwd
import re
import signal
import socket
import subprocess
import time

import pytest

BUILD = pathlib.Path(os.environ["UVERBSD_BUILD"])
CLIENT = BUILD / "tests" / "cuse" / "cuse-client"
OPTIONS = os.environ.get("UVERBSD_OPTIONS", "").split()  # for every daemon: "--separate no", for example
SEPARATE = "no" not in OPTIONS  # a daemon has two processes, unless its test says otherwise
ONE_PROCESS = ("--separate", "no")  # for a test that needs it, and says why
MAPPED = SEPARATE and "hfi1" not in OPTIONS and tuple(int(n) for n in os.uname().release.split(".")[:2]) >= (6, 9)
PERSONA = "rxe" if MAPPED else "hfi1"  # of devices by default
NAMES = ["rxe0", "rxe1"] if MAPPED else ["hfi1_0", "hfi1_1"]
LOANS = 2 if MAPPED else 1  # of ibv_open_device(), whose GET_CONTEXT and ASYNC_EVENT_ALLOC are calls of their own
UNMAPPED = ("--persona", "hfi1")  # for a test whose client gets no loan, and so no queues that it can map
ENGINE_USER = "_uverbsd"
SYSUSERS = pathlib.Path(__file__).resolve().parents[2] / "contrib" / "sysusers.d" / "uverbsd.conf"
NOBODY = 65534
NOBODYS_GROUP = 65533  # a different number: a test must fail if a user id is taken for a group id
STUCK = 300  # seconds: a limit for what is stuck, and not for what is slow
SETTLED = 30  # seconds: what a client has left must be gone by then: 5 on a processor that is not emulated


def wait_for(what, condition, seconds=STUCK):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds} s")


def children(pid):
    """Returns the children of all threads that the process has now; threads may exit meanwhile."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, (task / "children").read_text().split())
    return found


def status_of(pid):
    return dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


def engine_of(pid):
    """Returns the live engine process of this broker: its child of another user, under a seccomp filter. None if there is none."""
    for child in children(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            s = status_of(child)
            if s["Seccomp"] == "2" and s["Uid"].split()[0] != "0" and s["State"][0] != "Z":
                return child
    return None


class Daemon:
    def __init__(self, tmp_path, *options, program=(BUILD / "src" / "uverbsd",)):
        self.control = "/run/uverbsd/control"
        self.log = tmp_path / "uverbsd.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([*program, *OPTIONS, *options], stderr=log)
        wait_for("uverbsd's start", lambda: self.text_of("uverbsd: ready:") or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()
        self.nodes = re.search("uverbsd: ready: (.*)", self.log.read_text()).group(1).split()
        self.begun = self.serving, self.devices()
        self.at_start, self.children_at_start = self.descriptors(), len(children(self.process.pid))

    @property
    def serving(self):
        """The pid of the process that serves clients now: with a broker, the current engine process."""
        return engine_of(self.process.pid) or self.process.pid

    def text_of(self, text):
        return text in self.log.read_text()

    def starts(self):
        """How often an engine process has said that it is ready."""
        return self.log.read_text().count("uverbsd: ready:")

    def status(self, command="status"):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(STUCK)
            s.connect(self.control)
            s.sendall(command.encode() + b"\n")
            return json.loads(s.makefile().readline())

    def files(self):
        return sum(len(d["files"]) for d in self.status()["devices"])

    def held(self, but=()):
        """Each user's part of the daemon, but for some resources: {user id: {resource: how much}}."""
        users = {}
        for row in self.status("accounts")["accounts"]:
            if row["resource"] not in but:
                users.setdefault(row["uid"], {})[row["resource"]] = row["used"]
        return users

    def idle(self, but=()):
        """No client has left anything: no file, object, charge (but of the resources `but`, which the test holds), or grant."""
        s = self.status()
        return (not self.held(but) and not s["memlock"] and not s["grants"]["under_way"]
                and all(not d["files"] and not d["objects"] for d in s["devices"]))

    def idle_after_an_end(self):
        """A process that has ended has closed its files, and what they had is gone; the kernel tells of a file of queues a moment later."""
        if MAPPED:
            self.wait_idle()
        return self.idle()

    def wait_idle(self, but=()):
        try:
            wait_for("an idle daemon", lambda: self.idle(but))
        except AssertionError as e:
            raise AssertionError(f"{e}: {self.held()} {self.status()}") from None

    def descriptors(self):
        """What the serving process has open: how often each, without the numbers of sockets and of processes."""
        found = collections.Counter()
        for fd in pathlib.Path(f"/proc/{self.serving}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found[re.sub(r"\d+", "N", os.readlink(fd))] += 1
        return found

    def left(self):
        """What clients have left: charges, files, objects, grants, and descriptors that were not open at the start. None: nothing."""
        if not self.idle():
            return self.held(), self.status()
        if (self.serving, self.devices()) != self.begun:
            return None  # the test has replaced the process, or has removed or added devices
        more = self.descriptors() - self.at_start
        # The engine process keeps a socket to each child of the broker that has answered questions, and uses it again.
        more["socket:[N]"] -= max(0, len(children(self.process.pid)) - self.children_at_start)
        return +more or None

    def devices(self):
        return [d["node"] for d in self.status()["devices"]]

    def left_in_the_end(self):
        """What clients have left that have all ended: see left()."""
        end = time.monotonic() + SETTLED
        while (left := self.left()) and time.monotonic() < end:
            time.sleep(0.1)
        return left

    def stop(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        return self.process.wait(STUCK)


def states(pid):
    """Returns the states of all threads of the process, as the letters of proc(5)."""
    text = [pathlib.Path(f"/proc/{pid}/task/{tid}/stat").read_text() for tid in os.listdir(f"/proc/{pid}/task")]
    return {line.rsplit(")", 1)[1].split()[0] for line in text}


@contextlib.contextmanager
def stopped_after(tmp_path, pid, call):
    """
    Stops the process, or a new child of it, as soon as one of its threads has executed this system call. The body of the `with`
    statement must cause that call. Afterwards the stopped pid is in the list that the body got; SIGCONT continues the process.
    """
    stopped = []
    log = tmp_path / "strace.log"
    strace = subprocess.Popen(["strace", "-f", "-o", log, "-e", f"inject={call}:signal=SIGSTOP:when=1", "-p", str(pid)],
                              stderr=subprocess.PIPE, text=True)
    assert "attached" in strace.stderr.readline()
    try:
        yield stopped
        wait_for("a stop of the process", lambda: "stopped by SIGSTOP" in log.read_text())
        stopped.append(int(re.search(r"^(\d+) .*stopped by SIGSTOP", log.read_text(), re.M).group(1)))
    finally:
        strace.terminate()
        strace.communicate()
    wait_for("a stop of all its threads", lambda: states(stopped[0]) == {"T"})


def left_behind():
    """Returns the files that a daemon should have removed when it ended."""
    return ([str(p) for p in pathlib.Path("/dev/infiniband").glob("uverbs*")]
            + [str(p) for p in pathlib.Path("/sys/class/cuse").glob("*")]
            + [str(p) for p in pathlib.Path("/run/uverbsd").glob("*")])


@pytest.fixture(scope="session", autouse=True)
def sysfs_is_asked():
    """Makes netlink fail: only then does libibverbs read sysfs. (Its netlink query would otherwise load ib_core.)"""
    folder = pathlib.Path("/run/modprobe.d")
    folder.mkdir(exist_ok=True)
    (folder / "uverbsd-test.conf").write_text("alias net-pf-16-proto-20 off\n")


def add_engine_user():
    """Creates the user of the engine process, as an administrator does. Returns its number."""
    try:
        return pwd.getpwnam(ENGINE_USER).pw_uid
    except KeyError:
        subprocess.run(["systemd-sysusers", SYSUSERS], check=True, timeout=STUCK)
        return pwd.getpwnam(ENGINE_USER).pw_uid


@pytest.fixture(scope="session", autouse=True)
def engine_user():
    return add_engine_user()


@pytest.fixture
def start(tmp_path):
    daemons = []

    def start(*options, **kwargs):
        daemons.append(Daemon(tmp_path, *options, **kwargs))
        return daemons[-1]
    yield start
    end_clients()
    found = [d.left_in_the_end() for d in daemons if d.process.poll() is None]
    for d in daemons:
        if d.process.poll() is None:
            assert d.stop() == 0, d.log.read_text()
        # A daemon that a test has killed leaves its sysfs directory. The next daemon replaces it.
        if d.process.returncode == 0:
            assert not left_behind()
        assert not d.text_of(" is still charged for "), d.log.read_text()
    assert not any(found), found


def environment():
    return dict(os.environ, SYSFS_PATH="/run/uverbsd/sysfs")


def ids_of(user):
    return dict(user=user, group=NOBODYS_GROUP if user else 0, extra_groups=[])


def run_client(mode, *args, user=NOBODY, timeout=STUCK, **kwargs):
    done = subprocess.run([CLIENT, mode, *args], env=environment(), **ids_of(user),
                          stdout=subprocess.PIPE, text=True, timeout=timeout, **kwargs)
    assert done.returncode == 0, f"{mode}: {done.returncode} {done.stdout}"


looping = []  # clients that a test has started: they end before it is seen what they leave


def end_clients():
    while looping:
        p = looping.pop()
        p.kill()
        p.wait(STUCK)


def serves():
    """Is a further client served? A client that loops does not tell: it also stays if its first call waits for ever."""
    return subprocess.run([CLIENT, "channels"], env=environment(), **ids_of(NOBODY), timeout=STUCK, check=False).returncode == 0


def start_client(mode, *args, user=NOBODY):
    """Starts a client that loops, and waits until it is ready. It ends with the test at the latest."""
    p = subprocess.Popen([CLIENT, mode, *args], env=environment(), **ids_of(user),
                         stdout=subprocess.PIPE, text=True)
    looping.append(p)
    assert p.stdout.readline() == "ready\n"
    return p
