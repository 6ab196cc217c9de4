/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * client NODE DRIVER_ID: reads the tree of a device as any other program would, with only <uverbsd/abi.h> and the
 * kernel's headers, a few rows at a time, and prints a line for each row. Exit status 0: the answers were consistent.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <uverbsd/abi.h>

enum { PAGE = 7 };

static struct {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[5];
} call;

static struct uverbsd_tree_row rows[PAGE + 1];
static uint32_t num, total;

static void set(unsigned int i, uint16_t id, uint64_t data, uint16_t len)
{
	call.attrs[i] =
		(struct ib_uverbs_attr){ .attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data };
}

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s (errno: %s)\n", what, strerror(errno));
	exit(1);
}

int main(int argc, char **argv)
{
	uint32_t first = 0, size = sizeof(rows[0]);
	uint64_t data = 0;
	int fd;

	check(argc == 3, "client NODE DRIVER_ID");
	fd = open(argv[1], O_RDWR);
	check(fd >= 0, argv[1]);
	call.hdr.length = sizeof(call);
	call.hdr.object_id = UVERBSD_OBJECT_TREE;
	call.hdr.method_id = UVERBSD_METHOD_TREE_QUERY;
	call.hdr.driver_id = atoi(argv[2]);
	call.hdr.num_attrs = 5;
	memcpy(&data, &size, sizeof(size));
	set(1, UVERBSD_ATTR_TREE_QUERY_ROW_SIZE, data, sizeof(size));
	set(2, UVERBSD_ATTR_TREE_QUERY_ROWS, (uintptr_t)rows, PAGE * sizeof(rows[0]));
	set(3, UVERBSD_ATTR_TREE_QUERY_NUM_ROWS, (uintptr_t)&num, sizeof(num));
	set(4, UVERBSD_ATTR_TREE_QUERY_TOTAL, (uintptr_t)&total, sizeof(total));
	do {
		data = 0;
		memcpy(&data, &first, sizeof(first));
		set(0, UVERBSD_ATTR_TREE_QUERY_FIRST, data, sizeof(first));
		memset(rows, 0xee, sizeof(rows));
		check(!ioctl(fd, RDMA_VERBS_IOCTL, &call), "the query failed");
		check(call.attrs[2].flags & call.attrs[3].flags & call.attrs[4].flags & UVERBS_ATTR_F_VALID_OUTPUT,
		      "an output is not marked as written");
		check(num == (total - first < PAGE ? total - first : PAGE), "a page is not full");
		check(rows[num].kind == 0xee, "it wrote past the last row");
		for (uint32_t i = 0; i < num; i++) {
			check(rows[i].name[0] && memchr(rows[i].name, 0, sizeof(rows[i].name)), "a row has no name");
			printf("%u %u %u %u %s\n", rows[i].kind, rows[i].object, rows[i].method, rows[i].id,
			       rows[i].name);
		}
		first += num;
	} while (first < total);
	return 0;
}
