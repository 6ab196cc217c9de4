/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by the rule tests: the target, the answers in which it may differ, and the checks. */
#ifndef ABI_H
#define ABI_H

#include <check.h>
#include <errno.h>
#include <string.h>
#include "uv.h"
#include "../suite.h"

/* ---- the device under test (target.c) ---------------------------------------------------------------------------- */

enum {
	ON_RXE = 1 << 0, /* the target's driver, or the driver that it poses as */
	ON_HFI1 = 1 << 1,
	ON_KERNEL = 1 << 2, /* what serves its node: ib_uverbs, CUSE or `uverbsctl run` */
	ON_CUSE = 1 << 3,
	ON_RUN = 1 << 4,
	ON_OURS = 1 << 5, /* ON_CUSE, ON_RUN or ON_CORE */
	ON_SEPARATE = 1 << 6, /* uverbsd in two processes: a CUSE node, unless $UVERBS_ONE_PROCESS is set */
	ON_CORE = 1 << 7, /* no node: the program has the device's core in its own process */
};

struct target {
	const char *name;
	uint16_t driver_id;
	unsigned int where; /* ON_* */
	struct uv_room room;
	/* Posts one empty receive, by POST_RECV or in the driver's own way. */
	void (*post_recv)(int fd, const struct uv_qp *qp);
};

/* The first call detects the target. Exits the program if its driver is unknown. */
const struct target *target(void);
/* Closes fd and unmaps the receive queues that post_recv() mapped: a mapping would keep the file open. */
void close_node(int fd);

/*
 * The list in target.c has every answer in which targets may differ. On a target that matches its mask, the errno of an
 * entry replaces the one that the rule names.
 */
struct choice {
	const char *rule;
	unsigned int where; /* the entry applies to targets that have all of these bits */
	int err; /* 0: success; -N: N bytes are read, N events fit, N descriptors are open */
	const char *reason;
};

/* The entry for this rule and this target, or NULL. */
const struct choice *choice(const char *rule);

/* Adds a test, except where the list of choices has an entry for this reason to leave it out. */
#define add_test_unless(reason, tc, test) \
	do { \
		if (!choice(reason)) \
			tcase_add_test(tc, test); \
	} while (0)
#define add_loop_test_unless(reason, tc, test, first, end) \
	do { \
		if (!choice(reason)) \
			tcase_add_loop_test(tc, test, first, end); \
	} while (0)

/* Names a return value: "success", the errno's name, or the number. The text is valid for four calls. */
const char *answer(int ret);

#define expect(call, err) \
	do { \
		int ret_ = (call); \
		ck_assert_msg(ret_ == -(err), "%s: %s, expected %s", #call, answer(ret_), answer(-(err))); \
	} while (0)

#define expect_ok(call) expect(call, 0)

/* Like expect(), unless the list of choices has another answer for this target. */
#define expect_choice(rule, call, want) \
	do { \
		const struct choice *choice_ = choice(rule); \
		int want_ = choice_ ? choice_->err : (want), ret_ = (call); \
		ck_assert_msg(ret_ == -want_, "%s: %s, expected %s", #call, answer(ret_), answer(-want_)); \
	} while (0)

/* ---- set-up of most tests (fixture.c) ---------------------------------------------------------------------------- */

/* An open file with a context, made by write(). Each test is a process of its own, and exits without closing it. */
int open_context(int *async_fd);
/* An open file with a context, a PD, a CQ and an RC QP. */
struct bed {
	int fd, async_fd, channel;
	int edge; /* an edge-triggered epoll: it reports each event of the channel once */
	uint32_t pd, cq;
	struct uv_qp qp;
};
struct bed make_bed(void);
/* Like make_bed(), with a completion channel and the QP in INIT, where it takes receives. cqe: the CQ's size. */
struct bed make_event_bed(uint32_t cqe);
/* RESET to INIT, with local write, remote write and remote read access. */
int qp_to_init(int fd, uint32_t qp);
/* INIT to RTR, and RTR to RTS. dest_qpn: the QP itself or another one on the same port. */
int qp_to_rtr(int fd, uint32_t qp, uint32_t dest_qpn);
int qp_to_rts(int fd, uint32_t qp);
int qp_to_state(int fd, uint32_t qp, unsigned int state);
/* The path from port 1 to itself, in the form that its link layer requires. */
void loopback(int fd, struct ib_uverbs_qp_dest *dest);
void loopback_ah(int fd, struct ib_uverbs_ah_attr *attr);
/* Makes num completions without data: posts receives and moves the QP to ERR, which soon flushes them. */
void flush_to_error(const struct bed *bed, unsigned int num);
/*
 * Arms the CQ, makes one event and waits until it arrives, but does not read it. Without the wait rxe could merge it
 * with the next one (event-07). Afterwards the QP is in INIT again.
 */
void make_event(const struct bed *bed);
/* Returns the number of bytes, or a negative errno. */
int read_event(int fd, void *event, size_t len);
void set_nonblock(int fd);
/* Polls for input for at most ms milliseconds. Returns revents. */
int poll_events(int fd, int ms);
/* The lowest free handle: what ALLOC_PD returns. Frees the PD again. */
uint32_t next_handle(int fd);
/*
 * Does the device's driver have this extended command? The message has a length that is right for an unregistered
 * number (EOPNOTSUPP) and wrong for a registered extended command (EINVAL).
 */
bool has_ex(int fd, uint32_t command);
/* Checks that the driver has neither the command (EOPNOTSUPP by INVOKE_WRITE) nor the method (EPROTONOSUPPORT). */
void expect_absent(int fd, uint32_t command, uint16_t object, uint16_t method);

/* ---- a device that can be removed (plug.c) ----------------------------------------------------------------------- */

struct plug {
	char ibdev[32], number[32]; /* hfi1_1, uverbs1 */
	char node[48];
	pid_t removal; /* the process that removes it */
};

struct plug_ops {
	void (*in)(struct plug *plug); /* fills in ibdev and number */
	void (*out_begin)(struct plug *plug);
	int (*out_end)(struct plug *plug, int ms);
};

/* By commands: uverbsctl, or rdma(8) if the kernel serves the node. main_core.c replaces them. */
extern const struct plug_ops *plug_ops;

/* Adds a device. From now on uv_open() opens it. A failure ends the test. */
void plug_in(struct plug *plug);
/* Removes the device and waits for the end of the removal. A failure ends the test. */
void plug_out(struct plug *plug);
/*
 * The same in two steps. plug_out_end() returns 0, -EIO if the removal failed, or -ETIMEDOUT if it takes longer than ms
 * milliseconds.
 */
void plug_out_begin(struct plug *plug);
int plug_out_end(struct plug *plug, int ms);

/* ---- the suite (suite.c) ----------------------------------------------------------------------------------------- */

/* Runs all cases. teardown, or NULL, runs after each test. Returns the program's exit status. */
int run_rules(const char *served_by, void (*teardown)(void));

TCase *case_write(void), *case_context(void), *case_ioctl(void), *case_handle(void), *case_mr(void), *case_event(void),
	*case_cq(void), *case_qp(void), *case_regression(void), *case_srq(void), *case_mw(void), *case_mcast(void),
	*case_xrc(void), *case_wq(void), *case_flow(void), *case_rare(void), *case_data(void), *case_ucap(void),
	*case_unplug(void);
/* case_qp()'s tests of work requests (rules_post.c). */
void add_post_tests(TCase *tc);

#endif
