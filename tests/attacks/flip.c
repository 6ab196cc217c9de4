/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * flip jump|i386|spin TRIES: tries to make a borrowed thread execute another system call than the daemon ordered.
 * Another thread changes its system call instruction, 0f 05, all the time:
 *
 *   jump  into a short jump (eb 05) to code of ours, which makes a call that our own seccomp filter forbids
 *   i386  into `int 0x80` (cd 80), which reads the same registers as another call: socket() becomes dup(), and all six
 *         arguments look as ordered
 *   spin  into a jump to an endless loop
 *
 * Prints "executed" if another call was executed at least once, else "refused". spin prints "killed" if SIGKILL ended
 * the process, else "not killed". Exit status 0 in all cases if the device still works.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uv.h"
#include "slow.h"

/*
 * `syscall` leaves the address of the next instruction in %rcx, the register of the second argument of `int 0x80`. The
 * code lies where this address, BEHIND, equals SOCK_DGRAM | SOCK_CLOEXEC, which the daemon orders.
 */
enum { PAGE = 4096, CODE = 0x80000, INSN = CODE, BEHIND = INSN + 2, STACK = 0x20000000, STACK_SIZE = 65536 };
enum { SYSCALL = 0x050f, JUMP = 0x05eb, INT80 = 0x80cd };

static volatile uint16_t *const insn = (volatile uint16_t *)(uintptr_t)INSN;
static atomic_bool stop;
static uint16_t other;
static bool spins;

static void pause_a_bit(void)
{
	for (volatile int i = 0; i < 200; i++)
		;
}

/*
 * i386 swaps two copies of the page instead of writing two bytes: an emulated processor may see half of such a write,
 * but never half of a mapping.
 */
static int copies;

static void map_copy(int which)
{
	MUST(mmap((void *)CODE, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, copies, which * PAGE) ==
	     (void *)CODE);
}

static void make_copies(void)
{
	uint16_t int80 = INT80;

	copies = memfd_create("code", MFD_CLOEXEC);
	MUST(copies >= 0 && pwrite(copies, (void *)CODE, PAGE, 0) == PAGE &&
	     pwrite(copies, (void *)CODE, PAGE, PAGE) == PAGE);
	MUST(pwrite(copies, &int80, sizeof(int80), PAGE + INSN - CODE) == sizeof(int80));
}

static void *flip(void *arg)
{
	while (!stop && other == INT80) {
		map_copy(1);
		pause_a_bit();
		map_copy(0);
		pause_a_bit();
	}
	while (!stop) {
		*insn = other;
		pause_a_bit();
		*insn = SYSCALL;
		pause_a_bit();
	}
	return NULL;
}

/*
 *	INSN:	syscall			or: jmp stub
 *		jmp *%r15
 *	stub:	cmp $16, %eax		our own ioctl(): retry until INSN is a system call again
 *		je INSN
 *		mov $openat, %eax; mov %r12, %rdi; mov %r13, %rsi; mov %r14, %rdx; syscall	or: jmp to itself
 *		jmp *%r15
 */
static void make_code(void)
{
	static const uint8_t after[] = { 0x41, 0xff, 0xe7, 0x90, 0x90 };
	uint8_t stub[] = { 0x83, 0xf8, 0x10, 0x74, 0xf4, 0xb8, 0,    0,	   0,	 0,    0x4c, 0x89,
			   0xe7, 0x4c, 0x89, 0xee, 0x4c, 0x89, 0xf2, 0x0f, 0x05, 0x41, 0xff, 0xe7 };
	uint32_t nr = SYS_openat;

	MUST(mmap((void *)CODE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)CODE);
	MUST(mmap((void *)STACK, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		  -1, 0) == (void *)STACK);
	memcpy(stub + 6, &nr, sizeof(nr));
	if (spins)
		memcpy(stub + 5, (uint8_t[]){ 0xeb, 0xfe }, 2);
	memcpy((void *)(INSN + 2), after, sizeof(after));
	memcpy((void *)(INSN + 7), stub, sizeof(stub));
	*insn = SYSCALL;
}

