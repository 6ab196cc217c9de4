# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""uverbsctl fuzz: it finds nothing in a device without a fault, and the fault of a plug-in: the example of docs/fuzzing.md."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import pytest
from conftest import BUILD, SANITIZED, STUCK, UVERBSCTL, until, users

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHORT = ("--seed", "12")  # a program of few calls, with a DEALLOC_PD that succeeds: little to shrink
IN_PROCESS = ("--in-process", "--seconds", str(STUCK), "--hang", str(STUCK))


@pytest.fixture
def folder(run):
    """A folder of the user that runs. Plug-ins of root may not be below /tmp, where others can write."""
    with tempfile.TemporaryDirectory(prefix="uverbsd-tests-", dir="/run" if run.privileged else run.folder) as name:
        folder = pathlib.Path(name)
        for fault in "12345":
            shutil.copy(BUILD / f"tests/run/faulty{fault}.so", folder)
        for path in (folder, *folder.iterdir()):
            path.chmod(0o755)
            if run.prefix:
                os.chown(path, 65534, 65533)
        yield folder


def fuzz(run, folder, *options):
    r = subprocess.run([*run.prefix, UVERBSCTL, "fuzz", *options], cwd=folder, env=run.env, capture_output=True, text=True,
                       timeout=STUCK)
    return r.returncode, r.stdout + r.stderr


def replay(run, folder, *options):
    r = subprocess.run([*run.prefix, UVERBSCTL, "run", "--log-level", "error", *options, "--", UVERBSCTL, "replay",
                        "FINDING.prog"], cwd=folder, env=run.env, capture_output=True, text=True, timeout=STUCK)
    return r.returncode, r.stdout


def replay_in_process(run, folder, *options, hang=STUCK):
    r = subprocess.run([*run.prefix, UVERBSCTL, "replay", "--in-process", "--hang", str(hang), "FINDING.prog", "--", *options], cwd=folder,
                       env=run.env, capture_output=True, text=True, timeout=STUCK)
    return r.returncode, r.stdout


def example(begin="$ uverbsctl fuzz -- --plugin"):
    """The commands of the documentation's example, each with what it prints."""
    text = (ROOT / "docs/fuzzing.md").read_text()
    block = next(b for b in text.split("```\n") if b.startswith(begin))
    return dict(re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M))


def calls_of(path):
    lines = path.read_text().splitlines()
    return [line for line in lines if line and not line.startswith(("#", "check", "device", "="))]


def test_a_device_without_a_fault_has_no_finding(run, folder):
    status, text = fuzz(run, folder, "--seed", "1", "--programs", "20", "--seconds", str(STUCK), "--hang", str(STUCK))
    assert status == 0 and re.fullmatch(r"20 programs, \d+ calls, seeds from 1, nothing found\n", text), text


def test_a_signal_ends_fuzzing_and_leaves_no_folder(run, folder):
    with subprocess.Popen([*run.prefix, UVERBSCTL, "fuzz", *IN_PROCESS, "--jobs", "2"], cwd=folder, env={**run.env, "TMPDIR": str(folder)},
                          stdout=subprocess.PIPE, text=True) as process:
        while len(list(folder.glob("uverbsd-fuzz-*"))) < 2:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        text = process.communicate(timeout=STUCK)[0]
    assert process.returncode == 128 + signal.SIGINT and re.fullmatch(r"\d+ programs, .*, nothing found\n", text), text
    assert not list(folder.glob("uverbsd-fuzz-*"))


# Ends when both workers have a program at the same time.
TWO_JOBS = """{ctl} fuzz --seconds {stuck} --hang {stuck} --jobs 2 /dev/infiniband/uverbs0 &
while [ "$(ls uverbsd-fuzz-*/current.prog 2>/dev/null | wc -l)" -lt 2 ]; do kill -0 $! || exit 1; sleep 0.05; done
kill $!
wait $!
echo status $?
ls -d uverbsd-fuzz-*"""


def test_jobs_on_one_device_run_beside_each_other(run, folder):
    r = subprocess.run([*run.prefix, UVERBSCTL, "run", "--", "sh", "-c", TWO_JOBS.format(ctl=UVERBSCTL, stuck=STUCK)], cwd=folder,
                       env={**run.env, "TMPDIR": "."}, capture_output=True, text=True, timeout=STUCK)
    assert re.fullmatch(r"\d+ programs, .*, nothing found\nstatus 143\n", r.stdout), r


