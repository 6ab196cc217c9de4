/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/wire.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <uverbsd/log.h>

enum { TID = 1, INDEX = 2, VALUE = 4, FLAG = 8, NAME = 16, COUNTERS = 32, REG = 64 };

/* The allowed content of each operation's messages. The receiver refuses a request in which another field is not 0. */
static const struct {
	unsigned char kind, uses, fds_in, fds_out;
	unsigned int max_index;
	bool device; /* a device follows the request */
} ops[UVD_WIRE_OPS] = {
	[UVD_WIRE_CONNECT] = { UVD_WIRE_CONTROL, INDEX | VALUE, 1, 0, UVD_WIRE_KINDS - 1 },
	[UVD_WIRE_NODE] = { UVD_WIRE_CONTROL, INDEX | VALUE, 0, 1, UINT32_MAX },
	[UVD_WIRE_PUBLISH] = { UVD_WIRE_CONTROL, INDEX, 0, 0, UINT32_MAX },
	[UVD_WIRE_WITHDRAW] = { UVD_WIRE_CONTROL, INDEX, 0, 0, UINT32_MAX },
	[UVD_WIRE_PORT] = { UVD_WIRE_CONTROL, INDEX | VALUE | FLAG, 0, 0, UINT32_MAX },
	[UVD_WIRE_COUNTERS] = { UVD_WIRE_CONTROL, INDEX | VALUE | COUNTERS, 0, 0, UINT32_MAX },
	[UVD_WIRE_UCAP] = { UVD_WIRE_CONTROL, NAME, 0, 1, 0 },
	[UVD_WIRE_UCAP_GONE] = { UVD_WIRE_CONTROL, NAME, 0, 0, 0 },
	[UVD_WIRE_CM] = { UVD_WIRE_CONTROL, 0, 0, 1, 0 },
	[UVD_WIRE_CM_GONE] = { UVD_WIRE_CONTROL, 0, 0, 0, 0 },
	[UVD_WIRE_READY] = { UVD_WIRE_CONTROL, 0, 0, 0, 0 },
	[UVD_WIRE_ALIVE] = { UVD_WIRE_CONTROL, 0, 0, 0, 0 },
	[UVD_WIRE_ADD] = { UVD_WIRE_CONTROL, 0, 0, 0, 0, .device = true },
	[UVD_WIRE_TABLES] = { UVD_WIRE_CONTROL, INDEX | VALUE, 0, 0, UVD_MAX_DEVICES - 1, .device = true },
	[UVD_WIRE_ADAPTER] = { UVD_WIRE_CONTROL, INDEX, 0, 0, UVD_MAX_DEVICES - 1 },
	[UVD_WIRE_PLUGIN] = { UVD_WIRE_CONTROL, INDEX | NAME, 0, 1, UVD_WIRE_SLOTS - 1 },
	[UVD_WIRE_PLUGIN_OPTION] = { UVD_WIRE_CONTROL, INDEX | VALUE, 0, 1, UVD_WIRE_SLOTS - 1 },
	[UVD_WIRE_PEER_OWNERS] = { UVD_WIRE_CONTROL, TID | VALUE, 0, 1, 0 },
	[UVD_WIRE_QUEUES] = { UVD_WIRE_CONTROL, 0, 0, 1, 0 },
	[UVD_WIRE_BACKING] = { UVD_WIRE_CONTROL, 0, 0, 1, 0 },
	[UVD_WIRE_BACKING_GONE] = { UVD_WIRE_CONTROL, VALUE, 0, 0, 0 },
	[UVD_WIRE_EARS] = { UVD_WIRE_CONTROL, 0, 0, 2, 0 },
	[UVD_WIRE_WATCH] = { UVD_WIRE_CONTROL, VALUE, 0, 0, 0 },
	[UVD_WIRE_RELOAD] = { UVD_WIRE_CONTROL, 0, 0, 1, 0 },
	[UVD_WIRE_RESTART] = { UVD_WIRE_CONTROL, 0, 0, 0, 0 },
	[UVD_WIRE_LOG_LEVEL] = { UVD_WIRE_CONTROL, INDEX, 0, 0, UVD_DEBUG },
	[UVD_WIRE_LIFE] = { UVD_WIRE_CONTROL, 0, 0, 0, 0 },
	[UVD_WIRE_PEER] = { UVD_WIRE_QUESTIONS, TID, 0, 4, 0 },
	[UVD_WIRE_OPENER] = { UVD_WIRE_QUESTIONS, TID, 0, 1, 0 },
	[UVD_WIRE_OPEN] = { UVD_WIRE_QUESTIONS, TID | INDEX | VALUE, 0, 1, UVD_WIRE_FILES - 1 },
	[UVD_WIRE_WRITE] = { UVD_WIRE_QUESTIONS, TID, 0, 0, 0 },
	[UVD_WIRE_SAME_MEMORY] = { UVD_WIRE_QUESTIONS, TID | VALUE, 0, 0, 0 },
	[UVD_WIRE_SOCKETS] = { UVD_WIRE_QUESTIONS, TID, 1, 0, 0 },
	[UVD_WIRE_SEIZE] = { UVD_WIRE_LOAN, TID | INDEX, 0, 0, UVD_WIRE_MAX_NICE },
	[UVD_WIRE_TAKE] = { UVD_WIRE_LOAN, INDEX, 1, 2, 1 },
	[UVD_WIRE_REGISTER] = { UVD_WIRE_LOAN, REG, 1, 2, 0 },
	[UVD_WIRE_REPLACE] = { UVD_WIRE_LOAN, INDEX | VALUE, 0, 0, 62 },
	[UVD_WIRE_RELEASE] = { UVD_WIRE_LOAN, INDEX | VALUE | FLAG, 0, 0, 1 },
};

