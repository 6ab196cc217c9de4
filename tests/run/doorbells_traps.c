/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A client does something to a descriptor whose doorbells nobody answers, or to the memory behind it. After each it can post. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "doorbells.h"

enum { PAGE = 4096, TIMES = 20000 };

struct bell {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_post_send post;
};

static struct bell bell_of(const struct ibv_qp *of)
{
	return (struct bell){ { IB_USER_VERBS_CMD_POST_SEND, DOORBELL / 4, 1 },
			      { .response = 1, .qp_handle = of->handle, .wqe_size = 128 } };
}

static off_t position(void)
{
	return lseek(s.context->cmd_fd, 0, SEEK_CUR);
}

static void begin_direct(void)
{
	begin_pair();
	CHECK(is_direct());
}

static void still_rings(void)
{
	for (uint64_t n = 10; n < 30; n++)
		post_and_expect(n);
	CHECK(is_direct());
}

void case_pointers(void)
{
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int fd = s.context->cmd_fd;
	struct stat st;
	off_t at;

	/* Looking for doorbells takes no memory. */
	begin_direct();
	CHECK(!fstat(fd, &st) && st.st_blocks * 512 < MEGABYTE);
	CHECK(pages != MAP_FAILED && !munmap(pages + PAGE, PAGE));
	at = position();
	CHECK(write(fd, pages + PAGE, DOORBELL) == -1 && errno == EFAULT && position() == at);
	still_rings();
	at = position();
	memset(pages, 7, PAGE);
	CHECK(write(fd, pages + PAGE - 16, DOORBELL) == 16 && position() == at + 16);
	still_rings();
	at = position();
	CHECK(pwrite(fd, pages, DOORBELL, at + PAGE) == DOORBELL && position() == at);
	still_rings();
}

void case_end_of_file(void)
{
	const int fd = s.context->cmd_fd;
	const off_t end = lseek(fd, 0, SEEK_END);
	struct bell bell;
	off_t at;

	CHECK(end == (off_t)1 << 62 && lseek(fd, (off_t)1 << 61, SEEK_SET) > 0);
	begin_direct();
	bell = bell_of(qp);
	at = position();
	CHECK(lseek(fd, end - 16, SEEK_SET) == end - 16);
	CHECK(write(fd, &bell, DOORBELL) < DOORBELL);
	CHECK(lseek(fd, INT64_MAX - 16, SEEK_SET) == -1 || write(fd, &bell, DOORBELL) == -1);
	CHECK(lseek(fd, at, SEEK_SET) == at);
	still_rings();
}

void case_seals(void)
{
	const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, fd = s.context->cmd_fd;
	const off_t log = (off_t)1 << 61;

	begin_direct();
	CHECK(ftruncate(fd, log) == -1 && errno == EPERM);
	CHECK(ftruncate(fd, INT64_MAX) == -1 && errno == EPERM);
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == -1 && errno == EPERM);
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == -1 && errno == EPERM);
	/* It can spoil its own queues and doorbells: here those that were read. */
	CHECK(!fallocate(fd, punch, log, (position() & -PAGE) - log + PAGE));
	still_rings();
	CHECK(!fallocate(fd, 0, position(), MEGABYTE));
	still_rings();
}

void case_append(void)
{
	const int fd = s.context->cmd_fd;
	off_t at;

	begin_direct();
	at = position();
	CHECK(!fcntl(fd, F_SETFL, O_APPEND));
	CHECK(post(1) == EPERM);
	CHECK(!fcntl(fd, F_SETFL, 0) && lseek(fd, at, SEEK_SET) == at);
	/* The refused post is in the queue: the next doorbell hands it over, too. */
	CHECK(!post(2));
	expect(1, IBV_WC_SUCCESS);
	expect(2, IBV_WC_SUCCESS);
	still_rings();
}

/* Sends a descriptor to itself. Returns the copy, which has a number that nobody has chosen for devices. */
static int pass(int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { "", 1 };
	char byte;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	int pair[2], copy;

	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &fd, sizeof(fd));
	CHECK(sendmsg(pair[0], &msg, 0) == 1);
	iov.iov_base = &byte;
	CHECK(recvmsg(pair[1], &msg, 0) == 1 && msg.msg_controllen);
	memcpy(&copy, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(copy));
	close(pair[0]);
	close(pair[1]);
	return copy;
}

