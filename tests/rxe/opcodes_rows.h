/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The rows of opcodes.c. */
#include <infiniband/verbs.h>
#include <stdint.h>

#define MAX_WRS 3

enum key { GOOD_KEY, UNKNOWN_KEY, LOCAL_ONLY_KEY, READ_ONLY_KEY, WINDOW_KEY };

/* Flags of a work request. */
enum {
	BAD_LKEY = 1 << 0,
	TWO_SGES = 1 << 1,
	BEYOND = 1 << 2, /* the last byte is outside of the MR */
	MISALIGNED = 1 << 3,
	OTHER_QKEY = 1 << 4,
	SENT_INLINE = 1 << 5,
	UNSIGNALED = 1 << 6,
	FENCED = 1 << 7,
	SOLICITED = 1 << 8,
	WITHOUT_EFFECT = 1 << 9, /* changes no memory */
};

/* Flags of a row. */
enum {
	WITH_SRQ = 1 << 0,
	BAD_RECV_LKEY = 1 << 1,
	REQUESTER_FAILS = 1 << 2, /* the row takes this end's QP out of the state RTS */
	RESPONDER_FAILS = 1 << 3,
	PEER_IS_GONE = 1 << 4, /* destroyed */
	PEER_IS_RESET = 1 << 5,
	NO_QP_ACCESS = 1 << 6, /* the responder's QP permits nothing */
	WITH_WINDOW = 1 << 7, /* the responder binds a memory window */
};

struct wr {
	enum ibv_wr_opcode opcode;
	uint32_t length;
	enum key key;
	unsigned int flags;
};

struct row {
	const char *name;
	enum ibv_qp_type type;
	unsigned int flags, receives, receive_length;
	unsigned int arrive; /* how many receives end by what the requester sends */
	unsigned int num;
	struct wr wr[MAX_WRS];
};

/* clang-format off */

#define ROW_OK(name, type, op, length, ...) { name, type, 0, 0, 0, 0, 1, { { op, length, GOOD_KEY, ##__VA_ARGS__ } } }
#define ROW_OK_RECV(name, type, op, length, ...) { name, type, 0, 1, 8192, 1, 1, { { op, length, GOOD_KEY, ##__VA_ARGS__ } } }
/* Both ends fail, and the request behind it is flushed. */
#define ROW_REFUSED(name, flags, op, length, key, ...) \
	{ name, IBV_QPT_RC, REQUESTER_FAILS | RESPONDER_FAILS | (flags), 1, 64, 0, 2, \
	  { { op, length, key, WITHOUT_EFFECT | (__VA_ARGS__ + 0) }, { IBV_WR_RDMA_WRITE, 8, GOOD_KEY, WITHOUT_EFFECT } } }

