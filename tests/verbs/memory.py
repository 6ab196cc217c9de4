#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
memory.py DEVICE WHAT...: what becomes of a registration when its memory is forked, unmapped, protected and so on. Prints a JSON object
for each WHAT. A peer in the same process writes to the memory by RDMA.
"""
import ctypes
import json
import os
import re
import resource
import struct
import sys

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import (IBV_ACCESS_HUGETLB, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE, IBV_MTU_1024,
                           IBV_QPT_RC, IBV_WR_RDMA_WRITE)
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

SIZE, GID = 64 << 10, 1
ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
PROT_READ, PROT_WRITE, MAP_PRIVATE, MAP_FIXED, MAP_ANONYMOUS = 1, 2, 2, 0x10, 0x20
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def pages(size=SIZE, prot=PROT_READ | PROT_WRITE, at=None):
    return libc.mmap(at, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | (MAP_FIXED if at else 0), -1, 0)


def fill(addr, byte, size=SIZE):
    ctypes.memset(addr, byte, size)


def has(addr, byte, size=SIZE):
    return ctypes.string_at(addr, size) == bytes([byte]) * size


def pinned():
    """Bytes that the kernel has charged to this process."""
    return int(re.search(r"VmPin:\s*(\d+)", open("/proc/self/status", encoding="ascii").read())[1]) << 10


class Peers:
    """A context with two connected QPs; the second one's peer writes from `source`."""

    def __init__(self, device):
        self.context = Context(name=device)
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 16)
        self.source = pages()
        self.source_mr = MR(self.pd, SIZE, IBV_ACCESS_LOCAL_WRITE, address=self.source)
        self.connect()

    def connect(self):
        """Makes the QPs. Again after an error: instead of those that have it."""
        init = QPInitAttr(qp_type=IBV_QPT_RC, scq=self.cq, rcq=self.cq,
                          cap=QPCap(max_send_wr=4, max_recv_wr=4, max_send_sge=1, max_recv_sge=1))
        self.qps = [QP(self.pd, init), QP(self.pd, init)]
        gid = self.context.query_gid(1, GID)
        for qp, other in zip(self.qps, reversed(self.qps)):
            attr = QPAttr(port_num=1)
            attr.qp_access_flags = ACCESS
            attr.dest_qp_num = other.qp_num
            attr.path_mtu = IBV_MTU_1024
            attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
            attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
            attr.ah_attr = AHAttr(port_num=1, is_global=1, gr=GlobalRoute(dgid=gid, sgid_index=GID))
            qp.to_rts(attr)

    def write(self, byte, addr, rkey):
        """Writes SIZE bytes by RDMA. Returns the completion's status."""
        fill(self.source, byte)
        wr = SendWR(num_sge=1, sg=[SGE(self.source, SIZE, self.source_mr.lkey)], opcode=IBV_WR_RDMA_WRITE)
        wr.set_wr_rdma(rkey, addr)
        self.qps[0].post_send(wr)
        while True:
            n, done = self.cq.poll(1)
            if n:
                return done[0].status


def register(peers, addr, size=SIZE, access=ACCESS):
    """Returns the region, or the errno."""
    try:
        return MR(peers.pd, size, access, address=addr)
    except PyverbsRDMAError as error:
        return error.error_code


def write(peers):
    addr, before = pages(), pinned()
    mr = register(peers, addr)
    during = pinned()
    out = dict(status=peers.write(7, addr, mr.rkey), seen=has(addr, 7), pinned=during - before)
    mr.close()
    return dict(out, left=pinned() - before)


def fork(peers):
    addr = pages()
    fill(addr, 1)
    mr = register(peers, addr)
    go, child = os.pipe(), os.fork()
    if not child:
        os.read(go[0], 1)
        os._exit(0 if has(addr, 1) else 1)
    status = peers.write(2, addr, mr.rkey)
    fill(addr + 4096, 3, 4096)
    again = peers.write(4, addr, mr.rkey)
    os.write(go[1], b"x")
    return dict(status=[status, again], parent=has(addr, 4), child_keeps_its_own=os.waitpid(child, 0)[1] == 0)


