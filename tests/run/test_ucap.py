# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""User Capabilities (kernel 6.15) under `uverbsctl run`: their nodes, the right to open them, and what a context gets for them.

No kernel that the tests can boot has them: docs/abi-rules.md and the kernel's Documentation/infiniband/ucaps.rst are
the standard.
"""
import os
import re
import subprocess

import pytest

from conftest import UCAP_CLIENT

OURS = "uverbsd_port_state"
OPTIONS = ["--ucaps", f"{OURS}, perm_other", "--ucap", OURS]


def client(run, *names, options=OPTIONS, **kw):
    r = run(UCAP_CLIENT, *names, options=options, stdin=subprocess.DEVNULL, **kw)
    assert r.returncode == 0, r.stderr
    return r.stdout.splitlines()


def test_without_the_option_there_is_no_node_and_no_class(run):
    r = run("sh", "-c", "ls /dev/infiniband /sys/class/ | cat; ls /sys/class/infiniband_ucaps; "
                        f"ls /dev/infiniband/{OURS}")
    assert OURS not in r.stdout and "infiniband_ucaps" not in r.stdout
    assert r.stderr.count("No such file") == 2, r.stderr


def test_node_is_listed_and_published_with_one_number(run):
    r = run("sh", "-c", "ls -l /dev/infiniband /sys/class/infiniband_ucaps; stat -c '%t:%T' /dev/infiniband/perm_other;"
                        "cat /sys/class/infiniband_ucaps/perm_other/*", options=OPTIONS)
    assert re.search(r"^crw------- .* root .* perm_other$", r.stdout, re.M), r.stdout + r.stderr
    assert re.search(rf"^crw-rw-rw- .* {OURS}$", r.stdout, re.M)
    major, minor = map(int, re.search(r"^(\d+):(\d+)$", r.stdout, re.M).groups())
    assert f"{major:x}:{minor:x}" in r.stdout.splitlines()
    assert f"MAJOR={major}\nMINOR={minor}\nDEVNAME=infiniband/perm_other\nDEVMODE=0600" in r.stdout


def test_open_without_a_grant_is_eacces_even_for_root(run):
    out = client(run, "perm_other", "perm_absent")
    assert out[:3] == ["open perm_other EACCES", "open perm_absent ENOENT", "context 0"]


def test_open_has_the_mode_that_it_asks_for(run):
    r = run("sh", "-c", f"exec 5<>/dev/infiniband/{OURS} 6>/dev/infiniband/{OURS} 7</dev/infiniband/{OURS}; "
                        "grep -h ^flags /proc/self/fdinfo/[567]", options=OPTIONS)
    assert [int(word, 8) & os.O_ACCMODE for word in r.stdout.split()[1::2]] == [os.O_RDWR, os.O_WRONLY, os.O_RDONLY], r


def test_access_says_what_open_would(run):
    r = run("sh", "-c", f"test -r /dev/infiniband/{OURS} && echo yes; test -w /dev/infiniband/perm_other || echo no",
            options=OPTIONS)
    assert r.stdout.split() == ["yes", "no"]


def test_feature_is_not_there_without_its_capability(run):
    assert client(run) == ["context 0", "down EPROTONOSUPPORT", "state 4: ACTIVE", "up EPROTONOSUPPORT", "state 4: ACTIVE",
                           "after EPROTONOSUPPORT"]
    out = client(run, "perm_other", options=["--ucaps", f"{OURS},perm_other", "--ucap", "perm_other"])
    assert out[:3] == ["open perm_other 0", "context 0", "down EPROTONOSUPPORT"]


def test_feature_works_for_a_context_with_its_capability(run):
    want = ["context 0", "down 0", "state 1: DOWN", "up 0", "state 4: ACTIVE", "after 0"]
    assert client(run, OURS) == [f"open {OURS} 0", *want]
    both = [*OPTIONS, "--ucap", "perm_other"]
    assert client(run, "perm_other", OURS, OURS, options=both)[3:] == want


def test_device_that_has_not_created_it_has_no_such_feature_though_another_has(run, tmp_path):
    config = run.folder + "/config"
    with open(config, "w") as f:
        f.write(f"[uverbsd]\ndevices = 2\n[device 1]\nucaps = {OURS}\n")
    assert client(run, OURS, options=["--config", config, "--ucap", OURS]) == [
        f"open {OURS} 0", "context 0", "down EPROTONOSUPPORT", "state 4: ACTIVE", "up EPROTONOSUPPORT", "state 4: ACTIVE",
        "after EPROTONOSUPPORT"]


def test_descriptor_of_something_else_is_einval_and_no_context_is_made(run):
    out = client(run, "uverbs0")
    assert out[:3] == ["open uverbs0 0", "context EINVAL", "context again 0"]


def test_node_in_a_duplicate_a_child_and_another_process_is_that_node(run):
    """A duplicate proves the capability, in another process, too. fstat() shows the node's number, and write() is EINVAL."""
    script = ("import errno, os, subprocess\n"
              f"fd = os.open('/dev/infiniband/{OURS}', os.O_RDWR)\n"
              f"rdev = os.stat('/dev/infiniband/{OURS}').st_rdev\n"
              "low = os.dup2(fd, 50)\n"  # fstat() of this one is the kernel's (docs/abi-differences.md)
              "assert os.fstat(fd).st_rdev == rdev and os.fstat(os.dup(fd)).st_rdev == rdev\n"
              "try: os.write(fd, b'x'); raise SystemExit('written')\n"
              "except OSError as e: assert e.errno == errno.EINVAL, e\n"
              "if not os.fork():\n"
              "    assert os.fstat(fd).st_rdev == rdev\n"
              "    os._exit(0)\n"
              "assert os.wait()[1] == 0\n"
              "for n in fd, os.dup(fd), low:\n"
              f"    subprocess.run(['{UCAP_CLIENT}', str(n)], pass_fds=[n], stdin=subprocess.DEVNULL, check=True)\n")
    r = run("python3", "-c", script, options=OPTIONS)
    assert r.returncode == 0, r.stderr
    want = ["context 0", "down 0", "state 1: DOWN", "up 0", "state 4: ACTIVE", "after 0"]
    assert r.stdout.splitlines() == want * 3


