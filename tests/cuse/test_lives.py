# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two processes: engine processes that die, are stopped or are told to exit, and their successors."""
import contextlib
import errno
import os
import pathlib
import pwd
import resource
import shutil
import signal
import subprocess
import time

import pytest

from conftest import (BUILD, ENGINE_USER, NAMES, NOBODY, NOBODYS_GROUP, ONE_PROCESS, STUCK, left_behind, run_client, start_client,
                      status_of, wait_for)

NODE = "/dev/infiniband/uverbs0"


@pytest.fixture
def separate(start):
    return lambda *options, **kwargs: start("--separate", "yes", *options, **kwargs)


def uverbsctl(*words, **kwargs):
    return subprocess.run([BUILD / "tools" / "uverbsctl", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=STUCK, **kwargs)


def got_an_error(client):
    status, text = client.wait(STUCK), client.stdout.read()
    return status == 0 and text.startswith("error")


def serves(d, nodes=1):
    """Checks that the daemon serves clients, and the sandbox of the process that serves them."""
    assert len(d.status()["devices"]) == nodes
    run_client("channels", "2")
    s = status_of(d.serving)
    assert s["Uid"].split() == [str(pwd.getpwnam(ENGINE_USER).pw_uid)] * 4 and s["CapEff"] == s["CapBnd"] == "0" * 16
    assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2" and s["Name"] == "uverbsd"
    return True


def test_killed_engine_is_followed_by_another(separate):
    d = separate("--devices", "2", "--ucaps", "good")
    first, open_file = d.serving, os.open(NODE, os.O_RDWR)
    p = start_client("loop-pd")
    os.kill(first, signal.SIGSEGV)
    assert got_an_error(p)
    wait_for("another engine process", lambda: d.starts() == 2)
    assert d.text_of("engine process was killed by signal SEGV; clients must open the device again")
    assert d.serving != first and serves(d, nodes=2)
    assert [n["node"] for n in d.status()["devices"]] == d.nodes and os.path.exists("/dev/infiniband/good")
    with pytest.raises(OSError):
        os.write(open_file, bytes(8))
    os.close(open_file)
    assert d.stop() == 0 and not left_behind()


def test_engine_that_dies_again_and_again_ends_the_daemon(separate):
    d = separate()
    for i in range(1, 6):
        wait_for("an engine process", lambda: d.starts() == i)
        os.kill(d.serving, signal.SIGKILL)
    assert d.process.wait(STUCK) == 1
    assert d.starts() == 5 and d.text_of("giving up") and not left_behind()


def test_failed_start_is_not_tried_again(separate):
    """The name of the requested node is taken: the first engine process exits before it is ready."""
    pathlib.Path("/dev/infiniband").mkdir(exist_ok=True)
    pathlib.Path("/dev/infiniband/uverbs9").touch()
    done = subprocess.run([BUILD / "src" / "uverbsd", "--separate", "yes", "--first-number", "9"], stderr=subprocess.PIPE,
                          text=True, timeout=STUCK)
    os.unlink("/dev/infiniband/uverbs9")
    assert done.returncode == 1 and done.stderr.count("choose another number") == 1, done.stderr


def descriptors_now(pid):
    names = []
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(fd).split(":")[0].replace(f"/proc/{pid}", "/proc/self"))
    return sorted(names)


def descriptors_of(pid):
    """What descriptors the process has when its threads have closed what they no longer need."""
    names = descriptors_now(pid)
    while True:
        time.sleep(0.2)
        before, names = names, descriptors_now(pid)
        if names == before:
            return names


def test_next_engine_has_no_descriptor_of_the_brokers(separate):
    d = separate()
    run_client("channels", "1")
    d.wait_idle()
    first = descriptors_of(d.serving)
    os.kill(d.serving, signal.SIGKILL)
    wait_for("another engine process", lambda: d.starts() == 2)
    run_client("channels", "1")
    d.wait_idle()
    links = descriptors_of(d.serving)
    assert set(links) == set(first)
    assert not [link for link in links if "signalfd" in link or "uverbsd.conf" in link or link == str(BUILD / "src" / "uverbsd")]
    # That of the device, and that of rdma_cm.
    assert links.count("/dev/cuse") == first.count("/dev/cuse") == 2, links


# ---- uverbsctl daemon restart ------------------------------------------------------------------------------------------------------

def test_restart(separate):
    d = separate("--devices", "2")
    first = d.serving
    p = start_client("loop-channel")
    done = uverbsctl("daemon", "restart")
    assert done.returncode == 0 and "begins" in done.stdout
    # The broker keeps the listening socket all the time, so the old or the new engine process answers.
    assert d.status()["pid"] == d.process.pid
    assert got_an_error(p)
    wait_for("another engine process", lambda: d.starts() == 2)
    assert d.serving != first and serves(d, nodes=2)
    assert [n["node"] for n in d.status()["devices"]] == d.nodes
    assert d.stop() == 0 and not left_behind()


