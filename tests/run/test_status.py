# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl status` and its screen, on a run."""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import termios
import threading

import pytest

from conftest import STUCK, UVERBSCTL

NODE = "/dev/infiniband/uverbs0"
LOCKS = int(re.search(r"CapEff:\s+(\w+)", pathlib.Path("/proc/self/status").read_text())[1], 16) >> 14 & 1  # CAP_IPC_LOCK
SCRIPT = """
pd = PD ALLOC
m = memory 16384
mr = MR CMD_REG_MR --pd_handle $pd --start $m --hca_va $m --length 16384 --access_flags 1
"""


class Held:
    """A run whose programs wait on stdin: `body` is a shell script, which says when it is ready."""

    def __init__(self, body, *options, prefix=()):
        argv = [*prefix, UVERBSCTL, "run", "--persona", "hfi1", *options, "--", "bash", "-c", f"echo $UVERBSD_CONTROL; {body}"]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.control = self.process.stdout.readline().strip()

    def say(self):
        return self.process.stdout.readline()

    def status(self, *options, **kwargs):
        done = subprocess.run([UVERBSCTL, "status", "--control", self.control, *options], capture_output=True, text=True, timeout=STUCK,
                              **kwargs)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self):
        return json.loads(self.status("--json"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(STUCK)
        self.process.stdout.close()


def holding_memory(*options, prefix=()):
    """One client with a PD and an MR of 16 KiB."""
    held = Held(f"cat <(echo '{SCRIPT}') - | {UVERBSCTL} call -f -", *options, prefix=prefix)
    while "MR" not in held.say():
        pass
    return held


def test_a_run_tells_its_devices_files_objects_and_memory():
    with holding_memory() as held:
        status = held.json()
        device, = status["devices"]
        client = device["files"][0]
        assert (device["device"], device["node"], device["open"], device["memlock"]) == ("hfi1_0", NODE, 1, "unlimited")
        assert device["objects"] == {"UVERBS_OBJECT_PD": 1, "UVERBS_OBJECT_MR": 1}
        assert client["program"] == "uverbsctl" and client["objects"] == 2 and client["uid"] == os.geteuid()
        entry, = status["memlock"]
        assert (entry["pid"], entry["pages"]) == (client["pid"], 16384 // os.sysconf("SC_PAGESIZE"))
        text = held.status()
        for words in "open by uverbsctl, pid ", "1 UVERBS_OBJECT_MR", f"pid {client['pid']}: {entry['pages']} pages":
            assert words in text, text


def test_the_screen_shows_a_tree_and_who_is_near_the_limit():
    with holding_memory("--memlock", "16384") as held:
        screen = held.status("--watch", "--once").splitlines()
        assert screen[1].startswith("hfi1_0 (uverbs0): soft as hfi1, ioctl ABI, 1 open files")
        assert re.fullmatch(r"  \|- uverbsctl +pid \d+ +uid \d+ +1 files +2 objects", screen[2]), screen
        assert screen[3] == "  `- objects: 1 PD, 1 MR"
        assert re.fullmatch(r"uverbsctl +pid \d+ +(\d+) pages of \1 +\[#{10}\] 100%!", screen[6]), screen
        assert held.json()["memlock"][0]["limit"] == 16384 // os.sysconf("SC_PAGESIZE")


def test_the_limit_of_a_client_is_its_own_unless_it_has_the_capability():
    limit = ["prlimit", "--memlock=65536"]
    without = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"] if LOCKS else []
    with holding_memory("--memlock", "client", prefix=[*limit, *without]) as held:
        assert held.json()["memlock"][0]["limit"] == 65536 // os.sysconf("SC_PAGESIZE")
        assert re.search(r"\[## {8}\]  25%$", held.status("--watch", "--once"), re.M)
    if LOCKS:
        with holding_memory("--memlock", "client", prefix=limit) as held:
            assert held.json()["memlock"][0]["limit"] is None


def test_a_screen_is_never_larger_than_the_terminal():
    opens = f"for i in $(seq 40); do (exec 3<>{NODE}; echo open; read -r) <&9 & done 9<&0; wait"
    with Held(f"exec 9<&0; {opens}", "--devices", "2") as held:
        assert [held.say() for _ in range(40)] == ["open\n"] * 40
        screen = held.status("--watch", "--once").splitlines()
        assert len(screen) <= 24 and all(len(line) <= 80 for line in screen)
        assert any(re.search(r"and \d+ more processes", line) for line in screen) and any("hfi1_1" in line for line in screen)
        assert len(held.json()["devices"][0]["files"]) == 40


class Terminal:
    """A terminal of this size with the watch on it. A thread reads what is drawn, so that the watch never waits for us."""

    def __init__(self, held, rows=24, columns=80):
        self.ours, self.its = pty.openpty()
        fcntl.ioctl(self.its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.seen, self.more = b"", threading.Condition()
        self.watch = subprocess.Popen([UVERBSCTL, "status", "--control", held.control, "--watch", "-n", "0.1"], stdin=self.its,
                                      stdout=self.its, stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        with contextlib.suppress(OSError):  # EIO: all others have closed it
            while data := os.read(self.ours, 4096):
                with self.more:
                    self.seen += data
                    self.more.notify()

    def drawings(self, number):
        """The first drawings; waits until there are so many."""
        with self.more:
            assert self.more.wait_for(lambda: self.seen.count(b"\x1b[J") >= number, STUCK), self.seen
            return self.seen.split(b"\x1b[J")[:number]

    def echoes(self):
        return bool(termios.tcgetattr(self.its)[3] & termios.ECHO)

    def close(self):
        self.watch.stderr.close()
        os.close(self.its)
        self.reader.join(STUCK)
        os.close(self.ours)


def lines_of(drawn):
    """The lines of one drawing, without the sequences."""
    return re.sub(rb"\x1b\[[0-9]*[A-Z]", b"", drawn).replace(b"\r", b"").decode().split("\n")


@pytest.mark.parametrize("end", ["q", "SIGINT"])
def test_the_watch_draws_again_and_again_and_leaves_the_terminal_as_it_was(end):
    with holding_memory() as held:
        terminal = Terminal(held, rows=8, columns=40)
        for drawn in terminal.drawings(3):
            assert b"\x1b[H" in drawn and len(lines_of(drawn)) <= 8 and all(len(line) <= 40 for line in lines_of(drawn)), drawn
        assert not terminal.echoes()
        if end == "q":
            os.write(terminal.ours, b"q")
        else:
            terminal.watch.send_signal(signal.SIGINT)
        assert terminal.watch.wait(STUCK) == 0, terminal.watch.stderr.read()
        assert terminal.echoes()
        terminal.close()


def test_the_watch_ends_with_the_run():
    with holding_memory() as held:
        terminal = Terminal(held)
        terminal.drawings(1)
    assert terminal.watch.wait(STUCK) == 1 and "no uverbsd answers on" in terminal.watch.stderr.read()
    terminal.close()


def test_json_is_a_line_each_time():
    with holding_memory() as held:
        with subprocess.Popen([UVERBSCTL, "status", "--control", held.control, "--watch", "--json", "-n", "0.1"], stdout=subprocess.PIPE,
                              text=True) as watch:
            first, second = json.loads(watch.stdout.readline()), json.loads(watch.stdout.readline())
            watch.terminate()
        assert first["devices"] == second["devices"] and watch.returncode == 0


@pytest.mark.parametrize("name, shown, told", [(b"a\x1b[2Jb", "a\\x1b[2Jb", "a\x1b[2Jb"), (b"a\xffb", "a?b", "a?b"),
                                               ("a\u009bb".encode(), "a\\xc2\\x9bb", "a\u009bb")])
def test_a_programs_name_cannot_change_the_terminal(name, shown, told):
    program = f"import os, sys; fd = os.open('{NODE}', os.O_RDWR); open('/proc/self/comm', 'wb').write({name!r}); " \
              "print('open', flush=True); sys.stdin.read()"
    with Held(f'exec python3 -c "{program}"'.replace("\\", "\\\\")) as held:
        assert held.say() == "open\n"
        assert held.json()["devices"][0]["files"][0]["program"] == told
        for options in [], ["--watch", "--once"]:
            text = held.status(*options)
            assert shown in text and "\x1b" not in text and "\u009b" not in text


def test_the_page_shows_what_is_printed():
    page = (pathlib.Path(__file__).parents[2] / "docs/status.md").read_text()
    example = next(b for b in page.split("```\n") if b.startswith("$ uverbsctl run"))
    command, *shown = example[2:].splitlines()
    env = {**os.environ, "PATH": f"{os.path.dirname(UVERBSCTL)}:{os.environ['PATH']}"}
    done = subprocess.run(command, shell=True, env=env, capture_output=True, text=True, timeout=STUCK, check=True)
    for line, model in zip(done.stdout.splitlines(), shown, strict=True):
        pattern = re.sub(r"\d+", r"\\d+", re.escape(model)).replace("YhBnSr", r"\w+")
        assert re.fullmatch(pattern, line), (line, model)
    with holding_memory() as held:
        status = held.json()
        fields = {*status, *status["devices"][0], *status["devices"][0]["files"][0], *status["memlock"][0]}
        assert fields <= set(re.findall(r"`(\w+)`", page.partition("## JSON")[2]))


@pytest.mark.parametrize("options", [["--once"], ["-n", "1"], ["--watch", "-n", "0"], ["--watch", "-n", "x"], ["--watch", "--accounts"],
                                     ["x"]])
def test_a_wrong_command_line_is_2(options):
    done = subprocess.run([UVERBSCTL, "status", *options], capture_output=True, text=True, timeout=STUCK, check=False)
    assert done.returncode == 2 and done.stderr


@pytest.mark.parametrize("options", [[], ["--watch"], ["--watch", "--json"], ["--json"]])
def test_without_a_run_it_says_so(options, tmp_path):
    done = subprocess.run([UVERBSCTL, "status", "--control", str(tmp_path / "none"), *options], capture_output=True, text=True,
                          timeout=STUCK, check=False)
    assert done.returncode == 1 and "no uverbsd answers on" in done.stderr
