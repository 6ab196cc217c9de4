/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages between the broker and the engine process. The first byte chooses who receives the message, the second the kind
 * of socket or the operation, the third the number of descriptors; the message follows.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/broker.h"
#include "fuzz/target.h"
#include "options/options.h"
#include "persona/persona.h"
#include "plugin/plugin.h"

enum { MOST_FDS = UVD_WIRE_FDS + 2, HEAD = 3 };

static int broker_pair[2], broker_fd;
static struct uvd_plugins *broker_names;

static void broker_init(void)
{
	broker_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	broker_names = uvd_plugins_new(NULL);
	if (broker_fd < 0 || !broker_names || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, broker_pair))
		abort();
}

static void broker_send(const uint8_t *bytes, size_t len, unsigned int num_fds)
{
	union {
		char room[CMSG_SPACE(MOST_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = {};
	struct iovec iov = { (void *)bytes, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (num_fds) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_LEN(num_fds * sizeof(int));
		control.align = (struct cmsghdr){ m.msg_controllen, SOL_SOCKET, SCM_RIGHTS };
		for (unsigned int i = 0; i < num_fds; i++)
			memcpy(CMSG_DATA(&control.align) + i * sizeof(int), &broker_fd, sizeof(int));
	}
	if (sendmsg(broker_pair[0], &m, 0) != (ssize_t)len)
		abort();
}

static void broker_receive(unsigned int who, unsigned int what)
{
	const enum uvd_wire_kind kind = what % UVD_WIRE_KINDS;
	struct uvd_device_config device;
	struct uvd_wire_request request;
	struct uvd_wire_answer answer;
	struct uvd_wire_fds fds;

	if (who == 0) {
		uvd_wire_asked(broker_pair[1], kind, &request, &fds);
	} else if (who == 1) {
		if (!uvd_wire_asked_with(broker_pair[1], kind, &request, &device, &fds) && request.op == UVD_WIRE_ADD)
			uvd_options_device_ok(broker_names, &device);
	} else {
		uvd_wire_answered(broker_pair[1], 1 + what % (UVD_WIRE_OPS - 1), &answer, &fds);
	}
	uvd_wire_close(&fds);
}

static void broker_run(const uint8_t *data, size_t size)
{
	if (size < HEAD)
		return;
	broker_send(data + HEAD, size - HEAD, data[2] % (MOST_FDS + 1));
	broker_receive(data[0] % 3, data[1]);
}

/* Valid messages of each operation. */
static size_t broker_seed(unsigned int n, uint8_t *data, size_t max, char name[64])
{
	struct uvd_wire_request r = { .version = UVD_WIRE_VERSION, .op = 1 + n };
	size_t size = HEAD + sizeof(r);

	if (r.op >= UVD_WIRE_OPS)
		return 0;
	snprintf(name, 64, "request-%u", r.op);
	data[0] = 1;
	data[1] = r.op >= UVD_WIRE_SEIZE  ? UVD_WIRE_LOAN
		  : r.op >= UVD_WIRE_PEER ? UVD_WIRE_QUESTIONS
					  : UVD_WIRE_CONTROL;
	data[2] = r.op == UVD_WIRE_CONNECT || r.op == UVD_WIRE_TAKE || r.op == UVD_WIRE_REGISTER;
	r.tid = r.op >= UVD_WIRE_PEER && r.op <= UVD_WIRE_SEIZE;
	if (r.op == UVD_WIRE_UCAP || r.op == UVD_WIRE_UCAP_GONE)
		strcpy(r.name, "ucap");
	memcpy(data + HEAD, &r, sizeof(r));
	if (r.op == UVD_WIRE_ADD) {
		uvd_config_default((struct uvd_device_config *)(data + size), uvd_plugins_persona(broker_names, "rxe"),
				   0);
		size += sizeof(struct uvd_device_config);
	}
	return size;
}

const struct fuzz_target fuzz_target = {
	.name = "fuzz_broker",
	.init = broker_init,
	.run = broker_run,
	.seed = broker_seed,
};
