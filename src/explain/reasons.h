/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's reasons: UVD_REASON(NAME, code, text, remedy, source). <uverbsd/reason.h> says what texts may contain. No include
 * guard: each includer defines the macro. A test produces each row (tests/explain).
 */

/* ---- keys, and the memory that they name -------------------------------------------------------------------------- */

UVD_REASON(KEY_UNKNOWN, "key-unknown", "{key:x} is the {which:s} of no region and no memory window",
	   "use the key that ibv_reg_mr() has returned, not one that was changed or never set", "rxe_mr.c: lookup_mr()")
UVD_REASON(KEY_ENDED, "key-ended", "{which:s} {key:x}: that region of {size} bytes was deregistered {ago:time} earlier",
	   "keep a region until each request that names it has completed, at both ends", "rxe_mr.c: lookup_mr()")
UVD_REASON(KEY_INVALIDATED, "key-invalidated",
	   "{which:s} {key:x}: that memory window was invalidated or bound anew {ago:time} earlier",
	   "send the key of the latest bind to the peer", "rxe_mw.c: rxe_lookup_mw()")
UVD_REASON(KEY_OTHER_PD, "key-other-pd", "{which:s} {key:x} belongs to another PD",
	   "register the memory with the PD of the QP (or of its SRQ)", "rxe_mr.c: lookup_mr()")
UVD_REASON(KEY_RANGE, "key-range",
	   "{which:s} {key:x}: {length} bytes at {addr:x} are not within its {size} bytes at {start:x}",
	   "correct the address or the length, or register more", "rxe_mr.c: mr_check_range()")
UVD_REASON(KEY_ACCESS, "key-access", "{which:s} {key:x}: its registration does not allow {access:access}",
	   "add that flag in ibv_reg_mr()", "rxe_mr.c: lookup_mr(), IBTA 10.6.3")
UVD_REASON(KEY_WINDOW_QP, "key-window-qp", "{which:s} {key:x} is a memory window that is bound to QP {qpn:x}",
	   "use a type 2 window on the QP that it was bound on", "rxe_mw.c: rxe_lookup_mw(), IBTA 10.6.7.2")
UVD_REASON(MEMORY_GONE, "memory-gone", "the memory of {which:s} {key:x} cannot be accessed",
	   "do not unmap or protect memory that is registered", "rxe_mr.c: rxe_mr_copy()")

/* ---- what a requester asks ---------------------------------------------------------------------------------------- */

UVD_REASON(SEND_LENGTH, "send-length", "a datagram of {length} bytes is longer than the MTU of {mtu} bytes",
	   "split the message, or use an RC QP", "rxe_verbs.c: validate_send_wr(), IBTA 11.4.1.1")
UVD_REASON(ATOMIC_LENGTH, "atomic-length", "an atomic returns 8 bytes, and its list has room for fewer",
	   "pass an entry of 8 bytes for the old value", "rxe_verbs.c: validate_send_wr(), IBTA 9.4.5")
UVD_REASON(SEND_REFUSED, "send-refused", "the QP cannot carry out this request: its opcode, flags or number of entries",
	   "use what the QP's type and its caps allow", "rxe_verbs.c: validate_send_wr()")
UVD_REASON(SEND_OPCODE, "send-opcode", "a QP of type {type:s} has no operation {opcode:s}",
	   "see ibv_post_send(3) for the operations of each type", "rdmavt/qp.c: rvt_qp_valid_operation()")
UVD_REASON(SEND_NO_RD_ATOMIC, "send-no-rd-atomic", "the QP has max_rd_atomic 0 and sends no {opcode:s}",
	   "set max_rd_atomic when the QP goes to RTS", "rdmavt/qp.c: rvt_qp_valid_operation()")
UVD_REASON(SEND_NOT_INLINE, "send-not-inline", "{opcode:s} takes no inline data",
	   "leave IBV_SEND_INLINE out of send_flags", "rdmavt/qp.c: rvt_qp_valid_operation()")
