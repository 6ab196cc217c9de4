# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""test_node.py needs a device node: tests/vm/inside runs it in the virtual machine, where RUN_IN_VM is set."""
import os

collect_ignore = [] if os.environ.get("RUN_IN_VM") else ["test_node.py"]
