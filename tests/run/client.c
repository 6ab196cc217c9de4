/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * client CASE: a program that uses its device under `uverbsctl run`, by raw system calls. Exit status 0, or 1 and a
 * line that says which expectation failed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"

#define NODE "/dev/infiniband/uverbs0"

static const char *self; /* path of this program, for exec */

void client_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: not so: %s (errno %d: %s)\n", file, line, what, errno, strerror(errno));
	_exit(1);
}

static void exit_well(int sig)
{
	_exit(0);
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

#define COMMAND(n, type, resp_size) \
	{ \
		.command = IB_USER_VERBS_CMD_##n, .in_words = (8 + sizeof(type)) / 4, .out_words = (resp_size) / 4 \
	}

static int get_context(int fd)
{
	struct ib_uverbs_get_context_resp resp = { 0 };
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context cmd;
	} c = { .hdr = COMMAND(GET_CONTEXT, c.cmd, sizeof(resp)), .cmd.response = (uintptr_t)&resp };

	return write(fd, &c, sizeof(c)) == sizeof(c) ? (int)resp.async_fd : -1;
}

int client_open_context(void)
{
	int fd = open(NODE, O_RDWR | O_CLOEXEC);

	IS(fd >= 0);
	IS(get_context(fd) >= 0);
	return fd;
}

struct pd_command {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_alloc_pd cmd;
	struct ib_uverbs_alloc_pd_resp resp;
};

static void pd_command(struct pd_command *c)
{
	*c = (struct pd_command){ .hdr = COMMAND(ALLOC_PD, c->cmd, sizeof(c->resp)),
				  .cmd.response = (uintptr_t)&c->resp };
}

int client_alloc_pd(int fd)
{
	struct pd_command c;

	pd_command(&c);
	return write(fd, &c, 8 + sizeof(c.cmd)) == 8 + sizeof(c.cmd) ? (int)c.resp.pd_handle : -1;
}

static int dealloc_pd(int fd, int handle)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_dealloc_pd cmd;
	} c = { .hdr = COMMAND(DEALLOC_PD, c.cmd, 0), .cmd.pd_handle = handle };

	return write(fd, &c, 8 + sizeof(c.cmd)) < 0 ? -1 : 0;
}

/* Returns how many PDs the file has, by ioctl, or -1. */
static int count_pds(int fd)
{
	static __u32 handles[4096];
	__u32 total = 0;
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[3];
	} c = {
		.hdr = { .length = sizeof(c), .object_id = UVERBS_OBJECT_DEVICE, .method_id = UVERBS_METHOD_INFO_HANDLES,
			 .num_attrs = 3, .driver_id = RDMA_DRIVER_HFI1 },
		.attrs = {
			{ .attr_id = UVERBS_ATTR_INFO_OBJECT_ID, .len = 8, .flags = 1, .data = UVERBS_OBJECT_PD },
			{ .attr_id = UVERBS_ATTR_INFO_TOTAL_HANDLES, .len = 4, .flags = 1, .data = (uintptr_t)&total },
			{ .attr_id = UVERBS_ATTR_INFO_HANDLES_LIST, .len = sizeof(handles), .flags = 1,
			  .data = (uintptr_t)handles },
		},
	};

	return ioctl(fd, RDMA_VERBS_IOCTL, &c) ? -1 : (int)total;
}

