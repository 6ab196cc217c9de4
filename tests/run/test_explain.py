# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The device says why: usual mistakes of RDMA programs, and what the log explains of each."""
import json
import re

import pytest

from conftest import MISTAKES

# For whom the explanation is: a, whose request fails, b, its responder, or the CQ. Then the status or event, the reason, and words of the
# text: what was asked or found, and the remedy.
KEY = "use the key that ibv_reg_mr() has returned"
PD = "register the memory with the PD of the QP"
SAME = object()  # of the entry before: reason and words
EXPECTED = {
    "l_key_unknown": [("a", "LOC_PROT_ERR", "key-unknown", "is the l_key of no region", KEY)],
    "l_key_ended": [("a", "LOC_PROT_ERR", "key-ended", "that region of 4096 bytes was deregistered", "keep a region until")],
    "l_key_of_other_pd": [("a", "LOC_PROT_ERR", "key-other-pd", "belongs to another PD", PD)],
    "l_key_range": [("a", "LOC_PROT_ERR", "key-range", ": 65544 bytes at 0x", "are not within its 65536 bytes at",
                     "correct the address or the length")],
    "receive_l_key_unknown": [("b", "LOC_PROT_ERR", "key-unknown", "is the l_key of no region", KEY), ("a", "REM_OP_ERR", SAME)],
    "receive_l_key_of_other_pd": [("b", "LOC_PROT_ERR", "key-other-pd", "belongs to another PD", PD), ("a", "REM_OP_ERR", SAME)],
    "read_into_read_only": [("a", "LOC_PROT_ERR", "key-access", "does not allow LOCAL_WRITE", "add that flag in ibv_reg_mr()")],
    "receive_into_read_only": [("b", "LOC_PROT_ERR", "key-access", "does not allow LOCAL_WRITE", "add that flag"),
                               ("a", "REM_OP_ERR", SAME)],
    "r_key_unknown": [("b", "QP_ACCESS_ERR", "key-unknown", "is the r_key of no region", KEY), ("a", "REM_ACCESS_ERR", SAME)],
    "r_key_ended": [("b", "QP_ACCESS_ERR", "key-ended", "that region of 4096 bytes was deregistered", "keep a region until"),
                    ("a", "REM_ACCESS_ERR", SAME)],
    "r_key_of_other_pd": [("b", "QP_ACCESS_ERR", "key-other-pd", "belongs to another PD", PD), ("a", "REM_ACCESS_ERR", SAME)],
    "r_key_range": [("b", "QP_ACCESS_ERR", "key-range", "64 bytes at 0x", "are not within its 65536 bytes", "correct the address"),
                    ("a", "REM_ACCESS_ERR", SAME)],
    "r_key_without_remote_write": [("b", "QP_ACCESS_ERR", "key-access", "does not allow REMOTE_WRITE", "add that flag"),
                                   ("a", "REM_ACCESS_ERR", SAME)],
    "memory_unmapped": [("a", "LOC_PROT_ERR", "memory-gone", "cannot be accessed", "do not unmap or protect")],
    "qp_without_remote_write": [("b", "QP_REQ_ERR", "qp-access", "does not allow REMOTE_WRITE to its peer", "set qp_access_flags"),
                                ("a", "REM_INV_REQ_ERR", SAME)],
    "qp_without_remote_read": [("b", "QP_REQ_ERR", "qp-access", "does not allow REMOTE_READ to its peer", "set qp_access_flags"),
                               ("a", "REM_INV_REQ_ERR", SAME)],
    "no_rd_atomic": [("b", "QP_REQ_ERR", "no-rd-atomic", "has max_dest_rd_atomic 0", "set max_dest_rd_atomic"),
                     ("a", "REM_INV_REQ_ERR", SAME)],
    "mtus_differ": [("b", "QP_REQ_ERR", "path-mtu", "path MTU 1024 came", "has 512", "set the same path_mtu"),
                    ("a", "REM_INV_REQ_ERR", SAME)],
    "read_with_other_mtu": [("a", "LOC_LEN_ERR", "path-mtu", "has 512", "set the same path_mtu")],
    "atomic_unaligned": [("b", "QP_REQ_ERR", "atomic-alignment", "no multiple of 8", "align the remote address"),
                         ("a", "REM_INV_REQ_ERR", SAME)],
    "receive_short": [("b", "LOC_LEN_ERR", "recv-short", "64 bytes came for a receive of 8", "post receives as long"),
                      ("a", "REM_INV_REQ_ERR", SAME)],
    "no_receive": [("a", "RNR_RETRY_EXC_ERR", "rnr", "no receive was posted at QP {b}", "2 RNR retries", "post receives before")],
    "peer_in_reset": [("a", "RETRY_EXC_ERR", "peer-state", "QP {b} of the peer is in RESET", "3 retries", "move it to RTR first")],
    "peer_in_init": [("a", "RETRY_EXC_ERR", "peer-state", "QP {b} of the peer is in INIT", "move it to RTR first")],
    "psns_differ": [("a", "RETRY_EXC_ERR", "peer-psn", "PSN 0 came at QP {b}", "77 was expected",
                     "rq_psn of the peer must be sq_psn here")],
    "gid_wrong": [("a", "RETRY_EXC_ERR", "peer-address", "QP {b} is not at the address", "set ah_attr")],
    "qpn_wrong": [("a", "RETRY_EXC_ERR", "peer-silent", "no QP of yours has that number", "if it is another user's")],
    "peer_of_another": [("a", "RETRY_EXC_ERR", "peer-other", "QP {b} of the peer is connected to QP", "set dest_qp_num of the peer")],
    "peer_of_other_type": [("a", "RETRY_EXC_ERR", "peer-type", "another transport service", "connect QPs of one type")],
    "peer_in_other_partition": [("a", "RETRY_EXC_ERR", "peer-pkey", "QP {b} of the peer has another P_Key", "use P_Keys of one partition")],
    "cq_small": [("cq", "CQ_ERR", "cq-overrun", "the CQ has 1 entries, all in use", "create the CQ with an entry for each request"),
                 ("cq", "CQ_ERR", "cq-lost", "this CQ had 1 entries, and lost ", "create the CQ with an entry")],
    "srq_key_of_other_pd": [("b", "LOC_PROT_ERR", "key-other-pd", "belongs to another PD", "(or of its SRQ)"), ("a", "REM_OP_ERR", SAME)],
    "datagram_long": [("a", "LOC_LEN_ERR", "send-length", "4097 bytes is longer than the MTU of 4096", "split the message")],
    "datagram_qkey": [("b", "dropped", "datagram-qkey", "Q_Key 0x12 came", "QP {b} has 0x11", "set wr.ud.remote_qkey of the sender")],
    "datagram_short": [("b", "dropped", "datagram-short", "104 bytes came, with the 40 of its header, for a receive of 64",
                        "post receives that are 40 bytes longer")],
    "datagram_nowhere": [("a", "dropped", "datagram-nowhere", "there is no such QP", "send to the qp_num of a UD QP")],
    "uc_no_receive": [("b", "dropped", "message-no-receive", "no receive was posted at QP {b}", "post receives before the peer sends")],
    "uc_r_key_of_other_pd": [("b", "dropped", "key-other-pd", "belongs to another PD", PD)],
    "invalidate_region": [("a", "MW_BIND_ERR", "invalidate-refused", "no window that this QP can invalidate",
                           "invalidate a type 2 window")],
    "send_invalidates_region": [("b", "REM_INV_REQ_ERR", "invalidate-key", "no window that a SEND can invalidate",
                                 "send the key of a type 2 window"),
                                ("a", "RETRY_EXC_ERR", "peer-state", "is in ERR")],
    "window_of_other_qp": [("b", "QP_ACCESS_ERR", "key-window-qp", "bound to QP {a}", "use a type 2 window on the QP"),
                           ("a", "REM_ACCESS_ERR", SAME)],
    "window_range": [("b", "QP_ACCESS_ERR", "key-range", "are not within its 4104 bytes", "correct the address"),
                     ("a", "REM_ACCESS_ERR", SAME)],
    "window_without_remote_write": [("b", "QP_ACCESS_ERR", "key-access", "does not allow REMOTE_WRITE", "add that flag"),
                                    ("a", "REM_ACCESS_ERR", SAME)],
    "window_invalidated": [("b", "QP_ACCESS_ERR", "key-invalidated", "was invalidated or bound anew", "send the key of the latest bind"),
                           ("a", "REM_ACCESS_ERR", SAME)],
    "window_bound_anew": [("b", "QP_ACCESS_ERR", "key-invalidated", "was invalidated or bound anew", "send the key of the latest bind"),
                          ("a", "REM_ACCESS_ERR", SAME)],
    "window_of_type_1": [("b", "QP_ACCESS_ERR", "key-access", "does not allow REMOTE_WRITE", "add that flag"),
                         ("a", "REM_ACCESS_ERR", SAME)],
    "l_key_of_window": [("a", "LOC_PROT_ERR", "key-unknown", "is the l_key of no region", KEY)],
    "bind_beyond_region": [("a", "MW_BIND_ERR", "bind-refused", "the window cannot be bound", "bind a window of the QP's PD")],
}
# The stock provider of one persona refuses these itself, or has no verb for them; what is unmapped stays pinned where memory is shared.
ONLY = {"atomic_unaligned": "hfi1", "memory_unmapped": "hfi1", **{m: "rxe" for m in EXPECTED if "window" in m or "bind" in m}}
ONLY["send_invalidates_region"] = ONLY["invalidate_region"] = "rxe"
CASES = [(m, p) for m in EXPECTED for p in ("rxe", "hfi1") if ONLY.get(m, p) == p]


