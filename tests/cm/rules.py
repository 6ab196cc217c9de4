#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes the calls of the rules of catalogue.json on /dev/infiniband/rdma_cm, and prints a line for each: id, errno, what else was seen.

The program needs no library of RDMA: it runs on the kernel's device, under `uverbsctl run` and over CUSE. A rule that cannot be tried
here has "skip" in place of the errno, and the reason. A group of rules that fails leaves its traceback in lines that begin with "#".
"""
import argparse
import os
import sys
import time

import rules_address
import rules_connection
import rules_datagram
import rules_file
import rules_id
import rules_removal

MODULES = (rules_connection, rules_file, rules_id, rules_address, rules_datagram)  # the first begins with what takes its time to come


class Rules:
    """What each group gets: the options, and where to say what it has seen."""

    def __init__(self, args):
        self.args = args
        self.at_the_end = []

    @staticmethod
    def say(rule, result, *more):
        print(rule, result, *more, flush=True)

    def skip(self, rule, why):
        self.say(rule, "skip", why)

    def later(self, function, *args):
        """Calls it behind all groups: for what takes its time to come, and for what must not come at all."""
        self.at_the_end.append((function, args))

    def at_end(self):
        """The slow ones wait by themselves."""
        time.sleep(0.2)  # whatever the last group may have caused
        for function, args in self.at_the_end:
            attempt(function, *args)


def attempt(function, *args):
    began = time.monotonic()
    try:
        function(*args)
    except Exception:  # pylint: disable=broad-exception-caught
        import traceback  # takes its time, and is not needed where all goes well pylint: disable=import-outside-toplevel
        print("".join(f"# {line}\n" for line in traceback.format_exc().splitlines()), end="", flush=True)
    if "RULES_TIME" in os.environ:
        print(f"# {function.__qualname__}: {time.monotonic() - began:.2f} s", flush=True)


def run_groups(groups, rules):
    for group in groups:
        if (rules.args.only or "") in group.__name__:
            attempt(group, rules)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("address", help="an IPv4 address of an RDMA device")
    ap.add_argument("--other", metavar="ADDRESS", help="an address of this machine that no RDMA device has")
    ap.add_argument("--ports", action="store_true", help="make the range of ephemeral ports small for a moment (sysctl)")
    ap.add_argument("--remove", nargs=2, metavar=("ADDRESS", "COMMAND"), help="a device that may go, and what removes it")
    ap.add_argument("--lose", nargs=3, metavar=("ADDRESS", "COMMAND", "COMMAND"),
                    help="an address of a device, what makes the machine lose it, and what brings it back")
    ap.add_argument("--slow", action="store_true", help="rules that take minutes, too")
    ap.add_argument("--lingering", action="store_true", help="and those after which Linux holds up the end of the program for minutes")
    ap.add_argument("--only", metavar="GROUP", help="groups with this in their name")
    rules = Rules(ap.parse_args())
    rules.address = rules.args.address
    for module in MODULES:
        run_groups(module.GROUPS, rules)
    rules.at_end()
    run_groups(rules_connection.LAST, rules)
    run_groups(rules_removal.LAST, rules)  # after it there may be no device


if __name__ == "__main__":
    sys.exit(main())