static void wait_for(pid_t pid)
{
	int status;

	IS(waitpid(pid, &status, 0) == pid);
	IS(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- the node ---------------------------------------------------------------------------------------------------- */

static bool is_node(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && (st->st_mode & 07777) == 0666 && st->st_rdev == makedev(231, 192);
}

static void test_node_is_a_character_device(void)
{
	struct statx stx;
	struct stat st;
	char target[64];
	int fd = open(NODE, O_RDWR);

	IS(fd >= 0);
	IS(!stat(NODE, &st) && is_node(&st));
	IS(!lstat(NODE, &st) && is_node(&st));
	IS(!fstat(fd, &st) && is_node(&st));
	IS(!syscall(SYS_fstat, fd, &st) && is_node(&st));
	IS(!syscall(SYS_stat, NODE, &st) && is_node(&st));
	IS(!syscall(SYS_lstat, NODE, &st) && is_node(&st));
	IS(!statx(AT_FDCWD, NODE, 0, STATX_BASIC_STATS, &stx));
	IS(S_ISCHR(stx.stx_mode) && stx.stx_rdev_major == 231 && stx.stx_rdev_minor == 192);
	IS(!statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx) && S_ISCHR(stx.stx_mode));
	IS(!access(NODE, R_OK | W_OK) && !faccessat(AT_FDCWD, NODE, F_OK, 0));
	IS(!syscall(SYS_faccessat2, AT_FDCWD, NODE, R_OK, AT_EACCESS));
	FAILS(access(NODE, X_OK), EACCES);
	FAILS(readlink(NODE, target, sizeof(target)), EINVAL);
	FAILS(open(NODE, O_RDWR | O_DIRECTORY), ENOTDIR);
	FAILS(stat("/dev/infiniband/uverbs1", &st), ENOENT);
	FAILS(stat("/dev/infiniband/uverbs00", &st), ENOENT);
	FAILS(open("/dev/infiniband/uverbs4294967296", O_RDWR), ENOENT); /* 0 if truncated to 32 bits */
	FAILS(stat((char *)8, &st), EFAULT);
}

static void test_node_by_other_paths(void)
{
	struct open_how how = { .flags = O_RDWR };
	int dev = open("/dev", O_PATH | O_DIRECTORY), dir = open("/dev/infiniband", O_RDONLY | O_DIRECTORY);
	struct stat st;

	IS(dev >= 0 && dir >= 0);
	IS(openat(dev, "infiniband/uverbs0", O_RDWR) >= 0);
	IS(openat(dir, "uverbs0", O_RDWR) >= 0);
	IS(!fstatat(dir, "uverbs0", &st, 0) && is_node(&st));
	IS(open("//dev/./infiniband/../infiniband//uverbs0", O_RDWR) >= 0);
	IS(syscall(SYS_openat2, AT_FDCWD, NODE, &how, sizeof(how)) >= 0);
	IS(syscall(SYS_open, NODE, O_RDWR) >= 0);
	IS(!chdir("/dev") && open("infiniband/uverbs0", O_RDWR) >= 0);
}

static void read_as(int fd, const char *begin)
{
	char text[64] = "";

	IS(fd >= 0);
	IS(read(fd, text, sizeof(text) - 1) > 0);
	IS(!strncmp(text, begin, strlen(begin)));
	close(fd);
}

static long open_how(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags, .resolve = resolve };

	return syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static void test_openat2_resolves_as_it_is_told(void)
{
	int dev = open("/dev", O_PATH | O_DIRECTORY), dir = open("/dev/infiniband", O_RDONLY | O_DIRECTORY);
	const char *const type = "/sys/class/infiniband/hfi1_0/node_type";

	IS(open_how(dev, "infiniband/uverbs0", O_RDWR, RESOLVE_BENEATH) >= 0);
	IS(open_how(dir, "../infiniband/./x/../uverbs0", O_RDWR, 0) >= 0);
	IS(open_how(dir, "x/.././uverbs0", O_RDWR, RESOLVE_BENEATH) >= 0);
	FAILS(open_how(dir, "../infiniband/uverbs0", O_RDWR, RESOLVE_BENEATH), EXDEV);
	FAILS(open_how(AT_FDCWD, NODE, O_RDWR, RESOLVE_BENEATH), EXDEV);
	IS(open_how(dev, "/../infiniband/uverbs0", O_RDWR, RESOLVE_IN_ROOT) >= 0);
	FAILS(open_how(dir, NODE, O_RDWR, RESOLVE_IN_ROOT), ENOENT);
	IS(open_how(dev, "infiniband/uverbs0", O_RDWR, RESOLVE_NO_XDEV) >= 0);
	IS(open_how(AT_FDCWD, NODE, O_RDWR, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED) >= 0);
	read_as(open_how(AT_FDCWD, type, O_RDONLY, RESOLVE_NO_SYMLINKS), "1: CA");
	FAILS(open_how(AT_FDCWD, NODE, O_RDWR | O_TRUNC, RESOLVE_CACHED), EAGAIN);
}

/* The kernel checks these before it looks at the path. */
static void test_openat2_refuses_what_the_kernel_refuses(void)
{
	struct {
		struct open_how how;
		uint64_t more;
	} later = { { .flags = O_RDWR }, 0 };

	FAILS(open_how(AT_FDCWD, NODE, O_RDWR, 1 << 20), EINVAL);
	FAILS(open_how(AT_FDCWD, NODE, O_RDWR | 1ull << 40, 0), EINVAL);
	FAILS(open_how(AT_FDCWD, NODE, O_RDWR | O_PATH, 0), EINVAL);
	FAILS(open_how(AT_FDCWD, NODE, O_RDWR, RESOLVE_BENEATH | RESOLVE_IN_ROOT), EINVAL);
	FAILS(syscall(SYS_openat2, AT_FDCWD, NODE, &later, sizeof(later.how) - 8), EINVAL);
	IS(syscall(SYS_openat2, AT_FDCWD, NODE, &later, sizeof(later)) >= 0);
	later.more = 1;
	FAILS(syscall(SYS_openat2, AT_FDCWD, NODE, &later, sizeof(later)), E2BIG);
	later.how.mode = 0600;
	FAILS(syscall(SYS_openat2, AT_FDCWD, NODE, &later, sizeof(later.how)), EINVAL);
	later.how.flags = O_RDWR | O_CREAT;
	IS(syscall(SYS_openat2, AT_FDCWD, NODE, &later, sizeof(later.how)) >= 0);
}

static void test_listing_shows_the_node(void)
{
	DIR *d = opendir("/dev/infiniband");
	struct dirent *e;
	int seen = 0;

	IS(d);
	while ((e = readdir(d)))
		seen += !strcmp(e->d_name, "uverbs0");
	IS(seen == 1 && !closedir(d));
}

static void test_open_modes(void)
{
	int fd = open(NODE, O_RDONLY), cloexec = open(NODE, O_RDWR | O_CLOEXEC), plain = open(NODE, O_RDWR);

	FAILS(get_context(fd), EBADF);
	IS(fcntl(cloexec, F_GETFD) == FD_CLOEXEC && fcntl(plain, F_GETFD) == 0);
	IS((fcntl(plain, F_GETFL) & O_ACCMODE) == O_RDWR);
}

/* ---- the sysfs directory ----------------------------------------------------------------------------------------- */

static void test_built_in_sysfs_paths(void)
{
	struct open_how how = { .flags = O_RDONLY };
	int sys = open("/sys/class", O_PATH | O_DIRECTORY), dir = open("/sys/class/infiniband", O_RDONLY | O_DIRECTORY);
	static const char link[] = "../../infiniband/hfi1_0/device";
	char text[64];
	struct stat st;

	read_as(open("/sys/class/infiniband/hfi1_0/node_type", O_RDONLY), "1: CA");
	read_as(open("/sys/class/infiniband_verbs/abi_version", O_RDONLY), "6");
	read_as(open("/sys/class/infiniband_verbs/uverbs0/dev", O_RDONLY), "231:192");
	read_as(openat(sys, "infiniband/hfi1_0/node_type", O_RDONLY), "1: CA");
	read_as(openat(dir, "hfi1_0/node_type", O_RDONLY), "1: CA");
	read_as(openat(dir, "../infiniband_verbs/abi_version", O_RDONLY), "6");
	read_as(syscall(SYS_openat2, AT_FDCWD, "/sys/class/infiniband/hfi1_0/node_type", &how, sizeof(how)), "1: CA");
	IS(!stat("/sys/class/infiniband/hfi1_0", &st) && S_ISDIR(st.st_mode) && !st.st_uid);
	IS(!access("/sys/class/infiniband/hfi1_0/node_guid", R_OK));
	FAILS(access("/sys/class/infiniband/hfi1_0/node_guid", W_OK), EACCES);
	FAILS(access("/sys/class/infiniband/mlx5_0", F_OK), ENOENT);
	FAILS(open("/sys/class/infiniband/hfi1_0/node_guid", O_RDWR), EACCES);
	FAILS(open("/sys/class/infiniband_mad/abi_version", O_RDONLY), ENOENT);
	FAILS(readlink("/sys/class/infiniband/hfi1_0/node_guid", text, sizeof(text)), EINVAL);
	IS(readlink("/sys/class/infiniband_verbs/uverbs0/device", text, sizeof(text)) == sizeof(link) - 1);
	IS(!memcmp(text, link, sizeof(link) - 1));
	IS(readlink("/sys/class/infiniband_verbs/uverbs0/device", text, 1) == 1 && *text == *link);
	FAILS(readlink("/sys/class/infiniband_verbs/uverbs0/device", text, 0), EINVAL);
	FAILS(open("/sys/class/infiniband/../../../etc/uverbs-is-not-here", O_RDONLY), ENOENT);
}

static void test_other_files_are_the_kernels(void)
{
	char name[] = "/tmp/uverbsd-test-XXXXXX";
	int fd = mkstemp(name);
	struct stat st;

	IS(fd >= 0 && write(fd, "x", 1) == 1 && !fstat(fd, &st) && st.st_size == 1);
	IS(!stat(name, &st) && S_ISREG(st.st_mode));
	IS(!access(name, W_OK) && !unlink(name));
	FAILS(open(name, O_RDONLY), ENOENT);
	FAILS(open((char *)8, O_RDONLY), EFAULT);
}

static void test_netlink_rdma_is_refused(void)
{
	FAILS(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA), EPROTONOSUPPORT);
	IS(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) >= 0);
}

