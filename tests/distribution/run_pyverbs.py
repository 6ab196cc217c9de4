# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""run_pyverbs.py FOLDER: run rdma-core's own tests, in FOLDER/tests, and print a JSON line for each: name, result, reason, seconds.

Some tests choose attributes at random, and skip themselves if the device lacks one of them. So each test starts from the same
seed, and a test that was skipped for that reason is repeated with other seeds.
"""
import json
import os
import random
import sys
import time
import unittest

# Tests of these vendors' hardware (mlx5, efa) or library (cuda).
NOT_GENERIC = ("mlx5", "efa", "cuda")
SEEDS = 16

folder = sys.argv[1]
sys.path[:0] = [folder, os.path.join(folder, "tests")]
os.chdir(folder)


class Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.says = ("passed", "")

    def addSkip(self, test, reason):
        self.says = ("skipped", reason)

    def addError(self, test, err):
        self.says = ("failed", self._exc_info_to_string(err, test))

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err:
            self.addError(test, err)


def run(test):
    for seed in range(SEEDS):
        random.seed(seed)
        result = Result()
        test.run(result)
        if result.says[0] != "skipped" or "extended attrs" not in result.says[1]:
            break
    return result.says


def each(suite):
    for test in suite:
        yield from each(test) if isinstance(test, unittest.TestSuite) else [test]


sys.argv[1:] = []
from args_parser import parser  # noqa: E402

parser.parse_args()
names = sorted(f[:-3] for f in os.listdir("tests") if f.startswith("test_") and f.endswith(".py"))
for name in names:
    if any(vendor in name for vendor in NOT_GENERIC):
        continue
    for test in each(unittest.defaultTestLoader.loadTestsFromName(f"tests.{name}")):
        began = time.monotonic()
        says = run(test)
        print("RESULT " + json.dumps([test.id().removeprefix("tests."), *says, round(time.monotonic() - began, 3)]), flush=True)
