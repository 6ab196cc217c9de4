# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
The verbs backend on the kernel's rxe0, which plays the adapter: these tests run as root in the virtual machine (tests/vm/suite). The
class that starts the daemon is that of tests/cuse.
"""
import importlib.util
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(HERE.parent.as_posix())  # for perftest.py
spec = importlib.util.spec_from_file_location("cuse_conftest", HERE.parent / "cuse" / "conftest.py")
cuse = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cuse)
engine_user = cuse.engine_user