def test_restarts_in_a_row_are_refused_before_they_do_harm(separate):
    d = separate()
    for i in range(2, 6):
        assert uverbsctl("daemon", "restart").returncode == 0
        wait_for("another engine process", lambda: d.starts() == i)
    done = uverbsctl("daemon", "restart")
    assert done.returncode == 1 and "too many restarts within a minute" in done.stdout
    assert d.starts() == 5 and serves(d)


def test_restart_is_for_administrators(separate):
    d = separate()
    done = uverbsctl("daemon", "restart", user=NOBODY, group=NOBODYS_GROUP, extra_groups=[])
    assert done.returncode == 1 and "only root" in done.stdout
    time.sleep(1)
    assert d.starts() == 1


def test_log_level_is_of_both_processes_and_of_later_ones(separate):
    d = separate()
    assert d.status()["log_level"] == "info" and d.status()["restarts"] == 0
    assert uverbsctl("daemon", "log-level", "debug").returncode == 0
    assert uverbsctl("device", "add").returncode == 0
    assert d.text_of("debug: /dev/infiniband/uverbs0: another CUSE device has that name; trying the next number")  # the broker's
    os.kill(d.serving, signal.SIGKILL)
    wait_for("another engine process", lambda: d.starts() == 2)
    assert d.status()["log_level"] == "debug" and d.status()["restarts"] == 1


def test_an_engine_process_cannot_silence_the_broker(separate):
    d = separate()
    assert uverbsctl("daemon", "log-level", "error").returncode == 0 and d.status()["log_level"] == "error"
    assert uverbsctl("daemon", "restart").returncode == 0
    wait_for("another engine process", lambda: d.starts() == 2)
    assert d.status()["log_level"] == "error" and d.text_of("restart requested: the engine process ends")


def test_log_level_is_for_administrators(start):
    d = start()
    done = uverbsctl("daemon", "log-level", "debug", user=NOBODY, group=NOBODYS_GROUP, extra_groups=[])
    assert done.returncode == 1 and "only root" in done.stdout and d.status()["log_level"] == "info"


def test_restart_without_a_broker_is_refused(start):
    d = start(*ONE_PROCESS)
    done = uverbsctl("daemon", "restart")
    assert done.returncode == 1 and "only with two processes" in done.stdout and "systemctl restart" in done.stdout
    assert d.status()["devices"]


def children_of(d):
    return pathlib.Path(f"/proc/{d.process.pid}/task/{d.process.pid}/children").read_text().split()


@pytest.fixture
def installed():
    """A copy of uverbsd in a folder that only root can change."""
    folder = pathlib.Path("/usr/local/sbin/uverbsd-test")
    folder.mkdir(mode=0o755)
    shutil.copy(BUILD / "src" / "uverbsd", folder / "uverbsd")
    yield folder / "uverbsd"
    shutil.rmtree(folder)


def upgrade(program):
    """Replaces the program as a package manager does. Returns the new inode number."""
    old = program.stat().st_ino
    shutil.copy(program, f"{program}.new")
    os.rename(f"{program}.new", program)
    assert program.stat().st_ino != old
    return program.stat().st_ino


def program_of(pid):
    return os.stat(f"/proc/{pid}/exe").st_ino


def test_restart_executes_the_installed_program(separate, installed, tmp_path):
    config = tmp_path / "uverbsd.conf"
    config.write_text("[uverbsd]\ndevices = 2\n")
    d = separate("--config", config, program=(installed,))
    before = program_of(d.process.pid)
    new = upgrade(installed)
    config.write_text("[uverbsd]\ndevices = 3\nnonsense\n")
    # A crash does not upgrade the program; a restart does.
    os.kill(d.serving, signal.SIGKILL)
    wait_for("another engine process", lambda: d.starts() == 2)
    assert program_of(d.serving) == before
    assert uverbsctl("daemon", "restart").returncode == 0
    wait_for("another engine process", lambda: d.starts() == 3)
    assert program_of(d.serving) == new != before
    assert serves(d, nodes=2)
    os.kill(d.serving, signal.SIGKILL)
    wait_for("another engine process", lambda: d.starts() == 4)
    assert program_of(d.serving) == new


def test_program_that_another_user_can_change_is_not_executed(separate, installed):
    d = separate(program=(installed,))
    before = program_of(d.process.pid)
    upgrade(installed)
    os.chown(installed, NOBODY, NOBODY)
    assert uverbsctl("daemon", "restart").returncode == 0
    wait_for("another engine process", lambda: d.starts() == 2)
    assert program_of(d.serving) == before and d.text_of("not an upgrade")


def test_internal_option_is_of_no_use_to_others():
    done = subprocess.run([BUILD / "src" / "uverbsd", "--separate", "yes", "--internal-engine"], stderr=subprocess.PIPE,
                          text=True, timeout=STUCK)
    assert done.returncode == 1 and "starts itself" in done.stderr and not left_behind()


def test_configuration_that_cannot_be_read_twice_is_refused():
    done = subprocess.run([BUILD / "src" / "uverbsd", "--separate", "yes", "--config", "/dev/stdin"], input="[uverbsd]\n",
                          stderr=subprocess.PIPE, text=True, timeout=STUCK)
    assert done.returncode == 1 and "must be a regular file" in done.stderr and not left_behind(), done.stderr


