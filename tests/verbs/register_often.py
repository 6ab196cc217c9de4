#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""register_often.py DEVICE: says "begun", then registers memory and ends the registration, again and again until stdin ends."""
import select
import sys

from pyverbs.device import Context
from pyverbs.enums import IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE
from pyverbs.mr import MR
from pyverbs.pd import PD

with Context(name=sys.argv[1]) as context, PD(context) as pd:
    # One write: print() can make two, between which another program writes to the same pipe.
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    while not select.select([sys.stdin], [], [], 0)[0]:
        MR(pd, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE).close()
