# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl run` from outside: as the user who runs the tests and, if that is root, as the user nobody, too."""
import atexit
import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
import pytest

sys.path.append(pathlib.Path(__file__).resolve().parents[1].as_posix())  # for perftest.py

BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build")).resolve()
# Copies, because the user nobody may have no access to the build folder.
BIN = pathlib.Path(tempfile.mkdtemp(prefix="uverbsd-tests-bin-"))
BIN.chmod(0o755)
atexit.register(shutil.rmtree, BIN)
UVERBSCTL = shutil.copy(BUILD / "tools/uverbsctl", BIN / "uverbsctl").as_posix()
MISTAKES = shutil.copy(BUILD / "tests/run/run_mistakes", BIN / "run_mistakes").as_posix()
UCAP_CLIENT = shutil.copy(BUILD / "tests/run/ucap_client", BIN / "ucap_client").as_posix()
CLIENT = shutil.copy(BUILD / "tests/run/run_client", BIN / "run_client").as_posix()
STUCK = 300  # seconds: a limit for what is stuck, and not for what is slow
# Two different numbers: a test must fail if a user id is taken for a group id.
NOBODY = ["setpriv", "--reuid=65534", "--regid=65533", "--clear-groups"]


# Takes a free port for both sides, and ends with the status of the client.
PAIR = """port=$(%s -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
%%s & server=$!
for i in $(seq 3000); do grep -q ":$(printf %%%%04X $port) .* 0A " /proc/net/tcp /proc/net/tcp6 && break; sleep 0.1; done
%%s localhost; status=$?; wait $server && exit $status""" % sys.executable


def pair(program):
    """A shell script that runs both sides of a program, which gets $port."""
    return PAIR % (program, program)


# nohup ignores SIGHUP, and every program that is started from here would inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def children(pid):
    try:
        kids = []
        for task in os.listdir(f"/proc/{pid}/task"):
            kids += pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split()
        return [int(k) for k in kids]
    except FileNotFoundError:
        return []


def until(what, seconds=STUCK):
    """Waits until what() is true, for `seconds` at most. Returns what() as it is then."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.02)
    return what()


# Most of these tests expect the name and the LID of hfi1.
PERSONA = ("--persona", "hfi1")


def nothing_is_charged(stderr):
    """The engine says at its end for what users are still charged, although they have nothing any more (src/account/account.c)."""
    assert " is still charged for " not in (stderr or ""), stderr


class Started(subprocess.Popen):
    def communicate(self, *args, **kw):
        out, err = super().communicate(*args, **kw)
        nothing_is_charged(err)
        return out, err


class Run:
    """Runs programs under `uverbsctl run` as one user, and finds what they have left behind."""

    def __init__(self, prefix, folder):
        self.prefix = list(prefix)
        self.env = {**os.environ, "TMPDIR": folder, "XDG_RUNTIME_DIR": folder}
        self.folder = folder
        self.guardians = []

    def look_for_no_leaks(self):
        self.env["ASAN_OPTIONS"] = ":".join(filter(None, [self.env.get("ASAN_OPTIONS"), "detect_leaks=0"]))

    def argv(self, program, options=(), persona=PERSONA):
        return [*self.prefix, UVERBSCTL, "run", *persona, *options, "--", *program]

    def __call__(self, *program, options=(), timeout=STUCK, **kw):
        kw = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": self.env, **kw}
        r = subprocess.run(self.argv(program, options), timeout=timeout, **kw)
        nothing_is_charged(r.stderr)
        return r

    def without_persona(self, *program, options=()):
        r = subprocess.run(self.argv(program, options, ()), capture_output=True, text=True, env=self.env, timeout=STUCK)
        nothing_is_charged(r.stderr)
        return r

    def start(self, *program, options=(), **kw):
        kw = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True,
              "env": self.env, **kw}
        p = Started(self.argv(program, options), **kw)
        found = []

        def looked():
            found[:] = children(p.pid)
            return found or p.poll() is not None  # a short program may have ended already

        assert until(looked), p.communicate()
        p.guardian = found[0] if found else None
        self.guardians += found[:1]
        return p

    def engine(self, p):
        """Returns the pid of the engine process of a run that was start()ed without --join, or as the first of its name."""
        assert until(lambda: children(p.guardian))
        return children(p.guardian)[0]

    def client(self, case, *options):
        r = self(CLIENT, case, options=options)
        assert r.returncode == 0, r.stderr
        return r

    def left(self):
        """Returns temporary folders and processes that this test's runs have left."""
        found = glob.glob(self.folder + "/uverbsd-run-*")
        for environ in glob.glob("/proc/[0-9]*/environ"):
            try:
                if f"TMPDIR={self.folder}".encode() in pathlib.Path(environ).read_bytes().split(b"\0"):
                    if pathlib.Path(environ).parent.joinpath("exe").resolve() == pathlib.Path(UVERBSCTL):
                        found.append(environ)
            except (FileNotFoundError, PermissionError, ProcessLookupError):
                pass
        return found