UVD_REASON(
	SEND_ATOMIC_ENTRY, "send-atomic-entry",
	"the old value of {opcode:s} needs an entry of 8 bytes at a multiple of 8, not one of {length} bytes at {addr:x}",
	"pass such an entry in sg_list", "rdmavt/qp.c: rvt_qp_valid_operation()")
UVD_REASON(SEND_AH, "send-ah", "the address handle belongs to another PD than the QP, or there is none",
	   "set wr.ud.ah to one that was created with the PD of the QP", "rdmavt/qp.c: rvt_post_one_wr()")
UVD_REASON(BIND_REFUSED, "bind-refused", "the window cannot be bound: its region, PD, range or rights do not fit",
	   "bind a window of the QP's PD to a region with MW_BIND, within its range, with no more rights than it has",
	   "rxe_mw.c: rxe_check_bind_mw()")
UVD_REASON(INVALIDATE_REFUSED, "invalidate-refused", "{key:x} is no window that this QP can invalidate",
	   "invalidate a type 2 window that is bound on this QP", "rxe_mw.c: rxe_invalidate_mw()")

/* ---- what a responder refuses ------------------------------------------------------------------------------------- */

UVD_REASON(QP_ACCESS, "qp-access", "QP {qpn:x} does not allow {access:access} to its peer",
	   "set qp_access_flags when the QP goes to INIT or RTR", "rxe_resp.c: check_op_valid(), IBTA 9.7.5.2.8")
UVD_REASON(NO_RD_ATOMIC, "no-rd-atomic", "QP {qpn:x} has max_dest_rd_atomic 0 and takes no RDMA READ and no atomic",
	   "set max_dest_rd_atomic when the QP goes to RTR", "rxe_resp.c: check_resource()")
UVD_REASON(PATH_MTU, "path-mtu", "packets of the path MTU {theirs} came, and QP {qpn:x} has {own}",
	   "set the same path_mtu at both ends", "rxe_resp.c: check_length(), IBTA 9.7.4.1.6")
UVD_REASON(ATOMIC_ALIGNMENT, "atomic-alignment", "an atomic at {addr:x}, which is no multiple of 8",
	   "align the remote address to 8 bytes", "rxe_resp.c: atomic_reply(), IBTA 9.4.5")
UVD_REASON(RECV_SHORT, "recv-short", "a message of {length} bytes came for a receive of {room} bytes",
	   "post receives as long as the longest message", "rxe_resp.c: send_data_in(), IBTA 9.7.4.1.7")
UVD_REASON(SRQ_UNKNOWN, "srq-unknown", "SRQ {srqn:x} is none of the XRC domain of QP {qpn:x}",
	   "send to the number that ibv_get_srq_num() has returned, of the same domain", "rxe_resp.c: get_srq_wqe()")
UVD_REASON(INVALIDATE_KEY, "invalidate-key", "{key:x} is no window that a SEND can invalidate at QP {qpn:x}",
	   "send the key of a type 2 window that is bound on that QP", "rxe_resp.c: invalidate_rkey()")
UVD_REASON(PACKETS, "packets", "packets of QP {qpn:x} contradict each other: opcode, length or order",
	   "the peer's implementation is at fault: see --pcap", "rxe_resp.c: check_op_seq(), check_length()")
UVD_REASON(REMOTE_REFUSED, "remote-refused", "the peer, QP {qpn:x}, has refused the request with a NAK: {nak:s}",
	   "look at the peer's explanations, they are of another user or on another machine",
	   "rxe_comp.c: check_ack(), IBTA 9.7.5.2.8")

/* ---- no answer ---------------------------------------------------------------------------------------------------- */

UVD_REASON(PEER_ADDRESS, "peer-address", "QP {qpn:x} is not at the address that this QP sends to ({retries} retries)",
	   "set ah_attr to the GID or LID of the peer's port", "rxe_recv.c: check_addr()")
UVD_REASON(PEER_TYPE, "peer-type", "QP {qpn:x} of the peer has another transport service ({retries} retries)",
	   "connect QPs of one type", "rxe_recv.c: check_type_state()")
UVD_REASON(PEER_STATE, "peer-state",
	   "QP {qpn:x} of the peer is in {state:state} and drops what arrives ({retries} retries)",
	   "move it to RTR first, and exchange a message out of band before the first request",
	   "rxe_recv.c: check_type_state()")
