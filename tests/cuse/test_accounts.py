# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The limits of one user, which leave the other users their shares."""
import errno
import subprocess
import sys

from conftest import BUILD, CLIENT, STUCK, UNMAPPED, environment, run_client, wait_for

NODE = "/dev/infiniband/uverbs0"
MINE, OTHERS = 1000, 1001

# Opens the node N times, or until an open fails. Prints how many files it has, and the errno or 0. Keeps them until a line comes.
OPEN = f"""
import os, sys
fds = []
try:
    while len(fds) < int(sys.argv[1]):
        fds.append(os.open("{NODE}", os.O_RDWR))
    print(len(fds), 0, flush=True)
except OSError as e:
    print(len(fds), e.errno, flush=True)
sys.stdin.readline()
"""

# Opens the node once as each user of a user namespace. It changes all its ids together, because with two processes a program
# whose ids differ gets nothing. It keeps its capabilities then, and stays dumpable, so that the daemon can inspect it.
OPEN_MAPPED = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.setresgid({MINE}, {MINE}, {MINE})
os.setresuid({MINE}, {MINE}, {MINE})
assert not libc.unshare(0x10000000), ctypes.get_errno()
assert not libc.prctl(28, 4, 0, 0, 0)  # SECBIT_NO_SETUID_FIXUP
print("unshared", flush=True)
sys.stdin.readline()
fds, errors = [], set()
for uid in range(1000):
    libc.syscall(117, uid, uid, uid)  # setresuid
    assert os.getresuid() == (uid, uid, uid) and not libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE
    try:
        fds.append(os.open("{NODE}", os.O_RDWR))
    except OSError as e:
        errors.add(e.errno)
print(len(fds), *errors, flush=True)
sys.stdin.readline()
"""

# Makes N calls that are wrong, with a line of the log for each.
FLOOD = f"""
import os, sys
fd = os.open("{NODE}", os.O_RDWR)
for _ in range(int(sys.argv[1])):
    try:
        os.write(fd, b"\\0" * 8)
    except OSError as e:
        error = e.errno
print(error, flush=True)
sys.stdin.readline()
"""


class Opener:
    def __init__(self, script, *args, user=None):
        ids = {} if user is None else dict(user=user, group=user, extra_groups=[])
        self.process = subprocess.Popen([sys.executable, "-c", script, *map(str, args)], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, **ids)
        self.answer = self.process.stdout.readline().split()

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()

    def end(self):
        self.process.communicate("\n", timeout=STUCK)


def test_open_files_have_a_limit_for_each_user(start):
    d = start("--limit-files", "3")
    mine, others = Opener(OPEN, 5, user=MINE), Opener(OPEN, 2, user=OTHERS)
    assert mine.answer == ["3", str(errno.EMFILE)] and others.answer == ["2", "0"]
    assert d.text_of("user 1000 has 3 open files") and d.text_of("--limit-files, or `files` of [limits]")
    root = Opener(OPEN, 5, user=0)
    assert root.answer == ["5", "0"]
    said = subprocess.run([BUILD / "tools" / "uverbsctl", "status", "--accounts"], stdout=subprocess.PIPE, text=True).stdout
    assert "user 1000: 3 files of 3\n" in said and "user 0: 5 files, without a limit\n" in said, said
    mine.end()
    wait_for("the end of the files", lambda: MINE not in d.held())
    again = Opener(OPEN, 3, user=MINE)
    assert again.answer == ["3", "0"]
    for o in again, others, root:
        o.end()
    d.wait_idle()


def test_user_that_floods_the_log_hides_nothing_of_another(start):
    d = start()
    mine, others = Opener(FLOOD, 500, user=MINE), Opener(FLOOD, 1, user=OTHERS)
    assert mine.answer == others.answer == [str(errno.EINVAL)]
    lines = [line for line in d.log.read_text().splitlines() if "is wrong" in line]
    assert 10 <= sum(f"pid {mine.process.pid}" in line for line in lines) < 100
    assert sum(f"pid {others.process.pid}" in line for line in lines) == 1
    mine.end()
    others.end()
    d.wait_idle()


def test_a_thousand_mapped_users_are_one(start):
    d = start("--limit-files", "20")
    o = Opener(OPEN_MAPPED)
    assert o.answer == ["unshared"]
    with open(f"/proc/{o.process.pid}/uid_map", "w") as f:
        f.write("0 100000 1000\n")
    assert o.go_on() == ["20", str(errno.EMFILE)]
    held = d.held()
    assert held[MINE]["files"] == 20 and held[100007]["files"] == 1, held
    others = Opener(OPEN, 20, user=OTHERS)
    assert others.answer == ["20", "0"]
    o.end()
    others.end()
    d.wait_idle()


def test_objects_are_their_files_openers(start):
    d = start("--limit-pds", "4", *UNMAPPED)
    p = subprocess.Popen([CLIENT, "passed-on", "10"], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == f"made 4, errno {errno.EAGAIN}\n"
    # The daemon uncharges the caller for a call a moment after the answer.
    wait_for("the calls' end", lambda: all("calls" not in used for used in d.held().values()))
    held = d.held()
    assert held.keys() == {MINE} and held[MINE]["pds"] == 4, held
    p.communicate("\n", timeout=STUCK)
    d.wait_idle()


def test_limits_are_in_the_file_and_may_hold_for_root(start, tmp_path):
    path = tmp_path / "uverbsd.conf"
    path.write_text("[limits]\nfiles = 2\nroot = yes\n")
    d = start("--config", path)
    o = Opener(OPEN, 5, user=0)
    assert o.answer == ["2", str(errno.EMFILE)]
    o.end()
    d.wait_idle()


def test_without_a_loan_there_is_no_event_file(start):
    d = start("--limit-loans", "0", *UNMAPPED)
    run_client("no-grants")
    assert d.text_of("--limit-loans")
    d.wait_idle()


def test_a_loan_is_the_callers(start):
    d = start("--limit-loans", "0")
    run_client("loan-of-another", user=0)
    d.wait_idle()