#ifdef __x86_64__
/* Calls open() as an i386 program does. */
static long open_i386(const char *path, int flags)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long ret;

	IS(low != MAP_FAILED);
	strcpy(low, path);
	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(5), "b"(low), "c"(flags), "d"(0)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)ret;
}
#endif

static void test_other_architectures_see_no_device(void)
{
#ifdef __x86_64__
	signal(SIGSEGV, exit_well); /* a kernel without i386 calls */
	IS(open_i386("/etc/passwd", O_RDONLY) >= 0);
	IS(open_i386(NODE, O_RDWR) == -ENOENT);
#endif
}

/* ---- fds --------------------------------------------------------------------------------------------------------- */

static void test_duplicates_are_the_same_file(void)
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
		IS(count_pds(d[i]) == 5);
}

static void test_low_duplicate_keeps_ioctl_only(void)
{
	int fd = client_open_context(), low = dup2(fd, 30);

	IS(client_alloc_pd(fd) == 0);
	IS(count_pds(low) == 1);
	FAILS(client_alloc_pd(low), EPERM);
	IS(count_pds(fd) == 1);
}

static void test_number_that_means_another_file(void)
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

static void test_closed_by_another_thread(void);

static void *close_and_reopen(void *arg)
{
	int fd = *(int *)arg;

	IS(client_alloc_pd(fd) == 1 && !close(fd));
	IS(client_open_context() == fd && client_alloc_pd(fd) == 0);
	return NULL;
}