def explained(r):
    """The log's explanations, by whom they are for, as (status or event, reason, text)."""
    numbers = dict(re.findall(r"^([ab]) (0x[0-9a-f]+)$", r.stdout, re.M))
    found = []
    for line in r.stderr.splitlines():
        e = json.loads(line)
        who = {int(n, 16): name for name, n in numbers.items()}.get(e["number"]) if e["object"] == "QP" else "cq"
        what = e.get("status") or e.get("event", "dropped")
        found.append((who, what.removeprefix("IBV_WC_").removeprefix("IBV_EVENT_"), e["reason"], e["text"]))
    return numbers, sorted(found, key=lambda f: f[0] == "a")


@pytest.mark.parametrize("run", ("self",), indirect=True)
@pytest.mark.parametrize("mistake, persona", CASES)
def test_mistake_is_explained_once_at_each_end(run, mistake, persona):
    r = run(MISTAKES, mistake, options=["--persona", persona, "--explain", "json", "--pkey", "0xffff,0x8001"])
    assert r.returncode == 0, (r.stdout, r.stderr)
    numbers, found = explained(r)
    before = ()
    assert len(found) == len(EXPECTED[mistake]), r.stderr
    for (who, status, reason, text), (for_whom, what, *more) in zip(found, EXPECTED[mistake]):
        before = more if more[0] is not SAME else before
        assert (who, status, reason) == (for_whom, what, before[0]), (r.stdout, r.stderr)
        for words in before[1:]:
            assert words.format(**numbers) in text, (words, text)


def test_text_is_one_line_with_object_request_reason_remedy_and_process(run):
    r = run(MISTAKES, "l_key_of_other_pd")
    lines = r.stderr.splitlines()
    assert len(lines) == 1, r.stderr
    assert re.fullmatch(r"uverbsctl run: warning: \w+: QP 0x[0-9a-f]+: SEND of 64 bytes, wr_id 0x1: LOC_PROT_ERR: "
                        r"l_key 0x201 belongs to another PD; "
                        r"register the memory with the PD of the QP \(or of its SRQ\), pid \d+", lines[0]), lines


@pytest.mark.parametrize("options", (["--explain", "off"], ["--log-level", "error"]))
def test_nothing_is_said_if_nobody_wants_to_know(run, options):
    assert run(MISTAKES, "l_key_of_other_pd", options=options).stderr == ""


def test_flushed_requests_are_not_explained(run):
    """20 receives wait when the first message breaks the QP."""
    r = run(MISTAKES, "cq_small", options=["--explain", "json"])
    assert "WR_FLUSH_ERR" not in r.stderr, r.stderr
