# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
Traces on the kernel's rxe0 and on a uverbsd beside it: these tests run as root in the virtual machine (tests/vm/suite). The class that
starts the daemon is that of tests/cuse.
"""
import importlib.util
import json
import os
import pathlib
import subprocess

import pytest

import record

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("cuse_conftest", HERE.parent / "cuse" / "conftest.py")
cuse = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cuse)
engine_user = cuse.engine_user
KERNELS = "/dev/infiniband/uverbs0"


@pytest.fixture(scope="session")
def traces(tmp_path_factory):
    """The paths of the traces by name: of the folder $UVERBSD_TRACES, or recorded now."""
    folder = os.environ.get("UVERBSD_TRACES")
    if not folder:
        return record.record(tmp_path_factory.mktemp("traces"))
    return {name: pathlib.Path(folder, f"{name}.trace") for name in record.RECORDED}


@pytest.fixture(scope="session")
def client32(tmp_path_factory):
    """The path of the client of 32 bits: in the folder $UVERBSD_TRACES, or compiled now."""
    folder = os.environ.get("UVERBSD_TRACES")
    return pathlib.Path(folder, "client32") if folder else record.client32(tmp_path_factory.mktemp("client32"))


@pytest.fixture(scope="session")
def daemon(tmp_path_factory):
    d = cuse.Daemon(tmp_path_factory.mktemp("replay"), *record.OPTIONS)
    yield d
    d.wait_idle()
    assert d.stop() == 0, d.log.read_text()


@pytest.fixture(scope="session")
def single(tmp_path_factory):
    """A daemon that is one process."""
    folder = tmp_path_factory.mktemp("single")
    d = cuse.Daemon(folder, *record.OPTIONS, *cuse.ONE_PROCESS, "--control", "/run/single/control", "--sysfs", "/run/single/sysfs")
    d.control = "/run/single/control"
    yield d
    d.wait_idle()
    assert d.stop() == 0, d.log.read_text()


@pytest.fixture
def node(request):
    """The kernel's device, or ours."""
    return KERNELS if request.param == "kernel" else request.getfixturevalue("daemon").nodes[0]


def replay(node, trace, *options):
    """Returns the exit status and what `uverbsctl replay` says."""
    # The clock of an emulated machine that booted while the host was busy can be ten times as fast as the host's.
    done = subprocess.run([record.UVERBSCTL, "replay", *options, "--hang", "1000", "--device", node, trace], capture_output=True,
                          text=True, check=False, timeout=10 * record.STUCK)
    return done.returncode, done.stdout + done.stderr


def replayed(node, trace):
    status, said = replay(node, trace, "--json")
    assert status in (0, 1), said
    return json.loads(said)


def calls_of(trace):
    done = subprocess.run([record.UVERBSCTL, "trace", "-i", trace, "--json"], capture_output=True, text=True, check=True,
                          timeout=record.STUCK)
    return [o for o in map(json.loads, done.stdout.splitlines()) if o["kind"] == "call"]
