# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl call` and contrib/python/uverbs.py on a device node: the kernel's rxe0 if this machine has it, else uverbsd's over CUSE.

tests/vm/inside runs this as root in the virtual machine, in the steps vm-rxe and vm-cuse.
"""
import errno
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build")).resolve()
UVERBSCTL = str(BUILD / "tools" / "uverbsctl")
KERNELS = os.path.exists("/sys/class/infiniband/rxe0")
STUCK = 300  # seconds: a limit for what is stuck, and not for what is slow
sys.path.insert(0, str(ROOT / "contrib" / "python"))
import uverbs  # noqa: E402


@pytest.fixture(scope="module")
def name(tmp_path_factory):
    """The name of the device. Starts a daemon unless the kernel has a device."""
    if KERNELS:
        yield "rxe0"
        return
    log = tmp_path_factory.mktemp("uverbsd") / "log"
    with open(log, "wb") as file, subprocess.Popen([BUILD / "src" / "uverbsd"], stderr=file) as daemon:
        try:
            end = time.monotonic() + STUCK
            while "uverbsd: ready:" not in log.read_text():
                assert daemon.poll() is None and time.monotonic() < end, log.read_text()
                time.sleep(0.02)
            yield "hfi1_0"
            daemon.send_signal(signal.SIGTERM)
            assert daemon.wait(STUCK) == 0, log.read_text()
        finally:
            daemon.kill()


@pytest.fixture
def dev(name):
    with uverbs.open(name) as device:
        yield device


def call(*words, script=None):
    return subprocess.run([UVERBSCTL, "call", *words], input=script, capture_output=True, text=True, timeout=STUCK)


def results(name, script):
    """The results of the script's calls, which all succeed."""
    done = call("--json", "-f", "-", name, script=script)
    assert done.returncode == 0, done.stdout + done.stderr
    return [o["results"] for o in map(json.loads, done.stdout.splitlines()) if o["method"]]


def fails(done, message):
    assert done.returncode == 1 and message in done.stderr, (done.returncode, done.stdout, done.stderr)


# ---- uverbsctl call ---------------------------------------------------------------------------------------------------

CAP = "max_send_wr=4,max_recv_wr=4,max_send_sge=1,max_recv_sge=1"
QUEUES = f"""
pd = PD ALLOC
cq = CQ CREATE --cqe 16
qp = QP CREATE --pd_handle $pd --send_cq_handle $cq --recv_cq_handle $cq --cap {CAP} --type UD
"""


def test_a_device_is_named_by_its_name_or_its_node_or_is_the_only_one(name):
    for words in [name], ["uverbs0"], ["/dev/infiniband/uverbs0"], []:
        assert call(*words, "PD", "ALLOC").stdout == "PD ALLOC pd_handle=0\n", words
    fails(call("mlx5_7", "PD", "ALLOC"), "no device 'mlx5_7'")


def test_a_method_and_a_command_tell_the_same(name):
    method, command, device = results(
        name, "DEVICE QUERY_PORT --port_num 1\nDEVICE CMD_QUERY_PORT --port_num 1\nDEVICE EX_QUERY_DEVICE")
    assert method["resp.state"] == command["state"] == "ACTIVE" and method["resp.gid_tbl_len"] == command["gid_tbl_len"] > 0
    assert device["phys_port_cnt"] == 1 and device["max_qp"] > 0


