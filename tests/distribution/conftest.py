# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The device on which the distribution's programs run, as user nobody, over either transport.

UVERBSD_TRANSPORT=run (the default): one process tree of `uverbsctl run`, in which a shell starts the programs.
UVERBSD_TRANSPORT=cuse: uverbsd on real CUSE; these tests run as root in the virtual machine (tests/vm/suite).

One device of each way serves all tests, so each test must leave it as it found it. A way is an ABI of the persona hfi1, or "rxe":
its provider maps the queues, for which CUSE needs Linux 6.9.
"""
import atexit
import contextlib
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

sys.path.append(pathlib.Path(__file__).resolve().parents[1].as_posix())
import perftest  # noqa: E402 pylint: disable=wrong-import-position

BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build")).resolve()
PROGRAMS = pathlib.Path(__file__).resolve().parents[2] / "docs/programs.md"
TRANSPORT = os.environ.get("UVERBSD_TRANSPORT", "run")
LONG = bool(os.environ.get("UVERBSD_LONG"))
NOBODY = 65534
CUSE = TRANSPORT == "cuse"
MAPS = not CUSE or tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups())) >= (6, 9)
QUICK = bool(os.environ.get("UVERBSD_QUICK"))  # leave out the slowest tests
collect_ignore = ["test_perftest.py", "test_pyverbs.py"] if QUICK else []
STUCK = 300  # seconds: a limit for a program that is stuck, long enough for one that is only slow
LIMIT = 1800 if LONG else STUCK  # for a program that works longer with UVERBSD_LONG


def sanitized():
    options = json.loads((BUILD / "meson-info" / "intro-buildoptions.json").read_text())
    return next(o["value"] for o in options if o["name"] == "b_sanitize") != "none"


SANITIZED = sanitized()

# A folder that every user can enter, which may not be true of the build folder.
PLACE = pathlib.Path(tempfile.mkdtemp(prefix="uverbsd-programs-"))
PLACE.chmod(0o777)
atexit.register(shutil.rmtree, PLACE, True)
OPTIONAL = ["mpi-openmpi", "mpi-mpich", "gloo"]  # meson builds them if what they need is installed
CLIENTS = {n: shutil.copy(BUILD / "tests/distribution" / n, PLACE)
           for n in ("payload", "protection", "mcast", "killing", "garbage", "lists", "lists-asan", "lists-tsan", "shared", "reply",
                     "tcp", "cycles", "ucx", *OPTIONAL) if n not in OPTIONAL or (BUILD / "tests/distribution" / n).exists()}
UVERBSCTL = shutil.copy(BUILD / "tools/uverbsctl", PLACE)


# An address of the machine's beside 127.0.0.1: programs such as libfabric leave out the loopback interface.
IP = "192.0.2.9"
# Over CUSE it is there from the second device on.
INTERFACE = "ip link set lo up; ip link show veth0 >/dev/null 2>&1 || " \
            f"{{ ip link add veth0 type veth peer name veth1; ip addr add {IP}/24 dev veth0; }}; ip link set veth0 up; ip link set veth1 up"
WAYS = ["ioctl", "write"] + (["rxe"] if MAPS else [])


def over_cuse(*abis):
    """Restricts the test to these ABIs over CUSE, which is slow in an emulated machine; what it tests does not depend on CUSE."""
    abis = abis if CUSE and not LONG else WAYS
    return pytest.mark.parametrize("lasting_device", abis, indirect=True)


# The device as users have it who give no option.
default_device = pytest.mark.parametrize("lasting_device", ["rxe" if MAPS else "ioctl"], indirect=True)
# The same with the address IP.
device_with_ip = pytest.mark.parametrize("lasting_device", ["ip"], indirect=True)


def documented_command(start, program=None):
    """The command in the table of docs/programs.md that begins like this, with the program that it names PROGRAM, as argv."""
    found = re.findall(rf"`({re.escape(start)}(?: [^`]*)?)`", PROGRAMS.read_text())
    assert len(found) == 1, found
    return [program if a == "PROGRAM" else a for a in shlex.split(found[0])]


def until(condition, what, seconds=STUCK, tell=lambda: ""):
    """Waits until condition() is true, and returns its value. tell() returns what else the report of a failure says."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() >= end:
            raise AssertionError(f"{what}: not within {seconds} s\n{tell()}")
        time.sleep(0.01)
    return value