static void test_closed_by_another_thread(void)
{
	int fd = client_open_context(), keep = dup(fd);
	pthread_t t;

	IS(client_alloc_pd(fd) == 0);
	IS(!pthread_create(&t, NULL, close_and_reopen, &fd) && !pthread_join(t, NULL));
	IS(client_alloc_pd(fd) == 1 && client_alloc_pd(keep) == 2);
}

static void test_writev_is_one_command_a_piece(void)
{
	struct pd_command a, b, bad;
	struct iovec v[] = {
		{ &a, 8 + sizeof(a.cmd) }, { &b, 8 + sizeof(b.cmd) }, { &bad, 4 }, { &b, 8 + sizeof(b.cmd) }
	};
	int fd = client_open_context();

	pd_command(&a);
	pd_command(&b);
	pd_command(&bad);
	IS(writev(fd, v, 4) == (ssize_t)(v[0].iov_len + v[1].iov_len));
	IS(a.resp.pd_handle == 0 && b.resp.pd_handle == 1 && count_pds(fd) == 2);
	FAILS(writev(fd, v + 2, 2), EINVAL);
}

static void test_many_opens(void)
{
	struct rlimit r;
	int n = 0, fd = 0;

	IS(!getrlimit(RLIMIT_NOFILE, &r));
	r.rlim_cur = r.rlim_max;
	IS(!setrlimit(RLIMIT_NOFILE, &r));
	for (; n < 300 && fd >= 0; n++) {
		fd = open(NODE, O_RDWR);
		IS(fd >= 0 || (errno == EMFILE && r.rlim_max < 65536 && n > 200));
		IS(fd < 0 || get_context(fd) >= 0);
		IS(fd < 0 || client_alloc_pd(fd) == 0);
	}
}

static void test_no_number_left_is_emfile(void)
{
	struct rlimit r = { 1024, 1024 };
	int n = 0;

	IS(!setrlimit(RLIMIT_NOFILE, &r));
	while (open(NODE, O_RDWR) >= 0)
		n++;
	IS(errno == EMFILE && n == 256 + 16 + 8);
}

