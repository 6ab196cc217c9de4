# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Doorbells of the distribution's rxe provider: write()s that the kernel carries out, and calls wherever that cannot be."""
import errno
import os
import shutil
import signal
import subprocess

import pytest

from conftest import BIN, BUILD, CLIENT, STUCK, UVERBSCTL, children, pair, until
from test_namespaces import Places
from test_plugin import PLUGIN, toy  # noqa: F401 (a fixture)

DOORBELLS = shutil.copy(BUILD / "tests/run/run_doorbells", BIN / "run_doorbells").as_posix()
RXE = ("--persona", "rxe")
PINGPONG = pair("ibv_rc_pingpong -d rxe0 -g 0 -p $port -n 1000")


def case(run, *args, options=(), **kw):
    r = run(DOORBELLS, *args, options=[*RXE, *options], **kw)
    assert r.returncode == 0, r.stderr
    return r


def way(run, *options, script='exec "$0" way'):
    r = run("sh", "-c", script, DOORBELLS, options=[*RXE, *options])
    assert r.returncode == 0, r.stderr
    return r.stdout.strip()


def test_doorbell_is_carried_out_by_the_kernel(run):
    assert way(run) == "direct"
    assert way(run, "--doorbells", "calls") == "calls"


@pytest.mark.parametrize("options", (
    ("--abi", "write"), ("--filter", "error:post_send=ENOMEM@1000"), ("--filter", "event:seed=1"),
    ("--filter", "delay:post_send=1us"), ("--filter", "flap:after=60s"), ("--trace", "trace"), ("--persona", "hfi1")))
def test_doorbells_are_calls_where_somebody_sees_posts(run, options):
    if options[0] == "--trace":
        options = ("--trace", run.folder + "/trace")
    assert "calls" in way(run, *options).split("\n")


@pytest.mark.parametrize("way_", ("auto", "calls"))
def test_engine_has_a_session_of_its_own_if_it_has_a_log(run, way_):
    p = run.start(DOORBELLS, "wait", options=[*RXE, "--doorbells", way_])
    assert p.stdout.readline() == "ready\n"
    engine = run.engine(p)
    own = os.getsid(engine) == engine
    p.communicate(timeout=STUCK)
    assert own == (way_ == "auto")


def test_report_leaves_doorbells_direct(run):
    assert way(run, "--report") == "direct"


SEES = "the plug-in sees a post"


def test_doorbells_are_calls_if_a_plugin_sees_posts(run, toy):  # noqa: F811
    posts = os.path.join(run.toys, "posts.so")
    for plugin, way_, sees in ((toy, "direct", 0), (posts, "calls", 1)):
        r = run(DOORBELLS, "way", options=[*RXE, "--plugin", plugin])
        assert (r.returncode, r.stdout, r.stderr.count(SEES)) == (0, way_ + "\n", sees), r


def test_files_keep_their_way_when_a_plugin_that_sees_posts_comes_or_goes(run, toy):  # noqa: F811
    script = f'''mkfifo in out; exec 4<>in 5<>out; "$0" again <in >out 4>&- 5>&- & read line <&5; echo $line
        {PLUGIN} load ./posts.so >&2; "$0" way; echo >&4; read line <&5; echo $line; {PLUGIN} unload posts >&2; "$0" way; exec 4>&-; wait'''
    r = run("sh", "-c", script, DOORBELLS, options=RXE, cwd=run.toys)
    assert r.returncode == 0 and r.stdout.split() == ["direct", "calls", "direct", "direct"] and r.stderr.count(SEES) == 1, r


def test_doorbells_are_calls_beyond_a_limit(run):
    assert way(run, script='ulimit -f 1000000; exec "$0" way') == "calls"


@pytest.mark.parametrize("way_, err", (("auto", errno.ENOMEM), ("calls", errno.EINVAL)))
def test_refused_posts_leave_nothing_in_the_queue(run, way_, err):
    case(run, "states", str(err), options=["--doorbells", way_])


def test_files_beyond_the_numbers_of_direct_ones_have_calls(run):
    # The client's limit: the engine needs some descriptors for each file.
    r = run("sh", "-c", 'ulimit -n 1024; exec "$0" many', DOORBELLS, options=RXE)
    assert r.returncode == 0, r


def test_duplicates_ring_too(run):
    case(run, "dup")


def test_duplicates_are_direct_if_their_file_is(run):
    assert way(run, script='"$0" copies; ulimit -f 1000000; exec "$0" copies') == "direct\ncalls"


@pytest.mark.parametrize("way_, err", (("auto", 0), ("calls", errno.EACCES)))
def test_doorbell_of_a_forked_child(run, way_, err):
    assert case(run, "fork", options=["--doorbells", way_]).stdout == f"{err}\n"


def test_call_hands_over_the_doorbells_before_it(run):
    case(run, "drain")


