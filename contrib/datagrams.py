#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""datagrams.py [N [uc]]: sends N numbered messages from one QP to another, and prints those that arrive, in their order.

Both QPs are UD, or UC, on the first device. Needs pyverbs (Debian: python3-pyverbs).
"""
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

GRH, SIZE, QKEY, GRACE = 40, 64, 0x1234, 5


def make_qp(pd, cqs, num, qp_type):
    init = QPInitAttr(qp_type=qp_type, scq=cqs[0], rcq=cqs[1], cap=QPCap(max_send_wr=num, max_recv_wr=num), sq_sig_all=1)
    return QP(pd, init)


def address_attr(context):
    gid = context.query_gid(1, 0)
    port = context.query_port(1)
    return AHAttr(port_num=1, is_global=port.link_layer == e.IBV_LINK_LAYER_ETHERNET, dlid=port.lid,
                  gr=GlobalRoute(dgid=gid, sgid_index=0))


def connect(qp, peer, attr):
    qp_attr = QPAttr(port_num=1)
    if qp.qp_type == e.IBV_QPT_UD:
        qp_attr.qkey = QKEY
        qp.to_rts(qp_attr)
        return
    qp_attr.path_mtu, qp_attr.dest_qp_num, qp_attr.ah_attr = e.IBV_MTU_1024, peer.qp_num, attr
    qp.to_rts(qp_attr)


def wait(cq, num, seconds):
    """Polls until num completions have come, or none for so long."""
    found, end = [], time.monotonic() + seconds
    while len(found) < num and time.monotonic() < end:
        count, more = cq.poll(num)
        if count:
            found, end = found + more, time.monotonic() + seconds
    return found


def main(num=6, kind="ud"):
    context = Context(name=get_device_list()[0].name.decode())
    pd, cqs = PD(context), [CQ(context, num), CQ(context, num)]
    sender, receiver = (make_qp(pd, cqs, num, e.IBV_QPT_UC if kind == "uc" else e.IBV_QPT_UD) for _ in range(2))
    mr = MR(pd, (num + 1) * (GRH + SIZE), e.IBV_ACCESS_LOCAL_WRITE)
    attr = address_attr(context)
    connect(sender, receiver, attr)
    connect(receiver, sender, attr)
    for i in range(num):
        receiver.post_recv(RecvWR(wr_id=i, num_sge=1, sg=[SGE(mr.buf + (i + 1) * (GRH + SIZE), GRH + SIZE, mr.lkey)]))
    for i in range(num):
        mr.write(f"{i + 1:{SIZE}}", SIZE)
        wr = SendWR(num_sge=1, sg=[SGE(mr.buf, SIZE, mr.lkey)])
        if kind == "ud":
            wr.set_wr_ud(AH(pd, attr=attr), receiver.qp_num, QKEY)
        sender.post_send(wr)
        status = [wc.status for wc in wait(cqs[0], 1, 60)]
        if status != [e.IBV_WC_SUCCESS]:
            sys.exit(f"message {i + 1}: send completions {status}")
    header = GRH if kind == "ud" else 0
    received = [mr.read(SIZE, (wc.wr_id + 1) * (GRH + SIZE) + header).decode().strip() for wc in wait(cqs[1], num, GRACE)]
    print("received", *received)


if __name__ == "__main__":
    main(*[int(sys.argv[1])] if len(sys.argv) > 1 else [], *sys.argv[2:3])
