/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads the parse tree of a device by UVERBSD_METHOD_TREE_QUERY, as any client may (include/uverbsd/abi.h). */
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "persona/persona.h"
#include "view.h"
#include "util/util.h"

/* PAGE: rows per call. MAX_DRIVER: the driver ids to try; the kernel has about twenty. */
enum { PAGE = 64, MAX_DRIVER = 256 };

struct query {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[5];
};

static void query_add_attr(struct query *q, uint16_t id, uint64_t data, uint16_t len)
{
	q->attrs[q->hdr.num_attrs++] =
		(struct ib_uverbs_attr){ .attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data };
}

/* An inline attribute occupies the first bytes of its data field on any byte order. */
static uint64_t inline_u32(uint32_t value)
{
	uint64_t data = 0;

	memcpy(&data, &value, sizeof(value));
	return data;
}

/* Asks for PAGE rows, of row_size bytes each, from the row `first` on. */
static int query_send(int fd, unsigned int driver_id, uint16_t method, uint32_t first, void *rows, size_t row_size,
		      uint32_t *num, uint32_t *total)
{
	struct query q = { .hdr.object_id = UVERBSD_OBJECT_TREE, .hdr.method_id = method, .hdr.driver_id = driver_id };

	query_add_attr(&q, UVERBSD_ATTR_TREE_QUERY_FIRST, inline_u32(first), sizeof(first));
	query_add_attr(&q, UVERBSD_ATTR_TREE_QUERY_ROW_SIZE, inline_u32(row_size), sizeof(uint32_t));
	query_add_attr(&q, UVERBSD_ATTR_TREE_QUERY_ROWS, (uintptr_t)rows, PAGE * row_size);
	query_add_attr(&q, UVERBSD_ATTR_TREE_QUERY_NUM_ROWS, (uintptr_t)num, sizeof(*num));
	query_add_attr(&q, UVERBSD_ATTR_TREE_QUERY_TOTAL, (uintptr_t)total, sizeof(*total));
	q.hdr.length = sizeof(q);
	return ioctl(fd, RDMA_VERBS_IOCTL, &q) ? -errno : 0;
}

static int try_driver(struct uvd_tree_view *view, int fd, unsigned int driver_id)
{
	struct uverbsd_tree_row rows[PAGE];
	uint32_t num, total;

	view->driver_id = driver_id;
	return query_send(fd, driver_id, UVERBSD_METHOD_TREE_QUERY, 0, rows, sizeof(*rows), &num, &total);
}

/*
 * Finds the device's driver id, which a provider would know, by trying: a wrong one fails with EINVAL, and the device
 * logs it. So
 * what the caller guesses (view->driver_id) and the ids of our own personas come first.
 */
static int find_driver(struct uvd_tree_view *view, int fd)
{
	const struct uvd_persona *persona;
	int ret = view->driver_id ? try_driver(view, fd, view->driver_id) : -EINVAL;

	for (unsigned int i = 0; (persona = uvd_persona_at(i)) && ret == -EINVAL; i++)
		ret = try_driver(view, fd, persona->driver_id);
	for (unsigned int id = 0; id < MAX_DRIVER && ret == -EINVAL; id++)
		ret = try_driver(view, fd, id);
	return ret;
}

static int all_rows(struct uvd_tree_view *view, int fd)
{
	struct uverbsd_tree_row rows[PAGE];
	uint32_t num = 0, total = 0, first = 0;
	int ret;

	do {
		ret = query_send(fd, view->driver_id, UVERBSD_METHOD_TREE_QUERY, first, rows, sizeof(*rows), &num,
				 &total);
		if (!ret && (num > PAGE || (!num && first < total)))
			ret = -EPROTO;
		for (uint32_t i = 0; i < num && !ret; i++)
			ret = uvd_view_add(view, &rows[i], 0);
		first += num;
	} while (!ret && first < total);
	return ret;
}

/* An older device does not tell any. */
static int all_roles(struct uvd_tree_view *view, int fd)
{
	struct uverbsd_tree_role rows[PAGE];
	uint32_t num = 0, total = 0, first = 0;
	int ret;

	do {
		ret = query_send(fd, view->driver_id, UVERBSD_METHOD_TREE_ROLES, first, rows, sizeof(*rows), &num,
				 &total);
		if (!ret && (num > PAGE || (!num && first < total)))
			ret = -EPROTO;
		for (uint32_t i = 0; i < num && !ret; i++)
			ret = uvd_view_add_role(view, &rows[i]);
		first += num;
	} while (!ret && first < total);
	return ret == -EPROTONOSUPPORT ? 0 : ret;
}

static const char *tree_error_text(int err)
{
	switch (err) {
	case -ENOTTY:
		return "it does not support ioctl (a device with --abi write, or not a uverbs device)";
	case -EPROTONOSUPPORT:
		return "not a uverbsd device: only those answer the tree query";
	default:
		return uvd_errno_name(err);
	}
}

int uvd_view_ask_file(struct uvd_tree_view *view, int fd)
{
	int ret = find_driver(view, fd);

	if (!ret)
		ret = all_rows(view, fd);
	return ret ? ret : all_roles(view, fd);
}

int uvd_view_ask(struct uvd_tree_view *view, const char *node)
{
	int fd = open(node, O_RDWR | O_CLOEXEC), ret;

	if (fd < 0) {
		ret = -errno;
		fprintf(stderr, "%s: %s: %s\n", view->who, node, uvd_errno_name(errno));
		return ret;
	}
	uvd_view_guess(view, node);
	ret = uvd_view_ask_file(view, fd);
	if (ret)
		fprintf(stderr, "%s: %s: %s\n", view->who, node, tree_error_text(ret));
	close(fd);
	return ret;
}
