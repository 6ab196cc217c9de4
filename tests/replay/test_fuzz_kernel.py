# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl fuzz` and `check log` of `uverbsctl replay` on the kernel's own device: docs/fuzzing.md, "The kernel's device"."""
import os
import pathlib
import re
import signal
import subprocess
import time

from conftest import KERNELS, record, replay

PATIENCE = ("--seconds", "1000", "--hang", "1000")  # of a clock that can be ten times as fast as the host's
REPORT = "BUG: a test of uverbsd says so"
# The check of the log takes place after this program, which waits for an event that does not come.
WAITING = "check log\ncontext0: write GET_CONTEXT\nevent context0.fd wait=300\n"


def kernel_says(text):
    fd = os.open("/dev/kmsg", os.O_WRONLY)
    os.write(fd, f"<7>{text}\n".encode())
    os.close(fd)


def fuzz(folder, *options, prefix=()):
    done = subprocess.run([*prefix, record.UVERBSCTL, "fuzz", *PATIENCE, *options, KERNELS], cwd=folder, capture_output=True, text=True,
                          timeout=10 * record.STUCK, check=False)
    return done.returncode, done.stdout + done.stderr


def has_open(pid, path):
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(fd) == path:
                return True
        except FileNotFoundError:
            pass
    return False


def test_nothing_is_found_in_the_kernels_own_device(tmp_path):
    status, said = fuzz(tmp_path, "--programs", "200", "--seed", "1")
    assert status == 0 and re.fullmatch(r"200 programs, \d+ calls, seeds from 1, nothing found\n", said), said


def test_a_report_in_the_log_is_a_finding(tmp_path):
    with subprocess.Popen([record.UVERBSCTL, "fuzz", *PATIENCE, KERNELS], cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)},
                          stdout=subprocess.PIPE, text=True) as process:
        while not list(tmp_path.glob("uverbsd-fuzz-*/current.prog")):
            assert process.poll() is None
            time.sleep(0.02)
        kernel_says(REPORT)
        said = process.communicate(timeout=10 * record.STUCK)[0]
    assert process.returncode == 1 and said.startswith(f"report: the kernel says after the program: {REPORT}\n"), said
    assert "the program is not shrunk" in said, said
    assert REPORT in (tmp_path / "FINDING.log").read_text()
    assert "\ncheck log\n" in (tmp_path / "FINDING.prog").read_text()
    status, said = replay(KERNELS, tmp_path / "FINDING.prog")
    assert status == 0 and "no difference" in said, said


def test_a_replay_looks_at_the_log_if_its_program_asks_for_it(tmp_path):
    path = tmp_path / "waiting.prog"
    path.write_text(WAITING)
    # On a busy machine a replay can be at its end before it is stopped.
    for _ in range(20):
        with subprocess.Popen([record.UVERBSCTL, "replay", "--device", KERNELS, path], stdout=subprocess.PIPE, text=True) as process:
            while process.poll() is None and not has_open(process.pid, "/dev/kmsg"):
                time.sleep(0.005)
            process.send_signal(signal.SIGSTOP)
            # More than the log can hold: records are lost that the replay has not read, and the report behind them is found.
            for _ in range(600):
                kernel_says("x" * 900)
            kernel_says(REPORT)
            process.send_signal(signal.SIGCONT)
            said = process.communicate(timeout=10 * record.STUCK)[0]
        if said.startswith("report"):
            break
    assert process.returncode == 1 and said == f"report: the kernel says after the program: {REPORT}\n", said


def test_without_the_log_fuzzing_goes_on_and_a_check_of_it_fails(tmp_path):
    pathlib.Path("/proc/sys/kernel/dmesg_restrict").write_text("1\n")
    prefix = ("setpriv", "--bounding-set=-syslog,-sys_admin")
    status, said = fuzz(tmp_path, "--programs", "4", "--jobs", "2", prefix=prefix)
    assert status == 0 and "nothing found\n" in said, said
    assert said.count("/dev/kmsg: EPERM: reports of the kernel are not looked for\n") == 1, said
    (tmp_path / "waiting.prog").write_text(WAITING)
    done = subprocess.run([*prefix, record.UVERBSCTL, "replay", "--device", KERNELS, tmp_path / "waiting.prog"], capture_output=True,
                          text=True, check=False, timeout=10 * record.STUCK)
    assert done.returncode == 1 and "/dev/kmsg: cannot make the `check log`" in done.stderr and "EPERM" in done.stderr, done.stderr
