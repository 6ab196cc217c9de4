# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The rules of catalogue.json on a /dev/infiniband/rdma_cm: one run of rules.py for each user, and a test for each rule.

UVERBSD_TRANSPORT=run (the default): under `uverbsctl run`; cuse: uverbsd on real CUSE; kernel: the kernel's rdma_ucm on rxe0. The latter
two run as root in the virtual machine (tests/vm/suite).
"""
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build")).resolve()
TRANSPORT = os.environ.get("UVERBSD_TRANSPORT", "run")
LONG = bool(os.environ.get("UVERBSD_LONG"))
STUCK = 1800 if LONG else 600  # seconds: a limit for what is stuck, and not for what is slow
NOBODY = ["setpriv", "--reuid=65534", "--regid=65533", "--clear-groups"]
OTHER = "10.98.0.1"  # an address of no RDMA device
OWN_NET = ["unshare", "--net", "sh", "-ec", f"ip link set lo up; ip addr add {OTHER}/32 dev lo;"
           " echo 41000 41099 > /proc/sys/net/ipv4/ip_local_port_range; exec \"$@\"", "sh"]
RXE_LIKE = ["--link-layer", "ethernet", "--gid", "::ffff:127.0.0.1"]
PORT_RANGE = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
RULES = {r["id"]: r for r in json.loads((HERE / "catalogue.json").read_text())["rules"]}
PROGRAM = {i: r for i, r in RULES.items() if "rules" in r.get("tests", ())}
# In a machine a case takes a twentieth of a second: there one case has all rules of a command.
COMMANDS = {r["command"]: None for r in PROGRAM.values()}
CASES = ({rule: [rule] for rule in PROGRAM} if TRANSPORT == "run" or LONG else
         {command: [i for i, r in PROGRAM.items() if r["command"] == command] for command in COMMANDS})
LINE = re.compile(r"(cm-\S+) (\S+) ?(.*)")


# What the program has said: its text, its number of lines about rules, and {id: (errno, what else was seen)}.
Said = collections.namedtuple("Said", "text lines results")


def sanitizer():
    options = json.loads((BUILD / "meson-info" / "intro-buildoptions.json").read_text())
    return next(o["value"] for o in options if o["name"] == "b_sanitize")


def users():
    """As tests/run: a whole run of scripts/test has each user once."""
    if TRANSPORT != "run" or os.geteuid():
        return ["self"]
    if "UVERBSD_WHOLE" in os.environ:
        return ["self" if "address" in sanitizer() else "nobody"]
    return ["self", "nobody"]


# ---- the node, and the program's command ------------------------------------------------------------------------------

@contextlib.contextmanager
def under_run(user, folder):
    """The program has a network of its own with few ports, if the tests may make one."""
    uverbsctl = shutil.copy(BUILD / "tools/uverbsctl", folder)
    own_net = [] if os.geteuid() or subprocess.run([*OWN_NET, "true"], check=False).returncode else OWN_NET
    yield ([*own_net, *(NOBODY if user == "nobody" else []), uverbsctl, "run", "--"],
           ["127.0.0.1", *(["--other", OTHER] if own_net else []), "--lingering",
            "--remove", "127.0.0.1", f"{uverbsctl} device remove rxe0"])


@contextlib.contextmanager
def over_cuse(_, folder):
    """The daemon looks at the range of ports when it starts."""
    ports, log = PORT_RANGE.read_text(), folder / "log"
    PORT_RANGE.write_text("41000 41099")
    try:
        with open(log, "wb") as file, subprocess.Popen([BUILD / "src/uverbsd", *RXE_LIKE], stderr=file) as daemon:
            try:
                end = time.monotonic() + STUCK
                while "uverbsd: ready:" not in log.read_text():
                    assert daemon.poll() is None and time.monotonic() < end, log.read_text()
                    time.sleep(0.02)
                yield (["env", "SYSFS_PATH=/run/uverbsd/sysfs"],
                       ["127.0.0.1", "--other", OTHER, "--lingering",
                        "--remove", "127.0.0.1", f"{BUILD}/tools/uverbsctl device remove hfi1_0"])
                daemon.terminate()
                assert daemon.wait(STUCK) == 0, log.read_text()
            finally:
                daemon.kill()
    finally:
        PORT_RANGE.write_text(ports)


def ip(*words, check=True):
    subprocess.run(["ip", *words], check=check, timeout=STUCK)


@contextlib.contextmanager
def on_the_kernel(*_):
    """Beside rxe0: an address without a device, and a device that may go."""
    for name, address in ("cmother", OTHER), ("cmgoes", "10.97.0.1"):
        ip("link", "add", name, "type", "dummy")
        ip("link", "set", name, "up")
        ip("addr", "add", f"{address}/24", "dev", name)
    try:
        subprocess.run(["rdma", "link", "add", "rxe9", "type", "rxe", "netdev", "cmgoes"], check=True, timeout=STUCK)
        gids, end = pathlib.Path("/sys/class/infiniband/rxe9/ports/1/gids"), time.monotonic() + STUCK
        while not any("0a61:0001" in gid.read_text() for gid in gids.iterdir()):
            assert time.monotonic() < end
            time.sleep(0.02)
        yield [], ["10.99.0.1", "--other", OTHER, "--ports", *(["--lingering"] if LONG else []),
                   "--remove", "10.97.0.1", "rdma link delete rxe9"]
    finally:
        subprocess.run(["rdma", "link", "delete", "rxe9"], check=False, timeout=STUCK, stderr=subprocess.DEVNULL)
        for name in "cmother", "cmgoes":
            ip("link", "delete", name, check=False)


PLACES = {"run": under_run, "cuse": over_cuse, "kernel": on_the_kernel}


@pytest.fixture(scope="module", params=users())
def said(request, tmp_path_factory):
    folder = pathlib.Path(tmp_path_factory.mktemp("cm"))
    # A folder that every user can enter, which may not be true of the checkout.
    for place in (folder, *folder.parents):
        if place.stat().st_uid == os.geteuid() and place != pathlib.Path("/"):
            place.chmod(place.stat().st_mode | 0o055 if place == folder else place.stat().st_mode | 0o011)
    for name in HERE.glob("*.py"):
        shutil.copy(name, folder)
    with PLACES[TRANSPORT](request.param, folder) as (prefix, args):
        done = subprocess.run([*prefix, "/usr/bin/python3", "-S", folder / "rules.py", *args, *(["--slow"] if LONG else [])],
                              stdout=subprocess.PIPE, text=True, timeout=STUCK, check=False, cwd="/")
    lines = [m.groups() for m in map(LINE.fullmatch, done.stdout.splitlines()) if m]
    assert done.returncode == 0, done.stdout
    return Said(done.stdout, len(lines), {rule: (result, then) for rule, result, then in lines})


# ---- the rules --------------------------------------------------------------------------------------------------------

def expected(rule):
    """What the program says of it on this transport."""
    here = {**PROGRAM[rule], **PROGRAM[rule].get("differs", {}).get(TRANSPORT, {})}
    return here["errno"], here.get("then", "")


@pytest.mark.parametrize("rules", CASES.values(), ids=CASES.keys())
def test_rules_hold(said, rules):
    results = {rule: said.results.get(rule, ("(nothing)", "")) for rule in rules}
    skipped = {rule: then for rule, (result, then) in results.items() if result == "skip"}
    wrong = {rule: (result, "expected", expected(rule)) for rule, result in results.items()
             if rule not in skipped and result != expected(rule)}
    assert not wrong
    if len(skipped) == len(rules):
        pytest.skip("; ".join(skipped.values()))


def test_the_program_says_each_rule_once_and_no_other(said):
    assert said.lines == len(said.results) and set(said.results) == set(PROGRAM), said.text
