# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""rdma-core's own tests (from Debian's package rdma-core), run by Debian's pyverbs: all but those of a vendor's hardware.

docs/pyverbs.md and, for the persona rxe, docs/pyverbs-rxe.md say which tests pass and why the others are skipped.
UVERBSD_WRITE_DOCS=1 rewrites them from the results.
"""
import json
import os
import pathlib
import re
import shutil

import pytest

from conftest import CUSE, PLACE
from rdma_core_tests import unpack

RUNNER = shutil.copy(pathlib.Path(__file__).parent / "run_pyverbs.py", PLACE)
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"

PROVIDER = "libibverbs' provider has no such function, so nothing is sent to the device"
REASONS = [  # the message of a skipped test (a pattern), and the reason
    ("Extended QP is not supported on this device", f"`ibv_wr_*`: {PROVIDER}"),
    ("Device memory is not supported", f"`ibv_alloc_dm`: {PROVIDER}"),
    ("(Create )?Extended CQ is not supported", f"`ibv_create_cq_ex`: {PROVIDER}"),
    ("Create XRCD is not supported", f"`ibv_open_xrcd`: {PROVIDER}"),
    ("Create MW is not supported|Create memory window of type", f"`ibv_alloc_mw`: {PROVIDER}"),
    ("Advise MR with flags", f"`ibv_advise_mr`: {PROVIDER}"),
    ("Rereg MR is not supported", f"`ibv_rereg_mr`: {PROVIDER}"),
    ("Parent Domain is not supported", f"`ibv_alloc_parent_domain`: {PROVIDER}"),
    ("on Ethernet link layer|skip RoCE test", "for ports of Ethernet; hfi1's are InfiniBand"),
    ("Allocating dmabuf", "needs a GPU"),
    ("must be done by root on Ethernet|Must be run by root on Ethernet", "RAW_PACKET on Ethernet: the tests want root"),
    ("Importing a device is not supported", f"`ibv_import_device`: {PROVIDER}"),
]
# Nobody answers a doorbell under `run`, so the provider refuses a post in RESET, INIT and RTR by its own errno, ENOSPC, and not EINVAL.
DIFFERS = "test_qpex.QpExTestCase.test_post_send_qp_state_bad_flow"
HUGE = "needs 2 MiB pages that are set aside: those of ODP pass where there are some; parent domains as above"


def why(name, said):
    if "huge" in name:
        return HUGE
    return next((text for pattern, text in REASONS if re.search(pattern, said)), None)


def table(results, rxe):
    skipped, passed = {}, {}
    for name, result, said, _ in results:
        module, _, test = name.partition(".")
        if result == "failed":
            continue
        if result == "skipped" or "huge" in name:
            skipped.setdefault(why(name, said), []).append(name.rpartition(".")[2])
        else:
            passed.setdefault(module, []).append(test)
    where = ("with the persona `rxe`, under `uverbsctl run`." if rxe else
             "with the persona `hfi1`, in both ABIs, under `uverbsctl run` and over CUSE.")
    lines = ["# rdma-core's own tests" + (" with mapped queues" if rxe else ""), "",
             "For a developer of uverbsd or of rdma-core. After this page you know which of rdma-core's tests pass, and why the others are "
             "skipped.",
             "",
             "What the tests of Debian 12's rdma-core show through Debian's pyverbs and libibverbs, on the `soft` backend, as an",
             f"unprivileged user, {where} Written by",
             "tests/distribution/test_pyverbs.py (`UVERBSD_WRITE_DOCS=1`), which fails when this is not what it sees. Left out: the tests",
             "of mlx5, EFA and CUDA.",
             "", f"{sum(map(len, passed.values()))} pass, {sum(map(len, skipped.values()))} are skipped, " +
             ("one has another errno than it expects (`--doorbells auto`: [abi-differences.md](abi-differences.md)): "
              f"{DIFFERS.rpartition('.')[2]}." if rxe else "none fails."), "",
             "| skipped because | tests | which |", "| --- | --- | --- |"]
    lines += [f"| {reason} | {len(names)} | {' '.join(sorted(names))} |"
              for reason, names in sorted(skipped.items(), key=lambda i: -len(i[1]))]
    lines += ["", "| module | pass |", "| --- | --- |"]
    lines += [f"| {module} | {len(names)} |" for module, names in sorted(passed.items())]
    return "\n".join(lines) + "\n"


@pytest.fixture
def huge_pages():
    """Reserves huge pages if the machine is ours (CUSE)."""
    path = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
    if CUSE:
        path.write_text("16")
        assert int(path.read_text()) == 16
    yield
    if CUSE:
        path.write_text("0")


def test_pyverbs(device, huge_pages):
    unpack(PLACE)
    out = device.run("/usr/bin/python3", "-B", RUNNER, PLACE, seconds=1200).ok()
    results = [json.loads(line) for line in re.findall("^RESULT (.*)$", out, re.M)]
    print("the slowest:", sorted(((r[3], r[0]) for r in results), reverse=True)[:10])
    rxe = device.way == "rxe"
    failed = [r for r in results if r[1] == "failed"]
    assert [r[0] for r in failed] == ([DIFFERS] if rxe else []) and all("28 != 22" in r[2] for r in failed), failed
    assert not [r for r in results if r[1] == "skipped" and not why(r[0], r[2])], "a new reason to skip"
    # librdmacm's: all of them need an interface with the address of GID 0 (device/net).
    assert [r[1] for r in results if r[0].startswith("test_rdmacm.")] == ["passed"] * 10
    # The kernel's rxe passes 86.
    assert sum(r[1] == "passed" for r in results) >= (104 if rxe else 76)
    assert not CUSE or [r[1] for r in results if "odp_rc_huge" in r[0]] == ["passed"] * 2
    file = DOCS / ("pyverbs-rxe.md" if rxe else "pyverbs.md")
    if os.environ.get("UVERBSD_WRITE_DOCS"):
        file.write_text(table(results, rxe))
    assert file.read_text() == table(results, rxe), f"{file} is not current (UVERBSD_WRITE_DOCS=1 writes it)"