# ---- failures ---------------------------------------------------------------------------------------------------------------

def test_stopped_engine_does_not_keep_the_daemon_from_its_end(separate):
    d = separate()
    os.kill(d.serving, signal.SIGSTOP)
    begun = time.monotonic()
    assert d.stop() == 1
    # docs/security-processes.md: the broker kills the engine process after 20 s.
    assert 19 < time.monotonic() - begun < 60 and not left_behind()


def test_full_table_of_the_engine_is_an_error_and_passes(separate):
    d = separate()
    engine = d.serving
    p = start_client("loop-pd")
    before = resource.prlimit(engine, resource.RLIMIT_NOFILE)
    resource.prlimit(engine, resource.RLIMIT_NOFILE, (3, before[1]))
    for _ in range(20):
        with pytest.raises(OSError) as error:
            os.close(os.open(NODE, os.O_RDWR))
        assert error.value.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM), error.value
    assert p.poll() is None  # its file needs no further descriptor
    p.kill()
    p.wait(STUCK)
    resource.prlimit(engine, resource.RLIMIT_NOFILE, before)
    assert serves(d) and d.starts() == 1
    d.wait_idle()


def test_full_table_of_the_broker_is_an_error_and_passes(separate):
    d = separate()
    before = resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, (3, before[1]))
    for _ in range(20):
        with pytest.raises(OSError) as error:
            os.close(os.open(NODE, os.O_RDWR))
        assert error.value.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM), error.value
    resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, before)
    assert serves(d) and d.starts() == 1
    d.wait_idle()


def test_killed_questions_process_is_no_end_of_anything(separate):
    d = separate()
    p = start_client("loop-pd")
    for c in map(int, children_of(d)):
        with contextlib.suppress(ProcessLookupError):
            if c != d.serving:
                os.kill(c, signal.SIGKILL)
    p.kill()
    p.wait(STUCK)
    assert serves(d) and d.starts() == 1


# ---- an engine process that cannot end --------------------------------------------------------------------------------------

@pytest.fixture
def freezer():
    """Freezes threads so that SIGKILL does not end them, as a client's memory or file server can. cgroup v1 can freeze single threads."""
    folder = pathlib.Path("/run/uverbsd-test-freezer")
    folder.mkdir()
    subprocess.run(["mount", "-t", "cgroup", "-o", "freezer", "none", folder], check=True)
    group = folder / "held"
    group.mkdir()

    def freeze(tid):
        (group / "tasks").write_text(str(tid))
        (group / "freezer.state").write_text("FROZEN")
        wait_for("a frozen thread", lambda: (group / "freezer.state").read_text() == "FROZEN\n")
    yield freeze, lambda: (group / "freezer.state").write_text("THAWED")
    (group / "freezer.state").write_text("THAWED")
    wait_for("an empty group", lambda: not (group / "tasks").read_text())
    group.rmdir()
    subprocess.run(["umount", folder], check=True)
    folder.rmdir()


def is_corpse(pid):
    return status_of(pid)["State"][0] == "Z" and len(os.listdir(f"/proc/{pid}/task")) > 1


@pytest.mark.parametrize("how", ["killed", "restart", "signal"])
def test_engine_that_cannot_end_is_left_alone(separate, freezer, how):
    d = separate("--devices", "2", "--ucaps", "good")
    dead = d.serving
    freeze, thaw = freezer
    # A removed device that is still open belongs to the dead engine process as well.
    removed = os.open("/dev/infiniband/uverbs1", os.O_RDWR)
    assert uverbsctl("device", "remove", NAMES[1]).returncode == 0
    waiting = start_client("loop-pd")
    freeze(next(int(t) for t in os.listdir(f"/proc/{dead}/task") if int(t) != dead))
    if how == "killed":
        os.kill(dead, signal.SIGKILL)
    elif how == "restart":
        assert uverbsctl("daemon", "restart").returncode == 0
    if how == "signal":
        assert d.stop() == 1
    else:
        wait_for("another engine process", lambda: d.starts() == 2)
        assert d.text_of("not waiting for it; clients must open the device again")
        assert [n["node"] for n in d.status()["devices"]] == d.nodes and serves(d, nodes=2)
        assert os.path.exists("/dev/infiniband/good")
    assert is_corpse(dead), "nothing holds it up"
    assert got_an_error(waiting)
    with pytest.raises(OSError):
        os.write(removed, bytes(8))
    os.close(removed)
    if how == "killed":
        # The second engine process has other names in CUSE. The third one must find free names again.
        os.kill(d.serving, signal.SIGKILL)
        wait_for("another engine process", lambda: d.starts() == 3)
        assert [n["node"] for n in d.status()["devices"]] == d.nodes and is_corpse(dead)
    thaw()
    wait_for("the corpse's end", lambda: not os.path.exists(f"/proc/{dead}"))
    if how != "signal":
        assert serves(d, nodes=2) and d.stop() == 0
    assert not left_behind()