def output_of(*argv):
    """The output of a command that may be missing, fail or hang."""
    try:
        done = subprocess.run(argv, text=True, errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60)
        return f"$ {shlex.join(argv)}\n{done.stdout}"
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"$ {shlex.join(argv)}\n{e}\n"


def may_lock_any():
    """perftest needs more locked memory than the usual limit allows: lifts the limit if possible, as an administrator would."""
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY


LOCKS_ANY = may_lock_any()
# Root in a container may be unable to lift the limit; it can still give programs the capability that overrides it.
LOCK_BY_CAPABILITY = not LOCKS_ANY and not os.geteuid()
CAN_LOCK = not CUSE or LOCKS_ANY or LOCK_BY_CAPABILITY  # run sets no limit


def as_user(argv):
    caps = ["--inh-caps=-all,+ipc_lock", "--ambient-caps=-all,+ipc_lock"] if LOCK_BY_CAPABILITY else []
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *caps]
    return argv if os.geteuid() else [*user, *argv]


def without_capability(argv):
    return ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", *argv] if LOCK_BY_CAPABILITY else argv


def children(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [int(c) for t in os.listdir(f"/proc/{pid}/task")
                for c in pathlib.Path(f"/proc/{pid}/task/{t}/children").read_text().split()]
    return []


def tree_of(pid):
    """The pids of the process and its descendants."""
    return [pid, *(p for child in children(pid) for p in tree_of(child))]


def kill_tree(pid):
    for child in children(pid):
        kill_tree(child)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def listens(port, pid="self"):
    """pid: a process in the network namespace to look at."""
    pattern = re.compile(rf":{port:04X} \w+:0000 0A ")
    return any(pattern.search(pathlib.Path("/proc", str(pid), "net", f).read_text()) for f in ("tcp", "tcp6"))


def free_port():
    """An unused TCP port: on the default port a client could reach another test's server."""
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


class Done:
    def __init__(self, status, text):
        self.status, self.text = status, text

    def ok(self):
        assert self.status == 0, f"exit status {self.status}\n{self.text}"
        return self.text


class Program:
    """A program started on the device; its stdout and stderr are one stream."""

    count = 0

    def __init__(self, device, argv, locks=False):
        Program.count += 1
        self.device = device
        self.argv = [str(a) for a in argv]
        if not locks:
            self.argv = without_capability(self.argv)
        self.out, self.status = (PLACE / f"{Program.count}.{e}" for e in ("out", "status"))

    def script(self):
        return f"{shlex.join(self.argv)} >{self.out} 2>&1 </dev/null; echo $? >{self.status}.new; " \
               f"mv {self.status}.new {self.status}"

    def text(self):
        return self.out.read_text(errors="replace") if self.out.exists() else ""

    def ended(self):
        return self.status.exists()

    def wait(self, seconds=STUCK):
        until(self.ended, f"the end of {self.argv}", seconds, lambda: self.text() + self.device.diagnosis())
        return Done(int(self.status.read_text()), self.text())


class Device:
    """The tests' view of a device; each transport implements start(), end(), num_fds(), idle(), control()."""

    def __init__(self, way):
        self.way = way
        self.started = []
        abi, ip = ("rxe" if MAPS else "ioctl", ["--ip", IP]) if way == "ip" else (way, [])
        self.options = [*(["--persona", "rxe"] if abi == "rxe" else ["--persona", "hfi1", "--abi", abi]), *ip]
        self.name = "rxe0" if abi == "rxe" else "hfi1_0"

    def run(self, *argv, seconds=STUCK):
        return self.start(*argv).wait(seconds)

    def pair(self, program, *options, seconds=STUCK, locks=False, begin=lambda: None):
        """
        Runs server and client of a program that finds its peer by TCP. Returns both outputs. Calls begin() before each
        attempt: perftest may have sent all of its data before it gives up.
        """
        gid = [] if self.way != "rxe" else ["-x" if program.startswith("ib_") else "-g", 0]

        def attempt():
            begin()
            port = free_port()
            argv = [program, "-p", port, *gid, *options]
            try:
                return self.server_and_client(argv, [*argv, "localhost"], port, seconds, locks)
            except AssertionError as e:
                if perftest.was_disturbed(str(e)):
                    self.end_programs()
                return e

        texts = perftest.undisturbed(attempt, str)
        if isinstance(texts, AssertionError):
            raise texts
        return texts

    def server_and_client(self, argv, client_argv, port, seconds=STUCK, locks=False):
        """Starts the client when the server listens on the TCP port. Returns both outputs."""
        server = self.start(*argv, locks=locks)
        until(lambda: listens(port) or server.ended(), f"{argv} listening", tell=self.diagnosis)
        client = self.start(*client_argv, locks=locks)
        until(lambda: client.ended() and server.ended() or self.failed(client) or self.failed(server),
              f"the end of {argv}", seconds,
              lambda: f"server: {server.text()}\nclient: {client.text()}\n{self.diagnosis()}")
        texts = [f"server: {server.text()}", f"client: {client.text()}"]
        assert client.ended() and server.ended() and not self.failed(client) and not self.failed(server), "\n".join(texts)
        return texts

    def cm_ids(self):
        """The identifiers of librdmacm's clients."""
        return json.loads(self.control("status", "--json").ok())["cm_ids"]

    def rss(self):
        return rss(self.engine)

    def all_fds(self):
        return "\n".join(sorted(fds(self.engine)))

    def diagnosis(self):
        """What each thread of the engine and of the programs does, for the report of a program that is stuck."""
        pids = {p: None for root in (self.engine, *(p.pid for p in self.started)) for p in tree_of(root)}
        threads = output_of("ps", "-L", "-o", "pid,tid,stat,pcpu,time,wchan:24,args", "-p", ",".join(map(str, pids)))
        stacks = [output_of("gdb", "-nx", "-batch", "-p", str(pid), "-ex", "thread apply all bt")
                  for pid in self.engines()] if shutil.which("gdb") else ["gdb is not installed: no stacks"]
        return "\n".join([threads, *stacks, self.log()])

    def engines(self):
        return [self.engine]

    @staticmethod
    def failed(program):
        return program.ended() and program.wait().status != 0

    def end_programs(self):
        for p in self.started:
            if not p.ended():
                self.end(p)
        self.started.clear()


class RunDevice(Device):
    def __init__(self, way):
        super().__init__(way)
        env = {**os.environ, "TMPDIR": str(PLACE), "XDG_RUNTIME_DIR": str(PLACE)}
        self.stderr = open(PLACE / f"run-{way}.log", "w+")
        # Root in a user namespace may make the interface. The programs are no root there: Open MPI would refuse to start.
        no_root = f"exec unshare --user --map-user={NOBODY} --map-group={NOBODY} \"$@\""
        own_net = ["unshare", "--user", "--map-root-user", "--net", "sh", "-ec", f"{INTERFACE}; {no_root}", "sh"] if way == "ip" else []
        self.shell = subprocess.Popen(as_user([*own_net, UVERBSCTL, "run", *self.options, "--", "sh"]), text=True, env=env,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr, cwd=PLACE)
        self.say("echo ready")
        assert self.shell.stdout.readline() == "ready\n", self.log()
        guardian = children(self.shell.pid)[0]
        self.engine = until(lambda: children(guardian), "the engine")[0]

    def log(self):
        return pathlib.Path(self.stderr.name).read_text()

    def say(self, line):
        self.shell.stdin.write(line + "\n")
        self.shell.stdin.flush()

    def start(self, *argv, locks=False):
        p = Program(self, argv, locks)
        self.say(f"({p.script()}) & echo $!")
        p.pid = int(self.shell.stdout.readline())
        self.started.append(p)
        return p

    def end(self, program):
        kill_tree(program.pid)

    def num_fds(self):
        """Leaves out the table of callers: it keeps entries of exited callers until others need the place."""
        callers = [f for f in fds(self.engine) if re.fullmatch("/proc/[0-9]+/(fdinfo/[0-9]+|comm|mem|oom_score_adj)", f)]
        assert len(callers) <= 3 * 256
        return len(fds(self.engine)) - len(callers)

    def idle(self):
        return not any("/memfd:uverbsd:" in f for f in fds(self.engine))

    def control(self, *argv):
        return self.run(UVERBSCTL, *argv)

    def stop(self):
        self.end_programs()
        self.shell.stdin.close()
        assert self.shell.wait(STUCK) == 0, self.log()
        assert "died" not in self.log()


class CuseDevice(Device):
    def __init__(self, way):
        super().__init__(way)
        # libibverbs reads sysfs only if RDMA netlink fails, and opening that socket would load ib_core.
        folder = pathlib.Path("/run/modprobe.d")
        folder.mkdir(exist_ok=True)
        (folder / "uverbsd.conf").write_text("alias net-pf-16-proto-20 off\n")
        if way == "ip":
            subprocess.run(["sh", "-ec", INTERFACE], check=True)
        self.stderr = open(PLACE / f"cuse-{way}.log", "w+")
        # --sysfs overlay: not every program honours SYSFS_PATH.
        options = os.environ.get("UVERBSD_OPTIONS", "").split()
        self.daemon = subprocess.Popen([BUILD / "src/uverbsd", *options, *self.options, "--sysfs", "overlay"], stderr=self.stderr)
        until(lambda: "uverbsd: ready:" in self.log() or self.daemon.poll() is not None, "uverbsd's start")
        assert self.daemon.poll() is None, self.log()
        # The broker's first child is the engine process.
        self.engine = self.daemon.pid if "no" in options else children(self.daemon.pid)[0]

    def log(self):
        return pathlib.Path(self.stderr.name).read_text()

    def start(self, *argv, locks=False):
        p = Program(self, argv, locks)
        p.process = subprocess.Popen(as_user(["sh", "-c", p.script()]), cwd=PLACE, stdin=subprocess.DEVNULL)
        p.pid = p.process.pid
        self.started.append(p)
        return p

    def end(self, program):
        kill_tree(program.pid)

    def end_programs(self):
        started = list(self.started)
        super().end_programs()
        for p in started:
            p.process.wait(STUCK)

    def engines(self):
        return tree_of(self.daemon.pid)

    def status(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(STUCK)
            s.connect("/run/uverbsd/control")
            s.sendall(b"status\n")
            return json.loads(s.makefile().readline())

    def cm_ids(self):
        return self.status()["cm_ids"]  # without a program, which takes the emulated processor from those that are awaited

    def num_fds(self):
        # The engine process keeps sockets to children of the broker, one each.
        return len(fds(self.engine)) - len([c for c in children(self.daemon.pid) if c != self.engine])

    def idle(self):
        s = self.status()
        return (not s["memlock"] and not s["grants"]["under_way"]
                and all(not d["files"] and not d["objects"] for d in s["devices"]))

    def control(self, *argv):
        done = subprocess.run([UVERBSCTL, *argv], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=STUCK)
        return Done(done.returncode, done.stdout)

    def stop(self):
        self.end_programs()
        self.daemon.send_signal(signal.SIGTERM)
        assert self.daemon.wait(STUCK) == 0, self.log()


def fds(pid):
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


def rss(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


# A daemon owns the nodes and the control socket, so only one can run: pytest groups the tests by this parameter.
@pytest.fixture(scope="session", params=WAYS)
def lasting_device(request):
    d = (CuseDevice if CUSE else RunDevice)(request.param)
    yield d
    d.stop()


@contextlib.contextmanager
def left_as_found(device):
    """Checks that the device has no clients left after the test, and that it logged no complaint."""
    log = len(device.log())
    try:
        yield device
    finally:
        device.end_programs()
    until(device.idle, "an idle device")
    assert not re.search(r"(?i)\berror: |assert|leak|sanitizer", device.log()[log:]), device.log()[log:]


@pytest.fixture
def device(lasting_device):
    with left_as_found(lasting_device):
        yield lasting_device