static void test_read_of_the_device_is_einval(void)
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

static void test_read_of_another_file_with_such_a_number(void)
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

static void test_event_files(void)
{
	struct stat st;
	int fd = open(NODE, O_RDWR), async;
	char event[16];

	async = get_context(fd);
	IS(async >= 0 && !fstat(async, &st));
	IS(fcntl(async, F_GETFD) == FD_CLOEXEC);
	IS(!fcntl(async, F_SETFL, O_NONBLOCK));
	FAILS(read(async, event, sizeof(event)), EAGAIN);
}

static void test_event_file_without_a_place_for_its_number(void)
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

/* ---- mapping and closing: the tests outside look whether the engine still has the file ----------------------------- */

static void say(const char *what)
{
	char line[8];

	printf("%s\n", what);
	fflush(stdout);
	IS(read(0, line, sizeof(line)) > 0);
}

static void test_last_close(void)
{
	int fd = client_open_context(), d = dup(fd), again, low = dup2(fd, 20);
	char path[32], *map;

	map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	IS(map != MAP_FAILED);
	strcpy(map, "shared");
	IS(client_alloc_pd(fd) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY);
	IS(again >= 0 && !close(again));
	say("open");
	IS(client_alloc_pd(fd) == 1 && !close(fd) && !close(low));
	say("duplicate");
	IS(client_alloc_pd(d) == 2 && !syscall(SYS_close_range, d, d, 0));
	say("mapped");
	IS(!strcmp(map, "shared") && !munmap(map, 8192));
	say("closed");
}

static void test_hostile_file(void)
{
	int fd = client_open_context(), low = dup2(fd, 20);

	FAILS(ftruncate(fd, 0), EPERM);
	FAILS(ftruncate(fd, 1ll << 41), EPERM);
	FAILS(pwrite(low, "x", 1, 0), EPERM);
	IS(!fallocate(low, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20));
	IS(client_alloc_pd(fd) == 0);
}

/* ---- processes and threads --------------------------------------------------------------------------------------- */

static void test_fork(void)
{
	int fd = client_open_context();
	pid_t pid;

	IS(client_alloc_pd(fd) == 0);
	pid = fork();
	if (!pid) {
		FAILS(client_alloc_pd(fd), EACCES);
		IS(count_pds(fd) == 1);
		FAILS(client_alloc_pd(dup(fd)), EACCES);
		fd = client_open_context();
		IS(client_alloc_pd(fd) == 0);
		_exit(0);
	}
	wait_for(pid);
	IS(client_alloc_pd(fd) == 1);
}

static void test_vfork(void)
{
	int fd = client_open_context();
	pid_t pid;

	IS(client_alloc_pd(fd) == 0);
	pid = vfork();
	if (!pid) {
		if (client_alloc_pd(fd) == -1 && errno == EACCES && count_pds(fd) == 1)
			execl(self, self, "nothing", NULL);
		_exit(1);
	}
	wait_for(pid);
	IS(client_alloc_pd(fd) == 1);
}

/* The engine reads the paths of a vfork()'s child in the memory of its parent, and after its exec in its own. */
static void test_vfork_opens_before_its_exec(void)
{
	pid_t pid = vfork();

	if (!pid) {
		if (!access(NODE, F_OK))
			execl(self, self, "of_vfork", NULL);
		_exit(1);
	}
	wait_for(pid);
}

static int exec_of_vfork(void *arg)
{
	char *argv[] = { (char *)self, "of_vfork", NULL };

	syscall(SYS_execve, self, argv, environ);
	return 1;
}

/*
 * The exec of another thread gives the child's number to a thread with other memory. Until then the child calls all the time,
 * also while the exec is under way.
 */
static void test_vfork_has_a_thread_that_execs(void)
{
	enum { TIMES = 30, STACK = 65536, FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD };
	char *stack = malloc(STACK);

	IS(stack);
	for (int i = 0; i < TIMES; i++) {
		pid_t pid = vfork();

		if (!pid) {
			if (clone(exec_of_vfork, stack + STACK, FLAGS, NULL) < 0)
				_exit(1);
			for (;;)
				syscall(SYS_access, NODE, F_OK);
		}
		wait_for(pid);
	}
	free(stack);
}

