/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * i386 N: acts N times as a 32-bit caller: passes the same structs by i386 system calls, whose pointers have 32 bits.
 * Exit status 0 if every check has passed.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "uv.h"

enum { WRITE = 4, IOCTL = 54 };

#define CHECK(ok) \
	do { \
		if (!(ok)) { \
			printf("FAIL %s:%d: %s (errno %d)\n", __func__, __LINE__, #ok, errno); \
			exit(1); \
		} \
	} while (0)

/* System calls read and write only memory below 4 GB. The last 24 bytes of `page` hold a header that cannot be written. */
static struct low {
	uint8_t page[4096];
	struct ib_uverbs_attr attrs[2];
	struct ib_uverbs_query_port_resp_ex port;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context cmd;
	} c;
	struct ib_uverbs_get_context_resp resp;
	uint8_t bytes[64];
	char stack[65536];
} * low;

static long int80(long nr, long a, long b, long c)
{
	/* Our own stack is above 4 GB, which a program that makes this call does not use. */
	void *stack = low->stack + sizeof(low->stack) - 64;
	long result;

	__asm__ volatile("xchg %%rsp, %[stack]\n\tint $0x80\n\txchg %%rsp, %[stack]"
			 : "=a"(result), [stack] "+r"(stack)
			 : "a"(nr), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)result;
}

static long ioctl32(int fd, unsigned int command, const void *arg)
{
	return int80(IOCTL, fd, (int)command, (long)arg);
}

/* Each context gets an async event file. */
static void get_context(int fd)
{
	low->c.hdr =
		(struct ib_uverbs_cmd_hdr){ IB_USER_VERBS_CMD_GET_CONTEXT, sizeof(low->c) / 4, sizeof(low->resp) / 4 };
	low->c.cmd.response = (uintptr_t)&low->resp;
	low->resp.async_fd = 0xbad;
	CHECK(int80(WRITE, fd, (long)&low->c, sizeof(low->c)) == sizeof(low->c));
	CHECK((int)low->resp.async_fd > fd && fcntl(low->resp.async_fd, F_GETFD) == FD_CLOEXEC);
	close(low->resp.async_fd);
}

/* Makes a QUERY_PORT whose header is at the end of the page, and its attributes are behind it. */
static struct ib_uverbs_ioctl_hdr *query_port(uint16_t driver)
{
	struct ib_uverbs_ioctl_hdr *hdr = (void *)(low->page + sizeof(low->page) - sizeof(*hdr));

	CHECK(!mprotect(low->page, sizeof(low->page), PROT_READ | PROT_WRITE));
	*hdr = (struct ib_uverbs_ioctl_hdr){ .length = sizeof(*hdr) + sizeof(low->attrs),
					     .object_id = UVERBS_OBJECT_DEVICE,
					     .method_id = UVERBS_METHOD_QUERY_PORT,
					     .num_attrs = 2,
					     .driver_id = driver };
	low->attrs[0] = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_QUERY_PORT_PORT_NUM,
						 .len = sizeof(uint64_t),
						 .flags = UVERBS_ATTR_F_MANDATORY,
						 .data = 1 };
	low->attrs[1] = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_QUERY_PORT_RESP,
						 .len = sizeof(low->port),
						 .flags = UVERBS_ATTR_F_MANDATORY,
						 .data = (uintptr_t)&low->port };
	memset(&low->port, 0, sizeof(low->port));
	CHECK(!mprotect(low->page, sizeof(low->page), PROT_READ));
	return hdr;
}

static void ioctls(int fd, uint16_t driver)
{
	static const unsigned int others[] = { TCGETS, TIOCGWINSZ, FIONREAD, _IOC(_IOC_READ, '!', 1, 64) };
	const void *nowhere = (void *)8;
	struct stat st;

	CHECK(!fstat(fd, &st));
	CHECK(!ioctl32(fd, RDMA_VERBS_IOCTL, query_port(driver)) && low->port.legacy_resp.state);
	CHECK(ioctl32(fd, RDMA_VERBS_IOCTL, query_port(driver + 1)) == -EINVAL);
	CHECK(ioctl32(fd, RDMA_VERBS_IOCTL, nowhere) == -EFAULT);
	memset(low->bytes, 0x5a, sizeof(low->bytes));
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(others); i++) {
		/* The kernel answers this by itself for a regular file, as that of queues is. */
		if (others[i] == FIONREAD && S_ISREG(st.st_mode))
			continue;
		CHECK(ioctl32(fd, others[i], low->bytes) == -ENOTTY);
		CHECK(ioctl32(fd, others[i], nowhere) == -ENOTTY);
	}
	/* The kernel copies what the number of an unknown command says, before it asks the daemon. */
	CHECK(ioctl32(fd, _IOC(_IOC_READ | _IOC_WRITE, '!', 1, 64), low->bytes) == -ENOTTY);
	CHECK(ioctl32(fd, _IOC(_IOC_READ | _IOC_WRITE, '!', 1, 64), nowhere) == -EFAULT);
	for (unsigned int i = 0; i < sizeof(low->bytes); i++)
		CHECK(low->bytes[i] == 0x5a);
}

int main(int argc, char **argv)
{
	const uint16_t driver = uv_driver_id();
	int fd;

	low = mmap(NULL, sizeof(*low), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	CHECK(argc == 2 && low != MAP_FAILED);
	for (int i = 0; i < atoi(argv[1]); i++) {
		fd = uv_open();
		CHECK(fd >= 0);
		get_context(fd);
		ioctls(fd, driver);
		close(fd);
	}
	return 0;
}
