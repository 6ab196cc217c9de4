# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Other programs of docs/programs.md, with its commands: gloo, qperf, libfabric, valgrind, sanitizers."""
import os
import re
import shutil
import tempfile

import pytest

from conftest import CLIENTS, CUSE, LONG, PLACE, WAYS, default_device, free_port, documented_command

by_lid = pytest.mark.parametrize("lasting_device", ["ioctl"], indirect=True)
QPERF = documented_command("qperf localhost")
MEASURED = [a for a in QPERF if "_" in a]
if LONG:
    MEASURED += ["rc_bi_bw", "uc_bi_bw", "ud_bi_bw", "rc_rdma_read_bw", "rc_rdma_read_lat", "rc_rdma_write_bw", "rc_rdma_write_lat",
                 "rc_rdma_write_poll_lat", "uc_rdma_write_bw", "uc_rdma_write_lat", "uc_rdma_write_poll_lat", "rc_compare_swap_mr",
                 "rc_fetch_add_mr", "ver_rc_compare_swap", "ver_rc_fetch_add"]
else:
    MEASURED = ["rc_bw", "ud_lat"]  # each takes a second


@default_device
def test_gloo_reduces_and_broadcasts_every_value_between_four_processes(device):
    folder = tempfile.mkdtemp(dir=PLACE)
    os.chmod(folder, 0o777)
    for process in [device.start(CLIENTS["gloo"], device.name, rank, 4, folder, locks=True) for rank in range(4)]:
        said = process.wait().ok()
        assert re.search(rf"^ibverbs, .*dev={device.name}.*: \d{{6,}} values compared, 0 wrong$", said, re.M), said


# Without -cp 1 (polling) the alarm at the end of a test can interrupt the call that requests the next completion event. qperf then
# does not acknowledge the event that it has, and waits for that forever. docs/abi-differences.md: EINTR.
@by_lid
def test_qperf_measures(device):
    port = free_port()
    options = [a for a in QPERF[2:] if "_" not in a]
    # -to 60: an emulated machine needs longer than 5 s for what comes before a test.
    client = ["qperf", "localhost", "-lp", port, *options, "-t", 1, "-to", 60, *MEASURED, "quit"]
    said = device.server_and_client(["qperf", "-lp", port], client, port, locks=True)[1]
    assert re.findall(r"^(?:client: )?(\w+):$", said, re.M) == [*MEASURED, "quit"], said
    assert len(re.findall(r"(?:bw|latency|msg_rate) += ", said)) >= len(MEASURED) - 2, said


@default_device
def test_libfabric_compares_every_byte(device):
    port = free_port()
    argv = [*documented_command("fi_pingpong"), "-c"]
    sizes = [] if LONG and not CUSE else ["-S", 4096]
    for said in device.server_and_client([*argv, *sizes, "-B", port], [*argv, *sizes, "-P", port, "localhost"], port, locks=True):
        assert re.search(r"^4k +10 +=10 ", said, re.M), said


if LONG:
    @default_device
    def test_valgrind_finds_nothing(device):
        assert shutil.which("valgrind")
        port = free_port()
        valgrind, program, *gid = documented_command("valgrind ibv_rc_pingpong")
        argv = [valgrind, "--error-exitcode=9", program, *(gid if device.way == "rxe" else []), "-n", 50, "-p", port]
        for said in device.server_and_client(argv, [*argv, "localhost"], port):
            assert "ERROR SUMMARY: 0 errors" in said and "50 iters in" in said, said


@pytest.mark.parametrize("lasting_device", WAYS if LONG else ["rxe"], indirect=True)
@pytest.mark.parametrize("sanitizer", ["asan", "tsan"])
def test_sanitizer_finds_nothing(device, sanitizer):
    said = device.run(CLIENTS[f"lists-{sanitizer}"], 1, 5).ok()
    assert "posted" in said and "Sanitizer" not in said and "runtime error" not in said, said
