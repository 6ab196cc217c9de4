/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Makes a call that build.c has built. */
#include <stdio.h>
#include <sys/ioctl.h>

#include "replay.h"

/* The device's time begins and ends with the call itself. */
struct making {
	struct uvd_prog_step step;
	const struct uvd_replay_call *c;
};

static int replay_prepare(struct uvd_prog_step *step)
{
	const struct uvd_replay_call *c = ((struct making *)step)->c;
	char what[2 * UVD_SHORT_NAME + 2];

	snprintf(what, sizeof(what), "%s.%s", c->was ? c->was->object : "CQ", c->was ? c->was->verb : "POLL");
	uvd_replay_asks(c->r, what);
	return 0;
}

static void replay_answered(struct uvd_prog_step *step)
{
	uvd_replay_answered();
}

long uvd_replay_make(const struct uvd_replay_call *c)
{
	struct making m = {
		.step = {
			.prepare = replay_prepare,
			.answered = replay_answered,
			.call = { .is_ioctl = c->ioctl, .msg = c->msg, .len = c->len, .cmd = RDMA_VERBS_IOCTL, .arg = (uintptr_t)c->msg },
			.fd = c->f->fd,
		},
		.c = c,
	};
	struct uvd_prog_step *step = &m.step;

	uvd_prog_steps_run(&uvd_prog_system_calls, &step, 1);
	return step->result;
}