UVD_REASON(PEER_OTHER, "peer-other",
	   "QP {qpn:x} of the peer is connected to QP {other:x}, not to this one ({retries} retries)",
	   "set dest_qp_num of the peer to this QP's number", "IBTA 9.6.1.5")
UVD_REASON(PEER_PKEY, "peer-pkey", "QP {qpn:x} of the peer has another P_Key ({retries} retries)",
	   "use P_Keys of one partition, of which one at least is a full member", "rxe_recv.c: check_keys()")
UVD_REASON(PEER_PSN, "peer-psn",
	   "PSN {psn} came at QP {qpn:x} of the peer, {expected} was expected ({retries} retries)",
	   "rq_psn of the peer must be sq_psn here", "rxe_resp.c: check_psn()")
UVD_REASON(PEER_PROCESS, "peer-process", "the process of QP {qpn:x} of the peer has ended ({retries} retries)",
	   "let both ends disconnect before one exits", "rxe_verbs.c: rxe_destroy_qp()")
UVD_REASON(PEER_STUCK, "peer-stuck", "the memory of QP {qpn:x} of the peer gives no answer",
	   "use no memory that waits for a userfaultfd or a FUSE file system", "docs/soft-engine.md")
UVD_REASON(LINK_DOWN, "link-down", "a port on the way is down ({retries} retries)",
	   "wait until the port is active: ibv_query_port()", "rxe_recv.c: hdr_check()")
UVD_REASON(
	PEER_SILENT, "peer-silent",
	"no answer from QP {qpn:x} in {retries} retries: no QP of yours has that number and expects this QP's requests",
	"if it is another user's, ask for the explanations there; if it is on another machine, look at the way to it",
	"rxe_comp.c: retransmit_timer()")
UVD_REASON(
	WIRE_SILENT, "wire-silent", "no answer from {gid:gid}, QP {qpn:x}, in {retries} retries",
	"look there whether the QP has this number, is in RTR and expects this QP and PSN, and whether UDP port 4791 is open on the way",
	"rxe_comp.c: retransmit_timer()")
UVD_REASON(RNR, "rnr", "no receive was posted at QP {qpn:x} of the peer: {retries} RNR retries",
	   "post receives before the peer sends, or set rnr_retry to 7", "rxe_comp.c: rxe_completer(), IBTA 9.7.5.2.8")
UVD_REASON(NETWORK_LOST, "network-lost", "a filter of this device has lost the request ({retries} retries)",
	   "see `uverbsctl filter list`", "docs/testing-your-program.md")

/* ---- datagrams ---------------------------------------------------------------------------------------------------- */

UVD_REASON(DATAGRAM_STATE, "datagram-state", "a datagram came, and QP {qpn:x} is in {state:state}",
	   "move it to RTR before its peers send", "rxe_recv.c: check_type_state()")
UVD_REASON(DATAGRAM_TYPE, "datagram-type", "a datagram came, and QP {qpn:x} is not of the type that has sent it",
	   "send datagrams to UD QPs", "rxe_recv.c: check_type_state()")
UVD_REASON(DATAGRAM_ADDRESS, "datagram-address",
	   "a datagram came that was sent to another port than that of QP {qpn:x}",
	   "create the address handle with the GID or LID of the receiver's port", "rxe_recv.c: check_addr()")
UVD_REASON(DATAGRAM_PKEY, "datagram-pkey", "a datagram with the P_Key {came:x} came, and QP {qpn:x} has {own:x}",
	   "use P_Keys of one partition, of which one at least is a full member", "rxe_recv.c: check_keys()")
UVD_REASON(DATAGRAM_QKEY, "datagram-qkey", "a datagram with the Q_Key {came:x} came, and QP {qpn:x} has {own:x}",
	   "set wr.ud.remote_qkey of the sender to the Q_Key of the receiver", "rxe_recv.c: check_keys(), IBTA 10.2.5")
