# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""--memory=borrow: the client's own thread registers its memory with the adapter, so that peers reach it. rxe0 is the adapter."""
import contextlib
import ctypes
import errno
import json
import os
import pathlib
import random
import subprocess
import sys
import time

import pytest

import test_verbs as verbs
from conftest import cuse
from test_verbs import fixture_nothing_is_left, fixture_own  # noqa: F401 pylint: disable=unused-import

PIDFD_GETFD, PTRACE_SEIZE = 438, 0x4206
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


@pytest.fixture(name="daemon", scope="module", params=verbs.SEPARATE)
def fixture_daemon(own, tmp_path_factory, request):
    # The default: --memory=auto.
    d = cuse.Daemon(tmp_path_factory.mktemp("borrow"), "--backend", "verbs", "--hca", verbs.ADAPTER, "--separate", request.param)
    yield d
    assert d.stop() == 0, d.log.read_text()
    assert verbs.resources() == own


LONG = bool(os.environ.get("UVERBSD_LONG"))
PINGPONGS = [("ibv_rc_pingpong", []), ("ibv_uc_pingpong", []), ("ibv_ud_pingpong", ["-s", "1024"]), ("ibv_srq_pingpong", ["-q", "2"])]
PERFTESTS = [("ib_write_bw", 65536), ("ib_read_bw", 65536), ("ib_send_bw", 65536), ("ib_atomic_bw", 8)]


def on_both_sides(programs):
    """Our device at one end and rxe0 itself at the other; the first program, or with --long each, also the other ways round."""
    return [pytest.param(sides, *p, id=f"{p[0]}-{'-'.join(sides)}") for n, p in enumerate(programs)
            for sides in (verbs.SIDES if LONG or not n else verbs.SIDES[:1])]


@pytest.mark.parametrize("sides, program, args", on_both_sides(PINGPONGS))
def test_pingpong_with_checked_payload(daemon, sides, program, args):
    verbs.pingpong(*sides, program, *args)


@pytest.mark.parametrize("sides, program, size", on_both_sides(PERFTESTS))
def test_perftest_reaches_the_memory_of_its_peer(daemon, sides, program, size):
    verbs.bandwidth(*sides, program, size)


# "execute" replaces the program, so it is the last.
SCENES = ["write", "fork", "munmap", "mprotect", "refused", "rereg", "memlock", "execute"]


# The results of REREG_MR and of a write of a peer after it, and whether the memory has what the peer wrote: without rights for peers, with
# them again, with a PD that is not the QP's, with its own, and with other memory. rxe of Linux 6.1 has no REREG_MR.
REM_ACCESS_ERR, KERNEL = 10, tuple(int(n) for n in os.uname().release.split(".")[:2])
REREG = [[0, REM_ACCESS_ERR, False], [0, 0, True], [0, REM_ACCESS_ERR, False], [0, 0, True], [errno.EOPNOTSUPP, 0, True]]
if KERNEL < (6, 12):
    REREG = [[errno.EOPNOTSUPP, 0, True]] * 5


def scenes(side, names=SCENES):
    command = [*(verbs.OURS if side == "ours" else []), sys.executable, verbs.HERE / "memory.py",
               verbs.DEVICE if side == "ours" else verbs.ADAPTER, *names]
    done = subprocess.run(command, timeout=verbs.STUCK, check=False, **verbs.TEXT, **verbs.USER)
    assert done.returncode == 0, done.stdout
    out = {}
    for line in done.stdout.splitlines():
        out.update(json.loads(line))
    return out


def test_registration_is_that_of_the_adapter_itself(daemon):
    ours, plain = scenes("ours"), scenes("plain")
    size = 64 << 10
    assert ours["write"] == dict(status=0, seen=True, pinned=size, left=0)
    assert ours["fork"] == dict(status=[0, 0], parent=True, child_keeps_its_own=True)
    assert ours["munmap"] == dict(status=0, new_memory_is_untouched=True, pinned=size)
    assert ours["mprotect"] == dict(status=0, seen=True)
    assert ours["refused"] == dict(readonly=errno.EFAULT, unmapped=errno.EFAULT, nothing=errno.EFAULT)
    assert ours["rereg"] == dict(steps=REREG, pinned=size, left=0)
    assert ours["memlock"] == dict(above=errno.ENOMEM, rest_of_it=True, one_more=errno.ENOMEM)
    assert ours["after_exec"] == dict(pinned=0)
    assert ours == plain


def test_change_that_the_adapter_refuses_harms_neither_pd(daemon):
    assert scenes("ours", ["rereg_refused"]) == dict(rereg_refused=dict(error=errno.EOPNOTSUPP, status=0, seen=True))


def register_often():
    command = [*verbs.OURS, sys.executable, verbs.HERE / "register_often.py", verbs.DEVICE]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, **verbs.TEXT, **verbs.USER)
    assert process.stdout.readline() == "begun\n", process.stdout.read()
    return process