def test_limit_that_would_end_the_program_is_refused(run):
    r = case(run, "limit")
    assert r.stderr.count("setrlimit(RLIMIT_FSIZE, 1048576) is refused") == 3, r


def test_limit_of_another_process_is_refused_if_that_has_a_log(run):
    case(run, "limits")


def test_limit_of_a_process_in_a_pid_namespace_of_its_own_is_refused(run):
    own = ["unshare", *([] if run.privileged else ["--user", "--map-root-user"]), "--pid", "--fork"]
    r = run(*own, DOORBELLS, "limit", options=RXE)
    assert r.returncode == 0, r.stderr


def test_limit_of_a_process_in_another_pid_namespace_than_the_engine_is_refused(run):
    places = Places(run, True, True)
    first = places.start_first("sh", "-c", "echo ready; read line", options=RXE)
    for name in ("limit", "limits"):
        r = places(DOORBELLS, name)
        assert r.returncode == 0, r.stderr
    first.communicate("\n", timeout=STUCK)


def test_limit_of_a_process_without_a_log_is_set(run):
    case(run, "unlimited")


def test_log_survives_whatever_its_client_does(run):
    case(run, "garbage")


@pytest.mark.parametrize("name", ("pointers", "end_of_file", "seals", "append", "passed", "reopened", "mapped", "at_once",
                                  "short_command"))
def test_client_still_rings_after_what_it_does_to_its_descriptor(run, name):
    case(run, name)


def test_program_that_opens_the_device_by_itself_has_calls(run):
    # Beside programs that have asked for NETLINK_RDMA: what it writes may be other commands of 32 bytes.
    assert way(run, script='"$0" way; "$0" alone; "$0" asked') == "direct\ncalls\ndirect"
    # This one expects that nothing but commands can be written.
    assert way(run, script=f'"$0" way; {CLIENT} hostile_file && exec "$0" way') == "direct\ndirect"


def test_program_that_another_one_has_become_has_calls_until_it_asks(run):
    assert way(run, script='exec "$0" become') == "calls"


def blocks(pid, fd):
    """Returns the MiB of the process's open file. None: the process has ended."""
    try:
        return os.stat(f"/proc/{pid}/fd/{fd}").st_blocks * 512 >> 20
    except OSError:
        return None


def test_flood_of_junk_is_given_back_and_others_go_on(run):
    p = run.start("sh", "-c", f'"$0" flood & echo $!; ({PINGPONG}) >&2; echo $?; wait', DOORBELLS, options=["--doorbells", "auto", *RXE])
    pid, fd = (int(p.stdout.readline()) for _ in range(2))
    most = now = 0
    while now is not None:
        most = max(most, now)
        now = blocks(pid, fd)
    out, err = p.communicate(timeout=STUCK)
    numbers = [int(line) for line in out.split()]
    assert p.returncode == 0 and sorted(numbers)[0] == 0, (out, err)
    # On a machine where the reader has to wait for a CPU the client writes little, and more of it is there at once.
    if not os.environ.get("UVERBSD_SANITIZER"):
        assert most < max(128, max(numbers) / 4), (most, numbers)


def ask(p, how=""):
    p.stdin.write(how + "\n")
    p.stdin.flush()
    return p.stdout.readline().split()


def test_each_post_after_unplug_fails(run):
    p = run.start("sh", "-c", 'echo "$UVERBSD_CONTROL"; exec "$0" wait', DOORBELLS, options=RXE)
    control = p.stdout.readline().strip()
    assert p.stdout.readline() == "ready\n"
    assert ask(p) == ["0", "0", "1"]
    subprocess.run([*run.prefix, UVERBSCTL, "device", "--control", control, "remove", "rxe0"], check=True, timeout=STUCK, env=run.env,
                   stdout=subprocess.DEVNULL)
    assert ask(p)[:2] == ["ENOMEM", "ENOMEM"]
    p.communicate(timeout=STUCK)


def test_each_post_after_the_engines_death_fails(run):
    p = run.start(DOORBELLS, "wait", options=RXE)
    assert p.stdout.readline() == "ready\n"
    assert ask(p) == ["0", "0", "1"]
    engine = run.engine(p)
    os.kill(engine, signal.SIGKILL)
    assert until(lambda: engine not in children(p.guardian))
    # Until the guardian knows of it nobody reads the log, and posts succeed.
    answers = []
    assert until(lambda: answers.append(ask(p, "go on")) or answers[-1][0] != "0")
    assert answers[-1][:2] == ["EPERM", "EPERM"], answers
    p.stdin.close()
    p.wait(STUCK)
    assert p.returncode == 0, (p.returncode, p.stderr.read())


def test_client_can_end_with_doorbells_in_its_log(run):
    r = run("sh", "-c", 'for i in 1 2 3 4 5 6 7 8; do "$0" leave & done; wait', DOORBELLS, options=RXE)
    assert r.returncode == 0, r
