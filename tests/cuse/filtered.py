#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""filtered.py PROGRAM [ARG...]: executes PROGRAM under a seccomp filter that refuses only kexec_load(). Start as root."""
import ctypes
import os
import struct
import sys

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
LOAD, JUMP_IF, RETURN = 0x20, 0x15, 0x06
ALLOW, EPERM, KEXEC_LOAD = 0x7fff0000, 0x50001, 246


class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


code = b"".join(struct.pack("=HBBI", *row) for row in [
    (LOAD, 0, 0, 0), (JUMP_IF, 0, 1, KEXEC_LOAD), (RETURN, 0, 0, EPERM), (RETURN, 0, 0, ALLOW)])
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(Program(4, code)), 0, 0):
    sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[1], sys.argv[1:])
