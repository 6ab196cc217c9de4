#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
no_netlink.py PROGRAM [ARG...]: executes PROGRAM under a seccomp filter in which socket(AF_NETLINK, ..., NETLINK_RDMA) fails, so that its
libibverbs asks the published sysfs directory and not the kernel, which has an adapter too.
"""
import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF, RETURN = 0x20, 0x15, 0x06
NUMBER, PROTOCOL = 0, 32    # offsets in struct seccomp_data: nr, args[2]
ALLOW, ERRNO, EPROTONOSUPPORT = 0x7fff0000, 0x50000, 93
SOCKET, NETLINK_RDMA = 41, 20


class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


rows = [(LOAD, 0, 0, NUMBER), (JUMP_IF, 0, 3, SOCKET), (LOAD, 0, 0, PROTOCOL), (JUMP_IF, 0, 1, NETLINK_RDMA),
        (RETURN, 0, 0, ERRNO | EPROTONOSUPPORT), (RETURN, 0, 0, ALLOW)]
code = b"".join(struct.pack("=HBBI", *row) for row in rows)
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(Program(len(rows), code)), 0, 0):
    sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")
os.environ.setdefault("SYSFS_PATH", "/run/uverbsd/sysfs")
os.execvp(sys.argv[1], sys.argv[1:])