def test_a_script_makes_changes_and_destroys_by_the_names_that_it_saved(name):
    made = results(name, QUEUES + """
m = memory 8192
mr = MR CMD_REG_MR --pd_handle $pd --start $m --hca_va $m --length 8192 --access_flags LOCAL_WRITE|REMOTE_READ
channel = COMP_CHANNEL CREATE
other = CQ CREATE --cqe 16 --comp_channel $channel
srq = SRQ CMD_CREATE_SRQ --pd_handle $pd --max_wr 8 --max_sge 1
QP MODIFY --qp_handle $qp --attr_mask STATE|PKEY_INDEX|PORT|QKEY --qp_state INIT --port_num 1 --qkey 17
QP QUERY --qp_handle $qp --attr_mask STATE|QKEY
DEVICE INFO_HANDLES --object_id UVERBS_OBJECT_CQ
SRQ DESTROY --handle $srq
QP DESTROY --handle $qp
MR DESTROY --handle $mr
CQ DESTROY --handle $other
CQ DESTROY --handle $cq
PD DESTROY --handle $pd
DEVICE INFO_HANDLES --object_id UVERBS_OBJECT_CQ
""")
    assert made[1]["resp_cqe"] >= 16 and made[2]["resp_cap.max_send_wr"] >= 4 and made[4]["fd"] > 2
    assert made[8]["qp_state"] == "INIT" and made[8]["qkey"] == 17
    assert made[9]["total_handles"] == 2 and made[-1]["total_handles"] == 0


def test_an_error_has_its_errnos_name_and_ends_the_script(name):
    done = call("-f", "-", name, script=QUEUES + "PD DESTROY --handle $pd\nCQ DESTROY --handle $cq")
    fails(done, "line 5: PD DESTROY: EBUSY\n")
    assert len(done.stdout.splitlines()) == 3 and "line 6" not in done.stderr
    kept = call("--json", "--keep-going", "-f", "-", name,
                script="CQ CREATE --cqe 0\nCQ DESTROY --handle 77\nPD ALLOC\nPD DEALLOC --pd_handle 0")
    assert kept.returncode == 1
    assert [json.loads(line)["error"] for line in kept.stdout.splitlines()] == ["EINVAL", "ENOENT", None, None]


@pytest.mark.parametrize("words, message", [
    ("CQQ CREATE", "the device has no object `CQQ`; the nearest names are CQ, "),
    ("CQ CREATEX", "UVERBS_OBJECT_CQ has no method `CREATEX`; the nearest names are CREATE, "),
    ("CQ CREATE --cqee 1", "UVERBS_METHOD_CQ_CREATE has no attribute `cqee`; the nearest names are cqe, "),
    ("PD DEALLOC --pd_hande 1", "IB_USER_VERBS_CMD_DEALLOC_PD has no field `pd_hande`; the nearest names are pd_handle, "),
])
def test_a_wrong_name_suggests_the_nearest(name, words, message):
    fails(call(name, *words.split()), message)


def test_what_can_follow_is_listed(name):
    assert name in call("--list").stdout.split()
    assert {"CREATE", "DESTROY", "EX_CREATE"} <= set(call("--list", name, "CQ").stdout.split())
    assert {"--cqe", "--comp_channel"} <= set(call("--list", name, "CQ", "CREATE").stdout.split())


def test_methods_that_only_uverbsd_has_are_refused_by_the_kernel(name):
    """The kernel's devices do not tell their tree, so this build knows names that they lack."""
    for words in "TREE QUERY --first 0 --row_size 256", "MR REG --length 4096 --pd_handle 0":
        done = call(name, *words.split())
        assert ("EPROTONOSUPPORT" in done.stderr) == KERNELS and "no " not in done.stderr, done


# ---- the Python module ------------------------------------------------------------------------------------------------


def make_queues(dev):
    pd, cq = dev.PD.ALLOC_PD(), dev.CQ.CREATE(cqe=16)
    cap = {"max_send_wr": 4, "max_recv_wr": 4, "max_send_sge": 1, "max_recv_sge": 1}
    return pd, cq, dev.QP.CREATE(pd_handle=pd, send_cq_handle=cq, recv_cq_handle=cq, cap=cap, type="UD")


def test_python_opens_the_only_device(name):
    assert uverbs.devices() == {name: "/dev/infiniband/uverbs0"}
    with uverbs.open() as device:
        assert device.path == "/dev/infiniband/uverbs0" and device.tells_tree != KERNELS
        assert isinstance(device.PD.ALLOC_PD().pd_handle, uverbs.Handle)


