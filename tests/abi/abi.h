/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the rule tests share: the target, what it may answer differently, and the checks. */
#ifndef ABI_H
#define ABI_H

#include <check.h>
#include <errno.h>
#include <string.h>
#include "uv.h"

/* ---- the device under test (target.c) ---------------------------------------------------------------------------- */

enum {
	ON_RXE = 1 << 0, /* the driver that it is, or poses as */
	ON_HFI1 = 1 << 1,
	ON_KERNEL = 1 << 2, /* how its node is served: by ib_uverbs, by CUSE, by `uverbsctl run` */
	ON_CUSE = 1 << 3,
	ON_RUN = 1 << 4,
	ON_OURS = 1 << 5, /* one of these two */
	ON_SEPARATE = 1 << 6, /* uverbsd --separate yes, as $UVERBS_SEPARATE says */
};

struct target {
	const char *name;
	uint16_t driver_id;
	unsigned int where; /* ON_* */
	struct uv_room room;
	/* Posts one empty receive; for drivers that take them otherwise than by POST_RECV. */
	void (*post_recv)(int fd, const struct uv_qp *qp);
};

/* Found at the first call. */
const struct target *target(void);
/* close(), and unmaps what was mapped to post receives: a mapping keeps the file open. */
void close_node(int fd);

/*
 * Where targets legitimately differ: the one list (target.c). The errno that the rule names is replaced by the entry's
 * for the targets of its mask.
 */
struct choice {
	const char *rule;
	unsigned int where; /* all of these bits */
	int err; /* 0: succeeds; -N: N bytes are read, or N events fit */
	const char *reason;
};

/* The entry for this rule and this target, or NULL. */
const struct choice *choice(const char *rule);

/* Answers, in the words of errno.h. */
const char *answer(int ret);

#define expect(call, err) \
	do { \
		int ret_ = (call); \
		ck_assert_msg(ret_ == -(err), "%s: %s, expected %s", #call, answer(ret_), answer(-(err))); \
	} while (0)

#define expect_ok(call) expect(call, 0)

/* As expect(), but the list of choices may say otherwise for this target. */
#define expect_choice(rule, call, want) \
	do { \
		const struct choice *choice_ = choice(rule); \
		int want_ = choice_ ? choice_->err : (want), ret_ = (call); \
		ck_assert_msg(ret_ == -want_, "%s: %s, expected %s", #call, answer(ret_), answer(-want_)); \
	} while (0)

/* ---- what most tests begin with (fixture.c) ---------------------------------------------------------------------- */

/* An open file with a context, made by write(). Tests run in processes of their own: nobody closes it. */
int open_context(int *async_fd);
/* The same, and a PD, a CQ and a QP of this type. */
struct bed {
	int fd, async_fd, channel;
	int edge; /* an epoll that tells of each event of the channel once */
	uint32_t pd, cq;
	struct uv_qp qp;
};
struct bed make_bed(void);
/* With a completion channel and a QP that takes receives (state INIT). cqe: size of the CQ. */
struct bed make_event_bed(uint32_t cqe);
/* RESET to INIT with all access. */
int qp_to_init(int fd, uint32_t qp);
/* To RTR and RTS: with itself or with another QP of the same port. */
int qp_to_rtr(int fd, uint32_t qp, uint32_t dest_qpn);
int qp_to_rts(int fd, uint32_t qp);
int qp_to_state(int fd, uint32_t qp, unsigned int state);
/* A way from port 1 to itself, as its link layer wants it. */
void loopback(int fd, struct ib_uverbs_qp_dest *dest);
void loopback_ah(int fd, struct ib_uverbs_ah_attr *attr);
/* Makes completions without moving data: posts so many receives, and the error state flushes them, soon. */
void flush_to_error(const struct bed *bed, unsigned int num);
/* An armed CQ's event, waited for but not read: rxe makes one of two that come at the same time. The QP is in INIT again. */
void make_event(const struct bed *bed);
/* The errno of read(), negative, or how many bytes. */
int read_event(int fd, void *event, size_t len);
void set_nonblock(int fd);
/* poll()'s revents, within ms. */
int poll_events(int fd, int ms);
/* Which handle ALLOC_PD gets next: the lowest free one. The PD is freed again. */
uint32_t next_handle(int fd);
/*
 * Does the device's driver have this extended command? Asked with a length that is right for a command which nobody has
 * registered (EOPNOTSUPP), and wrong for one that is there (EINVAL).
 */
bool has_ex(int fd, uint32_t command);
/* The answers of a driver without it: by INVOKE_WRITE, and to a method of its object. */
void expect_absent(int fd, uint32_t command, uint16_t object, uint16_t method);

/* ---- a device that may go (plug.c) ------------------------------------------------------------------------------- */

struct plug {
	char ibdev[32], number[32]; /* hfi1_1, uverbs1 */
	char node[48];
};

/* Adds a device, which is uv_open()'s from now on. A failure ends the test. */
void plug_in(struct plug *plug);
/* Removes it, and waits until that is done. */
void plug_out(const struct plug *plug);
/* The same in two steps. The end: 0, -EIO: it failed, -ETIMEDOUT: it is not done within ms. */
pid_t plug_out_begin(const struct plug *plug);
int plug_out_end(pid_t pid, int ms);

TCase *case_write(void), *case_context(void), *case_ioctl(void), *case_handle(void), *case_mr(void), *case_event(void),
	*case_cq(void), *case_qp(void), *case_regression(void), *case_srq(void), *case_xrc(void), *case_wq(void),
	*case_flow(void), *case_rare(void), *case_data(void), *case_ucap(void), *case_unplug(void);

#endif