def sanitizer():
    options = json.loads((BUILD / "meson-info" / "intro-buildoptions.json").read_text())
    return next(o["value"] for o in options if o["name"] == "b_sanitize")


SANITIZED = sanitizer() != "none"  # run one variant of those that make no difference to a sanitizer
# ThreadSanitizer has a thread of its own, and only a process with one thread can enter a user namespace.
# And `replay` and `fuzz` run programs in a child that starts threads, which ThreadSanitizer does not support. A replay of a trace has
# one thread, as have the commands of test_output.py; the engine under them does what it does in the tests that stay.
collect_ignore = ["test_mount.py", "test_fuzz.py", "test_output.py", "test_replay.py", "test_replay_numbers.py",
                  "test_replay_trace.py"] if sanitizer() == "thread" else []


def users():
    # A user other than root is unprivileged already, and cannot become another user.
    if os.geteuid():
        return ["self"]
    # A whole run has each user once: root beside asan, which runs the fewest of these tests.
    if "UVERBSD_WHOLE" in os.environ:
        return ["self" if "address" in sanitizer() else "nobody"]
    return ["nobody"] if SANITIZED else ["self", "nobody"]


@pytest.fixture(params=users())
def run(request):
    with tempfile.TemporaryDirectory(prefix="uverbsd-tests-") as folder:
        os.chmod(folder, 0o777 if request.param == "nobody" else 0o700)
        r = Run(NOBODY if request.param == "nobody" else [], folder)
        r.privileged = not r.prefix and not os.geteuid()
        # A look for leaks at the end of each of these tests' processes is a third of their time. Without --long one test in four has them.
        if os.environ.get("UVERBSD_STEP") == "asan" and zlib.crc32(request.node.name.encode()) % 4:
            r.look_for_no_leaks()
        yield r
        assert until(lambda: not r.left()), r.left()


def pid_namespace(run):
    """Returns the command that starts a program as the run's user, as process 1 of a new pid namespace. Skips if he may not."""
    if sanitizer() == "thread" and not run.privileged:
        pytest.skip("ThreadSanitizer has a thread of its own")
    own = [*run.prefix, "unshare", *([] if run.privileged else ["--user", "--map-root-user"]), "--pid", "--fork", "--mount-proc"]
    r = subprocess.run([*own, "true"], capture_output=True, text=True)
    if r.returncode:
        assert not os.environ.get("CI"), r.stderr
        pytest.skip(r.stderr)
    return own


def own_network(run, setup):
    """Has the run start in a network of its own, whose owner the user is, after the shell commands `setup`. Returns it."""
    if sanitizer() == "thread" and not run.privileged:
        pytest.skip("ThreadSanitizer has a thread of its own")
    network = [*run.prefix, "unshare", *([] if run.privileged else ["--user", "--map-root-user"]), "--net"]
    r = subprocess.run([*network, "true"], capture_output=True, text=True)
    if r.returncode:
        assert not os.environ.get("CI"), r.stderr
        pytest.skip(r.stderr)
    run.prefix = [*network, "sh", "-ec", setup + 'exec "$@"', "sh"]
    return run


@pytest.fixture(params=["ioctl"] if SANITIZED else ["write", "ioctl"])
def abi(request):
    return "--abi", request.param