def test_python_makes_changes_queries_and_destroys(dev):
    pd, cq, qp = make_queues(dev)
    assert cq.resp_cqe >= 16 and qp.resp_cap.max_send_wr >= 4
    buffer = bytearray(8192)
    mr = dev.MR.CMD_REG_MR(pd_handle=pd, start=buffer, hca_va=buffer, length=len(buffer), access_flags="LOCAL_WRITE|REMOTE_READ")
    dev.QP.MODIFY(qp_handle=qp, attr_mask="STATE|PKEY_INDEX|PORT|QKEY", qp_state="INIT", port_num=1, qkey=17)
    query = dev.write.QUERY_QP(qp_handle=qp, attr_mask="STATE|QKEY")
    assert (query.qp_state, query.qkey, query.port_num) == ("INIT", 17, 1)
    assert dev.DEVICE.INFO_HANDLES(object_id=dev._objects["MR"].id).total_handles == 1
    for made in qp, mr, cq, pd:
        made.handle.destroy()
    assert dev.DEVICE.INFO_HANDLES(object_id=dev._objects["CQ"].id).total_handles == 0


def test_python_queries_by_method_and_by_command(dev):
    method, command = dev.DEVICE.QUERY_PORT(port_num=1).resp, dev.write.QUERY_PORT(port_num=1)
    assert (method.state, method.lid, method.gid_tbl_len) == (command.state, command.lid, command.gid_tbl_len)
    assert method.state == "ACTIVE" and dev.write.EX_QUERY_DEVICE().max_cqe == dev.write.QUERY_DEVICE().max_cqe
    gid = dev.DEVICE.QUERY_GID_ENTRY(port=1, gid_index=0).resp_entry
    assert len(gid.gid) == 16 and gid.port_num == 1


def test_python_makes_a_cq_with_a_channel(dev):
    channel = dev.COMP_CHANNEL.CREATE_COMP_CHANNEL()
    os.fstat(int(channel.fd))
    assert dev.CQ.CREATE(cqe=16, comp_channel=channel).resp_cqe >= 16


def test_an_attribute_that_no_method_has_is_ignored(dev, monkeypatch):
    """`uverbsctl tree --format syzlang` puts it in the place of an optional one."""
    send = uverbs.Message.send

    def with_one_more(self, *args):
        self.add(0xfff, mandatory=False)
        return send(self, *args)[:-1]
    dev.DEVICE.GET_CONTEXT()
    monkeypatch.setattr(uverbs.Message, "send", with_one_more)
    assert dev.CQ.CREATE(cqe=16).resp_cqe >= 16


def test_python_raises_the_devices_errno(dev):
    pd, cq, _ = make_queues(dev)
    for err, text, refused in [(errno.EBUSY, r"PD.DESTROY\(handle=<PD 0>\)", lambda: dev.PD.DESTROY(handle=pd)),
                               (errno.EINVAL, r"CQ.CREATE\(cqe=0\)", lambda: dev.CQ.CREATE(cqe=0)),
                               (errno.ENOENT, r"CQ.DESTROY\(handle=77\)", lambda: dev.CQ.DESTROY(handle=77)),
                               (errno.ENOENT, r"QP.MODIFY\(qp_handle=77", lambda: dev.QP.MODIFY(qp_handle=77, attr_mask=1))]:
        with pytest.raises(OSError, match=text) as raised:
            refused()
        assert raised.value.errno == err, text
    for error, text, refused in [(AttributeError, "has no object CQQ: there are .*CQ", lambda: dev.CQQ),
                                 (AttributeError, "CQ has no method MAKE: there are .*CREATE", lambda: dev.CQ.MAKE),
                                 (TypeError, "CQ.CREATE has no attribute cqee: there are .*cqe,", lambda: dev.CQ.CREATE(cqee=1)),
                                 (TypeError, "a PD is wanted, not <CQ 1>", lambda: dev.PD.DESTROY(handle=cq))]:
        with pytest.raises(error, match=text):
            refused()
