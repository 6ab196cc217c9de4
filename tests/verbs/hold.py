#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""hold.py: allocates a PD and says "ready"; when it has read a line, tries to allocate another PD and says the result."""
import sys

from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError

context = Context(name="hfi1_0")
pd = PD(context)
print("ready", flush=True)
sys.stdin.readline()
try:
    PD(context).close()
    print("allocated")
except PyverbsRDMAError as error:
    print(f"errno {error.error_code}")
# The client's objects are gone with the device.
pd.close()
context.close()
