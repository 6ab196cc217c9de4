/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A thread of another process is borrowed: what it executes for us, and that it goes on as if nothing had happened. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../i386.h"
#include "../suite.h"
#include "broker/borrow.h"
#include "cpu/cpu.h"

enum { ANSWER = 7, OTHER_FD = 50 };

#define ORDER(name, ...) uvd_borrow_call(&b, UVD_SYSCALL_##name, (long[3]){ __VA_ARGS__ })

static int question[2], answer[2]; /* pipes */
static bool by_int80; /* the client makes i386 calls, as a 32-bit program does */

static void *change_result(void *pid);

/* The client waits in read(), and passes on what that has returned and read. i386 calls know only 4 GiB of memory. */
static void client(void)
{
	char *byte = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | I386_MAP, -1, 0);
	const long ret =
		by_int80 ? i386_call(I386_READ, question[0], (long)byte, 1) : syscall(SYS_read, question[0], byte, 1);
	const char reply[2] = { ret, *byte };

	_exit(write(answer[1], reply, sizeof(reply)) != sizeof(reply));
}

/* uvd_borrow_stop() waits for all that its thread traces, so it must not be the thread that has made the client. */
static void borrow(void *(*use)(void *pid))
{
	pid_t pid;
	pthread_t thread;
	int status;
	char reply[2];

	ck_assert(!pipe(question) && !pipe(answer));
	pid = fork();
	if (!pid)
		client();
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, use, &pid), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(read(answer[0], reply, sizeof(reply)), sizeof(reply));
	ck_assert_int_eq(reply[0], use == change_result ? 2 : 1);
	/* The seizure interrupts read(), which the kernel restarts unless its result is another. */
	ck_assert(reply[1] == ANSWER || use == change_result);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
}

static void wait_in_read(pid_t pid)
{
	char path[48], line[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	do {
		line[0] = 0;
		f = fopen(path, "re");
		ck_assert_ptr_nonnull(f);
		ck_assert_ptr_nonnull(fgets(line, sizeof(line), f));
		fclose(f);
	} while (strtol(line, NULL, 10) != (by_int80 ? I386_READ : SYS_read) || line[0] == 'r');
}

static void take(struct uvd_borrow *b, pid_t pid)
{
	wait_in_read(pid);
	ck_assert_int_eq(uvd_borrow_seize(b, pid), 0);
	b->may_be_parent = true;
	ck_assert_int_eq(write(question[1], &(char){ ANSWER }, 1), 1);
	ck_assert_int_eq(uvd_borrow_stop(b), 0);
	ck_assert_int_eq(b->compat, by_int80);
}

static void give_back(struct uvd_borrow *b)
{
	ck_assert_int_eq(uvd_borrow_release(b, NULL), 0);
	uvd_borrow_close(b);
}

/* Has the client's descriptor close-on-exec? */
static bool is_cloexec(pid_t pid, int fd)
{
	char path[64], line[64];
	unsigned int flags = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "flags: %o", &flags) == 1)
			break;
	fclose(f);
	return flags & O_CLOEXEC;
}

static void *order_calls(void *arg)
{
	const pid_t pid = *(pid_t *)arg;
	struct uvd_borrow b;
	long s;

	take(&b, pid);
	s = ORDER(SOCKET, AF_UNIX, SOCK_DGRAM, 0);
	ck_assert_int_gt(s, 2);
	ck_assert(!is_cloexec(pid, s));
	ck_assert_int_eq(ORDER(DUP3, s, OTHER_FD, O_CLOEXEC), OTHER_FD);
	ck_assert(is_cloexec(pid, OTHER_FD));
	ck_assert_int_eq(ORDER(CLOSE, s), 0);
	ck_assert_int_eq(ORDER(CLOSE, s), -EBADF);
	give_back(&b);
	return NULL;
}

