#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
register.py local|remote [wait|full]: registers a page, by libibverbs, and says whether that worked. wait: reads a line before; full: has
no descriptor left.
"""
import os
import resource
import sys

from pyverbs.device import Context
from pyverbs.enums import IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError

access = IBV_ACCESS_LOCAL_WRITE | (IBV_ACCESS_REMOTE_WRITE if sys.argv[1] == "remote" else 0)


def fill_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    try:
        while True:
            os.dup(0)
    except OSError:
        pass


with Context(name="hfi1_0") as context, PD(context) as pd:
    if sys.argv[2:] == ["full"]:
        fill_descriptors()
    elif sys.argv[2:]:
        print("waits", flush=True)
        sys.stdin.readline()
    try:
        MR(pd, 4096, access).close()
        print("registered")
    except PyverbsRDMAError as error:
        print("EOPNOTSUPP" if error.error_code == 95 else f"errno {error.error_code}: {error}")
