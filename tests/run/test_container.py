# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl run` with the system calls and capabilities that Docker leaves a process by default (container.c), as README.md says."""
import shutil
import subprocess

from conftest import BIN, BUILD, STUCK, UVERBSCTL, pair

CONTAINER = shutil.copy(BUILD / "tests/run/run_container", BIN / "run_container").as_posix()


def within(run, *program):
    return subprocess.run([*run.prefix, CONTAINER, *program], capture_output=True, text=True, env=run.env, timeout=STUCK, check=False)


def test_a_container_makes_no_namespace(run):
    """Else the tests below would say nothing."""
    assert "Operation not permitted" in within(run, "unshare", "-U", "true").stderr
    assert within(run, "bwrap", "--dev-bind", "/", "/", "true").returncode == 1


def test_a_pair_of_programs_runs_in_a_container(run):
    done = within(run, UVERBSCTL, "run", "--", "sh", "-c", pair("ibv_rc_pingpong -g 0 -n 20 -c -e -p $port"))
    assert done.returncode == 0 and done.stdout.count("20 iters in") == 2, done


def test_programs_of_two_runs_meet_in_a_container(run):
    uverbsctl = f"{UVERBSCTL} run --join --"
    done = within(run, "sh", "-c", pair(f"{uverbsctl} ibv_rc_pingpong -g 0 -n 20 -p $port"))
    assert done.returncode == 0 and done.stdout.count("20 iters in") == 2, done


def test_a_filter_and_the_doctor_work_in_a_container(run):
    done = within(run, UVERBSCTL, "run", "--filter", "error:alloc_pd=EMFILE@1", "--", UVERBSCTL, "call", "PD", "ALLOC")
    assert done.returncode == 1 and "PD ALLOC: EMFILE" in done.stderr, done
    assert "uverbsctl run  works" in within(run, UVERBSCTL, "doctor").stdout
