# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a service manager sees: readiness, the pid file, and what its hardening does to clients."""
import os
import pathlib
import signal
import socket
import subprocess

import pytest

from conftest import BUILD, NOBODY, SEPARATE, STUCK, left_behind, run_client, wait_for

FILTERED = pathlib.Path(__file__).resolve().parent / "filtered.py"
BOTH = ["no", "yes"] if SEPARATE else ["no"]


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path, monkeypatch):
    """systemd's end of $NOTIFY_SOCKET."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@uverbsd-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(name.replace("@", "\0"))
        s.settimeout(STUCK)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        yield s


@pytest.mark.parametrize("how", BOTH)
def test_manager_is_told_once_by_the_process_that_it_started(start, manager, how):
    manager.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    d = start("--separate", how)
    text, [(level, kind, data)], *_ = manager.recvmsg(100, socket.CMSG_SPACE(12))
    assert text == b"READY=1" and kind == socket.SCM_CREDENTIALS
    assert int.from_bytes(data[:4], "little") == d.process.pid
    if how == "yes":
        assert b"NOTIFY_SOCKET" not in pathlib.Path(f"/proc/{d.serving}/environ").read_bytes()
        os.kill(d.serving, signal.SIGKILL)
        wait_for("another engine process", lambda: d.starts() == 2)
    assert d.stop() == 0
    assert manager.recv(100) == b"STOPPING=1"
    manager.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager.recv(100)


@pytest.mark.parametrize("how", BOTH)
def test_watchdog_sees_signs_of_life_only_while_clients_are_served(start, manager, monkeypatch, how):
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    d = start("--separate", how)
    assert [manager.recv(100) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"]
    os.kill(d.serving, signal.SIGSTOP)
    manager.settimeout(3)  # six times the interval, on an emulated processor
    with pytest.raises(TimeoutError):
        for _ in range(10):  # those that were on their way
            manager.recv(100)
    os.kill(d.serving, signal.SIGCONT)
    manager.settimeout(STUCK)
    assert manager.recv(100) == b"WATCHDOG=1"
    monkeypatch.delenv("WATCHDOG_USEC")


@pytest.mark.parametrize("how", BOTH)
def test_alias_is_there_while_the_daemon_runs(start, how):
    path = pathlib.Path("/run/modprobe.d/uverbsd.conf")
    d = start("--separate", how, "--netlink-alias", str(path))
    text = path.read_text().splitlines()
    assert text[-1] == "alias net-pf-16-proto-20 off" and all(line.startswith("#") for line in text[:-1])
    assert path.stat().st_mode & 0o777 == 0o444
    if how == "yes":
        os.kill(d.serving, signal.SIGKILL)
        wait_for("another engine process", lambda: d.starts() == 2)
        assert path.exists()
    assert d.stop() == 0 and not path.exists()


def test_manager_that_is_gone_hinders_nobody(start, tmp_path, monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    assert start().stop() == 0


@pytest.mark.parametrize("how", BOTH)
def test_pid_file(start, how):
    path = pathlib.Path("/run/uverbsd-test/pid")
    for _ in range(2):
        d = start("--separate", how, "--pid-file", str(path))
        assert path.read_text() == f"{d.process.pid}\n" and path.stat().st_mode & 0o777 == 0o444
        assert d.stop() == 0 and not path.exists()
        # The next daemon must replace the file that a killed daemon has left.
        path.write_text("1\n")
    d = start("--separate", how, "--pid-file", str(path))
    assert path.read_text() == f"{d.process.pid}\n"
    assert d.stop() == 0


def test_pid_file_in_a_folder_of_another_user_is_refused(tmp_path):
    folder = tmp_path / "his"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    done = subprocess.run([BUILD / "src" / "uverbsd", "--pid-file", folder / "pid"], stderr=subprocess.PIPE, text=True,
                          timeout=STUCK)
    assert done.returncode == 1 and f"--pid-file {folder / 'pid'}: refused" in done.stderr, done.stderr
    assert not list(folder.iterdir()) and not left_behind()


@pytest.mark.parametrize("how", BOTH)
def test_below_a_filter_of_system_calls_only_clients_with_one_fall_back(start, how):
    """
    filtered.py sets a filter, as systemd does for SystemCallFilter=. The kernel then refuses PTRACE_O_SUSPEND_SECCOMP to the daemon,
    so the daemon does not borrow threads that have a filter themselves.
    """
    d = start("--separate", how, program=("/usr/bin/python3", FILTERED, BUILD / "src" / "uverbsd"))
    run_client("channels", "3")
    assert d.status()["grants"]["fell_back"] == 0
    subprocess.run(["/usr/bin/python3", FILTERED, BUILD / "tests" / "cuse" / "cuse-client", "no-grants"], check=True,
                   env=dict(os.environ, SYSFS_PATH="/run/uverbsd/sysfs"), timeout=STUCK)
    assert d.status()["grants"]["fell_back"] > 0
    run_client("channels", "3")
    d.wait_idle()


def test_capabilities_of_the_unit_are_enough(start):
    unit = pathlib.Path(__file__).resolve().parents[2] / "contrib" / "systemd" / "uverbsd.service"
    caps = [c.removeprefix("CAP_").lower() for line in unit.read_text().splitlines() if line.startswith("CapabilityBoundingSet=")
            for c in line.split("=")[1].split()]
    d = start("--separate", "yes", program=("setpriv", "--no-new-privs", "--bounding-set", "-all," + ",".join(f"+{c}" for c in caps),
                                            BUILD / "src" / "uverbsd"))
    run_client("channels", "3")
    run_client("seccomp", "3")
    os.kill(d.serving, signal.SIGKILL)
    wait_for("another engine process", lambda: d.starts() == 2)
    run_client("channels", "3")
    assert d.status()["grants"]["fell_back"] == 0