/* Calls ioctl(fd, cmd, arg) with the instruction at INSN, on a low stack that int 0x80 can address. */
static long call(int fd, unsigned long cmd, void *arg, uint64_t rbx, uint64_t r12, uint64_t r13, uint64_t r14)
{
	/*
	 * `int 0x80` takes arguments four to six from %rsi, %rdi and %rbp, `syscall` from %r10, %r8 and %r9. The
	 * values here make the two sets equal in the borrowed thread.
	 */
	uint64_t in[8] = { rbx, r12, r13, r14, (uint64_t)STACK + STACK_SIZE / 2, INSN, AF_UNIX, BEHIND };
	/* Fixed registers: for other operands the compiler might choose %rbp, which the code below changes. */
	register uint64_t *from asm("r10") = in, *to asm("r9") = (uint64_t *)STACK;
	long ret;

	asm volatile("mov %%rsp, 0(%%r9)\n"
		     "mov %%rbp, 8(%%r9)\n"
		     "mov %%r9, %%rbp\n"
		     "mov 0(%%r10), %%rbx\n"
		     "mov 8(%%r10), %%r12\n"
		     "mov 16(%%r10), %%r13\n"
		     "mov 24(%%r10), %%r14\n"
		     "mov 32(%%r10), %%rsp\n"
		     "lea 1f(%%rip), %%r15\n"
		     "mov 40(%%r10), %%r11\n"
		     "mov 48(%%r10), %%r8\n"
		     "mov 56(%%r10), %%r10\n"
		     "jmp *%%r11\n"
		     "1: mov 0(%%rbp), %%rsp\n"
		     "mov 8(%%rbp), %%rbp\n"
		     : "=a"(ret), "+r"(from), "+r"(to)
		     : "a"((long)SYS_ioctl), "D"((long)fd), "S"(cmd), "d"(arg)
		     : "rbx", "r8", "r12", "r13", "r14", "r15", "rcx", "r11", "memory", "cc");
	return ret;
}

static void forbid_openat(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(f) / sizeof(f[0]), f };

	MUST(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog));
}

/* How many of the 64 descriptors from `from` on refer to the same file as `of`? */
static int copies_of(int of, int from)
{
	struct stat want, st;
	int n = 0;

	MUST(!fstat(of, &want));
	for (int fd = from; fd < from + 64; fd++)
		n += !fstat(fd, &st) && st.st_ino == want.st_ino && st.st_dev == want.st_dev;
	return n;
}

/* Forks and returns in the child. The parent waits for the child, prints whether SIGKILL ended it, and exits. */
static void die_in_child(void)
{
	pid_t child = fork();
	int status;

	MUST(child >= 0);
	if (!child)
		return;
	MUST(waitpid(child, &status, 0) == child);
	printf("%s\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? "killed" : "not killed");
	exit(0);
}

int main(int argc, char **argv)
{
	struct ib_uverbs_create_comp_channel_resp resp;
	struct ib_uverbs_create_comp_channel in = {};
	static const char name[] = "/etc/hostname";
	int fd, tries = atoi(argv[2]), async, executed = 0, granted = 0, mark, secret;
	struct uv_tree tree;
	pthread_t thread;
	uint32_t vectors;

	spins = !strcmp(argv[1], "spin");
	other = strcmp(argv[1], "i386") ? JUMP : INT80;
	if (spins)
		die_in_child();
	fd = uv_open();
	MUST(fd >= 0 && !uv_get_context(fd, UV_INVOKE, &async, &vectors));
	secret = open(name, O_RDONLY | O_CLOEXEC);
	mark = dup(0);
	MUST(secret >= 0 && mark >= 0);
	make_code();
	if (other == INT80)
		make_copies();
	if (other == JUMP && !spins)
		forbid_openat();
	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	uv_attr_const(&tree, UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL);
	uv_attr_in(&tree, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
	uv_attr_out(&tree, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
	tree.hdr.length = sizeof(tree.hdr) + tree.hdr.num_attrs * sizeof(struct ib_uverbs_attr);
	MUST(!pthread_create(&thread, NULL, flip, NULL));
	for (int i = 0; i < tries && !executed; i++) {
		resp.fd = -1;
		if (!call(fd, RDMA_VERBS_IOCTL, &tree, AF_UNIX, AT_FDCWD, (uintptr_t)name, O_RDONLY) &&
		    (int)resp.fd >= 0) {
			granted++;
			close(resp.fd);
		}
		executed = other == JUMP ? copies_of(secret, secret + 1) : copies_of(STDOUT_FILENO, mark + 1);
	}
	stop = true;
	pthread_join(thread, NULL);
	if (other == JUMP)
		*insn = SYSCALL;
	/* On a busy machine a grant can be late; the call then fails with EINTR. */
	resp.fd = -1;
	for (int i = 0; i < 20 && (int)resp.fd < 0; i++)
		if (call(fd, RDMA_VERBS_IOCTL, &tree, mark, 0, 0, 0))
			nap(100);
	MUST((int)resp.fd >= 0);
	printf("%s: %d of %d granted\n", executed ? "executed" : "refused", granted, tries);
	return 0;
}