def kill_clients_that_register(daemon, own, number):
    chance = random.Random(1)
    for _ in range(number):
        with register_often() as process:
            time.sleep(chance.random() / 10)
            process.kill()
    daemon.wait_idle()
    cuse.wait_for("an adapter without clients' objects", lambda: {**verbs.resources(), "ctx": 0} == {**own, "ctx": 0})


def test_clients_killed_while_they_register_leave_nothing(daemon, own):
    kill_clients_that_register(daemon, own, 200 if LONG else 8)


def test_loan_ends_with_an_exec_of_another_thread(daemon):
    command = [cuse.BUILD / "tests" / "verbs" / "loans", "first"]
    env = dict(os.environ, UVERBS_NODE=daemon.nodes[0])
    for _ in range(20 if LONG else 4):
        with subprocess.Popen(command, stdin=subprocess.PIPE, env=env, **verbs.TEXT, **verbs.USER) as process:
            assert [process.stdout.readline() for _ in range(2)] == ["begun\n", "executed\n"]
            daemon.wait_idle()
            process.communicate(timeout=verbs.STUCK)


def is_adapter(fd):
    return os.stat(fd).st_rdev == os.stat("/dev/infiniband/uverbs0").st_rdev


def adapter_fd(pid):
    """The number of the adapter's device file in this process, or None: it is there only while the thread registers."""
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if is_adapter(fd):
                return int(fd.name)
    return None


def steal(pid):
    """A duplicate of the adapter's device file, which another process takes during a registration; or None."""
    number = adapter_fd(pid)
    pidfd = os.pidfd_open(pid)
    try:
        fd = -1 if number is None else libc.syscall(PIDFD_GETFD, pidfd, number, 0)
        return fd if fd >= 0 and is_adapter(fd) else None
    finally:
        os.close(pidfd)


def test_client_that_keeps_the_descriptor_keeps_no_objects(daemon, own):
    """docs/security-adapter.md says that a client can keep it. What the client had through us leaves the adapter all the same."""
    with register_often() as process:
        fd = cuse.wait_for("a registration", lambda: steal(process.pid))
        process.communicate(timeout=verbs.STUCK)
    assert process.returncode == 0
    try:
        daemon.wait_idle()
        cuse.wait_for("an adapter without clients' objects", lambda: {**verbs.resources(), "ctx": 0} == {**own, "ctx": 0})
    finally:
        os.close(fd)


def kill_clients_whose_descriptor_is_kept(daemon, own, number):
    """A region whose registration the kill has interrupted lasts as long as the file; all else leaves before."""
    chance = random.Random(3)
    for _ in range(number):
        with register_often() as process:
            fd = cuse.wait_for("a registration", lambda pid=process.pid: steal(pid))
            time.sleep(chance.random() / 10)
            process.kill()
        try:
            daemon.wait_idle()
            left = {kind: n for kind, n in verbs.resources().items() if n != own[kind] and kind not in ("ctx", "mr", "pd")}
            assert not left
        finally:
            os.close(fd)
        cuse.wait_for("an adapter without clients' objects", lambda: {**verbs.resources(), "ctx": 0} == {**own, "ctx": 0})


def test_client_killed_at_a_random_moment_leaves_nothing_although_its_descriptor_was_kept(daemon, own):
    kill_clients_whose_descriptor_is_kept(daemon, own, 200 if LONG else 3)


def test_events_of_objects_that_a_client_makes_by_itself_do_no_harm(daemon):
    assert verbs.thief("events") == 1
    cuse.wait_for("the event", lambda: "of an object that the daemon has not made" in daemon.log.read_text())
    verbs.pingpong("ours", "ours", "ibv_rc_pingpong")


def test_thread_that_races_for_every_descriptor_does_no_harm(daemon):
    with register_often() as beside:
        kept = verbs.thief("race")
        assert beside.poll() is None
        beside.communicate(timeout=verbs.STUCK)
    assert kept and beside.returncode == 0
    verbs.pingpong("ours", "plain", "ibv_rc_pingpong")


def register(access, traced):
    """What register.py says; traced: its thread has another tracer, this process."""
    with subprocess.Popen([*verbs.OURS, sys.executable, verbs.HERE / "register.py", access, *(["wait"] if traced else [])],
                          stdin=subprocess.PIPE, **verbs.TEXT, **verbs.USER) as process:
        if traced:
            assert process.stdout.readline() == "waits\n"
            assert not libc.ptrace(PTRACE_SEIZE, process.pid, None, None), os.strerror(ctypes.get_errno())
        return process.communicate("go\n", timeout=verbs.STUCK)[0]


def test_data_of_a_traced_client_is_copied(daemon):
    assert "registered" in register("remote", traced=False)
    assert "registered" in register("local", traced=True)
    assert "EOPNOTSUPP" in register("remote", traced=True)
    assert "no thread of the client can be borrowed (EPERM)" in daemon.log.read_text()
