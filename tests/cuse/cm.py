# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
A client of /dev/infiniband/rdma_cm without a library. `cm.py wait N` waits in GET_EVENT with N threads of one file, and says so first:
a program that a test can kill.
"""
import ctypes
import os
import socket
import struct
import sys
import threading

NODE = "/dev/infiniband/rdma_cm"
ADDRESS = "127.0.0.1"
CREATE_ID, DESTROY_ID, RESOLVE_ROUTE, GET_EVENT, MIGRATE_ID, RESOLVE_ADDR = 0, 1, 4, 12, 18, 21
ADDR_RESOLVED, ROUTE_RESOLVED = 0, 2
libc = ctypes.CDLL(None, use_errno=True)


class File:
    def __init__(self, flags=0):
        self.fd = os.open(NODE, os.O_RDWR | os.O_CLOEXEC | flags)

    def close(self):
        os.close(self.fd)

    def write(self, data):
        """Returns what write() returns, or a negative errno."""
        n = libc.write(self.fd, data, len(data))
        return n if n >= 0 else -ctypes.get_errno()

    def command(self, number, data, out=0):
        return self.write(struct.pack("<IHH", number, len(data), out) + data)

    def create(self, uid=1):
        """Returns the number of a new identifier (RDMA_PS_TCP)."""
        answer = ctypes.create_string_buffer(4)
        n = self.command(CREATE_ID, struct.pack("<QQHB5x", uid, ctypes.addressof(answer), 0x106, 2), 4)
        assert n > 0, n
        return struct.unpack("<I", answer.raw)[0]

    def destroy(self, number):
        answer = ctypes.create_string_buffer(4)
        return self.command(DESTROY_ID, struct.pack("<QII", ctypes.addressof(answer), number, 0), 4)

    def resolve(self, number):
        to = struct.pack("<H", socket.AF_INET) + struct.pack(">H", 7174) + socket.inet_aton(ADDRESS)
        return self.command(RESOLVE_ADDR, struct.pack("<IIHHI", number, 2000, 0, 16, 0) + bytes(128) + to + bytes(128 - len(to)))

    def event(self, uid=1):
        """Makes one event."""
        number = self.create(uid)
        n = self.resolve(number)
        assert n > 0, n
        return number

    def get(self, answer=None):
        """GET_EVENT: returns (event, uid) or a negative errno."""
        buffer = ctypes.create_string_buffer(336)
        n = self.command(GET_EVENT, struct.pack("<Q", ctypes.addressof(buffer) if answer is None else answer), 336)
        if n < 0:
            return n
        uid, _, event = struct.unpack_from("<QII", buffer)
        return event, uid


def wait(number):
    file = File()
    threading.stack_size(64 << 10)
    for _ in range(number):
        threading.Thread(target=file.get, daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    wait(int(sys.argv[2]))
