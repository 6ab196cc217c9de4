/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * client32 NODE: a client of 32 bits, which needs no library of 32 bits (record.py compiles it). It creates a PD and a memory region,
 * asks for the region by ioctl, and exits with the number of the call that fails, or 0.
 */
typedef unsigned int u32;
typedef unsigned long long u64;

enum { SYS_exit = 1, SYS_write = 4, SYS_open = 5, SYS_ioctl = 54, O_RDWR = 2 };
enum { GET_CONTEXT = 0, ALLOC_PD = 3, DEALLOC_PD = 4, REG_MR = 9, DEREG_MR = 13 };
enum { RDMA_VERBS_IOCTL = 0xc0181b01, OBJECT_MR = 7, METHOD_QUERY_MR = 3, DRIVER_HFI1 = 15, MANDATORY = 1, EBUSY = 16 };

static char memory[8192] __attribute__((aligned(4096)));

static long call(long nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
	return ret;
}

struct command {
	u32 command;
	unsigned short in_words, out_words;
	u64 words[6];
};

static u64 address(void *p)
{
	return (u32)p;
}

static int command(int fd, u32 number, struct command *c, u32 in, u32 out)
{
	c->command = number;
	c->in_words = in / 4;
	c->out_words = out / 4;
	return call(SYS_write, fd, (long)c, in);
}

struct attr {
	unsigned short id, len, flags, reserved;
	u64 data;
};

static int query_mr(int fd, u32 handle, u32 keys[2], u64 *length, u64 *iova)
{
	struct {
		unsigned short length, object, method, num_attrs;
		u64 reserved;
		u32 driver, more;
		struct attr attrs[5];
	} m = { sizeof(m),
		OBJECT_MR,
		METHOD_QUERY_MR,
		5,
		0,
		DRIVER_HFI1,
		0,
		{ { 0, 0, MANDATORY, 0, handle },
		  { 1, 4, MANDATORY, 0, address(&keys[0]) },
		  { 2, 4, MANDATORY, 0, address(&keys[1]) },
		  { 3, 8, MANDATORY, 0, address(length) },
		  { 4, 8, MANDATORY, 0, address(iova) } } };

	return call(SYS_ioctl, fd, RDMA_VERBS_IOCTL, (long)&m);
}

static int calls(const char *node)
{
	const int fd = call(SYS_open, (long)node, O_RDWR, 0);
	u32 context[2], pd = 0, mr[3], keys[2];
	u64 length = 0, iova = 0;

	if (fd < 0)
		return 1;
	if (command(fd, GET_CONTEXT, &(struct command){ .words = { address(context) } }, 16, 8) != 16)
		return 2;
	if (command(fd, ALLOC_PD, &(struct command){ .words = { address(&pd) } }, 16, 4) != 16)
		return 3;
	if (command(fd, REG_MR,
		    &(struct command){ .words = { address(mr), address(memory), sizeof(memory), address(memory),
						  pd | (u64)7 << 32 } },
		    48, 12) != 48)
		return 4;
	if (query_mr(fd, mr[0], keys, &length, &iova) || keys[0] != mr[1] || length != sizeof(memory) ||
	    iova != address(memory))
		return 5;
	if (command(fd, DEALLOC_PD, &(struct command){ .words = { pd } }, 12, 0) != -EBUSY)
		return 6;
	if (command(fd, DEREG_MR, &(struct command){ .words = { mr[0] } }, 12, 0) != 12)
		return 7;
	return command(fd, DEALLOC_PD, &(struct command){ .words = { pd } }, 12, 0) == 12 ? 0 : 8;
}

/* The kernel leaves argc and then argv on the stack, where the ABI of a function has no arguments. */
__asm__(".globl _start\n_start:\n\tpush %esp\n\tcall begin\n");

__attribute__((used, noreturn)) void begin(const char **stack)
{
	call(SYS_exit, calls(stack[2]), 0, 0);
	__builtin_unreachable();
}
