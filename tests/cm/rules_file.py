# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The header of commands, the file itself, who may write to it, and how it waits."""
import contextlib
import ctypes
import fcntl
import mmap
import os
import pathlib
import select
import signal
import struct
import sys
import threading

from ucm import (ADDR, CREATE_ID, DESTROY_ID, GET_OPTION, NODE, NONE, NOWHERE, TCP, Ends, File, errno_name, in4, libc, ok)

PAGE = 4096
NODE_IS_OLD = "import os, sys\ntry: os.write({fd}, bytes(8)); e = 0\nexcept OSError as x: e = x.errno\nsys.exit(e)"


def in_child(function):
    """Runs it in a forked child, and waits for that."""
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        with contextlib.suppress(BaseException):
            function()
            sys.stdout.flush()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0


def tried(function, *args):
    """Returns the name of the errno of a system call."""
    try:
        function(*args)
    except OSError as e:
        return errno_name(e.errno)
    return "0"


def create_request(f):
    return struct.pack("<QQHB5x", 1, f.room(None), TCP, 2)


def header(t):
    with File() as f:
        t.say("cm-hdr-short", f.write(bytes(7)))
        t.say("cm-hdr-empty", f.write(b""))
        t.say("cm-hdr-fault", f.write_at(NOWHERE, 8))
        t.say("cm-hdr-cmd-23", f.command(23, bytes(64)))
        t.say("cm-hdr-cmd-max", f.command(0xffffffff))
        t.say("cm-hdr-in-over-len", f.command(CREATE_ID, create_request(f), 4, 25))
        t.say("cm-hdr-get-option", f.command(GET_OPTION, bytes(64)))
        t.say("cm-hdr-bad-cmd-before-in", f.command(23, b"", 0, 99))
        t.say("cm-hdr-in-over-len-before-absent", f.command(GET_OPTION, b"", 0, 1))
        t.say("cm-hdr-longer-than-in", f.command(CREATE_ID, create_request(f) + bytes(40), 4, 24))


