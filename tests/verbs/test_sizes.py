# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""perftest at all its sizes between our devices and rxe0, the adapter, with regions that clients register by their own threads."""
import re
import resource

import pytest

import test_verbs as verbs
import test_run_borrow
from test_borrow import LONG, fixture_daemon  # noqa: F401 pylint: disable=unused-import
from test_verbs import fixture_nothing_is_left, fixture_own  # noqa: F401 pylint: disable=unused-import

OPERATIONS = ["send", "write", "read", "atomic"]
PROGRAMS = [f"ib_{operation}_{kind}" for operation in OPERATIONS for kind in ("bw", "lat")]
ALL = [2 << i for i in range(23)]  # 2 bytes to 8 MiB


@pytest.fixture(name="memlock", scope="module", autouse=True)
def fixture_memlock():
    """Both ends pin 16 MiB and more."""
    before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    yield
    resource.setrlimit(resource.RLIMIT_MEMLOCK, before)


def run_at_all_sizes(program, server, client):
    port = verbs.free_port()
    sizes = [8] if "atomic" in program else ALL
    args = ["-x", verbs.GID, "-n", "5", "-p", str(port), "-F", *([] if sizes == [8] else ["-a"]),
            *(["-t", "4"] if program.endswith("bw") else []), *(["-r", "4"] if program == "ib_send_bw" else [])]
    text = verbs.pair(verbs.on(server, program, *args), [*verbs.on(client, program, *args), "127.0.0.1"], port)
    rows = [int(size) for size in re.findall(r"^ (\d+) +5 +\d", text, re.M)]
    assert set(rows) == set(sizes), text


# With --long all of them: an emulated processor takes seconds for the large sizes.
@pytest.mark.parametrize("sides", verbs.SIDES if LONG else verbs.SIDES[:1], ids="-".join)
@pytest.mark.parametrize("program", PROGRAMS if LONG else ["ib_send_lat", "ib_read_bw"])
def test_perftest_runs_at_all_sizes(daemon, program, sides):
    run_at_all_sizes(program, *sides)


@pytest.mark.parametrize("sides", test_run_borrow.SIDES if LONG else test_run_borrow.SIDES[:1], ids="-".join)
@pytest.mark.parametrize("program", PROGRAMS if LONG else ["ib_write_bw"])
def test_perftest_runs_at_all_sizes_under_run(program, sides):
    run_at_all_sizes(program, *sides)