UVD_REASON(DATAGRAM_NO_RECEIVE, "datagram-no-receive", "a datagram came, and no receive was posted at QP {qpn:x}",
	   "post receives before the peers send: no one repeats datagrams", "rxe_resp.c: check_resource()")
UVD_REASON(DATAGRAM_SHORT, "datagram-short",
	   "a datagram of {length} bytes came, with the 40 of its header, for a receive of {room} bytes",
	   "post receives that are 40 bytes longer than the longest datagram",
	   "rxe_resp.c: send_data_in(), IBTA 11.4.1.2")
UVD_REASON(DATAGRAM_NOWHERE, "datagram-nowhere", "a datagram to QP {qpn:x}, and there is no such QP",
	   "send to the qp_num of a UD QP that has not been destroyed", "rxe_recv.c: hdr_check()")

/* ---- messages of UC, whose sender learns nothing ------------------------------------------------------------------ */

UVD_REASON(MESSAGE_STATE, "message-state", "a message came, and QP {qpn:x} is in {state:state}",
	   "move it to RTR before its peer sends", "rxe_recv.c: check_type_state()")
UVD_REASON(MESSAGE_TYPE, "message-type", "a message came, and QP {qpn:x} has another transport service than its sender",
	   "connect QPs of one type", "rxe_recv.c: check_type_state()")
UVD_REASON(MESSAGE_PEER, "message-peer", "a message came, and not from QP {other:x}, which QP {qpn:x} is connected to",
	   "set dest_qp_num of each end to the number of the other", "IBTA 9.6.1.5")
UVD_REASON(MESSAGE_ADDRESS, "message-address",
	   "a message came, and the addresses of QP {qpn:x} and of its sender do not lead to each other",
	   "set ah_attr of each end to the GID or LID of the other's port", "rxe_recv.c: check_addr()")
UVD_REASON(MESSAGE_PKEY, "message-pkey", "a message with the P_Key {came:x} came, and QP {qpn:x} has {own:x}",
	   "use P_Keys of one partition, of which one at least is a full member", "rxe_recv.c: check_keys()")
UVD_REASON(MESSAGE_NO_RECEIVE, "message-no-receive", "a message came, and no receive was posted at QP {qpn:x}",
	   "post receives before the peer sends: UC repeats nothing", "rxe_resp.c: check_resource()")
UVD_REASON(MESSAGE_GAP, "message-gap",
	   "packets before PSN {psn} are missing or out of order: QP {qpn:x} drops their message",
	   "use an RC QP if no message may be lost: UC repeats nothing", "rxe_resp.c: check_psn(), IBTA 9.8.3")
UVD_REASON(MESSAGE_NOWHERE, "message-nowhere", "a message to QP {qpn:x}, and there is no such QP",
	   "set dest_qp_num to the qp_num of a UC QP that has not been destroyed", "rxe_recv.c: hdr_check()")

/* ---- events and queues -------------------------------------------------------------------------------------------- */

UVD_REASON(CQ_OVERRUN, "cq-overrun", "a completion came and the CQ has {cqe} entries, all in use: it is lost",
	   "create the CQ with an entry for each request that can complete before it is polled",
	   "rxe_cq.c: rxe_cq_post()")
UVD_REASON(CQ_LOST, "cq-lost", "this CQ had {cqe} entries, and lost {lost} completions that found all of them in use",
	   "create the CQ with an entry for each request that can complete before it is polled",
	   "rxe_cq.c: rxe_cq_post()")
UVD_REASON(PORT_DOWN, "port-down", "the port has gone down, by `uverbsctl port`, a filter or the adapter",
	   "wait for IBV_EVENT_PORT_ACTIVE", "rxe_net.c: rxe_port_down()")
UVD_REASON(DEVICE_FATAL, "device-fatal", "the device is gone, or its adapter is", "close it and look for another one",
	   "uverbs_main.c: ib_uverbs_remove_one()")
UVD_REASON(ADAPTER, "adapter", "the adapter reports vendor error {vendor:x}",
	   "see the documentation of the adapter's driver", "ibv_poll_cq(3)")

/* ---- calls -------------------------------------------------------------------------------------------------------- */

