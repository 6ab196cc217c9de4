# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One process tree and its device: what programs see, how they exit, and what they leave behind."""
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import time
import pytest
from conftest import CLIENT, SANITIZED, STUCK, UVERBSCTL, pid_namespace, until

CASES = subprocess.run([CLIENT, "--list"], capture_output=True, text=True).stdout.split()


def running(pid):
    """The threads of a process that run, or wait for a CPU."""
    stats = {t: (pathlib.Path(f"/proc/{pid}/task") / t / "stat").read_text() for t in os.listdir(f"/proc/{pid}/task")}
    return {t for t, stat in stats.items() if stat.rsplit(")", 1)[1].split()[0] == "R"}


def is_busy(pid):
    """Does a thread of the process not sleep for 60 ms?"""
    busy = running(pid)
    for _ in range(60):
        time.sleep(0.001)
        busy &= running(pid)
    return bool(busy)


def sleeps(pid):
    """Does every thread of the process sleep for 40 ms?"""
    return not any(running(pid) or time.sleep(0.001) for _ in range(40))


def test_busy_poll_ends_in_sleep(run):
    p = run.start("sh", "-c", "while read line; do ibv_devices >&2; echo done; done", options=["--busy-poll", "100000"],
                  stderr=subprocess.DEVNULL)
    engine = run.engine(p)

    def polls_after_a_call():
        print(file=p.stdin, flush=True)
        assert p.stdout.readline() == "done\n"
        return is_busy(engine)
    # This process may be late for the 100 ms, but the engine's thread must not sleep in them.
    assert until(polls_after_a_call)
    assert until(lambda: sleeps(engine))
    p.communicate(timeout=STUCK)
    assert p.returncode == 0
    assert run("true", options=["--busy-poll", "100001"]).returncode == 2


def test_without_busy_poll_the_engine_sleeps_between_calls(run):
    p = run.start("sh", "-c", "ibv_devices; read line")
    engine = run.engine(p)
    assert "device" in p.stdout.readline()
    assert until(lambda: sleeps(engine))
    p.communicate("\n", timeout=STUCK)
    assert p.returncode == 0


@pytest.mark.parametrize("case", CASES)
def test_client(run, case):
    run.client(case)


def test_there_are_cases():
    assert len(CASES) > 20


# ---- programs of the distribution -----------------------------------------------------------------------------------


def test_ibv_devices(run):
    assert re.search(r"^\s+hfi1_0\s+[0-9a-f]{16}$", run("ibv_devices").stdout, re.M)


def test_ibv_devices_shows_all(run):
    out = run("ibv_devices", options=["--devices", "3"]).stdout
    assert all(f"hfi1_{i}" in out for i in range(3))
    assert run("ibv_devinfo", "-d", "hfi1_2", options=["--devices", "3"]).returncode == 0


def test_ibv_devinfo(run, abi):
    r = run("ibv_devinfo", "-v", options=abi)
    assert r.returncode == 0 and "PORT_ACTIVE" in r.stdout and "max_mr_size" in r.stdout, r.stderr


@pytest.fixture
def port():
    """A free TCP port: on the default port the client might reach another server than ours."""
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def pingpong(*args):
    """Server and client in one tree; the client tries until the server listens."""
    a = " ".join(map(str, args))
    return ["sh", "-c", f"ibv_rc_pingpong {a} >server 2>&1 & "
                        f"for i in $(seq 100); do sleep 0.1; ibv_rc_pingpong {a} localhost && break; done; "
                        f"wait && cat server"]


@pytest.mark.parametrize("mode", ["", "-e", "-c"])
def test_ibv_rc_pingpong(run, abi, mode, port):
    r = run(*pingpong("-n 200 -p", port, mode), options=abi, cwd=run.folder)
    assert r.returncode == 0 and r.stdout.count("200 iters") == 2, r.stdout + r.stderr


@pytest.mark.parametrize("quote", ['"', ""])
def test_env_sets_the_variable_and_names_what_programs_with_a_built_in_path_need(run, quote):
    env = f"{UVERBSCTL} env --sysfs /a/folder"
    r = run("sh", "-c", f'eval {quote}$({env}){quote}; echo "$SYSFS_PATH"; {env}; {env} --help')
    assert r.stdout.startswith("/a/folder\n") and r.stdout.count("uverbsd --sysfs overlay") == 1 and r.returncode == 0, r
    assert "--sysfs overlay, or uverbsctl exec" in r.stdout