const struct uvd_wire_fds uvd_wire_no_fds = { { -1, -1, -1, -1 } };

void uvd_wire_close(struct uvd_wire_fds *fds)
{
	for (int i = 0; i < UVD_WIRE_FDS; i++)
		if (fds->fd[i] >= 0)
			close(fds->fd[i]);
	*fds = uvd_wire_no_fds;
}

static unsigned int wire_count_fds(const struct uvd_wire_fds *fds)
{
	unsigned int n = 0;

	while (n < UVD_WIRE_FDS && fds->fd[n] >= 0)
		n++;
	return n;
}

static bool wire_has_counters(const struct uvd_wire_request *r)
{
	for (unsigned int i = 0; i < UVD_PORT_COUNTERS; i++)
		if (r->counters[i])
			return true;
	return false;
}

static bool wire_has_reg(const struct uvd_wire_request *r)
{
	static const struct uvd_reg_order none;

	return memcmp(&r->reg, &none, sizeof(none));
}

static bool request_is_good(const struct uvd_wire_request *r)
{
	unsigned int uses;

	if (r->version != UVD_WIRE_VERSION || r->op == UVD_WIRE_NONE || r->op >= UVD_WIRE_OPS || r->pad)
		return false;
	uses = ops[r->op].uses;
	if (r->index > ops[r->op].max_index || r->flag > 1)
		return false;
	if ((!(uses & INDEX) && r->index) || (!(uses & VALUE) && r->value) || (!(uses & FLAG) && r->flag))
		return false;
	if ((!(uses & COUNTERS) && wire_has_counters(r)) || (!(uses & REG) && wire_has_reg(r)) ||
	    r->reg.driver_data_len > sizeof(r->reg.driver_data))
		return false;
	if (uses & TID ? r->tid <= 0 : r->tid != 0)
		return false;
	return uses & NAME ? r->name[0] && memchr(r->name, 0, sizeof(r->name)) : !r->name[0];
}

static bool answer_is_good(const struct uvd_wire_answer *a, enum uvd_wire_op op, unsigned int num_fds)
{
	return a->version == UVD_WIRE_VERSION && a->op == op && a->num_fds == num_fds &&
	       (a->result < 0 ? !num_fds : num_fds <= ops[op].fds_out);
}

/*
 * Room for UVD_WIRE_FDS descriptors and no more: CMSG_SPACE() rounds up, and the kernel uses all of msg_controllen.
 */
enum { CONTROL_LEN = CMSG_LEN(UVD_WIRE_FDS * sizeof(int)) };

union wire_control {
	char room[CMSG_SPACE(UVD_WIRE_FDS * sizeof(int))];
	struct cmsghdr align;
};

static int wire_send(int sock, struct iovec *iov, size_t num_iov, const struct uvd_wire_fds *fds, int flags)
{
	union wire_control control = { 0 };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = num_iov };
	const unsigned int num = wire_count_fds(fds);

	if (num) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_LEN(num * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(num * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds->fd, num * sizeof(int));
	}
	while (sendmsg(sock, &m, MSG_NOSIGNAL | flags) < 0)
		if (errno != EINTR)
			return errno == ECONNRESET ? -EPIPE : -errno;
	return 0;
}

