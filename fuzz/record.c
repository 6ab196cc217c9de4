/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fuzz/client.h"
#include "fuzz/record.h"

/* As in fuzz_calls.c. */
enum { RECORD_WRITE, RECORD_IOCTL, RECORD_CLOSE, RECORD_FILES = 2, RECORD_MOST = 8192 };

static struct {
	struct uv_node_ops ops;
	const struct uv_node_ops *below;
	const char *folder;
	int fds[RECORD_FILES]; /* of the open files; 0: none */
} record;

static void record_append(unsigned int op, unsigned int file, const void *bytes, size_t len)
{
	const uint8_t header[] = { op, file, len & 0xff, len >> 8 }, both = 3; /* both files are of soft */
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%d", record.folder, (int)getpid());
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	if ((lseek(fd, 0, SEEK_END) || write(fd, &both, 1) == 1) && write(fd, header, sizeof(header)) > 0 &&
	    write(fd, bytes, len) < 0)
		perror(path);
	close(fd);
}

/* The file of this descriptor; -1: it is not recorded. */
static int record_file_of(int fd)
{
	for (int i = 0; i < RECORD_FILES; i++)
		if (record.fds[i] == fd)
			return i;
	return -1;
}

static bool is_address(uint64_t value)
{
	return value >= 0x550000000000 && value < 0x800000000000;
}

/* Replaces our addresses. Equal pages stay equal, so that requests still point into the regions registered. */
static void record_relocate(uint8_t *bytes, size_t len)
{
	for (size_t at = 0; at + 8 <= len; at += 8) {
		uint64_t value;

		memcpy(&value, bytes + at, 8);
		if (!is_address(value))
			continue;
		value = FUZZ_BUFFER + (value & 0x7fff);
		memcpy(bytes + at, &value, 8);
	}
}

/* Copies our own memory, where it may not be readable. */
static bool record_copy(void *dst, const void *src, size_t len)
{
	struct iovec local = { dst, len }, remote = { (void *)src, len };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)len;
}

static int record_open(const char *path)
{
	int fd = record.below->open(path), file = record_file_of(0);

	if (fd > 0 && file >= 0)
		record.fds[file] = fd;
	return fd;
}

static int record_close(int fd)
{
	int file = record_file_of(fd);

	if (fd > 0 && file >= 0) {
		record_append(RECORD_CLOSE, file, NULL, 0);
		record.fds[file] = 0;
	}
	return record.below->close(fd);
}

static ssize_t record_write(int fd, const void *bytes, size_t len)
{
	static uint8_t copy[RECORD_MOST];
	int file = record_file_of(fd);

	if (file >= 0 && len <= sizeof(copy) && record_copy(copy, bytes, len)) {
		record_relocate(copy, len);
		record_append(RECORD_WRITE, file, copy, len);
	}
	return record.below->write(fd, bytes, len);
}

/* Copies what an attribute points to behind the tree. Returns the new length. */
static size_t record_attr(struct ib_uverbs_attr *attr, uint8_t *copy, size_t tree, size_t len)
{
	if (!is_address(attr->data))
		return len;
	if (attr->len <= sizeof(attr->data) || len + attr->len + 8 > RECORD_MOST ||
	    !record_copy(copy + len, (void *)(uintptr_t)attr->data, attr->len)) {
		attr->data = FUZZ_OUT + (attr->data & 0xff8);
		return len;
	}
	record_relocate(copy + len, attr->len);
	attr->data = FUZZ_DATA + (len - tree);
	return len + ((attr->len + 7) & ~7);
}

/* Copies a tree and what it points to. Returns the length; 0: it is not a tree, or cannot be read. */
static size_t record_tree(const void *arg, uint8_t copy[RECORD_MOST])
{
	struct ib_uverbs_ioctl_hdr *hdr = (void *)copy;
	size_t len;

	memset(copy, 0, RECORD_MOST);
	if (!record_copy(hdr, arg, sizeof(*hdr)) || hdr->length > 4096 ||
	    hdr->length != sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]) ||
	    !record_copy(copy, arg, hdr->length))
		return 0;
	len = hdr->length;
	for (unsigned int i = 0; i < hdr->num_attrs; i++)
		len = record_attr(&hdr->attrs[i], copy, hdr->length, len);
	return len;
}

static int record_ioctl(int fd, unsigned long cmd, const void *arg)
{
	static uint8_t copy[RECORD_MOST] __attribute__((aligned(8)));
	int file = record_file_of(fd);
	size_t len = file >= 0 && cmd == RDMA_VERBS_IOCTL ? record_tree(arg, copy) : 0;

	if (len)
		record_append(RECORD_IOCTL, file, copy, len);
	return record.below->ioctl(fd, cmd, arg);
}

const struct uv_node_ops *fuzz_record(const struct uv_node_ops *below, const char *folder)
{
	record.below = below;
	record.folder = folder;
	record.ops = (struct uv_node_ops){ .open = record_open,
					   .close = record_close,
					   .write = record_write,
					   .ioctl = record_ioctl,
					   .in_process = below->in_process };
	return &record.ops;
}
