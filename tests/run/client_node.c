/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The node and the sysfs directory of the run's device, by all paths. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "../i386.h"
#include "client.h"

/* ---- the node ---------------------------------------------------------------------------------------------------- */

static bool is_node(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && (st->st_mode & 07777) == 0666 && st->st_rdev == makedev(231, 192);
}

void client_node_is_a_character_device(void)
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

void client_node_by_other_paths(void)
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

void client_openat2_resolves_as_it_is_told(void)
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
void client_openat2_refuses_what_the_kernel_refuses(void)
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

void client_listing_shows_the_node(void)
{
	DIR *d = opendir("/dev/infiniband");
	struct dirent *e;
	int seen = 0;

	IS(d);
	while ((e = readdir(d)))
		seen += !strcmp(e->d_name, "uverbs0");
	IS(seen == 1 && !closedir(d));
}

void client_open_modes(void)
{
	int fd = open(NODE, O_RDONLY), cloexec = open(NODE, O_RDWR | O_CLOEXEC), plain = open(NODE, O_RDWR);

	FAILS(client_get_context(fd), EBADF);
	IS(fcntl(cloexec, F_GETFD) == FD_CLOEXEC && fcntl(plain, F_GETFD) == 0);
	IS((fcntl(plain, F_GETFL) & O_ACCMODE) == O_RDWR);
}

/* ---- the sysfs directory ----------------------------------------------------------------------------------------- */

void client_built_in_sysfs_paths(void)
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

void client_other_files_are_the_kernels(void)
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

void client_netlink_rdma_is_refused(void)
{
	FAILS(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA), EPROTONOSUPPORT);
	IS(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) >= 0);
}

/* Calls open() as an i386 program does. */
static long open_i386(const char *path, int flags)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | I386_MAP, -1, 0);

	IS(low != MAP_FAILED);
	strcpy(low, path);
	return i386_call(I386_OPEN, (long)low, flags, 0);
}

void client_other_architectures_see_no_device(void)
{
	if (!i386_works())
		return;
	IS(open_i386("/etc/passwd", O_RDONLY) >= 0);
	IS(open_i386(NODE, O_RDWR) == -ENOENT);
}
