# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Where programs of tests/cm find a /dev/infiniband/rdma_cm.

UVERBSD_TRANSPORT=run (the default): under `uverbsctl run`; cuse: uverbsd on real CUSE; kernel: the kernel's rdma_ucm on rxe0. The latter
two run as root in the virtual machine (tests/vm/suite).
"""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build")).resolve()
TRANSPORT = os.environ.get("UVERBSD_TRANSPORT", "run")
OPTIONS = os.environ.get("UVERBSD_OPTIONS", "").split()  # of a daemon: "--separate no", for example
# Where a rule's `differs` can say that this place differs.
DIFFERING = [TRANSPORT, *(["cuse, two processes"] if TRANSPORT == "cuse" and "no" not in OPTIONS else [])]
LONG = bool(os.environ.get("UVERBSD_LONG"))
STUCK = 1800 if LONG else 600  # seconds: a limit for what is stuck, and not for what is slow
NOBODY = ["setpriv", "--reuid=65534", "--regid=65533", "--clear-groups"]
OTHER = "10.98.0.1"  # an address of no RDMA device
LOST = "10.98.0.2"  # one of a device that the machine can lose
LOSE = ["--lose", LOST, f"ip addr del {LOST}/32 dev lo", f"ip addr add {LOST}/32 dev lo"]
OWN_NET = ["unshare", "--net", "sh", "-ec", f"ip link set lo up; ip addr add {OTHER}/32 dev lo; ip addr add {LOST}/32 dev lo;"
           " echo 41000 41099 > /proc/sys/net/ipv4/ip_local_port_range; exec \"$@\"", "sh"]
# Two ports of InfiniBand, which no machine of the tests has.
INFINIBAND = ["--persona", "hfi1", "--ports", "2"]
RXE_LIKE = ["--link-layer", "ethernet", "--gid", f"::ffff:{LOST},::ffff:127.0.0.1", "--ip", LOST]
PORT_RANGE = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")


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
def under_run(user, folder, options):
    """The program has a network of its own with few ports, if the tests may make one."""
    uverbsctl = shutil.copy(BUILD / "tools/uverbsctl", folder)
    own_net = [] if os.geteuid() or subprocess.run([*OWN_NET, "true"], check=False).returncode else OWN_NET
    # Only the network's owner can take an address away.
    loses = own_net and user == "self" and not options
    yield ([*own_net, *(NOBODY if user == "nobody" else []), uverbsctl, "run", *options, *(["--ip", LOST] if loses else []), "--"],
           ["127.0.0.1", *(["--other", OTHER] if own_net else []), "--lingering", *(LOSE if loses else []),
            "--remove", "127.0.0.1", f"{uverbsctl} device remove rxe0"])


@contextlib.contextmanager
def over_cuse(_, folder, options):
    """The daemon looks at the range of ports when it starts."""
    ports, log = PORT_RANGE.read_text(), folder / "log"
    PORT_RANGE.write_text("41000 41099")
    ip("addr", "replace", f"{LOST}/32", "dev", "lo")
    try:
        argv = [BUILD / "src/uverbsd", *OPTIONS, *(options or RXE_LIKE)]
        with open(log, "wb") as file, subprocess.Popen(argv, stderr=file) as daemon:
            try:
                end = time.monotonic() + STUCK
                while "uverbsd: ready:" not in log.read_text():
                    assert daemon.poll() is None and time.monotonic() < end, log.read_text()
                    time.sleep(0.02)
                yield (["env", "SYSFS_PATH=/run/uverbsd/sysfs"],
                       ["127.0.0.1", "--other", OTHER, "--lingering", *LOSE,
                        "--remove", "127.0.0.1", f"{BUILD}/tools/uverbsctl device remove hfi1_0"])
                daemon.terminate()
                assert daemon.wait(STUCK) == 0, log.read_text()
            finally:
                daemon.kill()
    finally:
        PORT_RANGE.write_text(ports)
        ip("addr", "delete", f"{LOST}/32", "dev", "lo", check=False)


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
                   "--lose", "10.97.0.1", "ip addr del 10.97.0.1/24 dev cmgoes", "ip addr add 10.97.0.1/24 dev cmgoes",
                   "--remove", "10.97.0.1", "rdma link delete rxe9"]
    finally:
        subprocess.run(["rdma", "link", "delete", "rxe9"], check=False, timeout=STUCK, stderr=subprocess.DEVNULL)
        for name in "cmother", "cmgoes":
            ip("link", "delete", name, check=False)


PLACES = {"run": under_run, "cuse": over_cuse, "kernel": on_the_kernel}


@contextlib.contextmanager
def place(user, folder, options=()):
    """Yields the prefix of a program's command, and arguments of rules.py. Copies the programs to the folder, which the user can enter.
    options: of the device; by default it is as rxe's."""
    # That may not be true of the checkout.
    for path in (folder, *folder.parents):
        if path.stat().st_uid == os.geteuid() and path != pathlib.Path("/"):
            path.chmod(path.stat().st_mode | 0o055 if path == folder else path.stat().st_mode | 0o011)
    for name in HERE.glob("*.py"):
        shutil.copy(name, folder)
    with PLACES[TRANSPORT](user, folder, options) as (prefix, args):
        yield prefix, args