UVD_REASON(FIELD, "field", "{field:s} is wrong ({value:d}, {value:x})", NULL, "docs/abi-rules.md")
UVD_REASON(RANGE, "range", "{field:s} {value:d} is not within {from:d} to {to:d}", "use a value within that range",
	   "rdmavt/qp.c: rvt_modify_qp(), rvt_create_qp(), cq.c: rvt_create_cq(), srq.c: rvt_create_srq()")

UVD_REASON(ATTR_MISSING, "attr-missing", "{attr:s} is missing", "pass this attribute: the call requires it",
	   "uverbs_ioctl.c: ib_uverbs_run_method()")
UVD_REASON(ATTR_EXTRA, "attr-extra", "a QP of type {type:s} has no {attr:s}", "leave this attribute out",
	   "uverbs_std_types_qp.c: UVERBS_METHOD_QP_CREATE")
UVD_REASON(UNSUPPORTED, "unsupported", "{field:s} {value:x}: the device does not support this", NULL,
	   "docs/abi-rules.md")
UVD_REASON(NET_RAW, "net-raw", "{field:s} {value:x} requires the capability CAP_NET_RAW",
	   "give the process that capability", "uverbs_cmd.c: create_qp()")
UVD_REASON(DEVICE_FULL, "device-full", "the device has {most} {what:s}, and can have no more",
	   "destroy those that are not used; ibv_query_device() tells how many there can be", "ibv_query_device(3)")

/* what an administrator has restricted, or what one user can have */
UVD_REASON(ALLOW_LIST, "allow-list", "user {uid} is refused by the allow-list `{list:s}`: {what:s}",
	   "to allow it, add `allow = {list:s}{word:s}` to the device's section, or use --allow",
	   "docs/access-control.md")
UVD_REASON(QUOTA, "quota",
	   "user {uid} is refused by the quota `{quota:s}`: it holds {used} {what:s}, and asks for {more} more",
	   "to allow it, raise `quota = {quota:s}` in the device's section, or use --quota", "docs/access-control.md")
UVD_REASON(LIMIT, "limit", "user {uid} has {used} {what:s}, and {more} more would exceed the limit of {max}",
	   "raise it with --limit-{name:s}, or `{name:s}` of [limits]", "docs/limits.md")

/* MODIFY_QP */
UVD_REASON(MODIFY_MISSING, "modify-missing", "{from:state} to {to:state} lacks {missing:attrs}",
	   "set these attributes, and their bits in attr_mask", "verbs.c: ib_modify_qp_is_ok(), IBTA 10.3")
UVD_REASON(MODIFY_EXTRA, "modify-extra", "{from:state} to {to:state} does not allow {extra:attrs}",
	   "leave these bits out of attr_mask", "verbs.c: ib_modify_qp_is_ok(), IBTA 10.3")
UVD_REASON(MODIFY_NO_TRANSITION, "modify-no-transition", "there is no transition from {from:state} to {to:state}",
	   "move the QP to {way:states} first", "verbs.c: ib_modify_qp_is_ok(), IBTA 10.3")
UVD_REASON(MODIFY_TO_SQE, "modify-to-sqe", "no call moves a QP to SQE", "only a send that fails does, of UC and UD QPs",
	   "verbs.c: ib_modify_qp_is_ok(), IBTA 10.3")
UVD_REASON(MODIFY_CUR_STATE, "modify-cur-state", "cur_qp_state says {said:state}, and the QP is in {state:state}",
	   "leave IBV_QP_CUR_STATE out of attr_mask, or set cur_qp_state to the QP's state", "IBTA 11.2.5.2")
UVD_REASON(MODIFY_MIGRATION, "modify-migration", "path_mig_state can only become MIGRATED, by a change to RTS or SQD",
	   "leave IBV_QP_PATH_MIG_STATE out of attr_mask: this QP has no alternate path",
	   "rdmavt/qp.c: rvt_modify_qp()")
UVD_REASON(MODIFY_PORT, "modify-port", "{field:s} {value:d} is not the QP's port, {port:d}",
	   "use the port that the QP was given in INIT", "uverbs_cmd.c: modify_qp()")