static const struct row rows[] = {
/* RC */
ROW_OK_RECV("RC SEND", IBV_QPT_RC, IBV_WR_SEND, 100),
ROW_OK_RECV("RC SEND of several packets", IBV_QPT_RC, IBV_WR_SEND, 5001),
ROW_OK_RECV("RC SEND of nothing", IBV_QPT_RC, IBV_WR_SEND, 0),
ROW_OK_RECV("RC SEND inline", IBV_QPT_RC, IBV_WR_SEND, 33, SENT_INLINE),
ROW_OK_RECV("RC SEND of two pieces", IBV_QPT_RC, IBV_WR_SEND, 4000, TWO_SGES),
ROW_OK_RECV("RC SEND solicited", IBV_QPT_RC, IBV_WR_SEND, 17, SOLICITED),
ROW_OK_RECV("RC SEND_WITH_IMM", IBV_QPT_RC, IBV_WR_SEND_WITH_IMM, 1024),
ROW_OK_RECV("RC SEND_WITH_IMM of several packets", IBV_QPT_RC, IBV_WR_SEND_WITH_IMM, 3000),
ROW_OK_RECV("RC SEND_WITH_IMM of nothing", IBV_QPT_RC, IBV_WR_SEND_WITH_IMM, 0),
ROW_OK("RC WRITE", IBV_QPT_RC, IBV_WR_RDMA_WRITE, 1023),
ROW_OK("RC WRITE of several packets", IBV_QPT_RC, IBV_WR_RDMA_WRITE, 30001),
ROW_OK("RC WRITE of nothing", IBV_QPT_RC, IBV_WR_RDMA_WRITE, 0),
ROW_OK("RC WRITE inline", IBV_QPT_RC, IBV_WR_RDMA_WRITE, 64, SENT_INLINE),
ROW_OK_RECV("RC WRITE_WITH_IMM", IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM, 1025),
ROW_OK_RECV("RC WRITE_WITH_IMM of nothing", IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM, 0),
ROW_OK("RC READ", IBV_QPT_RC, IBV_WR_RDMA_READ, 999),
ROW_OK("RC READ of several packets", IBV_QPT_RC, IBV_WR_RDMA_READ, 30003, TWO_SGES),
ROW_OK("RC READ of nothing", IBV_QPT_RC, IBV_WR_RDMA_READ, 0),
ROW_OK("RC CMP_AND_SWP", IBV_QPT_RC, IBV_WR_ATOMIC_CMP_AND_SWP, 8),
ROW_OK("RC FETCH_AND_ADD", IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD, 8),
{ "RC requests in a row", IBV_QPT_RC, 0, 1, 4096, 1, 3,
  { { IBV_WR_RDMA_READ, 5000, GOOD_KEY, UNSIGNALED }, { IBV_WR_RDMA_WRITE, 3000, GOOD_KEY }, { IBV_WR_SEND, 2000, GOOD_KEY, FENCED } } },
{ "RC atomics in a row", IBV_QPT_RC, 0, 0, 0, 0, 3,
  { { IBV_WR_ATOMIC_FETCH_AND_ADD, 8 }, { IBV_WR_ATOMIC_CMP_AND_SWP, 8 }, { IBV_WR_ATOMIC_FETCH_AND_ADD, 8 } } },
{ "RC receive of nothing for WRITE_WITH_IMM", IBV_QPT_RC, 0, 1, 0, 1, 1, { { IBV_WR_RDMA_WRITE_WITH_IMM, 2000 } } },
{ "RC SENDs to an SRQ", IBV_QPT_RC, WITH_SRQ, 3, 4096, 3, 3,
  { { IBV_WR_SEND, 4096 }, { IBV_WR_SEND_WITH_IMM, 1 }, { IBV_WR_RDMA_WRITE_WITH_IMM, 2048 } } },
{ "RC SEND_WITH_INV", IBV_QPT_RC, WITH_WINDOW, 2, 4096, 2, 2,
  { { IBV_WR_SEND, 20 }, { IBV_WR_SEND_WITH_INV, 3000, WINDOW_KEY } } },
{ "RC WRITE by a window", IBV_QPT_RC, WITH_WINDOW, 0, 0, 0, 1, { { IBV_WR_RDMA_WRITE, 3000, WINDOW_KEY } } },
{ "RC WRITE by an invalidated window", IBV_QPT_RC, WITH_WINDOW | REQUESTER_FAILS | RESPONDER_FAILS, 1, 4096, 1, 2,
  { { IBV_WR_SEND_WITH_INV, 3000, WINDOW_KEY }, { IBV_WR_RDMA_WRITE, 3000, WINDOW_KEY, WITHOUT_EFFECT } } },

/* Errors of RC */
ROW_REFUSED("RC WRITE, unknown key", 0, IBV_WR_RDMA_WRITE, 100, UNKNOWN_KEY),
ROW_REFUSED("RC WRITE beyond the MR", 0, IBV_WR_RDMA_WRITE, 100, GOOD_KEY, BEYOND),
ROW_REFUSED("RC WRITE of several packets beyond the MR", 0, IBV_WR_RDMA_WRITE, 5000, GOOD_KEY, BEYOND),
ROW_REFUSED("RC WRITE, MR without access", 0, IBV_WR_RDMA_WRITE, 100, LOCAL_ONLY_KEY),
ROW_REFUSED("RC WRITE, MR that may only be read", 0, IBV_WR_RDMA_WRITE, 100, READ_ONLY_KEY),
ROW_REFUSED("RC WRITE_WITH_IMM, unknown key", 0, IBV_WR_RDMA_WRITE_WITH_IMM, 100, UNKNOWN_KEY),
ROW_REFUSED("RC WRITE, QP without access", NO_QP_ACCESS, IBV_WR_RDMA_WRITE, 100, GOOD_KEY),
ROW_REFUSED("RC READ, unknown key", 0, IBV_WR_RDMA_READ, 100, UNKNOWN_KEY),
ROW_REFUSED("RC READ beyond the MR", 0, IBV_WR_RDMA_READ, 5000, GOOD_KEY, BEYOND),
ROW_REFUSED("RC READ, MR without access", 0, IBV_WR_RDMA_READ, 100, LOCAL_ONLY_KEY),
ROW_REFUSED("RC READ, QP without access", NO_QP_ACCESS, IBV_WR_RDMA_READ, 100, GOOD_KEY),
ROW_REFUSED("RC CMP_AND_SWP, unknown key", 0, IBV_WR_ATOMIC_CMP_AND_SWP, 8, UNKNOWN_KEY),
ROW_REFUSED("RC CMP_AND_SWP, MR that may only be read", 0, IBV_WR_ATOMIC_CMP_AND_SWP, 8, READ_ONLY_KEY),
ROW_REFUSED("RC FETCH_AND_ADD beyond the MR", 0, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, GOOD_KEY, BEYOND),
ROW_REFUSED("RC FETCH_AND_ADD, QP without access", NO_QP_ACCESS, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, GOOD_KEY),
ROW_REFUSED("RC FETCH_AND_ADD, misaligned", 0, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, GOOD_KEY, MISALIGNED),
ROW_REFUSED("RC CMP_AND_SWP, misaligned", 0, IBV_WR_ATOMIC_CMP_AND_SWP, 8, GOOD_KEY, MISALIGNED),
ROW_REFUSED("RC SEND, receive too short", 0, IBV_WR_SEND, 65, GOOD_KEY),
ROW_REFUSED("RC SEND, receive of a bad key", BAD_RECV_LKEY, IBV_WR_SEND, 64, GOOD_KEY),
{ "RC SEND, no receive", IBV_QPT_RC, REQUESTER_FAILS, 0, 0, 0, 2,
  { { IBV_WR_SEND, 10, GOOD_KEY, WITHOUT_EFFECT }, { IBV_WR_SEND, 10, GOOD_KEY, WITHOUT_EFFECT } } },
{ "RC WRITE_WITH_IMM, no receive", IBV_QPT_RC, REQUESTER_FAILS, 0, 0, 0, 1,
  { { IBV_WR_RDMA_WRITE_WITH_IMM, 0, GOOD_KEY, WITHOUT_EFFECT } } },
{ "RC SEND, local key unknown", IBV_QPT_RC, REQUESTER_FAILS, 1, 64, 0, 2,
  { { IBV_WR_SEND, 64, GOOD_KEY, BAD_LKEY | WITHOUT_EFFECT }, { IBV_WR_SEND, 10, GOOD_KEY, WITHOUT_EFFECT } } },
/* A request behind the READ could be on the way when its answer fails. */
{ "RC READ, local key unknown", IBV_QPT_RC, REQUESTER_FAILS, 0, 0, 0, 1,
  { { IBV_WR_RDMA_READ, 64, GOOD_KEY, BAD_LKEY | WITHOUT_EFFECT } } },
{ "RC good request before a bad one", IBV_QPT_RC, REQUESTER_FAILS | RESPONDER_FAILS, 1, 64, 1, 2,
  { { IBV_WR_SEND, 64 }, { IBV_WR_RDMA_WRITE, 10, UNKNOWN_KEY, WITHOUT_EFFECT } } },
{ "RC WRITE, peer destroyed", IBV_QPT_RC, REQUESTER_FAILS | PEER_IS_GONE, 0, 0, 0, 2,
  { { IBV_WR_RDMA_WRITE, 64, GOOD_KEY, WITHOUT_EFFECT }, { IBV_WR_RDMA_WRITE, 10, GOOD_KEY, WITHOUT_EFFECT } } },
{ "RC READ, peer reset", IBV_QPT_RC, REQUESTER_FAILS | PEER_IS_RESET, 0, 0, 0, 1,
  { { IBV_WR_RDMA_READ, 64, GOOD_KEY, WITHOUT_EFFECT } } },

/* UC: a fault of the responder's is not told. */
ROW_OK_RECV("UC SEND", IBV_QPT_UC, IBV_WR_SEND, 100),
ROW_OK_RECV("UC SEND of several packets", IBV_QPT_UC, IBV_WR_SEND, 5001),
ROW_OK_RECV("UC SEND_WITH_IMM", IBV_QPT_UC, IBV_WR_SEND_WITH_IMM, 3000),
ROW_OK_RECV("UC SEND of nothing", IBV_QPT_UC, IBV_WR_SEND, 0),
ROW_OK_RECV("UC SEND inline", IBV_QPT_UC, IBV_WR_SEND, 9, SENT_INLINE),
ROW_OK_RECV("UC WRITE_WITH_IMM", IBV_QPT_UC, IBV_WR_RDMA_WRITE_WITH_IMM, 3001),
{ "UC WRITE", IBV_QPT_UC, 0, 1, 64, 1, 2, { { IBV_WR_RDMA_WRITE, 5000 }, { IBV_WR_SEND, 5 } } },
{ "UC WRITE, unknown key", IBV_QPT_UC, 0, 1, 64, 1, 2, { { IBV_WR_RDMA_WRITE, 100, UNKNOWN_KEY, WITHOUT_EFFECT }, { IBV_WR_SEND, 5 } } },
{ "UC SEND, local key unknown", IBV_QPT_UC, REQUESTER_FAILS, 0, 0, 0, 2,
  { { IBV_WR_SEND, 64, GOOD_KEY, BAD_LKEY | WITHOUT_EFFECT }, { IBV_WR_SEND, 10, GOOD_KEY, WITHOUT_EFFECT } } },

/* UD */
ROW_OK_RECV("UD SEND", IBV_QPT_UD, IBV_WR_SEND, 100),
ROW_OK_RECV("UD SEND of a whole MTU", IBV_QPT_UD, IBV_WR_SEND, 1024),
ROW_OK_RECV("UD SEND_WITH_IMM", IBV_QPT_UD, IBV_WR_SEND_WITH_IMM, 999),
ROW_OK_RECV("UD SEND of nothing", IBV_QPT_UD, IBV_WR_SEND, 0),
ROW_OK_RECV("UD SEND inline", IBV_QPT_UD, IBV_WR_SEND, 40, SENT_INLINE),
{ "UD SEND to an SRQ", IBV_QPT_UD, WITH_SRQ, 1, 4096, 1, 1, { { IBV_WR_SEND_WITH_IMM, 77 } } },
{ "UD SEND, another Q_Key", IBV_QPT_UD, 0, 1, 64, 1, 2,
  { { IBV_WR_SEND, 64, GOOD_KEY, OTHER_QKEY | WITHOUT_EFFECT }, { IBV_WR_SEND, 10 } } },
{ "UD SEND, longer than the MTU", IBV_QPT_UD, 0, 0, 0, 0, 1, { { IBV_WR_SEND, 5000, GOOD_KEY, WITHOUT_EFFECT } } },
};