static void test_exec(void)
{
	char number[16];
	int fd = client_open_context();

	IS(client_alloc_pd(fd) == 0);
	IS(!fcntl(fd, F_SETFD, 0));
	snprintf(number, sizeof(number), "%d", fd);
	execl(self, self, "after_exec", number, NULL);
	IS(!"exec");
}

static int exec_fd;

static void *exec_thread(void *arg)
{
	char number[16];

	IS(client_alloc_pd(exec_fd) >= 1 && !fcntl(exec_fd, F_SETFD, 0));
	snprintf(number, sizeof(number), "%d", exec_fd);
	execl(self, self, "after_exec", number, NULL);
	IS(!"exec");
	return NULL;
}

/* By exec the calling thread gets the id of the first thread. */
static void test_exec_by_a_thread(void)
{
	pthread_t t;

	exec_fd = client_open_context();
	IS(client_alloc_pd(exec_fd) == 0);
	IS(!pthread_create(&t, NULL, exec_thread, NULL));
	for (;;) {
		/* Some of these calls coincide with the exec. */
		int pd = client_alloc_pd(exec_fd);

		/* Free each PD: before a slow thread starts, they could reach the user's limit. */
		IS(pd >= 0 && !dealloc_pd(exec_fd, pd));
	}
}

static void test_failed_exec_changes_nothing(void)
{
	int fd = client_open_context();

	IS(client_alloc_pd(fd) == 0);
	FAILS(execl("/does/not/exist", "x", NULL), ENOENT);
	IS(client_alloc_pd(fd) == 1 && client_alloc_pd(fd) == 2);
}

static void test_set_id(void)
{
	int fd = client_open_context();

	IS(client_alloc_pd(fd) == 0);
	if (geteuid()) {
		FAILS(setresuid(0, 0, 0), EPERM);
		IS(client_alloc_pd(fd) == 1);
		return;
	}
	IS(!setresuid(65534, 65534, 65534));
	FAILS(client_alloc_pd(fd), EACCES);
	IS(count_pds(fd) == 1);
}

enum { THREADS = 4, ROUNDS = 300 };

static void *churn(void *arg)
{
	int fd = *(int *)arg, pd;

	for (int i = 0; i < ROUNDS; i++) {
		pd = client_alloc_pd(fd);
		IS(pd >= 0 && !dealloc_pd(fd, pd));
		if (i % 50)
			continue;
		pd = client_open_context();
		IS(client_alloc_pd(pd) == 0 && !close(pd));
	}
	return NULL;
}

static void test_threads(void)
{
	int fd = client_open_context();
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		IS(!pthread_create(&t[i], NULL, churn, &fd));
	for (int i = 0; i < THREADS; i++)
		IS(!pthread_join(t[i], NULL));
	IS(count_pds(fd) == 0);
}

static void send_fd(int sock, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v = { "x", 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	IS(sendmsg(sock, &m, 0) == 1);
}

static int receive_fd(int sock)
{
	char room[CMSG_SPACE(sizeof(int))], byte;
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room) };
	int fd;

	IS(recvmsg(sock, &m, 0) == 1 && CMSG_FIRSTHDR(&m));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