if not SANITIZED:  # a search and its trials are hundreds of devices; the tests above and below have the same parts
    def test_a_wrong_errno_is_found_shrunk_and_reproduced(run, folder):
        plugin, said = ("--plugin", "./faulty1.so"), example()
        status, text = fuzz(run, folder, "--seconds", str(STUCK), "--hang", str(STUCK), "--", *plugin)
        assert status == 1 and text == said["uverbsctl fuzz -- --plugin ./faulty1.so"], text
        assert (folder / "FINDING.prog").read_text() == said["cat FINDING.prog"]
        status, text = replay(run, folder, *plugin)
        assert status == 1 and text == said["uverbsctl run --plugin ./faulty1.so -- uverbsctl replay FINDING.prog"], text
        status, text = replay(run, folder)
        assert status == 0 and text == said["uverbsctl run -- uverbsctl replay FINDING.prog"], text
        # The C program needs no part of uverbsd.
        subprocess.run(["cc", "-pthread", "-o", folder / "reproduce", folder / "FINDING.c"], check=True, timeout=STUCK)
        os.chmod(folder / "reproduce", 0o755)
        r = subprocess.run([*run.prefix, UVERBSCTL, "run", *plugin, "--", "./reproduce"], cwd=folder, env=run.env,
                           capture_output=True, text=True, timeout=STUCK)
        assert re.search(r"DEALLOC_PD: -1 Invalid argument\n", r.stdout), r


def test_a_given_device_is_fuzzed_and_its_finding_written_in_c(run, folder):
    r = subprocess.run([*run.prefix, UVERBSCTL, "run", "--plugin", "./faulty1.so", "--", UVERBSCTL, "fuzz", "--seconds", str(STUCK),
                        "--hang", str(STUCK), *SHORT, "/dev/infiniband/uverbs0"], cwd=folder, env=run.env, capture_output=True, text=True,
                       timeout=STUCK)
    assert r.returncode == 1 and "FINDING.prog, FINDING.c and FINDING.log written\n" in r.stdout, r
    assert len(calls_of(folder / "FINDING.prog")) == 3, r
    assert "DEALLOC_PD" in (folder / "FINDING.c").read_text()


if not SANITIZED:  # the sanitizers tell of crashes themselves
    def test_a_crash_of_the_engine_is_found_and_reproduced(run, folder):
        plugin = ("--plugin", "./faulty2.so")
        status, text = fuzz(run, folder, "--seconds", str(STUCK), "--hang", str(STUCK), *SHORT, "--", *plugin)
        assert status == 1 and text.startswith("lost: the device does not answer after the program\n"), text
        assert len(calls_of(folder / "FINDING.prog")) < 10
        status, text = replay(run, folder, *plugin)
        assert status == 1 and text.startswith("lost: "), text


@pytest.mark.parametrize("device", [(), ("--persona", "hfi1"), ("--backend", "null")])
def test_a_device_in_the_process_without_a_fault_has_no_finding(run, folder, device):
    status, text = fuzz(run, folder, *IN_PROCESS, "--programs", "100", "--jobs", "2", "--", *device)
    assert status == 0 and re.fullmatch(r"100 programs, \d+ calls, seeds from 1, nothing found\n", text), text


if not SANITIZED:  # a search and its trials are hundreds of devices; the tests above and below have the same parts
    def test_in_the_process_the_same_program_is_found_and_run_reproduces_it(run, folder):
        said, plugin = example("$ uverbsctl fuzz --in-process -- --plugin"), ("--plugin", "./faulty1.so")
        status, text = fuzz(run, folder, *IN_PROCESS, "--", *plugin)
        assert status == 1 and text == said["uverbsctl fuzz --in-process -- --plugin ./faulty1.so"], text
        assert (folder / "FINDING.prog").read_text() == example()["cat FINDING.prog"]
        status, text = replay(run, folder, *plugin)
        assert status == 1 and text == said["uverbsctl run --plugin ./faulty1.so -- uverbsctl replay FINDING.prog"], text
        status, text = replay_in_process(run, folder, *plugin)
        assert status == 1 and text == said["uverbsctl replay --in-process FINDING.prog -- --plugin ./faulty1.so"], text
        assert replay_in_process(run, folder) == (0, "3 calls, no difference\n")
        assert (folder / "FINDING.c").read_text().count("\tcall(&") == 3


