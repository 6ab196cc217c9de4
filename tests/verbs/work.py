#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
work.py DEVICE: makes all it needs, registers memory, sends itself messages and destroys everything, again and again. Says "begun" after
the first round. Ends when a call fails.
"""
import sys

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import IBV_ACCESS_LOCAL_WRITE, IBV_MTU_1024, IBV_QPT_RC, IBV_WC_SUCCESS, IBV_WR_SEND
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

SIZE, MESSAGES, GID = 4096, 4, 1


def connected(context, pd, cq):
    """A QP that is its own peer."""
    cap = QPCap(max_send_wr=1, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
    qp = QP(pd, QPInitAttr(qp_type=IBV_QPT_RC, scq=cq, rcq=cq, cap=cap, sq_sig_all=1), QPAttr(port_num=1))
    attr = QPAttr(port_num=1)
    attr.dest_qp_num, attr.path_mtu = qp.qp_num, IBV_MTU_1024
    attr.ah_attr = AHAttr(gr=GlobalRoute(dgid=context.query_gid(1, GID), sgid_index=GID), is_global=1, port_num=1)
    attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.max_rd_atomic, attr.max_dest_rd_atomic = 14, 7, 7, 1, 1
    qp.to_rts(attr)
    return qp


def send(qp, cq, mr):
    qp.post_recv(RecvWR(num_sge=1, sg=[SGE(mr.buf, SIZE, mr.lkey)]))
    qp.post_send(SendWR(opcode=IBV_WR_SEND, num_sge=1, sg=[SGE(mr.buf, SIZE, mr.lkey)]))
    done = 0
    while done < 2:
        num, completions = cq.poll()
        assert all(wc.status == IBV_WC_SUCCESS for wc in completions), [wc.status for wc in completions]
        done += num


def work():
    with Context(name=sys.argv[1]) as context, PD(context) as pd, CQ(context, 2) as cq, connected(context, pd, cq) as qp:
        for _ in range(MESSAGES):
            with MR(pd, SIZE, IBV_ACCESS_LOCAL_WRITE) as mr:
                send(qp, cq, mr)


work()
print("begun", flush=True)
while True:
    work()