void case_passed(void)
{
	const int fd = s.context->cmd_fd;
	int copy;

	begin_direct();
	copy = pass(fd);
	s.context->cmd_fd = copy;
	still_rings();
	s.context->cmd_fd = fd;
	still_rings();
	close(copy);
	still_rings();
}

/* A file of its own has a position of its own. Doorbells that it writes behind the log's next ones would be taken for those. */
void case_reopened(void)
{
	struct bell bell;
	char path[64];
	int own;

	begin_direct();
	bell = bell_of(qp);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s.context->cmd_fd);
	own = open(path, O_RDWR | O_CLOEXEC);
	CHECK(own == -1 || lseek(own, 0, SEEK_CUR) == 0);
	if (own >= 0) {
		CHECK(lseek(own, ((off_t)1 << 61) + 64 * MEGABYTE, SEEK_SET) > 0);
		for (int n = 0; n < 100; n++)
			(void)!write(own, &bell, DOORBELL);
		close(own);
	}
	still_rings();
}

/* Doorbells that were read, and junk where the next one comes. No write() has brought them, so no event tells of them. */
void case_mapped(void)
{
	off_t at;
	char *map;

	begin_direct();
	still_rings();
	for (unsigned int n = 0; n < 200; n++) {
		const struct bell bell = bell_of(n % 2 ? qp : peer);

		at = position() - 4 * DOORBELL;
		map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, s.context->cmd_fd, at & -PAGE);
		CHECK(map != MAP_FAILED);
		memcpy(map + at % PAGE, &bell, DOORBELL);
		memset(map + at % PAGE + 4 * DOORBELL, 7, n % DOORBELL);
		post_and_expect(n);
		CHECK(!munmap(map, 2 * PAGE));
	}
	still_rings();
}

static void *ring(void *arg)
{
	for (int n = 0; n < TIMES; n++)
		CHECK(write(s.context->cmd_fd, arg, DOORBELL) == DOORBELL);
	return NULL;
}

/* Two threads, and a process that shares the position, ring while this one posts. */
void case_at_once(void)
{
	struct bell bells[2];
	pthread_t threads[2];
	int status;
	off_t at;
	pid_t pid;

	begin_direct();
	at = position();
	bells[0] = bell_of(qp);
	bells[1] = bell_of(peer);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		ring(&bells[0]);
		_exit(0);
	}
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&threads[i], NULL, ring, &bells[i]));
	for (uint64_t n = 0; n < 1000; n++)
		post_and_expect(n);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	/* Each record is whole, at a place of its own. */
	CHECK(position() == at + (3 * TIMES + 1000) * (off_t)DOORBELL);
	still_rings();
}

/* Commands of other lengths are calls. */
void case_short_command(void)
{
	struct ib_uverbs_alloc_pd_resp answer = { .pd_handle = UINT32_MAX };
	const struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_alloc_pd cmd;
	} alloc = { { IB_USER_VERBS_CMD_ALLOC_PD, sizeof(alloc) / 4, sizeof(answer) / 4 }, { (uintptr_t)&answer } };
	off_t at;

	_Static_assert(sizeof(alloc) < DOORBELL, "or it could be a doorbell");
	begin_direct();
	at = position();
	CHECK(write(s.context->cmd_fd, &alloc, sizeof(alloc)) == sizeof(alloc));
	CHECK(answer.pd_handle != UINT32_MAX && position() == at);
	still_rings();
}

/* Does the kernel carry a doorbell of this descriptor out? The QP does not exist. */
static bool fd_is_direct(int fd)
{
	struct bell bell = bell_of(qp);
	const off_t at = lseek(fd, 0, SEEK_CUR);

	bell.post.qp_handle = 4711;
	(void)!write(fd, &bell, DOORBELL);
	return lseek(fd, 0, SEEK_CUR) == at + DOORBELL;
}

/* There are more files than numbers for direct ones: the others are opened, too. */
void case_many(void)
{
	enum { FILES = 360 };
	unsigned int direct = 0;

	begin_direct();
	for (int n = 0; n < FILES; n++) {
		const struct ibv_context *c = ibv_open_device(s.context->device);

		CHECK(c);
		direct += fd_is_direct(c->cmd_fd);
	}
	CHECK(direct > FILES / 2 && direct < FILES);
	still_rings();
}