static void test_scm_rights(void)
{
	int pair[2], fd;
	pid_t pid;

	IS(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	pid = fork();
	if (!pid) {
		fd = receive_fd(pair[1]);
		IS(count_pds(fd) == 3);
		IS(client_alloc_pd(fd) == -1 && (errno == EACCES || errno == EPERM));
		_exit(0);
	}
	fd = client_open_context();
	for (int i = 0; i < 3; i++)
		IS(client_alloc_pd(fd) == i);
	send_fd(pair[0], fd);
	IS(!close(fd)); /* the other process keeps it open */
	wait_for(pid);
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	alarms++;
}

void client_storm(bool on)
{
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval t = { { 0, on ? 150 : 0 }, { 0, on ? 150 : 0 } };

	IS(!sigaction(SIGALRM, &sa, NULL) && !setitimer(ITIMER_REAL, &t, NULL));
}

static void test_storm_alloc_pd(void)
{
	int fd = client_open_context();

	client_storm(true);
	for (int i = 0; i < 3000; i++)
		IS(client_alloc_pd(fd) == i); /* a command that was executed twice would leave a gap */
	client_storm(false);
	IS(count_pds(fd) == 3000);
	IS(alarms > 50);
}

/* ---- for the tests that kill ------------------------------------------------------------------------------------- */

/* Uses the device until a call fails. */
static void test_until_eio(void)
{
	int fd = client_open_context(), pd;
	struct stat st;

	say("ready");
	while ((pd = client_alloc_pd(fd)) >= 0)
		if (dealloc_pd(fd, pd))
			break;
	IS(errno == EIO);
	FAILS(count_pds(fd), EIO);
	FAILS(fstat(fd, &st), EIO);
	FAILS(open(NODE, O_RDWR), EIO);
	IS(!stat("/etc/passwd", &st));
	FAILS(open("/etc/uverbs", O_RDONLY), ENOENT);
}

static void test_churn_for_ever(void)
{
	int fd = client_open_context();

	printf("ready\n");
	fflush(stdout);
	for (;;)
		IS(!dealloc_pd(fd, client_alloc_pd(fd)));
}

static void nothing(void)
{
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
#define CASE(name) \
	{ \
#name, test_##name \
	}
	CASE(node_is_a_character_device),
	CASE(node_by_other_paths),
	CASE(openat2_resolves_as_it_is_told),
	CASE(openat2_refuses_what_the_kernel_refuses),
	CASE(listing_shows_the_node),
	CASE(open_modes),
	CASE(built_in_sysfs_paths),
	CASE(other_files_are_the_kernels),
	CASE(netlink_rdma_is_refused),
	CASE(other_architectures_see_no_device),
	CASE(duplicates_are_the_same_file),
	CASE(low_duplicate_keeps_ioctl_only),
	CASE(number_that_means_another_file),
	CASE(closed_by_another_thread),
	CASE(writev_is_one_command_a_piece),
	CASE(many_opens),
	CASE(no_number_left_is_emfile),
	CASE(read_of_the_device_is_einval),
	CASE(read_of_another_file_with_such_a_number),
	CASE(event_files),
	CASE(event_file_without_a_place_for_its_number),
	CASE(hostile_file),
	CASE(fork),
	CASE(vfork),
	CASE(vfork_opens_before_its_exec),
	CASE(vfork_has_a_thread_that_execs),
	CASE(exec),
	CASE(exec_by_a_thread),
	CASE(failed_exec_changes_nothing),
	CASE(set_id),
	CASE(threads),
	CASE(scm_rights),
	CASE(storm_alloc_pd),
	{ "storm_post_send", client_storm_post_send },
	{ "writev_post_send", client_writev_post_send },
	{ "number_dup2", client_number_dup2 },
	{ "number_dup3", client_number_dup3 },
	{ "number_close", client_number_close },
	{ "number_close_range", client_number_close_range },
	{ "number_closed_by_a_relative", client_number_closed_by_a_relative },
	{ "number_looked_at_during_dup2", client_number_looked_at_during_dup2 },
	{ "number_closed_by_a_ring", client_number_closed_by_a_ring },
	{ "ring_reaches_no_device", client_ring_reaches_no_device },
	{ "number_of_a_recycled_thread", client_number_of_a_recycled_thread },
	{ NULL, NULL }, /* --list prints the cases above: they need no interaction with a test */
	CASE(last_close),
	CASE(until_eio),
	CASE(churn_for_ever),
	{ "registers_in_a_vfork", client_registers_in_a_vfork },
	{ "nothing", nothing },
};

/* Has memory of its own by now: whoever looks in its parent's finds no path at these addresses. */
static int of_vfork(void)
{
	int fd = client_open_context();

	IS(client_alloc_pd(fd) == 0);
	return 0;
}

static int after_exec(int fd)
{
	IS(count_pds(fd) >= 1);
	FAILS(client_alloc_pd(fd), EACCES);
	fd = client_open_context();
	IS(client_alloc_pd(fd) == 0);
	return 0;
}

int main(int argc, char **argv)
{
	self = argv[0];
	if (argc == 3 && !strcmp(argv[1], "after_exec"))
		return after_exec(atoi(argv[2]));
	if (argc == 2 && !strcmp(argv[1], "of_vfork"))
		return of_vfork();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (argc == 2 && !strcmp(argv[1], "--list")) {
			if (!cases[i].name)
				return 0;
			printf("%s\n", cases[i].name);
		} else if (cases[i].name && argc == 2 && !strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	}
	fprintf(stderr, "usage: client CASE\n");
	return 2;
}
