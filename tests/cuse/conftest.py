# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A daemon for a test, on real CUSE: these tests run as root in the virtual machine (tests/vm/suite)."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import pytest

BUILD = pathlib.Path(os.environ["UVERBSD_BUILD"])
CLIENT = BUILD / "tests" / "cuse" / "cuse-client"
OPTIONS = os.environ.get("UVERBSD_OPTIONS", "").split()  # for every daemon: "--separate yes", for example
NOBODY = 65534
NOBODYS_GROUP = 65533  # another number: a user id that is taken for a group id must not pass
STUCK = 300  # seconds: a limit for what is stuck, and not for what is slow


def wait_for(what, condition, seconds=STUCK):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds} s")


class Daemon:
    def __init__(self, tmp_path, *options):
        self.control = "/run/uverbsd/control"
        self.log = tmp_path / "uverbsd.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([BUILD / "src" / "uverbsd", *OPTIONS, *options], stderr=log)
        wait_for("uverbsd's start", lambda: self.text_of("uverbsd: ready:") or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()
        self.nodes = re.search("uverbsd: ready: (.*)", self.log.read_text()).group(1).split()

    def text_of(self, text):
        return text in self.log.read_text()

    def status(self, command="status"):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(STUCK)
            s.connect(self.control)
            s.sendall(command.encode() + b"\n")
            return json.loads(s.makefile().readline())

    def files(self):
        return sum(len(d["files"]) for d in self.status()["devices"])

    def held(self):
        """Each user's part of the daemon: {user id: {resource: how much}}."""
        users = {}
        for row in self.status("accounts")["accounts"]:
            users.setdefault(row["uid"], {})[row["resource"]] = row["used"]
        return users

    def idle(self):
        """No client has left anything: no file, object, charge, or grant."""
        s = self.status()
        return (not self.held() and not s["memlock"] and not s["grants"]["under_way"]
                and all(not d["files"] and not d["objects"] for d in s["devices"]))

    def wait_idle(self):
        wait_for("an idle daemon", self.idle)

    def stop(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        return self.process.wait(STUCK)


def states(pid):
    """Of all its threads, a letter each (proc(5))."""
    text = [pathlib.Path(f"/proc/{pid}/task/{tid}/stat").read_text() for tid in os.listdir(f"/proc/{pid}/task")]
    return {line.rsplit(")", 1)[1].split()[0] for line in text}


@contextlib.contextmanager
def stopped_after(tmp_path, pid, call):
    """
    The process is stopped as soon as one of its threads has executed this system call, which what is in the block makes it do.
    It goes on when it gets SIGCONT.
    """
    log = tmp_path / "strace.log"
    strace = subprocess.Popen(["strace", "-f", "-o", log, "-e", f"inject={call}:signal=SIGSTOP:when=1", "-p", str(pid)],
                              stderr=subprocess.PIPE, text=True)
    assert "attached" in strace.stderr.readline()
    try:
        yield
        wait_for("a stop of the process", lambda: "stopped by SIGSTOP" in log.read_text())
    finally:
        strace.terminate()
        strace.communicate()
    wait_for("a stop of all its threads", lambda: states(pid) == {"T"})


def left_behind():
    """What a daemon that has ended must not leave."""
    return ([str(p) for p in pathlib.Path("/dev/infiniband").glob("uverbs*")]
            + [str(p) for p in pathlib.Path("/sys/class/cuse").glob("*")]
            + [str(p) for p in pathlib.Path("/run/uverbsd").glob("*")])


@pytest.fixture(scope="session", autouse=True)
def sysfs_is_asked():
    """libibverbs reads sysfs only where netlink fails (and would load ib_core by asking)."""
    folder = pathlib.Path("/run/modprobe.d")
    folder.mkdir(exist_ok=True)
    (folder / "uverbsd.conf").write_text("alias net-pf-16-proto-20 off\n")


@pytest.fixture
def start(tmp_path):
    daemons = []

    def start(*options):
        daemons.append(Daemon(tmp_path, *options))
        return daemons[-1]
    yield start
    for d in daemons:
        if d.process.poll() is None:
            assert d.stop() == 0, d.log.read_text()
        # Where a test killed it the tree stays: nobody was left to remove it. The next one replaces it.
        if d.process.returncode == 0:
            assert not left_behind()


def environment():
    return dict(os.environ, SYSFS_PATH="/run/uverbsd/sysfs")


def ids_of(user):
    return dict(user=user, group=NOBODYS_GROUP if user else 0, extra_groups=[])


def run_client(mode, *args, user=NOBODY, timeout=STUCK, **kwargs):
    done = subprocess.run([CLIENT, mode, *args], env=environment(), **ids_of(user),
                          stdout=subprocess.PIPE, text=True, timeout=timeout, **kwargs)
    assert done.returncode == 0, f"{mode}: {done.returncode} {done.stdout}"


def start_client(mode, *args, user=NOBODY):
    """One that loops: ready when this returns."""
    p = subprocess.Popen([CLIENT, mode, *args], env=environment(), **ids_of(user),
                         stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "ready\n"
    return p