static void *write_to_scratch(void *pid)
{
	struct uvd_borrow b;
	char bytes[UVD_BORROW_SCRATCH], got[UVD_BORROW_SCRATCH];
	uint64_t at;

	take(&b, *(pid_t *)pid);
	at = uvd_borrow_scratch(&b);
	ck_assert_uint_ne(at, 0);
	ck_assert_uint_le(at + UVD_BORROW_SCRATCH, uvd_cpu_thread->stack(&b.regs));
#ifdef __x86_64__
	ck_assert_uint_le(uvd_cpu_thread->stack(&b.regs) + 128, b.regs.rsp); /* the red zone */
#endif
	memset(bytes, 0x5a, sizeof(bytes));
	ck_assert(uvd_borrow_write(&b, at, bytes, sizeof(bytes)));
	ck_assert(uvd_borrow_read(&b, at, got, sizeof(got)) && !memcmp(bytes, got, sizeof(got)));
	ck_assert_int_eq(ORDER(CLOSE, -1), -EBADF);
	give_back(&b);
	return NULL;
}

/* The client's other threads could change the instruction: `int $0x80` would make the i386 call of this number. */
static void *change_instruction(void *pid)
{
	static const unsigned char int80[] = { 0xcd, 0x80 };
	unsigned char before[UVD_CPU_INSN];
	struct uvd_borrow b;
	uint64_t at;

	take(&b, *(pid_t *)pid);
	at = uvd_cpu_thread->insn(&b.regs);
	ck_assert(uvd_borrow_read(&b, at, before, uvd_cpu_thread->insn_size));
	ck_assert(uvd_borrow_write(&b, at, int80, sizeof(int80)));
	ck_assert_int_eq(ORDER(CLOSE, answer[1]), -EPERM);
	ck_assert(uvd_borrow_write(&b, at, before, uvd_cpu_thread->insn_size));
	ck_assert_int_eq(ORDER(CLOSE, answer[1]), -EPERM);
	give_back(&b);
	return NULL;
}

static void *change_result(void *pid)
{
	struct uvd_borrow b;
	const long two = 2;

	take(&b, *(pid_t *)pid);
	uvd_cpu_thread->set_result(&b.regs, -EIO);
	ck_assert_int_eq(uvd_cpu_thread->result(&b.regs, false), -EIO);
	ck_assert_int_eq(uvd_borrow_release(&b, &two), 0);
	uvd_borrow_close(&b);
	return NULL;
}

START_TEST(test_borrowed_thread_makes_the_ordered_calls_and_goes_on)
{
	borrow(order_calls);
}
END_TEST

START_TEST(test_borrowed_thread_of_a_32_bit_program_makes_the_same_calls)
{
	if (!i386_works())
		SKIP("this machine has no int $0x80");
	by_int80 = true;
	borrow(order_calls);
}
END_TEST

START_TEST(test_scratch_is_below_the_stack_in_use)
{
	borrow(write_to_scratch);
}
END_TEST

START_TEST(test_call_by_another_instruction_is_cancelled)
{
	if (!i386_works())
		SKIP("this machine has no int $0x80");
	borrow(change_instruction); /* its answer arrives: nothing was closed */
}
END_TEST

START_TEST(test_result_of_the_client_s_own_call_can_be_another)
{
	borrow(change_result);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("borrow");

	if (uvd_cpu_lacks(uvd_cpu, UVD_CPU_LOANS)) {
		printf("skipped: %s\n", uvd_cpu_lacks(uvd_cpu, UVD_CPU_LOANS));
		return 77;
	}
	tcase_add_test(t, test_borrowed_thread_makes_the_ordered_calls_and_goes_on);
	tcase_add_test(t, test_borrowed_thread_of_a_32_bit_program_makes_the_same_calls);
	tcase_add_test(t, test_scratch_is_below_the_stack_in_use);
	tcase_add_test(t, test_call_by_another_instruction_is_cancelled);
	tcase_add_test(t, test_result_of_the_client_s_own_call_can_be_another);
	return run_suite("borrow", t);
}
