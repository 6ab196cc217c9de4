# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs that attack the engine, the guardian and other members of --join. docs/security.md has the table of what was tried."""
import pytest


PYTHON = "/usr/bin/python3"


# ---- paths and limits ----------------------------------------------------------------------------------------------

# The link of such a descriptor in /proc is no path: the text grew beyond the engine's stack, and then the guardian's.
NO_FOLDER = """
import errno, os, socket, subprocess
for fd in (*os.pipe(), socket.socket().fileno(), os.eventfd(0), os.memfd_create("/x"), os.pidfd_open(os.getpid())):
    for path in ("infiniband", "uverbs0", "../dev/infiniband/uverbs0"):
        for call in (os.open, os.stat, os.access, os.readlink):
            try:
                call(path, *([os.O_RDONLY] if call in (os.open, os.access) else []), dir_fd=fd)
            except OSError as e:
                assert e.errno in (errno.ENOTDIR, errno.EBADF), e
subprocess.run(["ibv_devinfo"], check=True, stdout=subprocess.DEVNULL)
"""


def test_path_that_begins_at_no_folder_leaves_the_engine_alive(run):
    r = run(PYTHON, "-c", NO_FOLDER)
    assert (r.returncode, r.stderr) == (0, ""), r


@pytest.mark.parametrize("limit", ["fsize=0", "fsize=1000000", "cpu=100000", "nofile=64"])
def test_soft_limit_is_the_programs_and_not_the_engines(run, limit):
    """A device's file has 1 TiB: SIGXFSZ ended the engine."""
    name, value = limit.split("=")
    run.prefix = [*run.prefix, "prlimit", f"--{name}={value}:"]
    r = run("sh", "-c", f"prlimit --{name} --output SOFT --noheadings; exec ibv_devinfo")
    assert (r.returncode, r.stderr) == (0, "") and r.stdout.split()[0] == value, r


def test_hard_limit_of_file_sizes_bounds_the_devices_file(run):
    run.prefix = [*run.prefix, "prlimit", f"--fsize={64 << 20}"]
    r = run("ibv_devinfo")
    assert (r.returncode, r.stderr) == (0, ""), r


def test_hard_limit_of_file_sizes_that_is_too_low_is_named(run):
    run.prefix = [*run.prefix, "prlimit", "--fsize=1000000"]
    r = run("true")
    assert r.returncode == 125 and r.stderr == ("uverbsctl run: the hard limit of file sizes is 1000000 bytes, and 67108864 are needed "
                                                "(ulimit -Hf)\n"), r