def test_lists_of_files(run):
    r = run("ls", "-lR", "/dev/infiniband", "/sys/class/infiniband")
    assert r.returncode == 0 and r.stderr == "" and re.search(r"^crw-rw-rw-.* 231, 192 .*uverbs0$", r.stdout, re.M)


def test_port_down_and_up_are_seen_by_queries_sysfs_and_events(run):
    state = "cat /sys/class/infiniband/hfi1_0/ports/1/state; ibv_devinfo | grep -o 'PORT_[A-Z]*';"
    r = run("sh", "-c", f"ibv_asyncwatch >events 2>&1 & watch=$!;"
                        f"for i in $(seq 100); do grep -q event events && break; sleep 0.1; done;"
                        f"{UVERBSCTL} port down hfi1_0 1 && {state} {UVERBSCTL} port up uverbs0 1 && {state}"
                        f"for i in $(seq 100); do grep -q ACTIVE events && break; sleep 0.1; done;"
                        f"kill $watch; cat events", cwd=run.folder)
    assert r.stdout.split("hfi1_0:")[0].split("\n")[:4] == ["1: DOWN", "PORT_DOWN", "4: ACTIVE", "PORT_ACTIVE"], r
    assert re.findall(r"IBV_EVENT_(\w+) .*port (\d)", r.stdout) == [("PORT_ERR", "1"), ("PORT_ACTIVE", "1")], r.stdout
    assert "hfi1_0: port 0x1: event PORT_ERR: the port has gone down" in r.stderr, r.stderr


@pytest.mark.parametrize("args, words", [("down hfi1_0 2", "no such port"), ("down mlx5_0 1", "no such device")])
def test_port_of_what_is_not_there_is_told(run, args, words):
    r = run("sh", "-c", f"{UVERBSCTL} port {args}")
    assert r.returncode == 1 and words in r.stderr, r.stderr


def test_port_with_a_wrong_command_line_is_status_2(run):
    for args in ["", "up", "up hfi1_0", "sideways hfi1_0 1", "up hfi1_0 x", "up hfi1_0 1 more"]:
        assert run("sh", "-c", f"{UVERBSCTL} port {args}").returncode == 2


def pair_in_two_runs(run, port, *options):
    """Starts a server and a client of ibv_rc_pingpong, each in a run. Returns (client, server)."""
    argv = ["ibv_rc_pingpong", "-n", "20", "-p", str(port)]
    server = run.start(*argv, options=options)
    assert until(lambda: f":{port:04X} " in "".join(pathlib.Path(f"/proc/net/tcp{v}").read_text() for v in ("", "6")))
    return run.start(*argv, "localhost", options=options), server


def test_two_runs_that_join_share_the_devices_also_without_a_name(run, port):
    for p in pair_in_two_runs(run, port, "--join"):
        out, err = p.communicate(timeout=STUCK)
        assert p.returncode == 0 and "20 iters" in out, out + err


def test_two_runs_that_do_not_join_have_addresses_of_their_own_and_do_not_connect(run, port):
    client, server = pair_in_two_runs(run, port)
    out, err = client.communicate(timeout=STUCK)
    server.terminate()  # it does not notice that the client has ended
    server.communicate(timeout=STUCK)
    local, remote = (re.search(rf"{which} address: *LID (\w+), QPN (\w+)", out).groups() for which in ("local", "remote"))
    assert client.returncode and "transport retry counter exceeded" in err, err
    assert local != remote


@pytest.mark.parametrize("memlock, registers", [(None, True), ("unlimited", True), ("client", False), ("65536", False)])
def test_memlock_limits_a_client_only_if_told(run, port, memlock, registers):
    if run.privileged:
        run.prefix += ["setpriv", "--bounding-set=-ipc_lock"]  # the capability overrides the limit
    run.prefix += ["prlimit", "--memlock=65536:65536"]
    options = ["--memlock", memlock] if memlock else []
    if registers:
        r = run(*pingpong("-n 20 -s 1000000 -p", port), options=options, cwd=run.folder)
        assert r.returncode == 0 and r.stdout.count("20 iters") == 2, r.stdout + r.stderr
    else:
        r = run("ibv_rc_pingpong", "-s", "1000000", "-p", str(port), options=options, cwd=run.folder)
        limit = "RLIMIT_MEMLOCK" if memlock == "client" else "--memlock"
        assert r.returncode == 1 and "Couldn't register MR" in r.stderr, r.stderr
        assert r.stderr.count("REG_MR: ENOMEM: no more memory can be registered: ") == 1 and limit in r.stderr, r.stderr


