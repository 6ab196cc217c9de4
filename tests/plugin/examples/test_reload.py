# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reloading a plug-in while clients call it: no call of an open context fails, and the old versions go."""
import contextlib
import os
import pathlib
import re
import select
import shlex
import shutil
import subprocess
import time

from conftest import BUILD, LONG, SANITIZED, STUCK, UVERBSCTL, plugin

CLIENTS = 8
RELOADS = 100 if LONG else 20
LOAD = BUILD / "tests/plugin/examples/load_client"


def children(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [int(c) for t in os.listdir(f"/proc/{pid}/task")
                for c in pathlib.Path(f"/proc/{pid}/task/{t}/children").read_text().split()]
    return []


def until(condition, what):
    end = time.monotonic() + STUCK
    while not (value := condition()):
        assert time.monotonic() < end, f"{what}: not within {STUCK} s"
        time.sleep(0.02)
    return value


def fifo_end(path):
    """Opens a fifo for writing. This does not wait for the reader, which may have died."""
    return os.open(path, os.O_RDWR)


class Shell:
    """A shell on a device with the plug-in counter. Programs start in it, and the tests look at the engine from outside."""

    def __init__(self, folder):
        self.module = folder / "counter.so"
        shutil.copy(plugin("counter"), self.module)
        self.process = subprocess.Popen([UVERBSCTL, "run", "--plugin", self.module, "--", "sh"], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        assert self.ask("echo ready") == "ready"
        guardian = until(lambda: children(self.process.pid), "the guardian")[0]
        self.engine = until(lambda: children(guardian), "the engine")[0]

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line):
        """Returns the one line that the shell answers."""
        self.say(line)
        assert select.select([self.process.stdout], [], [], STUCK)[0], f"{line}: no answer within {STUCK} s"
        answer = self.process.stdout.readline()
        assert answer, f"{line}: the shell has ended"
        return answer.rstrip("\n")

    def ctl(self, *argv):
        """Runs uverbsctl in the shell, and returns its exit status."""
        return int(self.ask(f"{shlex.join([str(UVERBSCTL), *argv])} >&2; echo $?"))

    def modules(self):
        """Mappings of versions of the plug-in in the engine."""
        maps = pathlib.Path(f"/proc/{self.engine}/maps").read_text()
        return len(re.findall(r"(?m)^.* r-xp .*/memfd:counter.so", maps))

    def rss(self):
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{self.engine}/status").read_text())[1])

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(STUCK) == 0


def test_reload_under_load(scratch):
    shell = Shell(scratch)
    before = shell.modules()
    assert before >= 1, pathlib.Path(f"/proc/{shell.engine}/maps").read_text()
    rss = 0
    outs = []
    for i in range(CLIENTS):
        out, fifo = scratch / f"{i}.out", scratch / f"{i}.in"
        os.mkfifo(fifo)
        # The shell keeps no end of the fifo: the client's input ends when the test closes its own.
        shell.say(f"({LOAD} {'reopen' if i % 2 else 'keep'} <{fifo} >{out} 2>&1; echo status $? >>{out}) &")
        outs.append((out, fifo_end(fifo)))
    for out, _ in outs:
        until(lambda: out.exists() and "ready" in out.read_text(), "a client")
    for i in range(RELOADS):
        if i == RELOADS // 4:
            rss = shell.rss()
        assert shell.ctl("plugin", "reload", "counter") == 0
        time.sleep(0.02)
    grown = shell.rss() - rss
    for _, end in outs:
        os.close(end)
    for out, _ in outs:
        until(lambda: "status" in out.read_text(), "the end of a client")
        assert re.search(r"\d+ calls\nstatus 0\n$", out.read_text()), out.read_text()
    # The versions that only closed contexts knew are gone.
    until(lambda: shell.modules() == before, "the end of the old versions")
    print(f"the engine has grown by {grown} kB")
    assert SANITIZED or grown < 2 << 10, f"the engine has grown by {grown} kB in {RELOADS - RELOADS // 4} reloads"
    shell.close()


def test_open_context_keeps_its_version_until_it_is_closed(scratch):
    shell = Shell(scratch)
    before = shell.modules()
    fifo, out = scratch / "in", scratch / "out"
    os.mkfifo(fifo)
    shell.say(f"{LOAD} keep <{fifo} >{out} 2>&1 &")
    end = fifo_end(fifo)
    until(lambda: out.exists() and "ready" in out.read_text(), "the client")
    assert shell.ctl("plugin", "reload", "counter") == 0
    assert shell.modules() == before + 1
    assert shell.ctl("plugin", "reload", "counter") == 0
    assert shell.modules() == before + 1, "a version that no context knows stays"
    os.close(end)
    until(lambda: shell.modules() == before, "the end of the old version")
    shell.close()


def test_file_that_is_no_plugin_changes_nothing(scratch):
    shell = Shell(scratch)
    shell.module.unlink()
    shell.module.write_bytes(b"\x7fELF, but nothing more")
    assert shell.ctl("plugin", "reload", "counter") != 0
    assert shell.ask(f"echo | {LOAD} keep | tail -n 1").endswith("calls")
    shell.close()
