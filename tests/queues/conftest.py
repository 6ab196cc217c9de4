# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
Mapped queues over CUSE: these tests run as root in a virtual machine with Linux 6.9 or later (tests/vm/suite). The fixtures that start
the daemon are those of tests/cuse.
"""
import importlib.util
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("cuse_conftest", HERE.parent / "cuse" / "conftest.py")
cuse = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cuse)
start, sysfs_is_asked, engine_user = cuse.start, cuse.sysfs_is_asked, cuse.engine_user
STUCK, NOBODY, BUILD, wait_for = cuse.STUCK, cuse.NOBODY, cuse.BUILD, cuse.wait_for
OTHER = 65000  # another ordinary user
PYTHON = "/usr/bin/python3"
MODULE = HERE.parents[1] / "contrib" / "python"

# A client in Python. `with_context` is a descriptor that can be mapped.
CLIENT = """
import ctypes, errno, fcntl, mmap, os, resource, signal, socket, stat, sys, time
import uverbs

PAGE = mmap.PAGESIZE
errno.errorcode[errno.EOPNOTSUPP] = "EOPNOTSUPP"

def failure(call, *args):
    "The name of the errno that the call fails with; None: it succeeds."
    try:
        call(*args)
    except OSError as e:
        return errno.errorcode[e.errno]

def mapped(fd, offset=PAGE):
    return mmap.mmap(fd, PAGE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=offset)

def with_context():
    dev = uverbs.open("uverbs0")
    dev.pd = dev.PD.ALLOC_PD()
    return dev

def said(word):
    print(word, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def daemon(start):
    """The default device here: its queues can be mapped."""
    return start()


def environment():
    return dict(cuse.environment(), PYTHONPATH=str(MODULE), PYTHONDONTWRITEBYTECODE="1")


def begin(program, user=NOBODY, before=()):
    """Starts a client; `before`: the command that starts it."""
    return subprocess.Popen([*before, PYTHON, "-c", CLIENT + program], env=environment(), **cuse.ids_of(user), stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(client):
    out, err = client.communicate("\n" * 10, timeout=STUCK)
    assert client.returncode == 0, (client.returncode, out, err)
    return out


def run(program, **how):
    return end(begin(program, **how))
