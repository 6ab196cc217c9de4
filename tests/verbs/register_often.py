#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
register_often.py DEVICE N: registers memory and ends the registration, N times. It says "begun" when it has a PD, and reads a line before
its end.
"""
import sys

from pyverbs.device import Context
from pyverbs.enums import IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE
from pyverbs.mr import MR
from pyverbs.pd import PD

with Context(name=sys.argv[1]) as context, PD(context) as pd:
    print("begun", flush=True)
    for _ in range(int(sys.argv[2])):
        MR(pd, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE).close()
    print("ended", flush=True)
    sys.stdin.readline()
