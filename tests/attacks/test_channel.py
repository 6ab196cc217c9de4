# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
An attacker who controls the engine process answers the channel of a node itself. The test takes the engine process's place: it has
that process's descriptors, stops it, and answers the ioctl() of other programs with what only CUSE_UNRESTRICTED_IOCTL allows.
"""
import contextlib
import ctypes
import errno
import os
import select
import signal
import struct
import subprocess
import threading

import pytest

from conftest import USER, cuse

PIDFD_GETFD = 438
OPEN, WRITE, RELEASE, IOCTL = 14, 16, 18, 39  # FUSE's operations
RETRY = 1 << 2
ROOM = 1 << 21  # for a request: libfuse has told the kernel 1 MiB of data at most
TCGETS, FS_IOC_GETFLAGS, RDMA_VERBS_IOCTL = 0x5401, 0x80086601, 0xc0181b01
UCAP = "mlx5_perm_ctrl_local"
FORGED = bytes(range(1, 65))


def channels(pid):
    """Takes duplicates of all channels that the process has."""
    libc, pidfd, found = ctypes.CDLL(None, use_errno=True), os.pidfd_open(pid), []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(f"/proc/{pid}/fd/{fd}") == "/dev/cuse":
                found.append(libc.syscall(PIDFD_GETFD, pidfd, int(fd), 0))
    os.close(pidfd)
    assert found and min(found) >= 0, (found, ctypes.get_errno())
    return found


class Thief:
    """
    Answers all requests of some channels. An ioctl() gets `answer(command, argument)`: the flags, the numbers of pieces to read
    and to write, and what follows. `seen` has (command, bytes that the kernel has read for us) of each ioctl().
    """
    def __init__(self, pid, answer):
        self.pid, self.answer, self.seen, self.error = pid, answer, [], None
        self.channels = channels(pid)
        os.kill(pid, signal.SIGSTOP)
        cuse.wait_for("a stop of all its threads", lambda: cuse.states(pid) == {"T"})
        self.end = os.pipe()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while True:
            ready = select.select([*self.channels, self.end[0]], [], [])[0]
            if self.end[0] in ready:
                return
            request = os.read(ready[0], ROOM)
            _, opcode, unique = struct.unpack_from("<IIQ", request)
            try:
                self.serve_one(ready[0], opcode, unique, request[40:])
            except Exception as e:  # the test's thread reports it; the program must not wait for ever
                self.error = e
                with contextlib.suppress(OSError):
                    self.reply(ready[0], unique, error=-errno.ENXIO)

    def serve_one(self, fd, opcode, unique, body):
        if opcode == OPEN:
            self.reply(fd, unique, struct.pack("<QIi", 1, 5, 0))  # FOPEN_DIRECT_IO | FOPEN_NONSEEKABLE
        elif opcode == IOCTL:
            _, _, command, argument, in_size, _ = struct.unpack_from("<QIIQII", body)
            self.seen.append((command, body[32:]))
            assert len(body[32:]) == in_size
            flags, in_pieces, out_pieces, more = self.answer(command, argument)
            self.reply(fd, unique, struct.pack("<iIII", 0, flags, in_pieces, out_pieces) + more)
        elif opcode == WRITE:
            self.reply(fd, unique, struct.pack("<II", struct.unpack_from("<QQI", body)[2], 0))
        elif opcode == RELEASE:
            self.reply(fd, unique)
        else:
            self.reply(fd, unique, error=-errno.EINVAL)

    @staticmethod
    def reply(fd, unique, body=b"", error=0):
        os.write(fd, struct.pack("<IiQ", 16 + len(body), error, unique) + body)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.write(self.end[1], b"x")
        self.thread.join()
        for fd in (*self.channels, *self.end):
            os.close(fd)
        os.kill(self.pid, signal.SIGCONT)
        assert self.error is None, self.error


def retry(_, argument):
    """Asks the kernel to read 64 bytes of the caller at its argument, and to let us write 64 bytes there."""
    return RETRY, 1, 1, struct.pack("<QQQQ", argument, 64, argument, 64)


def forge(size):
    """Says that the call has succeeded, with so many bytes for the caller."""
    return lambda command, argument: (0, 0, 0, FORGED[:size])


# A program that calls ioctl(), and prints its errno and what is in its memory afterwards.
CALL = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
memory = ctypes.create_string_buffer(b"Z" * 128)
result = libc.ioctl(os.open(sys.argv[1], os.O_RDWR), ctypes.c_ulong(int(sys.argv[2])), memory)
print(result, ctypes.get_errno(), memory.raw[:64].hex())
"""


def call(node, command):
    """Returns the call's result, its errno, and the memory at its argument, which was all Z."""
    done = subprocess.run(["/usr/bin/python3", "-c", CALL, node, str(command)], user=USER, group=USER, extra_groups=[],
                          stdout=subprocess.PIPE, text=True, timeout=cuse.STUCK)
    assert done.returncode == 0, done
    result, err, memory = done.stdout.split()
    return int(result), int(err), bytes.fromhex(memory)


@pytest.mark.parametrize("separate", ["no", "yes"])
def test_stolen_channel_gives_no_more_than_what_the_command_encodes(start, separate):
    d = start("--separate", separate, "--ucaps", UCAP)
    ucap = f"/dev/infiniband/{UCAP}"
    os.chmod(ucap, 0o666)
    untouched = b"Z" * 64
    with Thief(d.serving, retry) as thief:
        for node in (*d.nodes, ucap):
            thief.seen.clear()
            thief.answer = retry
            assert call(node, TCGETS) == (-1, errno.EIO, untouched)
            assert call(node, RDMA_VERBS_IOCTL) == (-1, errno.EIO, untouched)
            assert thief.seen == [(TCGETS, b""), (RDMA_VERBS_IOCTL, b"Z" * 24)]
        thief.answer = forge(1)
        assert call(node, TCGETS) == (-1, errno.EIO, untouched)
        # One fault remains (docs/security-processes.md): the number encodes a long, for which programs have an int.
        thief.answer = forge(9)
        assert call(node, FS_IOC_GETFLAGS) == (-1, errno.EIO, untouched)
        thief.answer = forge(8)
        assert call(node, FS_IOC_GETFLAGS) == (0, 0, FORGED[:8] + untouched[8:])
    cuse.run_client("channels", "1")
    d.wait_idle()


def test_setuid_program_goes_on_whoever_answers_its_ioctl(start):
    """su asks whether its input is a terminal. It is none, and so no password comes from it."""
    d = start("--separate", "yes")
    with Thief(d.serving, retry) as thief, open(d.nodes[0], "r+b", buffering=0, opener=os.open) as node:
        su = subprocess.run(["su", "root", "-c", "echo became root"], stdin=node, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            user=USER, group=USER, extra_groups=[], text=True, timeout=cuse.STUCK)
    assert su.returncode == 1 and "Authentication failure" in su.stdout and "became root" not in su.stdout, su
    assert TCGETS in [command for command, _ in thief.seen] and not any(read for _, read in thief.seen), thief.seen
