/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The numbers of system calls in one ABI against the kernel's header for it. ABI_HEADER names that header and ABI the field, as
 * the headers of two ABIs do not fit into one file.
 */
#include ABI_HEADER
#include "../suite.h"
#include "broker/syscalls.h"

#define CALL(call, number) \
	do { \
		ck_assert_uint_eq(uvd_syscall_numbers(call)->ABI, number); \
		checked++; \
	} while (0)

START_TEST(test_numbers_of_system_calls_are_the_kernels)
{
	int checked = 0;

	CALL(UVD_SYSCALL_CLOSE, __NR_close);
	CALL(UVD_SYSCALL_DUP3, __NR_dup3);
	CALL(UVD_SYSCALL_IOCTL, __NR_ioctl);
	CALL(UVD_SYSCALL_RECVMSG, __NR_recvmsg);
	CALL(UVD_SYSCALL_SOCKET, __NR_socket);
	ck_assert_int_eq(checked, UVD_NUM_SYSCALLS);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("syscalls");

	tcase_add_test(t, test_numbers_of_system_calls_are_the_kernels);
	return run_suite("syscalls", t);
}
