/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * spin: registers memory again and again, and does not let its thread come back once it is borrowed: another thread changes
 * the instruction of its system calls, 0f 05, all the time into a jump to an endless loop, which spares calls of its own.
 * Says "begun". Ends only by SIGKILL, or with status 1 if no loan was caught.
 */
#include <pthread.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "broker/register.h"
#include "uv.h"

enum { PAGE = 4096, TRIES = 3000, SYSCALL = 0x050f, JUMP = 0x05eb };

/*
 *	syscall			or: jmp to the next but two
 *	ret
 *	(4 bytes)
 *	cmp %r12d, %edi		a call on our own descriptor: retry until there is a system call again
 *	je to the first
 *	jmp to itself
 */
static const uint8_t code[] = { 0x0f, 0x05, 0xc3, 0, 0, 0, 0, 0x44, 0x39, 0xe7, 0x74, 0xf4, 0xeb, 0xfe };
static volatile uint16_t *insn;
static char page[PAGE] __attribute__((aligned(PAGE)));

static void pause_a_bit(void)
{
	for (volatile int i = 0; i < 200; i++)
		;
}

static void *flip(void *arg)
{
	for (;;) {
		*insn = JUMP;
		pause_a_bit();
		*insn = SYSCALL;
		pause_a_bit();
	}
	return arg;
}

/* ioctl() by the instruction. */
static long spin_ioctl(long fd, void *arg)
{
	register long own asm("r12") = fd;
	long ret;

	asm volatile("sub $128, %%rsp\n" /* the red zone */
		     "call *%[insn]\n"
		     "add $128, %%rsp\n"
		     : "=a"(ret)
		     : "a"((long)SYS_ioctl), "D"(fd), "S"((long)RDMA_VERBS_IOCTL), "d"(arg), "r"(own), [insn] "r"(insn)
		     : "rcx", "r11", "memory", "cc");
	return ret;
}

int main(void)
{
	struct uvd_reg_order order = { .start = (uintptr_t)page,
				       .length = PAGE,
				       .iova = (uintptr_t)page,
				       .access = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE,
				       .driver_id = RDMA_DRIVER_HFI1 };
	int fd = uv_open(), async;
	struct uvd_register_call call;
	pthread_t thread;
	uint32_t vectors;
	long ret = 0;

	insn = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (insn == MAP_FAILED || fd < 0 || uv_get_context(fd, UV_INVOKE, &async, &vectors) ||
	    uv_alloc_pd(fd, UV_INVOKE, &order.pd_handle))
		return 2;
	memcpy((void *)insn, code, sizeof(code));
	printf("begun\n");
	fflush(stdout);
	if (pthread_create(&thread, NULL, flip, NULL))
		return 2;
	for (int i = 0; i < TRIES; i++) {
		call = uvd_register_call(&order, (uintptr_t)&call);
		ret = spin_ioctl(fd, &call);
		if (!ret)
			uv_dereg_mr(fd, UV_INVOKE, call.resp.mr_handle);
	}
	printf("not caught: %ld\n", ret);
	return 1;
}
