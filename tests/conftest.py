# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A step of scripts/test without --long ($UVERBSD_STEP) leaves out the tests that tests/long.txt names for it."""
import importlib.util
import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
STEP = os.environ.get("UVERBSD_STEP")
spec = importlib.util.spec_from_file_location("long_tests", HERE / "long.py")
long_tests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(long_tests)


def name_of(path):
    return os.path.relpath(path, HERE)


def pytest_ignore_collect(collection_path):
    """A file of which nothing is wanted is not even read: on an emulated processor that takes time."""
    return True if STEP and long_tests.left_out(STEP)(name_of(collection_path)) else None


def pytest_collection_modifyitems(config, items):
    if not STEP:
        return
    kept, gone = [], []
    for item in items:
        place = gone if long_tests.left_out(STEP)(f"{name_of(item.path)}::{item.name}") else kept
        place.append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=gone)
