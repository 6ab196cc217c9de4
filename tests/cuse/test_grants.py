# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Event files for clients that wait in a call."""
import subprocess

import pytest

from conftest import BUILD, LOANS, NOBODY, STUCK, UNMAPPED, ids_of, run_client


@pytest.mark.parametrize("abi", ["ioctl", "write"])
def test_granted_fds_are_open_empty_and_close_on_exec(start, abi):
    d = start("--abi", abi)
    run_client("channels", "20")
    grants = d.status()["grants"]
    assert grants["granted"] == 20 + (LOANS if abi == "ioctl" else 1) and grants["fell_back"] == 0
    d.wait_idle()


def test_storm_of_sigalrm_hurts_no_grant_and_leaves_the_signal_mask(start):
    d = start()
    run_client("alarms", "60")
    assert d.status()["grants"]["fell_back"] == 0
    d.wait_idle()


def test_six_threads_at_once(start):
    d = start()
    run_client("threads", "20")
    assert d.status()["grants"]["granted"] == 120 + LOANS
    d.wait_idle()


def test_programs_that_start_at_once_all_get_their_event_files(start):
    """They are more than the user has places for senders: each waits for its turn."""
    d = start()
    run_client("at-once", "64")
    grants = d.status()["grants"]
    assert grants["granted"] == 64 and grants["fell_back"] == 0, grants
    d.wait_idle()


def test_exec_in_another_thread_waits_for_no_grant(start):
    d = start()
    for _ in range(10):
        run_client("exec")
        assert d.idle_after_an_end(), d.status()
    grants = d.status()["grants"]
    assert grants["late"] == 0 and grants["gone"] > 0, grants  # gone > 0: an exec has hit a grant


def test_seccomp_filter_of_the_client_does_not_see_our_calls(start):
    start()
    run_client("seccomp", "3")


def test_full_fd_table_is_emfile(start):
    d = start()
    run_client("full-table")
    d.wait_idle()


def test_traced_client_opens_without_events(start):
    d = start(*UNMAPPED)
    run_client("traced")
    assert d.status()["grants"]["fell_back"] == 2


def test_thread_with_a_table_of_its_own_gets_no_fd_of_another_table(start):
    d = start()
    run_client("unshared")
    assert d.status()["grants"]["fell_back"] == 1
    d.wait_idle()


def test_grants_off_is_the_fallback(start):
    d = start("--grant-fds", "off")
    run_client("no-grants")
    d.wait_idle()


@pytest.mark.parametrize("separate", ["no", "yes"])
def test_i386_caller_gets_its_fd_and_the_same_answers(start, separate):
    d = start("--separate", separate)
    done = subprocess.run([BUILD / "tests" / "cuse" / "cuse-i386", "5"], **ids_of(NOBODY), stdout=subprocess.PIPE, text=True,
                          timeout=STUCK)
    assert done.returncode == 0, done.stdout
    assert d.status()["grants"]["granted"] == 5
    d.wait_idle()


@pytest.mark.parametrize("user", [0, NOBODY])
def test_write_is_for_the_opener(start, user):
    start()
    run_client("opener", user=user)


def test_split_write_is_one_command_or_none(start):
    d = start(*UNMAPPED)
    run_client("torn")
    d.wait_idle()
