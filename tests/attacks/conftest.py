# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
Attacks by unprivileged clients on a daemon, over real CUSE: they run in the virtual machine (tests/vm/suite). The fixtures that
start the daemon are those of tests/cuse.
"""
import importlib.util
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("cuse_conftest", HERE.parent / "cuse" / "conftest.py")
cuse = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cuse)
start, sysfs_is_asked, engine_user = cuse.start, cuse.sysfs_is_asked, cuse.engine_user

# The clients of build/, which have no sanitizer: it would report what an attack does on purpose.
CLIENTS = HERE.parents[1] / "build" / "tests" / "attacks"
USER = 1000
PLACE = pathlib.Path(tempfile.mkdtemp(prefix="uverbsd-attacks-"))
PLACE.chmod(0o755)


def client(name):
    place = PLACE / f"attack-{name}"
    if not place.exists():
        shutil.copy(CLIENTS / f"attack-{name}", place)
    return place


def uverbsctl():
    """A copy of uverbsctl in a folder that every user can reach."""
    place = PLACE / "uverbsctl"
    if not place.exists():
        shutil.copy(cuse.BUILD / "tools" / "uverbsctl", place)
    return place


def attack(name, *args, user=USER):
    """Runs an attack to its end and returns its output."""
    done = subprocess.run([client(name), *map(str, args)], user=user, group=user, extra_groups=[], text=True,
                          stdout=subprocess.PIPE, timeout=cuse.STUCK)
    assert done.returncode == 0, (done.returncode, done.stdout)
    return done.stdout


class Attack:
    """An attack that runs until end() is called. It prints `says` once it is in place."""

    def __init__(self, name, *args, under=(), says="stuck", user=USER):
        self.process = subprocess.Popen([*under, client(name), *map(str, args)], user=user, group=user, extra_groups=[], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.hear(says)

    def hear(self, what):
        line = self.process.stdout.readline()
        assert line == what + "\n", line

    def tell(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self):
        return self.process.communicate("\n", timeout=cuse.STUCK)[0]


# A client that holds its own mmap_lock must not fault itself, so it locks all its memory (mlockall()): remove the limit.
resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@pytest.fixture(autouse=True)
def fuse_for_everybody():
    """Opens /dev/fuse to every user, as udev does on Debian."""
    os.chmod("/dev/fuse", 0o666)
