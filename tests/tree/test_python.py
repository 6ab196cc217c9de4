# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""contrib/python/uverbs.py on devices of `uverbsctl run`.

A test marked on_device() runs in a process of its own: there this file is the program, and the test's name is its argument.
"""
import array
import ctypes
import errno
import mmap
import os
import pathlib
import select
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULE = ROOT / "contrib" / "python"
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build")).resolve()
UVERBSCTL = str(BUILD / "tools" / "uverbsctl")
sys.path.insert(0, str(MODULE))
import uverbs  # noqa: E402

RXE, HFI, NULL, WRITE = ["--persona", "rxe"], ["--persona", "hfi1"], ["--backend", "null"], ["--persona", "hfi1", "--abi", "write"]


def under_run(options, *argv):
    env = {**os.environ, "PYTHONPATH": str(MODULE)}
    return subprocess.run([UVERBSCTL, "run", *options, "--", "/usr/bin/python3", *argv], env=env, capture_output=True, text=True,
                          timeout=300)


def on_device(*devices):
    """The test gets an open device; it runs once on each kind."""
    def mark(body):
        @pytest.mark.parametrize("options", devices, ids=" ".join)
        def test(options):
            done = under_run(options, __file__, body.__name__)
            assert done.returncode == 0, done.stderr
        test.body, test.__name__ = body, body.__name__
        return test
    return mark


both = on_device(RXE, HFI)


def fails(err, text=""):
    return pytest.raises(OSError, match=rf"^\[Errno {err}\] .*{text}")


def make_qp(dev, **more):
    pd, cq = dev.PD.ALLOC_PD(), dev.CQ.CREATE(cqe=16)
    cap = {"max_send_wr": 4, "max_recv_wr": 4, "max_send_sge": 1, "max_recv_sge": 1}
    return pd, cq, dev.QP.CREATE(pd_handle=pd, send_cq_handle=cq, recv_cq_handle=cq, cap=cap, type="UD", **more)


# ---- methods and commands ---------------------------------------------------------------------------------------------


@both
def test_a_device_is_queried_by_method_and_by_command(dev):
    by_method, by_command = dev.DEVICE.QUERY_PORT(port_num=1).resp, dev.write.QUERY_PORT(port_num=1)
    assert {k: by_method[k] for k in by_command} == by_command and by_method.state == "ACTIVE" and by_command.state == 4
    assert str(by_method.port_cap_flags) == "CM_SUP" == by_method.port_cap_flags
    assert dev.write.EX_QUERY_DEVICE().phys_port_cnt == dev.write.QUERY_DEVICE().phys_port_cnt == 1


@both
def test_objects_are_created_modified_queried_and_destroyed(dev):
    pd, cq, qp = make_qp(dev)
    assert (pd.handle, cq.handle, qp.handle) == (0, 1, 2) and qp.resp_cap.max_send_wr >= 4 and qp.resp_qp_num
    dev.QP.MODIFY(qp_handle=qp, attr_mask="STATE|PKEY_INDEX|PORT|QKEY", qp_state="INIT", port_num=1, qkey=17)
    query = dev.write.QUERY_QP(qp_handle=qp.handle, attr_mask="STATE")
    assert (query.qp_state, query.qkey, query.port_num) == ("INIT", 17, 1) and query.dest.dgid == bytes(16)
    dev.QP.EX_MODIFY(qp_handle=qp, attr_mask=uverbs.Value(1, query.qp_state.enum), qp_state=0)
    assert dev.QP.QUERY(qp_handle=qp, attr_mask=1).qp_state == "RESET"
    for obj, made in (dev.QP, qp), (dev.CQ, cq), (dev.PD, pd):
        obj.DESTROY(handle=made)
    assert dev.DEVICE.INFO_HANDLES(object_id=3).total_handles == 0


@both
def test_both_fronts_make_the_same_objects(dev):
    pd, cq = dev.write.ALLOC_PD(), dev.write.CREATE_CQ(cqe=16)
    qp = dev.write.CREATE_QP(pd_handle=pd, send_cq_handle=cq, recv_cq_handle=cq, max_send_wr=4, max_send_sge=1, qp_type="UD")
    dev.QP.DESTROY(handle=qp)
    dev.write.DESTROY_CQ(cq_handle=cq)
    pd.handle.destroy()
    with fails(errno.ENOENT, r"DEALLOC\(pd_handle=0\)"):
        dev.write.DEALLOC_PD(pd_handle=0)


@on_device(HFI)
def test_bytes_and_the_drivers_part_can_be_given(dev):
    dev.write.ALLOC_PD()
    dev.write.DEALLOC_PD(in_=b"\0\0\0\0")
    cap = array.array("I", [4, 4, 1, 1, 0])
    pd, cq = dev.write.ALLOC_PD(uhw_out=16), dev.CQ.CREATE(cqe=16)
    for value in cap, bytes(cap), bytearray(cap), (ctypes.c_uint32 * 5)(*cap), list(cap):
        with dev.QP.CREATE(pd_handle=pd, send_cq_handle=cq, recv_cq_handle=cq, type=4, cap=value) as qp:
            assert qp.resp_cap.max_send_wr == 4


@both
def test_memory_is_registered_and_kept(dev):
    pd = dev.PD.ALLOC_PD()
    with mmap.mmap(-1, 8192) as pages:
        for buffer in bytearray(8192), (ctypes.c_char * 8192)(), pages:
            with dev.MR.REG(pd_handle=pd, addr=buffer, iova=buffer, length=8192, access_flags="LOCAL_WRITE") as mr:
                made = dev.MR.QUERY(handle=mr)
                assert (made.resp_length, made.resp_lkey, made.resp_iova) == (8192, mr.resp_lkey, uverbs.address(buffer))
            del mr, buffer
    buffer = ctypes.create_string_buffer(64)
    assert dev.DEVICE.QUERY_PORT(port_num=1, resp=buffer).resp.state == "ACTIVE" and any(buffer.raw)


@both
def test_a_descriptor_is_an_object_too(dev):
    channel = dev.COMP_CHANNEL.CREATE()
    assert channel.handle.object.type == "FD" and os.fstat(channel.handle.fileno())
    dev.CQ.CREATE(cqe=16, comp_channel=channel)
    assert not select.select([channel.handle], [], [], 0)[0]
    channel.handle.destroy()
    with pytest.raises(OSError):
        os.fstat(channel.fd.number or -1)


@on_device(NULL)
def test_lists_and_elements_are_passed(dev):
    pd, cq = dev.PD.ALLOC_PD(), dev.CQ.CREATE(cqe=16)
    wq = dev.WQ.EX_CREATE(pd_handle=pd, cq_handle=cq, wq_type="RQ", max_wr=4, max_sge=1)
    dev.WQ.EX_MODIFY(wq_handle=wq, attr_mask="STATE|CURR_STATE", wq_state="RDY")
    assert dev.RWQ_IND_TBL.EX_CREATE(wq_handles=[wq, wq]).handle.object.short == "RWQ_IND_TBL"
    qp = dev.QP.CREATE(pd_handle=pd, send_cq_handle=cq, recv_cq_handle=cq, type="RAW_PACKET", cap={"max_send_wr": 1})
    flow = dev.FLOW.EX_CREATE(qp_handle=qp, port=1, specs=[("ETH", {"val__ether_type": 0x800, "mask": {"ether_type": 0xffff}}),
                                                           ("ACTION_DROP", {})])
    dev.FLOW.DESTROY(handle=flow)
    dev.DMAH.ALLOC(cpu_id=1, tph_mem_type="TPH_MEM_TYPE_PM", ph=3)
    dev.DMAH.ALLOC(cpu_id=1, tph_mem_type=(1, b""), ph=3)


# ---- errors -----------------------------------------------------------------------------------------------------------


@both
def test_an_object_in_use_is_ebusy(dev):
    pd, buffer = dev.PD.ALLOC_PD(), bytearray(4096)
    mr = dev.MR.REG(pd_handle=pd, addr=buffer, iova=buffer, length=4096, access_flags=1)
    with fails(errno.EBUSY, r"PD.DESTROY\(handle=<PD 0>\)"):
        dev.PD.DESTROY(handle=pd)
    with fails(errno.EBUSY):
        pd.handle.destroy()
    mr.handle.destroy()
    pd.handle.destroy()
    pd.handle.destroy()  # does nothing
    with pytest.raises(ValueError, match="the PD is destroyed"):
        dev.PD.DESTROY(handle=pd)


@both
def test_an_error_names_the_method_and_the_attribute(dev):
    pd, cq, _ = make_qp(dev)
    with fails(errno.EINVAL, r"CQ.CREATE\(cqe=0, user_handle=7\)"):
        dev.CQ.CREATE(cqe=0, user_handle=7)
    with fails(errno.EINVAL, r"QP.CREATE\(.*; cap has 3 bytes, and the device wants 20$"):
        dev.QP.CREATE(pd_handle=pd, send_cq_handle=cq, recv_cq_handle=cq, cap=b"123")
    with fails(errno.EINVAL, "; handle is mandatory$"):
        dev.CQ.DESTROY(handle=None)
    with fails(errno.ENOENT, r"CQ.DESTROY\(handle=77\)"):
        dev.CQ.DESTROY(handle=77)
    with fails(errno.ENOENT, r"QP.MODIFY\(qp_handle=77"):
        dev.QP.MODIFY(qp_handle=77, attr_mask=1)


@both
def test_a_value_that_cannot_be_sent_makes_no_call(dev):
    pd, cq, qp = make_qp(dev)
    for error, text, call in [
            (TypeError, "CQ.CREATE: cqe: a number is wanted, not str", lambda: dev.CQ.CREATE(cqe="many")),
            (TypeError, "CQ.CREATE has no attribute cqee: there are .*cqe,", lambda: dev.CQ.CREATE(cqee=1)),
            (TypeError, "cqe is given twice", lambda: dev.CQ.CREATE(cqe=1, CREATE_CQ_CQE=2)),
            (ValueError, "cqe: 4294967296 does not fit into 4 bytes", lambda: dev.CQ.CREATE(cqe=1 << 32)),
            (TypeError, "handle: a PD is wanted, not <CQ 1>", lambda: dev.PD.DESTROY(handle=cq)),
            (TypeError, "handle is missing", dev.PD.DESTROY),
            (TypeError, "cap has no field max_wr", lambda: dev.QP.CREATE(pd_handle=pd, cap={"max_wr": 1})),
            (TypeError, "type: a number is wanted", lambda: dev.QP.CREATE(pd_handle=pd, cap=b"", type=1.5)),
            (ValueError, "there is no 'RCC': it is one of RC, UC", lambda: dev.QP.CREATE(pd_handle=pd, cap=b"", type="RCC")),
            (ValueError, "QP.MODIFY.qp_state: there is no 'READY'", lambda: dev.QP.MODIFY(qp_handle=qp, qp_state="READY")),
            (TypeError, "QP.MODIFY has several fields dlid", lambda: dev.QP.MODIFY(qp_handle=qp, dlid=1)),
            (ValueError, "17 bytes are given", lambda: dev.AH.CREATE(pd_handle=pd, dgid=bytes(17))),
            (TypeError, "bytes are wanted", lambda: dev.PD.ALLOC_PD(uhw_in=1)),
            (AttributeError, "CQ has no method MAKE: there are .*CREATE", lambda: dev.CQ.MAKE),
            (AttributeError, "has no object CQQ: there are .*CQ", lambda: dev.CQQ),
            (AttributeError, "no field x: there are", lambda: cq.x)]:
        with pytest.raises(error, match=text):
            call()


@both
def test_a_context_manager_closes(dev):
    pd = dev.PD.ALLOC_PD()
    with pd, dev.CQ.CREATE(cqe=16) as cq:
        assert dev.DEVICE.INFO_HANDLES(object_id=3).total_handles == 1 and int(cq.handle) == 1
    assert dev.DEVICE.INFO_HANDLES(object_id=3).total_handles == 0
    with dev:
        fd = dev.fileno()
    with pytest.raises(OSError):
        os.fstat(fd)


# ---- trees ------------------------------------------------------------------------------------------------------------


@both
def test_the_kernels_names_are_stored_for_devices_that_do_not_tell_their_tree(dev):
    assert dev.tells_tree
    told = {o: {r.name for r in row.children} for o, row in dev._objects.items() if row.id < 0x1000}
    send = uverbs.Message.send

    def refuse(self, fd, driver, obj, method):
        if obj == uverbs._TREE_OBJECT and driver == dev.driver_id:
            raise OSError(errno.EPROTONOSUPPORT, "no")
        return send(self, fd, driver, obj, method)
    uverbs.Message.send = refuse
    with uverbs.open() as kernels:
        assert not kernels.tells_tree and kernels.driver_id == dev.driver_id
        for o, names in told.items():
            stored = {r.name: r for r in kernels._objects[o].children}
            assert {n for n in names if not n.startswith("UVERBSD_")} <= set(stored), o
        objects_are_made = make_qp(kernels)
        assert objects_are_made[2].handle == 2


@on_device([*HFI, "--ucaps", "uverbsd_port_state", "--ucap", "uverbsd_port_state"])
def test_a_method_of_the_drivers_namespace_needs_no_change_here(dev):
    with pytest.raises(AttributeError):
        dev.PORT
    fd = os.open("/dev/infiniband/uverbsd_port_state", os.O_RDONLY)
    dev.DEVICE.GET_CONTEXT(fd_arr=[fd])
    dev.learn()
    dev.PORT.SET_STATE(port=1, up=0)
    assert dev.DEVICE.QUERY_PORT(port_num=1).resp.state == "DOWN"
    with fails(errno.EINVAL, r"PORT.SET_STATE\(port=9, up=0\)"):
        dev.PORT.SET_STATE(port=9, up=0)


@both
def test_pyverbs_says_the_same(dev):
    import pyverbs.device
    name = next(iter(uverbs.devices()))
    with pyverbs.device.Context(name=name) as ctx:
        port, mine = ctx.query_port(1), dev.DEVICE.QUERY_PORT(port_num=1).resp
        device, ours = ctx.query_device(), dev.write.EX_QUERY_DEVICE()
        assert (port.state, port.max_mtu, port.lid, port.gid_tbl_len, port.link_layer) == (
            mine.state, mine.max_mtu, mine.lid, mine.gid_tbl_len, mine.link_layer)
        assert (device.max_qp, device.max_cqe, device.max_mr_size, device.vendor_id) == (
            ours.max_qp, ours.max_cqe, ours.max_mr_size, ours.vendor_id)
        gid = dev.DEVICE.QUERY_GID_ENTRY(port=1, gid_index=0).resp_entry
        assert ctx.query_gid(1, 0).gid.replace(":", "") == gid.gid.hex()


@on_device(HFI)
def test_a_poll_has_room_for_each_completion_that_it_asks_for(dev):
    cq = dev.CQ.CREATE(cqe=16)
    assert dev.CQ.POLL_CQ(cq_handle=cq, ne=1024).count == 0
    for request in {"ne": 1025}, {"in_": bytes(12) + (1025).to_bytes(4, sys.byteorder)}:
        with pytest.raises(ValueError, match="ne: 1025 is above 1024"):
            dev.CQ.POLL_CQ(**({"cq_handle": cq} if "ne" in request else {}), **request)


@on_device(HFI)
def test_open_qp_returns_a_qp(dev):
    xrcd = dev.XRCD.OPEN_XRCD(fd=-1, oflags=os.O_CREAT)
    qp = dev.QP.CREATE_QP(pd_handle=xrcd, qp_type="XRC_TGT")
    opened = dev.XRCD.OPEN_QP(pd_handle=xrcd, qpn=qp.qpn, qp_type="XRC_TGT")
    assert (qp.handle.object.short, opened.handle.object.short, opened.qpn) == ("QP", "QP", qp.qpn)
    dev.QP.DESTROY(handle=opened)
    dev.QP.DESTROY(handle=qp)


def test_a_device_is_named_or_the_only_one():
    program = "import uverbs\nfor n in 'rxe0', 'uverbs0', '/dev/infiniband/uverbs0', None: uverbs.open(n).PD.ALLOC_PD()\n"
    assert under_run(RXE, "-c", program).returncode == 0
    done = under_run([*RXE, "--devices", "2"], "-c", program)
    assert "there are several devices: rxe0, rxe1" in done.stderr
    assert "there is no device x: there are rxe0" in under_run(RXE, "-c", "import uverbs; uverbs.open('x')").stderr
    assert "it has no ioctl" in under_run(WRITE, "-c", "import uverbs; uverbs.open()").stderr


@pytest.mark.parametrize("text, whole", [
    ("192.0.2.1:7", "192.0.2.1:7"), ("192.0.2.1", "192.0.2.1:0"),
    ("[2001:db8::1]:7", "[2001:db8::1]:7"), ("2001:db8::1", "[2001:db8::1]:0"),
    ("ib:fe80::1", "ib:fe80::1/0x0/0xffffffffffffffff"), ("ib:fe80::1/0x1060007", "ib:fe80::1/0x1060007/0xffffffffffffffff"),
    ("ib:fe80::1/0x1060000/0xffffffffffff0000", "ib:fe80::1/0x1060000/0xffffffffffff0000")])
def test_a_socket_address_reads_as_it_was_written(text, whole):
    code = f"import uverbs_schema as s; print(s.sockaddr_text(s.sockaddr({text!r})))"
    done = subprocess.run(["/usr/bin/python3", "-c", code], cwd=MODULE, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.strip() == whole


def test_the_stored_names_are_those_of_this_build():
    """`ninja -C BUILD python-table` writes them."""
    made = subprocess.run(["/usr/bin/python3", MODULE / "stored.py", UVERBSCTL], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert made == (MODULE / "uverbs.json").read_text()


def test_the_examples_of_the_page_run_as_they_are():
    done = under_run(HFI, str(pathlib.Path(__file__).with_name("run_python.py")), str(ROOT / "docs" / "python.md"))
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    globals()[sys.argv[1]].body(uverbs.open())