if not SANITIZED:
    def test_a_crash_in_the_process_leaves_the_program_that_crashes_run_too(run, folder):
        plugin = ("--plugin", "./faulty2.so")
        status, text = fuzz(run, folder, *IN_PROCESS, *SHORT, "--", *plugin)
        assert status == 1 and re.match(r"lost: the engine died by SIGSEGV in call \d+, DEALLOC_PD\n", text), text
        assert len(calls_of(folder / "FINDING.prog")) < 10
        assert "plug-in faulty crashed with SIGSEGV" in (folder / "FINDING.log").read_text()
        status, text = replay(run, folder, *plugin)
        assert status == 1 and text.startswith("lost: "), text
        status, text = replay_in_process(run, folder, *plugin)
        assert status == 1 and re.fullmatch(r"lost: the engine died by SIGSEGV in call \d+, DEALLOC_PD\n", text), text

    def test_a_call_that_does_not_return_in_the_process_is_a_hang(run, folder):
        status, text = fuzz(run, folder, "--in-process", "--seconds", str(STUCK), "--hang", "1", *SHORT, "--", "--plugin", "./faulty3.so")
        assert status == 1 and re.match(r"hang: call \d+, \w+, did not return in 1 seconds\n", text), text
        assert calls_of(folder / "FINDING.prog")

    @pytest.mark.parametrize("run", users()[-1:], indirect=True)
    def test_an_engine_of_run_that_hangs_is_a_hang_and_does_not_stay(run, folder):
        plugin = ("--plugin", "./faulty3.so")
        status, text = fuzz(run, folder, "--seconds", str(STUCK), "--hang", "1", *SHORT, "--", *plugin)
        assert status == 1 and re.match(r"hang: call \d+, DEALLOC_PD, did not return in 1 seconds\n", text), text
        assert "FINDING.prog, FINDING.c and FINDING.log written\n" in text, text
        assert len(calls_of(folder / "FINDING.prog")) < 10 and "DEALLOC_PD" in (folder / "FINDING.c").read_text()
        assert until(lambda: not run.left()), run.left()

    def test_a_charge_that_stays_in_the_process_is_a_leak_and_run_has_it_too(run, folder):
        plugin = ("--plugin", "./faulty4.so")
        status, text = fuzz(run, folder, *IN_PROCESS, *SHORT, "--", *plugin)
        assert status == 1 and re.match(r"leak: after the program the device has \d+ .* charged\n", text), text
        assert "check leaks" in (folder / "FINDING.prog").read_text()
        status, text = replay(run, folder, *plugin)
        assert status == 1 and text.startswith("leak: "), text
        if not run.prefix:  # a look for leaks takes 10 s
            status, text = replay_in_process(run, folder, *plugin)
            assert status == 1 and re.fullmatch(r"leak: after the program the device has \d+ .* charged\n", text), text


BESIDE = """write GET_CONTEXT
pd0: write ALLOC_PD
pd1: write ALLOC_PD
& write DEALLOC_PD pd_handle=pd0
write DEALLOC_PD pd_handle=pd1
"""


@pytest.mark.parametrize("run", ["self"], indirect=True)
def test_a_replay_in_the_process_shows_the_hang_of_calls_at_the_same_time(run, folder):
    (folder / "FINDING.prog").write_text(BESIDE)
    status, text = replay_in_process(run, folder, "--plugin", "./faulty5.so", hang=3)
    assert status == 1 and re.fullmatch(r"hang: call [45], DEALLOC_PD, did not return in 3 seconds\n", text), text


def test_a_finding_that_cannot_be_written_is_printed(run, folder):
    (folder / "FINDING.prog").symlink_to("/dev/full")
    status, text = fuzz(run, folder, *IN_PROCESS, *SHORT, "--", "--plugin", "./faulty1.so")
    assert status == 1 and "FINDING.prog: cannot write: ENOSPC\n" in text, text
    assert "write GET_CONTEXT\n" in text and "DEALLOC_PD\n" in text and "\nFINDING.c and FINDING.log written\n" in text, text


@pytest.mark.parametrize("run", ["self"], indirect=True)
def test_programs_of_all_jobs_on_a_device_are_as_many_as_asked(run, folder):
    r = subprocess.run([UVERBSCTL, "run", "--log-level", "error", "--", UVERBSCTL, "fuzz", "--programs", "6", "--jobs", "2", "--seconds",
                        str(STUCK), "--hang", str(STUCK), "/dev/infiniband/uverbs0"], cwd=folder, env=run.env, capture_output=True,
                       text=True, timeout=STUCK)
    assert r.returncode == 0 and r.stdout.startswith("6 programs, "), r


@pytest.mark.parametrize("run", ["self"], indirect=True)
def test_workers_are_waited_for_where_the_parent_ignores_sigchld(run, folder):
    r = subprocess.run([UVERBSCTL, "fuzz", "--in-process", "--programs", "2"], cwd=folder, env=run.env, capture_output=True, text=True,
                       timeout=STUCK, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert r.returncode == 0 and r.stdout.startswith("2 programs, "), r


def test_a_device_in_the_process_that_cannot_be_made_is_2(run, folder):
    status, text = fuzz(run, folder, "--in-process", "--", "--persona", "rxe", "--backend", "null")
    assert status == 2 and "uverbsctl fuzz" in text, text


@pytest.mark.parametrize("options, says", [
    (["--jobs", "0"], "--jobs: `0` is not from 1 to 64"), (["--nothing"], "unknown option `--nothing`"),
    (["/dev/null", "--", "--persona", "hfi1"], "DEVICE `/dev/null` and options of `uverbsctl run` exclude each other"),
    (["--in-process", "/dev/null"], "DEVICE `/dev/null` and --in-process exclude each other")])
def test_a_wrong_command_line_is_2(run, folder, options, says):
    status, text = fuzz(run, folder, *options)
    assert status == 2 and says in text, text
