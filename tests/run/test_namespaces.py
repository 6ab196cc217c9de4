# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs that join across pid namespaces: containers of a pod, and a container and its host."""
import json
import os
import pathlib
import signal
import pytest
from conftest import CLIENT, STUCK, UVERBSCTL, children, pid_namespace, until
from test_run import port  # noqa: F401 (a fixture)

JOIN = ["--join", "lab"]
HOLD = "exec 3<>/dev/infiniband/uverbs0; echo ready; read line"


class Places:
    """Starts the first run, which has the engine, and others that join it, each in its pid namespace."""

    def __init__(self, run, first, others):
        self.run = run
        here, self.new = list(run.prefix), pid_namespace(run)
        self.first, self.others = self.new if first else here, self.new if others else here

    def start_first(self, *program, options=(), **kw):
        self.run.prefix = self.first
        p = self.run.start(*program, options=[*JOIN, *options], **kw)
        # With unshare the child is the launcher.
        p.launcher = p.guardian if self.first is self.new else p.pid
        assert p.stdout.readline() == "ready\n", p.communicate()
        p.guardian = children(p.launcher)[0]
        p.engine = children(p.guardian)[0]
        return p

    def start(self, *program, options=(), **kw):
        self.run.prefix = self.others
        return self.run.start(*program, options=[*JOIN, *options], **kw)

    def __call__(self, *program, options=()):
        self.run.prefix = self.others
        return self.run(*program, options=[*JOIN, *options])


@pytest.fixture(params=["beside", "inside", "inside_with_an_agent", "outside"])
def places(request, run):
    if request.param == "inside_with_an_agent":
        run.env["UVERBSD_RUN_AGENT"] = "1"  # as under Yama
    return Places(run, request.param in ("beside", "outside"), request.param != "outside")


@pytest.fixture
def beside(run):
    return Places(run, True, True)


def test_joined_run_has_the_device(places):
    first = places.start_first("sh", "-c", "echo ready; read line")
    r = places("ibv_devinfo")
    assert r.returncode == 0 and "PORT_ACTIVE" in r.stdout and r.stderr == "", r
    first.communicate("\n", timeout=STUCK)
    assert first.returncode == 0


@pytest.mark.parametrize("server_first", [True, False])
def test_messages_arrive_in_both_directions(places, server_first, port):  # noqa: F811
    run = places.run
    pingpong = f"ibv_rc_pingpong -g 0 -n 100 -p {port}"
    client = f"for i in $(seq 100); do sleep 0.1; {pingpong} localhost && exit 0; done; exit 1"
    sides = [pingpong, client] if server_first else [client, pingpong]
    options = ["--persona", "rxe"]
    first = places.start_first("sh", "-c", f"echo ready; {sides[0]}", options=options)
    r = places("sh", "-c", sides[1], options=options)
    out, err = first.communicate(timeout=STUCK)
    assert r.returncode == 0 and "100 iters" in r.stdout, r.stdout + r.stderr + out + err
    assert first.returncode == 0 and "100 iters" in out, err
    assert until(lambda: not list(pathlib.Path(run.folder).glob("uverbsd/*.sock")))


def test_a_call_that_the_engine_does_not_answer_before_it_dies_is_eio(places):
    # The engine says that the call is delayed, and is killed then.
    first = places.start_first("sh", "-c", "echo ready; read line", options=["--filter", "delay:alloc_pd=60s"])
    member = places.start(CLIENT, "until_eio")
    assert member.stdout.readline() == "ready\n"
    print("go", file=member.stdin, flush=True)
    assert "delay: alloc_pd, call 1" in first.stderr.readline()
    os.kill(first.engine, signal.SIGKILL)
    out, err = member.communicate(timeout=STUCK)
    assert member.returncode == 0 and "the engine has died" in err, err
    first.communicate("\n", timeout=STUCK)


