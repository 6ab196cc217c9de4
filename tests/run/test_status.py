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
import socket
import struct
import subprocess
import termios
import threading
import time

import pytest

from conftest import STUCK, UVERBSCTL

DOCS = pathlib.Path(__file__).parents[2] / "docs/status.md"
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


def engine_of(control):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(control)
        return struct.unpack("iii", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def test_the_level_of_the_log_can_be_changed():
    fails = f"{UVERBSCTL} call PD DEALLOC --pd_handle 99 >&2"
    script = f"{fails}; {UVERBSCTL} daemon log-level error; {UVERBSCTL} status --json; {fails}; {UVERBSCTL} daemon log-level debug; {fails}"
    done = subprocess.run([UVERBSCTL, "run", "--persona", "hfi1", "--", "sh", "-c", script], capture_output=True, text=True,
                          timeout=STUCK)
    assert json.loads(done.stdout)["log_level"] == "error"
    assert done.stderr.count("UVERBS_OBJECT_PD is wrong (99, 0x63)") == 2, done.stderr


def test_an_unknown_level_is_refused_with_the_names_of_all():
    done = subprocess.run([UVERBSCTL, "daemon", "log-level", "loud"], capture_output=True, text=True, timeout=STUCK)
    assert done.returncode == 2 and "unknown level `loud`: it is error, warning, info or debug" in done.stderr


@pytest.mark.parametrize("end", ["q", "SIGINT", "SIGINT while it waits for an answer"])
def test_the_watch_draws_again_and_again_and_leaves_the_terminal_as_it_was(end):
    with holding_memory() as held:
        terminal = Terminal(held, rows=8, columns=40)
        for drawn in terminal.drawings(3):
            assert b"\x1b[H" in drawn and len(lines_of(drawn)) <= 8 and all(len(line) <= 40 for line in lines_of(drawn)), drawn
        assert not terminal.echoes()
        if end == "q":
            os.write(terminal.ours, b"q")
        elif end == "SIGINT":
            terminal.watch.send_signal(signal.SIGINT)
        else:
            engine = engine_of(held.control)
            os.kill(engine, signal.SIGSTOP)
            try:
                time.sleep(0.5)
                terminal.watch.send_signal(signal.SIGINT)
                terminal.watch.wait(STUCK)
            finally:
                os.kill(engine, signal.SIGCONT)
        assert terminal.watch.wait(STUCK) == 0, terminal.watch.stderr.read()
        assert terminal.echoes() and not terminal.watch.stderr.read()
        terminal.close()


def test_the_watch_ends_with_the_run():
    with holding_memory() as held:
        terminal = Terminal(held)
        terminal.drawings(1)
    # The run may end before the watch connects, or after.
    said = terminal.watch.stderr.read()
    assert terminal.watch.wait(STUCK) == 1 and ("no uverbsd answers on" in said or "closed the connection without an answer" in said), said
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


def test_a_device_has_the_guid_that_libibverbs_shows():
    with Held("ibv_devinfo | grep node_guid; cat", "--guid", "0002:c903:00ab:cdef") as held:
        shown = held.say().split()[1]
        assert held.json()["devices"][0]["node_guid"] == shown == "0002:c903:00ab:cdef"


def test_the_page_shows_what_is_printed():
    page = DOCS.read_text()
    example = next(b for b in page.split("```\n") if b.startswith("$ uverbsctl run"))
    command, *shown = example[2:].splitlines()
    # The page has the folder that is used without TMPDIR.
    env = {**os.environ, "PATH": f"{os.path.dirname(UVERBSCTL)}:{os.environ['PATH']}", "TMPDIR": "/tmp"}
    done = subprocess.run(command, shell=True, env=env, capture_output=True, text=True, timeout=STUCK, check=True)
    for line, model in zip(done.stdout.splitlines(), shown, strict=True):
        pattern = re.sub(r"\d+", r"\\d+", re.escape(model)).replace("YhBnSr", r"\w+")
        assert re.fullmatch(pattern, line), (line, model)
    example = next(b for b in page.split("```\n") if "keys" in b)
    command, keys = re.fullmatch(r"\$ (.*) \|\n +jq -c '\.verbs\[0\] \| keys'\n(.*)\n", example).groups()
    done = subprocess.run(command, shell=True, env=env, capture_output=True, text=True, timeout=STUCK, check=True)
    told = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert all(sorted(v) == json.loads(keys) for v in told["verbs"])
    with holding_memory() as held:
        status = held.json()
        fields = {*status, *status["devices"][0], *status["devices"][0]["files"][0], *status["memlock"][0],
                  *status["devices"][0]["files"][0]["tree"][0], *status["devices"][0]["files"][0]["tree"][0]["children"][0]}
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


@contextlib.contextmanager
def daemon_that_says(path, text):
    """Listens, says this to each client and closes the connection, whether the client has sent its command or not."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    with listener.accept()[0] as client:
                        client.sendall(text)
        thread = threading.Thread(target=serve)
        thread.start()
        yield path
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(STUCK)


@pytest.mark.parametrize("text, expected", [
    (b"", "closed the connection without an answer (ECONNRESET)"),
    (b'{"error":"your user has too many"}\n', "your user has too many"),
])
@pytest.mark.parametrize("command", [["status"], ["status", "--accounts"], ["status", "--watch", "--json"], ["trace"],
                                     ["env", "--control", "control"], ["device", "remove", "x"], ["device", "add", "x"], ["plugin", "list"],
                                     ["filter", "list"], ["port", "up", "x", "1"], ["daemon", "restart"]])
def test_command_whose_connection_is_closed_says_what_happened(command, text, expected, tmp_path):
    with daemon_that_says(tmp_path / "control", text) as control:
        done = subprocess.run([UVERBSCTL, *command], capture_output=True, text=True, timeout=STUCK, check=False, cwd=tmp_path,
                              env={**os.environ, "UVERBSD_CONTROL": str(control)})
    assert done.returncode == 1 and expected in done.stderr, done


# ---- the calls of each verb --------------------------------------------------------------------------------------------------------

CALLS = "pd = PD ALLOC\nPD DEALLOC --pd_handle $pd\n"


class Meter:
    """A connection that counts, as `status --watch` has one."""

    def __init__(self, control):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(STUCK)
        self.socket.connect(control)
        self.file = self.socket.makefile("rw")
        self.file.write("meter\n")
        self.file.flush()
        self.began = json.loads(self.file.readline())

    def counts(self):
        self.file.write("\n")
        self.file.flush()
        return json.loads(self.file.readline())

    def calls(self):
        return {v["name"]: v["calls"] for v in self.counts()["verbs"]}

    def close(self):
        self.file.close()
        self.socket.close()


def counted(held):
    """Lets the run's shell make one call of each of CALLS, and waits until it has."""
    held.process.stdin.write("\n")
    held.process.stdin.flush()
    assert held.say() == "called\n"


def calling(*options):
    """A run that makes CALLS at each line on stdin."""
    return Held(f"while read -r; do echo '{CALLS}' | {UVERBSCTL} call -f - >/dev/null; echo called; done", *options)


def test_the_watch_counts_calls_errors_and_times_by_verb():
    with calling() as held:
        meter = Meter(held.control)
        assert meter.began == {"meter": 1}
        assert meter.counts() == {"verbs": [], "uncounted": 0}
        counted(held)
        counted(held)
        verbs = {v["name"]: v for v in meter.counts()["verbs"]}
        alloc = verbs["IB_USER_VERBS_CMD_ALLOC_PD"]
        assert (alloc["device"], alloc["object"], alloc["calls"], alloc["errors"]) == ("hfi1_0", "UVERBS_OBJECT_PD", 2, 0)
        assert sum(calls for _, calls in alloc["histogram"]) == 2 and alloc["total_ns"] >= alloc["max_ns"] > 0
        assert [highest for highest, _ in alloc["histogram"]] == sorted(highest for highest, _ in alloc["histogram"])
        assert verbs["IB_USER_VERBS_CMD_DEALLOC_PD"]["calls"] == 2
        meter.close()


def test_nothing_is_counted_while_nobody_watches():
    with calling() as held:
        counted(held)
        meter = Meter(held.control)
        assert not meter.calls()
        meter.close()
        counted(held)
        meter = Meter(held.control)
        assert not meter.calls()
        meter.close()
        assert "verbs" not in held.json()


def test_the_screen_has_the_verbs_and_json_has_all_of_them():
    loop = f"while echo '{CALLS}' | {UVERBSCTL} call -f - >/dev/null; do :; done"
    with Held(f"{loop} & read -r; kill $!") as held:
        with subprocess.Popen([UVERBSCTL, "status", "--control", held.control, "--watch", "--json", "-n", "0.1"], stdout=subprocess.PIPE,
                              text=True) as watch:
            for line in watch.stdout:
                verbs = {v["name"]: v for v in json.loads(line)["verbs"]}
                alloc = verbs.get("IB_USER_VERBS_CMD_ALLOC_PD")
                if alloc and alloc["calls_per_s"]:
                    break
            watch.terminate()
        assert 0 < alloc["p50_ns"] <= alloc["p99_ns"] <= alloc["max_ns"]
        page = DOCS.read_text()
        assert {*alloc} <= set(re.findall(r"`(\w+)`", page.partition("## JSON")[2]))
        # On a busy machine with a sanitizer a second can pass without a call.
        for seconds in "1", "10", "60":
            screen = held.status("--watch", "--once", "-n", seconds)
            if "PD.ALLOC" in screen:
                break
        assert len(screen.splitlines()) <= 24 and all(len(line) <= 80 for line in screen.splitlines()), screen
        assert re.search(r"^device +verb +calls/s +p50 +p99 +max +errors$", screen, re.M), screen
        assert re.search(r"^hfi1_0 +PD\.ALLOC +\d+( +\d+(\.\d)? [num]?s| +-){3} +0$", screen, re.M), screen


def verb_entry(calls, histogram, longest):
    return {"device": "d", "object": "UVERBS_OBJECT_CQ", "name": "UVERBS_METHOD_CQ_CREATE", "calls": calls, "errors": 0,
            "total_ns": 0, "max_ns": longest, "histogram": histogram}


class Daemon(threading.Thread):
    """Answers `status`, and on `meter` one list of verbs after the other."""

    def __init__(self, path, *verbs, refuse=None):
        super().__init__(daemon=True)
        self.path, self.verbs, self.refuse = str(path), verbs, refuse
        self.listen = socket.socket(socket.AF_UNIX)
        self.listen.bind(self.path)
        self.listen.listen()

    def run(self):
        while True:
            with contextlib.suppress(BrokenPipeError):
                threading.Thread(target=self._serve, args=(self.listen.accept()[0],), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rw") as file, contextlib.suppress(BrokenPipeError):
            if file.readline() == "status\n":
                file.write('{"pid":1,"transport":"run","sysfs":"/","devices":[],"memlock":[]}\n')
                return
            file.write(json.dumps(self.refuse or {"meter": 1}) + "\n")
            file.flush()
            for verbs, _ in zip(self.verbs, file):
                file.write(json.dumps({"verbs": verbs, "uncounted": 0}) + "\n")
                file.flush()


def watched(path, number):
    """The first lines of `status --watch --json`."""
    with subprocess.Popen([UVERBSCTL, "status", "--control", str(path), "--watch", "--json", "-n", "0.1"], stdout=subprocess.PIPE,
                          text=True) as watch:
        lines = [json.loads(watch.stdout.readline()) for _ in range(number)]
        watch.terminate()
    return lines


def test_percentiles_are_of_the_calls_since_the_last_screen(tmp_path):
    Daemon(tmp_path / "c", [verb_entry(100, [[10, 100]], 9)], [verb_entry(200, [[10, 149], [20, 49], [5000, 2]], 4500)],
           [verb_entry(200, [[10, 149], [20, 49], [5000, 2]], 4500)]).start()
    first, second, third, gone = watched(tmp_path / "c", 4)
    seen = [[line["verbs"][0][k] for k in ("p50_ns", "p99_ns", "max_ns")] for line in (first, second, third)]
    # Of 100 more calls 49 took up to 10 ns, 49 up to 20, 2 longer.
    assert seen == [[9, 9, 9], [20, 4500, 4500], [None, None, 4500]]
    assert second["verbs"][0]["calls_per_s"] > 0 == third["verbs"][0]["calls_per_s"]
    assert gone["verbs_refused"] == "the daemon has ended it" and "verbs" not in gone


def test_a_refusal_to_count_is_shown_and_the_rest_too(tmp_path):
    Daemon(tmp_path / "c", refuse={"error": "too many\x1b[2J watch"}).start()
    line, = watched(tmp_path / "c", 1)
    assert line["verbs_refused"] == "too many\\x1b[2J watch" and line["devices"] == []
    done = subprocess.run([UVERBSCTL, "status", "--control", tmp_path / "c", "--watch", "--once", "-n", "0.1"], capture_output=True,
                          text=True, timeout=STUCK, check=True)
    assert "calls are not counted: too many\\x1b[2J watch" in done.stdout


def test_names_of_a_hostile_daemon_cannot_change_the_terminal(tmp_path):
    verb = {**verb_entry(1, [[1, 1], "x", [2], [None, 1]], 1), "device": "\x1b[2Jd", "name": "\x1b[2J" * 40, "object": "\u009b"}
    Daemon(tmp_path / "c", [verb, 7, {}]).start()
    done = subprocess.run([UVERBSCTL, "status", "--control", tmp_path / "c", "--watch", "--once", "-n", "0.1"], capture_output=True,
                          text=True, timeout=STUCK, check=True)
    assert "verb" in done.stdout and "\x1b" not in done.stdout and "\u009b" not in done.stdout


def test_each_process_has_its_objects_by_type():
    with Held(f"for i in 1 2; do (cat <(echo '{SCRIPT}') - | {UVERBSCTL} call -f -) <&9 & done 9<&0; wait", prefix=()) as held:
        seen = 0
        while seen < 2:
            seen += "MR" in held.say()
        files = held.json()["devices"][0]["files"]
        assert [f["types"] for f in files] == [{"UVERBS_OBJECT_PD": 1, "UVERBS_OBJECT_MR": 1}] * 2
        screen = held.status("--watch", "--once")
        assert len(re.findall(r"^  \|    1 PD, 1 MR$", screen, re.M)) == 2, screen
        assert "  `- objects: 2 PD, 2 MR" in screen


# ---- the objects of a file as a tree -----------------------------------------------------------------------------------------------

TREE = SCRIPT + """
ch = COMP_CHANNEL CREATE
cq = CQ CREATE --cqe 10 --comp_channel $ch
"""


def holding(script, last):
    """One client that makes these calls, of which `last` is printed last, and then those that the test sends."""
    held = Held(f"cat <(echo '{script}') - | {UVERBSCTL} call -f -", "--memlock", "32768")
    while last not in held.say():
        pass
    return held


def tree_of(held):
    return held.json()["devices"][0]["files"][0]["tree"]


def test_a_region_is_below_its_pd_and_a_cq_below_its_channel_until_they_are_destroyed():
    with holding(TREE, "CQ CREATE") as held:
        pd, channel = tree_of(held)
        cq, = channel["children"]
        region = {"type": "UVERBS_OBJECT_MR", "handle": 1, "length": 16384, "access": "LOCAL_WRITE"}
        assert pd == {"type": "UVERBS_OBJECT_PD", "handle": 0, "children": [region]}
        assert channel["type"] == "UVERBS_OBJECT_COMP_CHANNEL" and "handle" not in channel
        assert (cq["type"], cq["handle"], cq["cqe"]) == ("UVERBS_OBJECT_CQ", 2, 10)
        lines = ["PD 0", "  MR 1: 16384 bytes, LOCAL_WRITE", "COMP_CHANNEL", "  CQ 2: 10 entries"]
        for options, indent in (["--objects"], 4), (["--watch", "--once"], 2):
            assert "".join(f"\n{' ' * indent}{line}" for line in lines) in held.status(*options)
        assert "CQ 2" not in held.status()
        held.process.stdin.write("MR DEREG --mr_handle 1\n")
        held.process.stdin.flush()
        assert held.say() == "MR DEREG\n"
        assert tree_of(held) == [{"type": "UVERBS_OBJECT_PD", "handle": 0}, channel]


def test_a_region_that_was_changed_is_shown_as_it_is():
    with holding(SCRIPT, "MR") as held:
        held.process.stdin.write("pd2 = PD ALLOC\nMR REREG --mr_handle 1 --flags 6 --pd_handle $pd2 --access_flags 3\n")
        held.process.stdin.flush()
        assert "PD" in held.say() and "MR" in held.say()
        first, second = tree_of(held)
        assert "children" not in first and second["children"][0]["access"] == "LOCAL_WRITE,REMOTE_WRITE"


def test_of_many_objects_the_oldest_are_shown_and_the_others_counted():
    many = "".join(f"pd{i} = PD ALLOC\n" for i in range(299)) + SCRIPT
    with holding(many, "MR") as held:
        file = held.json()["devices"][0]["files"][0]
        assert [o["handle"] for o in file["tree"]] == list(range(256)) and file["objects"] == 301
        assert "    and 45 more objects\n" in held.status("--objects")
        assert len(held.status("--watch", "--once").splitlines()) <= 24


def test_who_is_near_the_limit_is_marked():
    with holding(SCRIPT, "MR") as held:
        assert held.json()["memlock"][0]["near"] is False and "near its limit" not in held.status()
        held.process.stdin.write("n = memory 12288\n"
                                 "MR CMD_REG_MR --pd_handle $pd --start $n --hca_va $n --length 12288 --access_flags 1\n")
        held.process.stdin.flush()
        assert "MR" in held.say()
        entry, = held.json()["memlock"]
        assert entry["near"] is True and f"{entry['pages']} pages, near its limit" in held.status()
        assert re.search(r" 8\d%!$", held.status("--watch", "--once"), re.M)


def test_objects_of_a_hostile_daemon_cannot_change_the_terminal(tmp_path):
    deep = []
    for _ in range(100):
        deep = [{"type": "\x1b[2J" * 40, "handle": 1, "access": "\u009b", "length": -1, "qp_num": "x", "qp_type": 7, "children": deep}]
    file = {"pid": 1, "uid": 1, "program": "p", "objects": 1, "tree": deep}
    status = {"pid": 1, "devices": [{"files": [file, 7]}, 7], "memlock": []}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "c"))
        listener.listen()
        with subprocess.Popen([UVERBSCTL, "status", "--control", tmp_path / "c", "--objects"], stdout=subprocess.PIPE, text=True) as done:
            connection = listener.accept()[0]
            with connection, connection.makefile("rw") as lines:
                lines.readline()
                lines.write(json.dumps(status) + "\n")
            text = done.stdout.read()
    assert done.returncode == 0 and "2J" in text and "\x1b" not in text and "\u009b" not in text


def test_the_page_shows_the_tree_that_is_printed():
    example = next(b for b in DOCS.read_text().split("```\n") if "--objects" in b and b.startswith("$ "))
    command, *shown = example[2:].splitlines()
    with holding(TREE, "CQ CREATE") as held:
        told = [line for line in held.status(*command.split()[2:]).splitlines() if line.startswith("    ")]
    assert told == [line for line in shown if line.startswith("    ")]