def two_pages(protection):
    """Two pages: the second has this protection. Returns the object that owns them, and their address."""
    memory = mmap.mmap(-1, 2 * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert libc.mprotect(ctypes.c_void_p(start + PAGE), PAGE, protection) == 0
    return memory, start


def memory_of_the_client(t):
    """The kernel reads all of the command's struct, whatever the header and the length of the write() say."""
    with File() as f:
        t.say("cm-create-in-0", f.write(struct.pack("<IHH", CREATE_ID, 0, 4) + create_request(f), 8))
        memory, start = two_pages(0)
        memory[PAGE - 8:PAGE] = struct.pack("<IHH", CREATE_ID, 0, 4)
        t.say("cm-create-in-0-no-access", f.write_at(start + PAGE - 8, 8))
        libc.munmap(ctypes.c_void_p(start + PAGE), PAGE)
        memory[PAGE - 8:PAGE] = struct.pack("<IHH", DESTROY_ID, 0, 4)
        t.say("cm-destroy-in-0-fault-behind", f.write_at(start + PAGE - 8, 8))
        memory, start = two_pages(mmap.PROT_READ)
        t.say("cm-create-resp-read-only", f.create(response=start + PAGE))


def other_calls(t):
    with File() as f:
        t.say("cm-read", tried(os.read, f.fd, 1))
        t.say("cm-ioctl", tried(fcntl.ioctl, f.fd, 0x1b01))
        t.say("cm-lseek", tried(os.lseek, f.fd, 0, os.SEEK_SET))
        t.say("cm-mmap", tried(mmap.mmap, f.fd, PAGE))
        t.say("cm-writev-two-pieces", tried(os.writev, f.fd, [struct.pack("<IHH", CREATE_ID, 24, 4), create_request(f)]))


# ---- who may write ----------------------------------------------------------------------------------------------------

def credentials(t):
    with File() as f:
        in_child(lambda: t.say("cm-write-after-fork", f.create()))

    def after(rule, function, *args):
        with File() as f:
            function(*args)
            t.say(rule, f.create())
    in_child(lambda: after("cm-write-creds-same", os.setgid, os.getgid()))
    if os.geteuid():
        t.skip("cm-write-creds", "only root can become another group's")
    else:
        in_child(lambda: after("cm-write-creds", os.setegid, 65533))

    def executed():
        f = File(os.O_NONBLOCK)
        os.set_inheritable(f.fd, True)
        os.execv(sys.executable, [sys.executable, "-ISE", "-c", NODE_IS_OLD.format(fd=f.fd)])
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        executed()
    t.say("cm-write-after-exec", errno_name(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))


# ---- waiting ----------------------------------------------------------------------------------------------------------

def polled(f):
    poll = select.poll()
    poll.register(f.fd, select.POLLIN | select.POLLOUT)
    found = poll.poll(0)
    names = [n for n in ("POLLIN", "POLLOUT", "POLLERR", "POLLHUP") if found and found[0][1] & getattr(select, n)]
    return "+".join(names) or "nothing"


def poll_and_get(t):
    with Ends(t.address) as ends, File() as f:
        number = f.new()
        t.say("cm-get-none-nonblock", f.get())
        t.say("cm-get-out-319", f.get(319))
        t.say("cm-get-out-323", f.get(323))
        t.say("cm-get-out-short-before-eagain", f.get(4))
        before = polled(f)
        ok(f.resolve(number, in4(t.address, ends.port)))
        f.wait()
        with_event = polled(f)
        t.say("cm-get-fault", f.get(response=NOWHERE), f"poll={polled(f)}")
        f.answer[324:336] = b"x" * 12
        t.say("cm-get-out-324-old", f.get(324), f"behind={f.answer.raw[324:336].decode()}")
        t.say("cm-get-after", f.get())
        t.say("cm-get-wait-killed-poll", "0", f"before={before}", f"event={with_event}", f"after={polled(f)}")


def is_asleep(tid):
    stat = pathlib.Path(f"/proc/self/task/{tid}/stat").read_text()
    return stat.rsplit(")", 1)[1].split()[0] == "S"


class Waiting:
    """Waits for an event in the main thread; meanwhile another thread does something, each time that the main one sleeps."""

    def __init__(self, f, *steps):
        self.f, self.steps, self.done, self.over = f, steps, 0, threading.Event()
        self.tid = threading.get_native_id()

    def sleeps(self):
        asleep = 0
        while asleep < 5 and not self.over.wait(0.02):
            asleep = asleep + 1 if is_asleep(self.tid) else 0
        return not self.over.is_set()

    def beside(self):
        for step in self.steps:
            if not self.sleeps():
                return
            self.done += 1
            step()

    def result(self):
        thread = threading.Thread(target=self.beside)
        thread.start()
        result = self.f.get()
        self.over.set()
        thread.join()
        return result


def interrupt(signum):
    signal.pthread_kill(threading.main_thread().ident, signum)


def blocking(t):
    for signum, restart in ((signal.SIGUSR1, False), (signal.SIGUSR2, True)):
        signal.signal(signum, lambda *_: None)
        signal.siginterrupt(signum, not restart)
    with Ends(t.address) as ends, File(os.O_CLOEXEC) as f:
        waiting = Waiting(f, lambda: interrupt(signal.SIGUSR1))
        t.say("cm-get-signal", waiting.result())
        number = f.new()
        waiting = Waiting(f, lambda: interrupt(signal.SIGUSR2), lambda: interrupt(signal.SIGUSR1))
        t.say("cm-get-signal-restart", waiting.result(), f"signals={waiting.done}")
        waiting = Waiting(f, lambda: ok(f.resolve(number, in4(t.address, ends.port))))
        t.say("cm-get-waits", waiting.result(), f"calls={waiting.done}")


# ---- MIGRATE_ID -------------------------------------------------------------------------------------------------------

def migrate(t):
    with Ends(t.address) as ends, File() as f, open("/dev/null", "rb") as other, File() as third:
        number, child = ends.established()
        t.say("cm-migrate-fd-bad", f.migrate(number, 9999))
        t.say("cm-migrate-fd-not-cm", f.migrate(number, other.fileno()))
        t.say("cm-migrate-none", f.migrate(NONE, ends.client.fd))
        t.say("cm-migrate-id-of-other", f.migrate(number, third.fd))
        t.say("cm-migrate-same-file", ends.client.migrate(number, ends.client.fd), f"reported={ends.client.word()}")
        waits = ends.client.new()
        ok(ends.client.resolve(waits, in4(t.address, ends.port)))
        ends.client.wait()
        ok(f.migrate(waits, ends.client.fd))
        moved = f"old={ends.client.get()} new={f.event().name}"
        t.say("cm-migrate-events", "0", moved)
        t.say("cm-migrate", f.migrate(number, ends.client.fd), f"reported={f.word()}")
        t.say("cm-migrate-then-old-file", ends.client.disconnect(number))
        t.say("cm-migrate-fault", ends.client.migrate(number, f.fd, response=NOWHERE), f"new={ends.client.query(number, ADDR)}")
        ok(ends.client.disconnect(number))
        assert ends.server.event("DISCONNECTED").id == child


def numbers(t):
    """Identifiers are global: the lowest free number is the next."""
    with File() as f, File() as g:
        first = f.new()
        second = g.new()
        ok(f.destroy(first))
        t.say("cm-create-lowest", "0", f"distinct={first != second}", f"again={g.new() == first}")


def node(t):
    mode = os.stat(NODE).st_mode
    name = pathlib.Path(os.environ.get("SYSFS_PATH", "/sys"), "class/misc/rdma_cm/abi_version")
    t.say("cm-node", "0", f"mode={mode:o}", f"abi_version={name.read_text().strip() if name.exists() else None}")


GROUPS = (header, memory_of_the_client, other_calls, credentials, poll_and_get, blocking, migrate, numbers, node)
