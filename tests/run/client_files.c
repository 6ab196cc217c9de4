/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Descriptors of the device and of its event files. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client.h"

void client_duplicates_are_the_same_file(void)
{
	int fd = client_open_context(), pd = client_alloc_pd(fd), d[4];

	IS(pd >= 0);
	d[0] = dup(fd);
	d[1] = fcntl(fd, F_DUPFD, 0);
	d[2] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	d[3] = dup2(fd, fd + 100);
	IS(fcntl(d[0], F_GETFD) == 0 && fcntl(d[1], F_GETFD) == 0 && fcntl(d[2], F_GETFD) == FD_CLOEXEC);
	for (int i = 0; i < 4; i++)
		IS(client_alloc_pd(d[i]) == pd + 1 + i);
	IS(!close(fd));
	for (int i = 0; i < 4; i++)
		IS(client_count_pds(d[i]) == 5);
}

void client_low_duplicate_keeps_ioctl_only(void)
{
	int fd = client_open_context(), low = dup2(fd, 30);

	IS(client_alloc_pd(fd) == 0);
	IS(client_count_pds(low) == 1);
	FAILS(client_alloc_pd(low), EPERM);
	IS(client_count_pds(fd) == 1);
}

void client_number_that_means_another_file(void)
{
	int fd = client_open_context(), keep = dup(fd), pipes[2];
	char byte;

	IS(client_alloc_pd(fd) == 0);
	IS(!pipe(pipes) && dup2(pipes[1], fd) == fd);
	IS(write(fd, "x", 1) == 1 && read(pipes[0], &byte, 1) == 1 && byte == 'x');
	FAILS(ioctl(fd, RDMA_VERBS_IOCTL, NULL), ENOTTY);
	IS(client_alloc_pd(keep) == 1);
	IS(dup2(keep, fd) == fd && client_alloc_pd(fd) == 2);
	IS(!close(fd));
	FAILS(client_alloc_pd(fd), EBADF);
	IS(client_open_context() == fd);
	IS(client_alloc_pd(fd) == 0 && client_alloc_pd(keep) == 3);
}

void client_closed_by_another_thread(void);

static void *close_and_reopen(void *arg)
{
	int fd = *(int *)arg;

	IS(client_alloc_pd(fd) == 1 && !close(fd));
	IS(client_open_context() == fd && client_alloc_pd(fd) == 0);
	return NULL;
}

void client_closed_by_another_thread(void)
{
	int fd = client_open_context(), keep = dup(fd);
	pthread_t t;

	IS(client_alloc_pd(fd) == 0);
	IS(!pthread_create(&t, NULL, close_and_reopen, &fd) && !pthread_join(t, NULL));
	IS(client_alloc_pd(fd) == 1 && client_alloc_pd(keep) == 2);
}

void client_writev_is_one_command_a_piece(void)
{
	struct client_pd_command a, b, bad;
	struct iovec v[] = {
		{ &a, 8 + sizeof(a.cmd) }, { &b, 8 + sizeof(b.cmd) }, { &bad, 4 }, { &b, 8 + sizeof(b.cmd) }
	};
	int fd = client_open_context();

	client_pd_command(&a);
	client_pd_command(&b);
	client_pd_command(&bad);
	IS(writev(fd, v, 4) == (ssize_t)(v[0].iov_len + v[1].iov_len));
	IS(a.resp.pd_handle == 0 && b.resp.pd_handle == 1 && client_count_pds(fd) == 2);
	FAILS(writev(fd, v + 2, 2), EINVAL);
}

void client_many_opens(void)
{
	struct rlimit r;
	int n = 0, fd = 0;

	IS(!getrlimit(RLIMIT_NOFILE, &r));
	r.rlim_cur = r.rlim_max;
	IS(!setrlimit(RLIMIT_NOFILE, &r));
	for (; n < 300 && fd >= 0; n++) {
		fd = open(NODE, O_RDWR);
		IS(fd >= 0 || (errno == EMFILE && r.rlim_max < 65536 && n > 200));
		IS(fd < 0 || client_get_context(fd) >= 0);
		IS(fd < 0 || client_alloc_pd(fd) == 0);
	}
}

void client_no_number_left_is_emfile(void)
{
	struct rlimit r = { 1024, 1024 };
	int n = 0;

	IS(!setrlimit(RLIMIT_NOFILE, &r));
	while (open(NODE, O_RDWR) >= 0)
		n++;
	IS(errno == EMFILE && n == 256 + 16 + 8);
}

void client_read_of_the_device_is_einval(void)
{
	int fd = client_open_context(), only = open(NODE, O_WRONLY);
	char byte = 1;
	struct iovec v = { &byte, 1 };

	FAILS(read(fd, &byte, 1), EINVAL);
	FAILS(readv(fd, &v, 1), EINVAL);
	FAILS(read(dup(fd), &byte, 1), EINVAL);
	IS(only >= 0);
	FAILS(read(only, &byte, 1), EBADF);
	IS(byte == 1);
}

void client_read_of_another_file_with_such_a_number(void)
{
	int fd = open(NODE, O_RDWR), ends[2];
	char byte = 0;

	IS(!pipe(ends) && dup2(ends[0], fd) == fd);
	for (int number = 40; number < 300; number++) {
		IS(dup2(ends[0], number) == number);
		IS(write(ends[1], "x", 1) == 1 && read(number, &byte, 1) == 1 && byte == 'x');
	}
	IS(write(ends[1], "y", 1) == 1 && read(fd, &byte, 1) == 1 && byte == 'y');
}

void client_event_files(void)
{
	struct stat st;
	int fd = open(NODE, O_RDWR), async;
	char event[16];

	async = client_get_context(fd);
	IS(async >= 0 && !fstat(async, &st));
	IS(fcntl(async, F_GETFD) == FD_CLOEXEC);
	IS(!fcntl(async, F_SETFL, O_NONBLOCK));
	FAILS(read(async, event, sizeof(event)), EAGAIN);
}

void client_event_file_without_a_place_for_its_number(void)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr;
	} *c = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = client_open_context(), lowest = dup(0);

	IS(c != MAP_FAILED && lowest >= 0 && !close(lowest));
	c->hdr = (struct ib_uverbs_ioctl_hdr){ .length = sizeof(*c),
					       .object_id = UVERBS_OBJECT_ASYNC_EVENT,
					       .method_id = UVERBS_METHOD_ASYNC_EVENT_ALLOC,
					       .num_attrs = 1,
					       .driver_id = RDMA_DRIVER_HFI1 };
	c->attr = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, .flags = 1 };
	IS(!mprotect(c, 4096, PROT_READ));
	FAILS(ioctl(fd, RDMA_VERBS_IOCTL, c), EFAULT);
	IS(dup(0) == lowest && !close(lowest));
	IS(!mprotect(c, 4096, PROT_READ | PROT_WRITE));
	IS(!ioctl(fd, RDMA_VERBS_IOCTL, c) && c->attr.data_s64 == lowest);
}