@pytest.mark.parametrize("options, has, lacks", [
    (["--persona", "hfi1"], [], ["MEM_WINDOW", "XRC"]),
    (["--persona", "rxe"], ["MEM_WINDOW", "MEM_WINDOW_TYPE_2B"], ["XRC"]),
    (["--persona", "hfi1", "--announce", "all"], ["MEM_WINDOW", "XRC"], []),
])
def test_device_announces_what_its_provider_can_use_or_all_that_it_has(run, options, has, lacks):
    r = run.without_persona("ibv_devinfo", "-v", options=options)
    said = r.stdout.split()
    assert r.returncode == 0 and "RC_RNR_NAK_GEN" in said and set(has) <= set(said) and not set(lacks) & set(said), r.stdout


# ---- exit statuses and signals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("script, status", [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_exit_status_is_the_programs(run, script, status):
    assert run("sh", "-c", script).returncode == status


def test_program_that_cannot_be_run(run):
    r = run("/does/not/exist")
    assert r.returncode == 127 and "/does/not/exist" in r.stderr
    r = run("/etc/passwd")
    assert r.returncode == 126


@pytest.mark.parametrize("most", [9, 12, 20, 63])
def test_too_few_files_are_refused(run, most):
    run.prefix += ["prlimit", f"--nofile={most}:{most}"]
    r = run("true")
    assert r.returncode == 125 and f"the hard limit of open files is {most}" in r.stderr


def test_64_files_are_enough(run):
    run.prefix += ["prlimit", "--nofile=32:64"]
    r = run("ibv_devices", options=["--devices", "4"])
    assert r.returncode == 0 and r.stdout.count("hfi1_") == 4


def test_run_inside_a_run_is_refused_with_the_reason(run):
    r = run(UVERBSCTL, "run", "--", "true")
    assert r.returncode == 125 and "run inside a run" in r.stderr


def test_check_tells_which_transports_there_are_and_why_not(run):
    r = subprocess.run([*run.prefix, UVERBSCTL, "doctor"], env=run.env, cwd="/", capture_output=True, text=True, timeout=STUCK, check=False)
    by_run, by_cuse = r.stdout.splitlines()
    assert by_run.split() == ["uverbsctl", "run", "works"] and by_cuse.startswith("uverbsd ") and r.returncode == 0, r
    assert by_cuse.split()[1:] == ["works"] or "does not work: /dev/cuse: E" in by_cuse, r
    r = run(UVERBSCTL, "doctor")
    assert "uverbsctl run  does not work: these processes have a seccomp listener already" in r.stdout, r
    assert r.returncode == (0 if by_cuse.endswith("works") else 1), r
    assert run(UVERBSCTL, "doctor", "more").returncode == 2


def test_bad_options_are_status_2(run):
    assert run("true", options=["--backend", "nonsense"]).returncode == 2
    assert subprocess.run([UVERBSCTL, "run"], capture_output=True).returncode == 2
    assert subprocess.run([UVERBSCTL, "nonsense"], capture_output=True).returncode == 2


@pytest.mark.parametrize("args, said", [
    (["run", "--nonsense"], "uverbsctl run: unknown option `--nonsense`"),
    (["status", "--nonsense"], "uverbsctl status: unknown option `--nonsense`"),
    (["run", "--plugin", "/nowhere/x.so", "true"], "uverbsctl run: --plugin /nowhere/x.so: ENOENT"),
    (["run", "--first-number", "1023", "--devices", "2", "true"], "uverbsctl run: device rxe1: the number 1024 is not from 0 to 1023"),
    (["run", "--devices", "3", "--name", "rxe_x", "true"],
     "uverbsctl run: two devices have the name rxe_x: `name` in [device N] gives each its own")])
def test_message_names_the_program_and_the_value(args, said):
    r = subprocess.run([UVERBSCTL, *args], capture_output=True, text=True, timeout=STUCK)
    assert r.returncode == 2 and r.stderr.splitlines()[0].startswith(said), r


def test_failed_call_without_a_wrong_field_has_no_empty_field_in_its_log_line(run):
    r = run("ibv_devinfo", options=["--log-level", "debug"])
    assert "hfi1_0: IB_USER_VERBS_CMD_QUERY_DEVICE: ENOSPC, thread " in r.stderr and ",  " not in r.stderr, r.stderr