UVD_REASON(MODIFY_QKEY, "modify-qkey", "the highest bit of Q_Key {qkey:x} is set",
	   "use another Q_Key, or give the process the capability CAP_NET_RAW", "uverbs_cmd.c: modify_qp()")
UVD_REASON(MODIFY_ALT_PORT, "modify-alt-port",
	   "alt_port_num {port:d} is no InfiniBand port, and others migrate no paths",
	   "leave IBV_QP_ALT_PATH out of attr_mask", "verbs.c: _ib_modify_qp()")

/* addresses */
UVD_REASON(ADDRESS_GRH, "address-grh", "{av:s} has no GRH (is_global is 0), and port {port:d} requires one",
	   "set is_global, grh.dgid and grh.sgid_index", "verbs.c: rdma_check_ah_attr()")
UVD_REASON(ADDRESS_GID, "address-gid", "{av:s}: port {port:d} has no GID with the index {sgid_index:d}",
	   "set grh.sgid_index to one that ibv_query_gid_table() lists", "verbs.c: rdma_fill_sgid_attr()")

/* regions */
UVD_REASON(MR_LOCAL_WRITE, "mr-local-write", "{access:access} without LOCAL_WRITE",
	   "add IBV_ACCESS_LOCAL_WRITE: what the peer may write must be writable here",
	   "ib_verbs.h: ib_check_mr_access()")
UVD_REASON(MR_FLAGS, "mr-flags", "there are no such access flags: {access:access}",
	   "use flags of enum ibv_access_flags", "ib_verbs.h: ib_check_mr_access()")
UVD_REASON(MR_ON_DEMAND, "mr-on-demand", "the device has no on-demand paging",
	   "leave IBV_ACCESS_ON_DEMAND out, see ibv_query_device_ex(): odp_caps", "ib_verbs.h: ib_check_mr_access()")
UVD_REASON(MR_MEMORY, "mr-memory", "{length} bytes at {start:x} are not all mapped{how:s}",
	   "map the memory before it is registered", "umem.c: ib_umem_get()")
UVD_REASON(MR_LENGTH, "mr-length",
	   "a region of {length} bytes at {start:x} is empty, too long, or exceeds the address space",
	   "correct the address or the length", "umem.c: ib_umem_get()")
UVD_REASON(
	MEMLOCK, "memlock",
	"no more memory can be registered: {asked} KiB were asked for, {used} KiB are in use, and {which:s} is {limit} KiB",
	"raise it: {how:s}", "umem.c: ib_umem_get()")

/* queues */
UVD_REASON(QP_NO_QUEUES, "qp-no-queues", "all numbers of cap are 0", "ask for one send or receive at least",
	   "rdmavt/qp.c: rvt_create_qp()")
UVD_REASON(QUEUE_HOLDS, "queue-holds", "{field:s} {value:d} is less than the queue holds now",
	   "take out what is in the queue first, or ask for more",
	   "rdmavt/cq.c: rvt_resize_cq(), srq.c: rvt_modify_srq()")
UVD_REASON(POST_STATE, "post-state", "a {what:s} cannot be posted in {state:state}", "move the QP to {to:state} first",
	   "rdmavt/qp.c: rvt_post_send(), rvt_post_recv(), IBTA 10.3.1")
UVD_REASON(
	POST_FULL, "post-full", "the {what:s} queue has {entries} entries, all in use",
	"poll completions before the next post (a signaled send frees the unsignaled ones before it), or create the queue "
	"with more entries",
	"rdmavt/qp.c: rvt_post_one_wr(), rvt_post_recv()")
UVD_REASON(POST_NO_QUEUE, "post-no-queue", "{what:s} takes no receives by this call",
	   "post to the queue that the QP or SRQ has: an XRC QP has none, and a mapped one is written by the provider",
	   "rdmavt/qp.c: rvt_post_recv(), rxe_verbs.c: rxe_post_recv()")
UVD_REASON(POST_HAS_SRQ, "post-has-srq", "the QP takes its receives from an SRQ", "post them by ibv_post_srq_recv()",
	   "rdmavt/qp.c: rvt_post_recv()")