def test_grant_of_what_no_device_creates_is_told(run):
    r = run("true", options=["--ucap", "perm_absent"])
    assert r.returncode == 0 and "--ucap perm_absent: no device has created it" in r.stderr


@pytest.mark.parametrize("option, text", [("--ucaps", "uverbs0"), ("--ucap", "../mem"), ("--ucaps", ","), ("--ucaps", "a b"),
                                          ("--ucap", "x" * 32), ("--ucaps", ",".join(f"perm_{i}" for i in range(9)))])
def test_bad_name_is_status_2(run, option, text):
    r = run("true", options=[option, text])
    assert r.returncode == 2 and option in r.stderr, r.stderr


def test_each_run_that_joins_has_its_own_grants(run):
    first = run.start("sh", "-c", "echo ready; read line", options=["--join", "ucap", "--ucaps", OURS])
    assert first.stdout.readline() == "ready\n"
    assert client(run, OURS, options=["--join", "ucap"])[0] == f"open {OURS} EACCES"
    assert client(run, OURS, options=["--join", "ucap", "--ucap", OURS])[:3] == [f"open {OURS} 0", "context 0", "down 0"]
    first.communicate("\n")


def test_under_an_agent_the_descriptors_are_looked_at_as_well(run):
    """As with Yama's ptrace_scope 1, where the engine may not attach to processes of another run."""
    run.env["UVERBSD_RUN_AGENT"] = "1"
    first = run.start("sh", "-c", "echo ready; read line", options=["--join", "ucap", "--ucaps", OURS])
    assert first.stdout.readline() == "ready\n"
    assert client(run, OURS, options=["--join", "ucap", "--ucap", OURS])[:3] == [f"open {OURS} 0", "context 0", "down 0"]
    first.communicate("\n")
