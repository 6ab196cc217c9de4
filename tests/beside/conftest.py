# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
uverbsd beside the RDMA devices of the kernel, rxe0 and rdma_ucm: these tests run as root in the virtual machine (tests/vm/suite). The
class that starts the daemon is that of tests/cuse.
"""
import importlib.util
import pathlib

import pytest

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("cuse_conftest", HERE.parent / "cuse" / "conftest.py")
cuse = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cuse)
engine_user = cuse.engine_user


@pytest.fixture(name="daemon", scope="session")
def fixture_daemon(tmp_path_factory):
    d = cuse.Daemon(tmp_path_factory.mktemp("beside"))
    yield d
    assert not d.left_in_the_end()
    assert d.stop() == 0, d.log.read_text()