def munmap(peers):
    addr, before = pages(), pinned()
    mr = register(peers, addr)
    libc.munmap(addr, SIZE)
    pages(at=addr)
    return dict(status=peers.write(5, addr, mr.rkey), new_memory_is_untouched=has(addr, 0), pinned=pinned() - before)


def mprotect(peers):
    addr = pages()
    fill(addr, 1)
    mr = register(peers, addr)
    libc.mprotect(addr, SIZE, PROT_READ)
    return dict(status=peers.write(6, addr, mr.rkey), seen=has(addr, 6))


def refused(peers):
    whole = pages(2 * SIZE)
    libc.munmap(whole + SIZE, SIZE)
    return dict(readonly=register(peers, pages(prot=PROT_READ)), unmapped=register(peers, whole, 2 * SIZE),
                nothing=register(peers, 0x10000))


def memlock(peers):
    limit = 256 << 10
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))
    rest = limit - pinned()
    above, rest_of_it = register(peers, pages(rest + 4096), rest + 4096), register(peers, pages(rest), rest)
    return dict(above=above, rest_of_it=isinstance(rest_of_it, MR), one_more=register(peers, pages(4096), 4096))


CHANGE_TRANSLATION, CHANGE_PD, CHANGE_ACCESS = 1, 2, 4


def change(mr, flags, addr=0, pd=None, access=0):
    """REREG_MR, the command: providers of this libibverbs have no function for it. Returns the errno, or 0."""
    resp = ctypes.create_string_buffer(8)
    core = struct.pack("=QIIQQQII", ctypes.addressof(resp), mr.handle, flags, addr, SIZE if addr else 0, addr,
                       pd.handle if pd else 0, access)
    try:
        os.write(mr.cmd_fd, struct.pack("=IHH", 11, (8 + len(core)) // 4, len(resp) // 4) + core)
    except OSError as error:
        return error.errno
    mr.current_rkey = struct.unpack("=II", resp)[1]
    return 0


class Changing(MR):
    """A region whose rights, PD and memory change."""
    def __init__(self, peers, addr):
        super().__init__(peers.pd, SIZE, ACCESS, address=addr)
        self.cmd_fd, self.current_rkey = peers.context.cmd_fd, self.rkey


def rereg(peers):
    addr, other, before = pages(), PD(peers.context), pinned()
    mr = Changing(peers, addr)
    local = IBV_ACCESS_LOCAL_WRITE
    steps = [dict(flags=CHANGE_ACCESS, access=local), dict(flags=CHANGE_ACCESS, access=ACCESS), dict(flags=CHANGE_PD, pd=other),
             dict(flags=CHANGE_PD | CHANGE_ACCESS, pd=peers.pd, access=ACCESS), dict(flags=CHANGE_TRANSLATION, addr=pages())]
    out = []
    for byte, step in enumerate(steps, 1):
        error = change(mr, **step)
        status = peers.write(byte, addr, mr.current_rkey)
        out.append([error, status, has(addr, byte)])
        peers.connect()
    other.close()
    held = pinned() - before
    mr.close()
    return dict(steps=out, pinned=held, left=pinned() - before)


def rereg_refused(peers):
    """Rights that the adapter refuses, with a PD that it would take. Not for rxe0 itself: rxe of Linux 6.12 mixes up the two PDs."""
    addr, other = pages(), PD(peers.context)
    mr = Changing(peers, addr)
    error = change(mr, CHANGE_PD | CHANGE_ACCESS, pd=other, access=IBV_ACCESS_HUGETLB)
    out = dict(error=error, status=peers.write(1, addr, mr.current_rkey), seen=has(addr, 1))
    other.close()
    mr.close()
    return out


def execute(peers):
    """exec closes the device, so the registration ends; the new program tells what is pinned."""
    register(peers, pages())
    os.execv(sys.executable, [sys.executable, __file__, "-", "after_exec"])


def after_exec(peers):
    del peers
    return dict(pinned=pinned())


if __name__ == "__main__":
    for name in sys.argv[2:]:
        print(json.dumps({name: globals()[name](None if sys.argv[1] == "-" else Peers(sys.argv[1]))}), flush=True)