/*
 * Returns 0; -EPIPE: the peer is gone; -EPROTO: the message is too long; -EMFILE: it has more descriptors than fit
 * into *fds or into our descriptor table; or another negative errno. Stores those descriptors that fit in *fds in any
 * case.
 */
static int wire_receive(int sock, struct iovec *iov, size_t num_iov, size_t *size, struct uvd_wire_fds *fds)
{
	union wire_control control;
	struct msghdr m = {
		.msg_iov = iov, .msg_iovlen = num_iov, .msg_control = &control, .msg_controllen = CONTROL_LEN
	};
	ssize_t n;

	*fds = uvd_wire_no_fds;
	while ((n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC)) < 0)
		if (errno != EINTR)
			return errno == ECONNRESET ? -EPIPE : -errno;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
		if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS && h->cmsg_len > CMSG_LEN(0))
			memcpy(fds->fd, CMSG_DATA(h), h->cmsg_len - CMSG_LEN(0));
	if (!n)
		return -EPIPE;
	*size = n;
	if (m.msg_flags & MSG_TRUNC)
		return -EPROTO;
	return m.msg_flags & MSG_CTRUNC ? -EMFILE : 0;
}

static int wire_checked(int err, bool good, struct uvd_wire_fds *fds)
{
	if (!err && !good)
		err = -EPROTO;
	if (err)
		uvd_wire_close(fds);
	return err;
}

int uvd_wire_ask(int sock, const struct uvd_wire_request *request, const struct uvd_wire_fds *fds)
{
	return wire_send(sock, &(struct iovec){ (void *)request, sizeof(*request) }, 1, fds, 0);
}

int uvd_wire_ask_with(int sock, const struct uvd_wire_request *request, const struct uvd_device_config *device)
{
	struct iovec iov[] = { { (void *)request, sizeof(*request) }, { (void *)device, sizeof(*device) } };

	return wire_send(sock, iov, 2, &uvd_wire_no_fds, 0);
}

/*
 * Does a message of this size have all of the request, its device if the operation has one, and nothing else? device:
 * can the receiver take a device?
 */
static bool size_is_good(enum uvd_wire_op op, size_t size, bool device)
{
	if (!ops[op].device)
		return size == sizeof(struct uvd_wire_request);
	return device && size == sizeof(struct uvd_wire_request) + sizeof(struct uvd_device_config);
}

int uvd_wire_asked_with(int sock, enum uvd_wire_kind kind, struct uvd_wire_request *request,
			struct uvd_device_config *device, struct uvd_wire_fds *fds)
{
	struct iovec iov[] = { { request, sizeof(*request) }, { device, sizeof(*device) } };
	size_t size = 0;
	int err = wire_receive(sock, iov, device ? 2 : 1, &size, fds);

	if ((!err || err == -EMFILE) && (size < sizeof(*request) || !request_is_good(request) ||
					 ops[request->op].kind != kind || !size_is_good(request->op, size, device)))
		err = -EPROTO;
	/* All descriptors that the operation has are here, so the operation does not allow those that did not fit. */
	if (err == -EMFILE && wire_count_fds(fds) >= ops[request->op].fds_in)
		err = -EPROTO;
	return wire_checked(err, err || wire_count_fds(fds) == ops[request->op].fds_in, fds);
}

int uvd_wire_asked(int sock, enum uvd_wire_kind kind, struct uvd_wire_request *request, struct uvd_wire_fds *fds)
{
	return uvd_wire_asked_with(sock, kind, request, NULL, fds);
}

int uvd_wire_answer(int sock, const struct uvd_wire_answer *answer, const struct uvd_wire_fds *fds)
{
	/* The engine process waits for one answer on each socket, and has room for that. */
	return wire_send(sock, &(struct iovec){ (void *)answer, sizeof(*answer) }, 1, fds, MSG_DONTWAIT);
}

int uvd_wire_answered(int sock, enum uvd_wire_op op, struct uvd_wire_answer *answer, struct uvd_wire_fds *fds)
{
	size_t size = 0;
	int err = wire_receive(sock, &(struct iovec){ answer, sizeof(*answer) }, 1, &size, fds);

	return wire_checked(err, !err && size == sizeof(*answer) && answer_is_good(answer, op, wire_count_fds(fds)),
			    fds);
}
