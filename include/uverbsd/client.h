/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For clients in C: calls a method of a device by ioctl, as libibverbs does inside. It needs neither libibverbs nor
 * uverbsd, and works on the kernel's devices too. With libibverbs fd is the cmd_fd of struct ibv_context.
 *
 *   int driver_id = uverbsd_driver_id(context->cmd_fd);
 *   struct uverbsd_call call = {};
 *
 *   uverbsd_const(&call, UVERBS_ATTR_HELLO_SAY_NUMBER, 21);
 *   uverbsd_out(&call, UVERBS_ATTR_HELLO_SAY_DOUBLED, &doubled, sizeof(doubled));
 *   err = uverbsd_call(context->cmd_fd, driver_id, &call, UVERBS_OBJECT_HELLO, UVERBS_METHOD_HELLO_SAY);
 */
#ifndef UVERBSD_CLIENT_H
#define UVERBSD_CLIENT_H

#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#define UVERBSD_CALL_ATTRS 16

/* A call that is put together. Set it to zero first. */
struct uverbsd_call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[UVERBSD_CALL_ATTRS];
};

/* Adds an attribute. If there are more than UVERBSD_CALL_ATTRS, uverbsd_call() returns E2BIG and makes no call. */
static inline void uverbsd_attr(struct uverbsd_call *call, uint16_t id, uint64_t data, uint16_t len)
{
	if (call->hdr.num_attrs++ < UVERBSD_CALL_ATTRS)
		call->attrs[call->hdr.num_attrs - 1] = (struct ib_uverbs_attr){
			.attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data
		};
}

/* An input of type PTR_IN. Up to 8 bytes travel in the attribute itself. */
static inline void uverbsd_in(struct uverbsd_call *call, uint16_t id, const void *in, uint16_t len)
{
	uint64_t data = (uintptr_t)in;

	if (len <= sizeof(data)) {
		data = 0;
		memcpy(&data, in, len);
	}
	uverbsd_attr(call, id, data, len);
}

/* An output. `out` is written when the call is issued. */
static inline void uverbsd_out(struct uverbsd_call *call, uint16_t id, void *out, uint16_t len)
{
	uverbsd_attr(call, id, (uintptr_t)out, len);
}

/* A number: CONST or FLAGS. */
static inline void uverbsd_const(struct uverbsd_call *call, uint16_t id, uint64_t value)
{
	uverbsd_attr(call, id, value, sizeof(value));
}

/* A handle. For a new object any number: uverbsd_handle_of() then returns its handle. */
static inline void uverbsd_handle(struct uverbsd_call *call, uint16_t id, uint32_t handle)
{
	uverbsd_attr(call, id, handle, 0);
}

/* Returns the handle of attribute `id` after the call, or UINT32_MAX: there is no such attribute. */
static inline uint32_t uverbsd_handle_of(const struct uverbsd_call *call, uint16_t id)
{
	for (unsigned int i = 0; i < call->hdr.num_attrs && i < UVERBSD_CALL_ATTRS; i++)
		if (call->attrs[i].attr_id == id)
			return call->attrs[i].data;
	return UINT32_MAX;
}

/*
 * Returns the driver_id (enum rdma_driver_id) that calls to this device need, or -1: it has no ioctl. A wrong one is
 * EINVAL before anything else is looked at; with the right one an unknown object is EPROTONOSUPPORT. It tries those of
 * rxe and hfi1 first, since uverbsd logs wrong ones.
 */
static inline int uverbsd_driver_id(int fd)
{
	for (int i = -2; i < 64; i++) {
		struct ib_uverbs_ioctl_hdr hdr = {
			.length = sizeof(hdr),
			.object_id = 0xfff,
			.driver_id = i == -2   ? RDMA_DRIVER_RXE
				     : i == -1 ? RDMA_DRIVER_HFI1
					       : i,
		};

		if (!ioctl(fd, RDMA_VERBS_IOCTL, &hdr) || errno == EPROTONOSUPPORT)
			return hdr.driver_id;
		if (errno != EINVAL)
			break;
	}
	return -1;
}

/* Issues the call. driver_id: of uverbsd_driver_id(). Returns 0 or an errno. */
static inline int uverbsd_call(int fd, int driver_id, struct uverbsd_call *call, uint16_t object, uint16_t method)
{
	if (call->hdr.num_attrs > UVERBSD_CALL_ATTRS)
		return E2BIG;
	call->hdr.driver_id = driver_id;
	call->hdr.object_id = object;
	call->hdr.method_id = method;
	call->hdr.length = sizeof(call->hdr) + call->hdr.num_attrs * sizeof(call->attrs[0]);
	return ioctl(fd, RDMA_VERBS_IOCTL, call) ? errno : 0;
}

#endif