def test_numbers_of_other_pid_namespaces_are_told_apart(beside):
    """Two processes with one number: the engine adds another base to the numbers of each namespace, and the kernel has no such process."""
    first = beside.start_first("sh", "-c", f"echo ready; read line; {UVERBSCTL} status --json; read line")
    members = [beside.start("sh", "-c", HOLD) for _ in range(2)]
    assert all(m.stdout.readline() == "ready\n" for m in members)
    print(file=first.stdin, flush=True)
    pids = [f["pid"] for f in json.loads(first.stdout.readline())["devices"][0]["files"]]
    assert len(set(pids)) == 2 and all(pid > 1 << 22 for pid in pids), pids
    for p in members:
        p.communicate("\n", timeout=STUCK)
    first.communicate("\n", timeout=STUCK)


def test_processes_that_share_memory_have_one_address_space(beside):
    first = beside.start_first("sh", "-c", f"echo ready; read line; {UVERBSCTL} status --json; read line")
    member = beside.start(CLIENT, "registers_in_a_vfork")
    assert member.stdout.readline() == "ready\n"
    print(file=first.stdin, flush=True)
    spaces = json.loads(first.stdout.readline())["memlock"]
    assert len(spaces) == 1 and spaces[0]["pid"] > 1 << 22, spaces
    for p in (member, first):
        p.communicate("\n", timeout=STUCK)
        assert p.returncode == 0


@pytest.mark.parametrize("places", ["outside"], indirect=True)
def test_without_its_guardian_a_joined_run_goes_on_without_the_device(places):
    first = places.start_first("sh", "-c", "echo ready; read line; ibv_devinfo")
    script = "ibv_devinfo -l | tr -d '\\n'; echo; read line; ibv_devinfo; cat /proc/version"
    member = places.start("sh", "-c", script)
    assert "hfi1_0" in member.stdout.readline()
    os.kill(member.guardian, signal.SIGKILL)
    out, err = member.communicate("\n", timeout=STUCK)
    assert "Linux version" in out and "hfi1_0" not in out, (out, err)
    out, err = first.communicate("\n", timeout=STUCK)
    assert first.returncode == 0 and "PORT_ACTIVE" in out, err


def test_process_1_that_was_stopped_with_its_program_does_not_wait(beside):
    """A container is killed ten seconds after it was stopped, whatever other runs need."""
    first = beside.start_first("sh", "-c", "trap 'exit 4' TERM; echo ready; while :; do sleep 0.1; done")
    member = beside.start("sh", "-c", "echo ready; read line; ibv_devinfo")
    assert member.stdout.readline() == "ready\n"
    os.kill(first.launcher, signal.SIGTERM)
    assert first.wait(timeout=STUCK) == 4
    member.communicate("\n", timeout=STUCK)


@pytest.mark.parametrize("stop", [False, True])
def test_process_1_waits_as_long_as_other_runs_need_its_engine(beside, stop):
    """If it exited the kernel would kill the engine. A signal ends the wait."""
    first = beside.start_first("sh", "-c", "echo ready; read line; exit 3")
    member = beside.start("sh", "-c", "echo ready; read line; ibv_devinfo")
    assert member.stdout.readline() == "ready\n"
    print(file=first.stdin, flush=True)
    # Its child, the guardian, has nobody left but the engine.
    assert until(lambda: not pathlib.Path(f"/proc/{first.engine}/task/{first.engine}/children").read_text())
    if stop:
        os.kill(first.launcher, signal.SIGTERM)
        assert first.wait(timeout=STUCK) == 3
        out, err = member.communicate("\n", timeout=STUCK)
        assert member.returncode and "the engine has died" in err, err
    else:
        out, err = member.communicate("\n", timeout=STUCK)
        assert member.returncode == 0 and "PORT_ACTIVE" in out, err
    out, err = first.communicate(timeout=STUCK)
    assert first.returncode == 3, err


def test_folders_under_mount_are_those_of_the_joined_run(beside):
    first = beside.start_first("sh", "-c", "echo ready; read line")
    # The folder in $SYSFS_PATH is the program's own, not a folder of a mount that the engine makes for other roots.
    script = ("cd /sys/class/infiniband/hfi1_0 && cat node_type && exec 3<$SYSFS_PATH/class && "
              "test $(readlink /proc/self/fd/3) = $SYSFS_PATH/class && ls /proc/self/fd/3/infiniband/")
    r = beside("sh", "-c", script, options=["--mount"])
    assert r.returncode == 0 and r.stdout == "1: CA\nhfi1_0\n", r
    first.communicate("\n", timeout=STUCK)
