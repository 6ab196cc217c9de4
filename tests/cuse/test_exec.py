# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl exec` on a machine without RDMA in the kernel. tests/beside has it beside rxe."""
import subprocess

import pytest

from conftest import BUILD, NAMES, NOBODY, STUCK, ids_of, wait_for

UVERBSCTL = BUILD / "tools" / "uverbsctl"


def execute(*argv, options=(), user=NOBODY):
    return subprocess.run([UVERBSCTL, "exec", *options, "--", *argv], text=True, timeout=STUCK, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **ids_of(user))


@pytest.mark.parametrize("user", [0, NOBODY])
def test_devices_are_found_without_environment(start, user):
    start("--sysfs", "/run/uverbsd/it's here")
    done = execute("sh", "-c", "ibv_devices; ibstat; id -u; grep CapEff /proc/self/status; \"$1\" status", "sh",
                   UVERBSCTL, user=user)
    assert done.returncode == 0 and done.stderr == "", done
    words = done.stdout.split()
    assert f"'{NAMES[0]}'" in words and str(user) in words and f"{NAMES[0]}," in words, done
    assert user == 0 or "CapEff:\t0000000000000000\n" in done.stdout, done


def test_programs_make_calls_and_get_event_files(start):
    d = start()
    done = execute(BUILD / "tests" / "cuse" / "cuse-client", "channels", "2")
    assert done.returncode == 0, done
    assert d.status()["grants"]["granted"] >= 2


def test_shell_finds_the_devices_after_a_restart(start):
    d = start()
    with subprocess.Popen([UVERBSCTL, "exec", "--", "sh", "-c", "echo; read line; ibv_devices; ls /sys/class/infiniband"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, **ids_of(NOBODY)) as shell:
        assert shell.stdout.readline() == "\n"
        subprocess.run([UVERBSCTL, "restart"], check=True, timeout=STUCK)
        wait_for("the next engine process", lambda: d.starts() == 2)
        out, _ = shell.communicate("\n", timeout=STUCK)
    assert out.split()[-1] == NAMES[0] and out.count(NAMES[0]) == 2, out


def test_status_is_the_programs(start):
    start()
    assert execute("sh", "-c", "exit 7").returncode == 7
    assert execute("sh", "-c", "kill -TERM $$").returncode == -15
    done = execute("/nonexistent/program")
    assert (done.returncode, done.stderr) == (127, "uverbsctl exec: /nonexistent/program: ENOENT\n")
    done = execute("/etc/passwd")
    assert (done.returncode, done.stderr) == (126, "uverbsctl exec: /etc/passwd: EACCES\n")


def test_without_a_daemon_it_says_what_to_do():
    done = execute("true")
    assert done.returncode == 125 and "no uverbsd answers on /run/uverbsd/control" in done.stderr, done
    assert "systemctl start uverbsd" in done.stderr and "uverbsctl run -- PROGRAM" in done.stderr, done


def test_without_a_program_it_is_a_usage_error():
    done = execute()
    assert done.returncode == 2 and "PROGRAM is missing" in done.stderr, done
