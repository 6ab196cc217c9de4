/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/wire.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { TID = 1, INDEX = 2, VALUE = 4, FLAG = 8, NAME = 16 };

/* An operation's messages may contain this; the receiver refuses a message in which any other field is not 0. */
static const struct {
	unsigned char kind, uses, fds_in, fds_out;
	unsigned int max_index;
} ops[UVD_WIRE_OPS] = {
	[UVD_WIRE_CONNECT] = { UVD_WIRE_CONTROL, INDEX, 1, 0, UVD_WIRE_KINDS - 1 },
	[UVD_WIRE_NODE] = { UVD_WIRE_CONTROL, INDEX, 0, 1, UINT32_MAX },
	[UVD_WIRE_PUBLISH] = { UVD_WIRE_CONTROL, INDEX, 0, 0, UINT32_MAX },
	[UVD_WIRE_WITHDRAW] = { UVD_WIRE_CONTROL, INDEX, 0, 0, UINT32_MAX },
	[UVD_WIRE_PORT] = { UVD_WIRE_CONTROL, INDEX | VALUE | FLAG, 0, 0, UINT32_MAX },
	[UVD_WIRE_UCAP] = { UVD_WIRE_CONTROL, NAME, 0, 1, 0 },
	[UVD_WIRE_UCAP_GONE] = { UVD_WIRE_CONTROL, NAME, 0, 0, 0 },
	[UVD_WIRE_READY] = { UVD_WIRE_CONTROL, 0, 0, 0, 0 },
	[UVD_WIRE_PEER] = { UVD_WIRE_QUESTIONS, TID, 0, 3, 0 },
	[UVD_WIRE_OPENER] = { UVD_WIRE_QUESTIONS, TID, 0, 1, 0 },
	[UVD_WIRE_OPEN] = { UVD_WIRE_QUESTIONS, TID | INDEX | VALUE, 0, 1, UVD_WIRE_FILES - 1 },
	[UVD_WIRE_WRITE] = { UVD_WIRE_QUESTIONS, TID, 0, 0, 0 },
	[UVD_WIRE_SAME_MEMORY] = { UVD_WIRE_QUESTIONS, TID | VALUE, 0, 0, 0 },
	[UVD_WIRE_SEIZE] = { UVD_WIRE_LOAN, TID, 0, 0, 0 },
	[UVD_WIRE_TAKE] = { UVD_WIRE_LOAN, INDEX, 1, 2, 1 },
	[UVD_WIRE_RELEASE] = { UVD_WIRE_LOAN, INDEX | VALUE | FLAG, 0, 0, 1 },
};

const struct uvd_wire_fds uvd_wire_no_fds = { { -1, -1, -1 } };

void uvd_wire_close(struct uvd_wire_fds *fds)
{
	for (int i = 0; i < UVD_WIRE_FDS; i++)
		if (fds->fd[i] >= 0)
			close(fds->fd[i]);
	*fds = uvd_wire_no_fds;
}

static unsigned int count(const struct uvd_wire_fds *fds)
{
	unsigned int n = 0;

	while (n < UVD_WIRE_FDS && fds->fd[n] >= 0)
		n++;
	return n;
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
	if (uses & TID ? r->tid <= 0 : r->tid != 0)
		return false;
	return uses & NAME ? r->name[0] && memchr(r->name, 0, sizeof(r->name)) : !r->name[0];
}

static bool answer_is_good(const struct uvd_wire_answer *a, enum uvd_wire_op op, unsigned int num_fds)
{
	return a->version == UVD_WIRE_VERSION && a->op == op && a->num_fds == num_fds &&
	       (a->result < 0 ? !num_fds : num_fds <= ops[op].fds_out);
}

union wire_control {
	char room[CMSG_SPACE(UVD_WIRE_FDS * sizeof(int))];
	struct cmsghdr align;
};

static int wire_send(int sock, const void *msg, size_t size, const struct uvd_wire_fds *fds)
{
	union wire_control control = { 0 };
	struct iovec iov = { .iov_base = (void *)msg, .iov_len = size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	const unsigned int num = count(fds);

	if (num) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(num * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(num * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds->fd, num * sizeof(int));
	}
	while (sendmsg(sock, &m, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return errno == ECONNRESET ? -EPIPE : -errno;
	return 0;
}

/* -EPROTO: of another size. -EMFILE: with more descriptors than there is room for, here or in our table. */
static int wire_receive(int sock, void *msg, size_t size, struct uvd_wire_fds *fds)
{
	union wire_control control;
	struct iovec iov = { .iov_base = msg, .iov_len = size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
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
	if (n != (ssize_t)size || m.msg_flags & MSG_TRUNC)
		return -EPROTO;
	return m.msg_flags & MSG_CTRUNC ? -EMFILE : 0;
}

static int checked(int err, bool good, struct uvd_wire_fds *fds)
{
	if (!err && !good)
		err = -EPROTO;
	if (err)
		uvd_wire_close(fds);
	return err;
}

int uvd_wire_ask(int sock, const struct uvd_wire_request *request, const struct uvd_wire_fds *fds)
{
	return wire_send(sock, request, sizeof(*request), fds);
}

int uvd_wire_asked(int sock, enum uvd_wire_kind kind, struct uvd_wire_request *request, struct uvd_wire_fds *fds)
{
	int err = wire_receive(sock, request, sizeof(*request), fds);

	if ((!err || err == -EMFILE) && (!request_is_good(request) || ops[request->op].kind != kind))
		err = -EPROTO;
	return checked(err, err || count(fds) == ops[request->op].fds_in, fds);
}

int uvd_wire_answer(int sock, const struct uvd_wire_answer *answer, const struct uvd_wire_fds *fds)
{
	return wire_send(sock, answer, sizeof(*answer), fds);
}

int uvd_wire_answered(int sock, enum uvd_wire_op op, struct uvd_wire_answer *answer, struct uvd_wire_fds *fds)
{
	int err = wire_receive(sock, answer, sizeof(*answer), fds);

	return checked(err, !err && answer_is_good(answer, op, count(fds)), fds);
}