@pytest.mark.parametrize("sig, status", [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_signals_are_forwarded(run, sig, status):
    p = run.start("sh", "-c", "echo ready; exec sleep 60")
    assert p.stdout.readline() == "ready\n"
    p.send_signal(sig)
    assert p.wait(STUCK) == status


def test_program_can_handle_a_signal(run):
    p = run.start("sh", "-c", "trap 'exit 9' USR1; echo ready; while :; do sleep 0.05; done")
    assert p.stdout.readline() == "ready\n"
    p.send_signal(signal.SIGUSR1)
    assert p.wait(STUCK) == 9


def test_program_has_its_files_signals_and_session(run):
    read, write = os.pipe()
    script = f"echo from the pipe >&{write}; exec grep -E '^Sig(Blk|Ign)' /proc/self/status"
    plain = subprocess.run([*run.prefix, "bash", "-c", script], pass_fds=[write], capture_output=True, text=True).stdout
    r = run("bash", "-c", script, pass_fds=[write])
    os.close(write)
    assert r.stdout == plain
    assert os.read(read, 100) == b"from the pipe\n" * 2
    assert os.read(read, 100) == b"", "somebody else holds the program's pipe"
    os.close(read)
    r = run("sh", "-c", "cat; ps -o sid= -p $$", input="stdin\n")
    assert r.stdout.split() == ["stdin", str(os.getsid(0))]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_descriptor_is_like_dev_null(run, closed):
    """A file that the launcher or the engine opens must not get the number 0, 1 or 2: `run` leaves nothing behind then, either."""
    out = pathlib.Path(run.folder, "out")
    program = f"exec >{out} 2>&1; ibv_devices; readlink /proc/self/fd/0"
    launch = shlex.join(run.argv(["sh", "-c", program]))
    r = subprocess.run(["sh", "-c", f"{launch} {closed}"], env=run.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=STUCK)
    assert r.returncode == 0, (r, out.read_text())
    assert re.search(r"hfi1_0\s.*\n/dev/null\n", out.read_text(), re.S)


# ---- closing, dying --------------------------------------------------------------------------------------------------


def memfds(pid):
    found = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found += "/memfd:uverbsd:" in os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            pass
    return found


def test_last_close_is_that_of_fds_and_mappings(run):
    p = run.start(CLIENT, "last_close")
    engine = run.engine(p)
    for expect, left in (("open", 1), ("duplicate", 1), ("mapped", 1), ("closed", 0)):
        assert p.stdout.readline().strip() == expect, p.stderr.read()
        if left:
            time.sleep(0.3)
        assert until(lambda: memfds(engine) == left)
        p.stdin.write("go\n")
        p.stdin.flush()
    assert p.wait(STUCK) == 0, p.stderr.read()


def test_engine_keeps_no_descriptor_of_an_event_file_that_is_closed(run):
    script = """
import ctypes, os, struct
def context():
    fd, resp = os.open("/dev/infiniband/uverbs0", os.O_RDWR), ctypes.create_string_buffer(8)
    os.write(fd, struct.pack("=IHHQ", 0, 4, 2, ctypes.addressof(resp)))
    os.close(struct.unpack("=iI", resp)[0])
    os.close(fd)
for n in 1, 20:
    for i in range(n):
        context()
    print(n, flush=True)
    input()
"""
    p = run.start("/usr/bin/python3", "-c", script)
    engine = run.engine(p)
    most = None
    for n in 1, 20:
        assert p.stdout.readline() == f"{n}\n", p.stderr.read()
        assert until(lambda: memfds(engine) == 0)
        most = most or len(os.listdir(f"/proc/{engine}/fd"))
        assert until(lambda: len(os.listdir(f"/proc/{engine}/fd")) <= most)
        p.stdin.write("\n")
        p.stdin.flush()
    assert p.wait(STUCK) == 0, p.stderr.read()


def test_killed_client_leaves_nothing_in_the_engine(run):
    script = f"for i in 1 2 3 4 5; do {CLIENT} churn_for_ever & sleep 0.1; kill -9 $!; done; wait; echo all; read line"
    p = run.start("sh", "-c", script)
    engine = run.engine(p)
    while p.stdout.readline() != "all\n":
        pass
    assert until(lambda: memfds(engine) == 0)
    p.communicate("\n", timeout=STUCK)
    assert p.returncode == 0 or p.returncode == 1


@pytest.mark.parametrize("pause", [0, 0.01, 0.05, 0.1])
def test_engine_killed_device_calls_are_eio_and_the_rest_goes_on(run, pause):
    script = f"{CLIENT} until_eio && ls /etc >/dev/null && ! ibv_devinfo 2>/dev/null && exit 5"
    p = run.start("sh", "-c", script)
    engine = run.engine(p)
    assert p.stdout.readline() == "ready\n"
    p.stdin.write("go\n")
    p.stdin.flush()
    time.sleep(pause)
    os.kill(engine, signal.SIGKILL)
    out, err = p.communicate(timeout=STUCK)
    assert p.returncode == 5, err
    assert "engine has died" in err


def test_daemonised_child_is_served_after_the_program_ended(run):
    out, go = pathlib.Path(run.folder, "out"), pathlib.Path(run.folder, "go")
    script = f"(until [ -e {go} ]; do sleep 0.1; done; ibv_devinfo; echo status $?) >{out} 2>&1 </dev/null & exit 3"
    r = run("setsid", "sh", "-c", script)
    assert r.returncode == 3, "run did not return with the program"
    assert run.left()
    go.touch()
    assert until(lambda: out.exists() and "status" in out.read_text())
    assert "PORT_ACTIVE" in out.read_text() and "status 0" in out.read_text()


def test_engine_killed_after_the_program_ended(run):
    out, go = pathlib.Path(run.folder, "out"), pathlib.Path(run.folder, "go")
    p = run.start("sh", "-c", f"(until [ -e {go} ]; do sleep 0.1; done; ls /etc; echo status $?)"
                              f" >{out} 2>&1 </dev/null & read line")
    engine = run.engine(p)
    p.communicate("\n", timeout=STUCK)
    os.kill(engine, signal.SIGKILL)
    go.touch()
    assert until(lambda: out.exists() and "status 0" in out.read_text())


@pytest.mark.parametrize("last", ["exit 3", "sleep 0.2 & exit 3"])
def test_an_engine_that_hangs_is_killed_after_the_last_process(run, last):
    run.env["UVERBSD_RUN_END_MS"] = "500"
    p = run.start("sh", "-c", f"echo ready; read line; {last}")
    assert p.stdout.readline() == "ready\n"
    os.kill(run.engine(p), signal.SIGSTOP)
    out, err = p.communicate("\n", timeout=STUCK)
    assert p.returncode == 3 and "the engine hangs: it did not end within 500 ms after the last process; it is killed" in err, err
    assert until(lambda: not run.left()), run.left()


def test_an_engine_that_hangs_is_left_alone_as_long_as_a_process_needs_it(run):
    run.env["UVERBSD_RUN_END_MS"] = "2000"
    p = run.start("sh", "-c", "echo ready; read line; ibv_devinfo")
    assert p.stdout.readline() == "ready\n"
    engine = run.engine(p)
    os.kill(engine, signal.SIGSTOP)
    p.stdin.write("\n")
    p.stdin.flush()
    time.sleep(2.3)
    os.kill(engine, signal.SIGCONT)
    out, err = p.communicate(timeout=STUCK)
    assert p.returncode == 0 and "PORT_ACTIVE" in out and "hangs" not in err, err


def test_a_run_that_has_joined_an_engine_that_hangs_ends(run):
    run.env["UVERBSD_RUN_END_MS"] = "500"
    p = run.start("sh", "-c", "echo ready; read line", options=["--join", "hangs"])
    assert p.stdout.readline() == "ready\n"
    other = run.start("sh", "-c", "echo ready; read line; exit 4", options=["--join", "hangs"])
    assert other.stdout.readline() == "ready\n"
    engine = run.engine(p)
    os.kill(engine, signal.SIGSTOP)
    out, err = other.communicate("\n", timeout=STUCK)
    assert other.returncode == 4 and "the engine hangs: it did not end within 500 ms after the last process\n" in err, err
    os.kill(engine, signal.SIGCONT)
    out, err = p.communicate("\n", timeout=STUCK)
    assert p.returncode == 0 and "hangs" not in err, err


def test_guardian_killed_the_engine_goes_on(run):
    p = run.start("sh", "-c", "echo ready; read line; ibv_devinfo")
    assert p.stdout.readline() == "ready\n"
    os.kill(p.guardian, signal.SIGKILL)
    out, err = p.communicate("\n", timeout=STUCK)
    assert p.returncode == 0 and "PORT_ACTIVE" in out, err


# ---- several runs on one engine --------------------------------------------------------------------------------------


@pytest.fixture(params=["agent"] if SANITIZED else ["direct", "agent", "namespaces"])
def joining(request, run):
    """
    With Yama's ptrace_scope 1 the engine reaches a joined tree through its guardian. $UVERBSD_RUN_AGENT forces that on any kernel. If
    each run has a pid namespace of its own the guardian also receives the calls.
    """
    if request.param == "agent":
        run.env["UVERBSD_RUN_AGENT"] = "1"
    if request.param == "namespaces":
        run.prefix = pid_namespace(run)
    return run


@pytest.mark.parametrize("mode", ["", "-e", "-c"])
def test_join_pingpong_between_runs(joining, abi, mode, port):
    run = joining
    options = ["--join", "lab", *abi]
    server = run.start("sh", "-c", f"echo ready; exec ibv_rc_pingpong -n 100 -p {port} {mode}", options=options)
    assert server.stdout.readline() == "ready\n"
    script = f"for i in $(seq 100); do sleep 0.1; ibv_rc_pingpong -n 100 -p {port} {mode} localhost && exit 0; done; exit 1"
    r = run("sh", "-c", script, options=options)
    out, err = server.communicate(timeout=STUCK)
    assert r.returncode == 0 and "100 iters" in r.stdout, r.stdout + r.stderr + out + err
    assert server.returncode == 0 and "100 iters" in out, err
    assert until(lambda: not list(pathlib.Path(run.folder).glob("uverbsd/*.sock")))


@pytest.mark.parametrize("case", ["duplicates_are_the_same_file", "fork", "exec", "threads", "storm_alloc_pd", "vfork",
                                  "vfork_opens_before_its_exec", "vfork_has_a_thread_that_execs",
                                  "node_is_a_character_device", "built_in_sysfs_paths", "scm_rights", "node_by_other_paths",
                                  "exec_by_a_thread", "closed_by_another_thread", "number_of_a_recycled_thread"])
def test_join_client(joining, case):
    run = joining
    first = run.start("sh", "-c", "echo ready; read line", options=["--join", "lab"])
    assert first.stdout.readline() == "ready\n"
    run.client(case, "--join", "lab")
    first.communicate("\n", timeout=STUCK)


def test_join_outlives_the_first(run):
    first = run.start("sh", "-c", "echo ready; read line", options=["--join", "lab"])
    assert first.stdout.readline() == "ready\n"
    second = run.start("sh", "-c", "echo ready; read line; ibv_devinfo", options=["--join", "lab"])
    assert second.stdout.readline() == "ready\n"
    first.communicate("\n", timeout=STUCK)
    out, err = second.communicate("\n", timeout=STUCK)
    assert second.returncode == 0 and "PORT_ACTIVE" in out, err


def test_join_ends_beside_a_file_that_was_opened_twice(run):
    """A program opens its file again by /proc and closes that one; the first stays open. Another run must not wait for it to close."""
    twice = """
import os
first = os.open("/dev/infiniband/uverbs0", os.O_RDWR)
os.close(os.open(f"/proc/self/fd/{first}", os.O_RDWR))
print("ready", flush=True)
input()
"""
    other = run.start("/usr/bin/python3", "-c", twice, options=["--join", "lab"])
    assert other.stdout.readline() == "ready\n"
    assert run("ibv_devinfo", options=["--join", "lab"], timeout=STUCK).returncode == 0
    other.communicate("\n", timeout=STUCK)
    assert other.returncode == 0


def test_join_engine_killed(run):
    first = run.start("sh", "-c", "echo ready; read line; ls /etc >/dev/null", options=["--join", "lab"])
    engine = run.engine(first)
    assert first.stdout.readline() == "ready\n"
    second = run.start(CLIENT, "until_eio", options=["--join", "lab"])
    assert second.stdout.readline() == "ready\n"
    second.stdin.write("go\n")
    second.stdin.flush()
    os.kill(engine, signal.SIGKILL)
    out, err = second.communicate(timeout=STUCK)
    assert second.returncode == 0, err
    first.communicate("\n", timeout=STUCK)
    assert first.returncode == 0
    assert run("ibv_devinfo", options=["--join", "lab"]).returncode == 0, "the dead engine's socket is in the way"


def test_join_name_cannot_be_a_path(run):
    r = run("true", options=["--join", "../x"])
    assert r.returncode in (2, 125)
