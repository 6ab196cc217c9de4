/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What depends on the CPU. The tests that need no table of another CPU run on each of them. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "../suite.h"
#include "cpu/cpu.h"

static const uint32_t arches[UVD_CPUS] = { [UVD_CPU_X86_64] = SCMP_ARCH_X86_64, [UVD_CPU_AARCH64] = SCMP_ARCH_AARCH64 };

START_TEST(test_this_build_is_for_this_cpu)
{
	ck_assert_uint_eq(arches[uvd_cpu], seccomp_arch_native());
}
END_TEST

START_TEST(test_loans_are_lacking_where_nothing_gives_them)
{
	ck_assert_int_eq(!uvd_cpu_thread, uvd_cpu_lacks(uvd_cpu, UVD_CPU_LOANS) != NULL);
	if (uvd_cpu_thread)
		ck_assert_uint_le(uvd_cpu_thread->insn_size, UVD_CPU_INSN);
}
END_TEST

/* It shares the data of a sanitizer about the calling thread. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static void exit_with(void *arg)
{
	uvd_cpu_syscall(SYS_exit_group, *(int *)arg, 0, 0, 0, 0);
}

START_TEST(test_spawned_process_shares_memory_or_is_lacking)
{
	enum { STACK = 16 << 10 };
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int arg = 3, status;
	long pid;

	ck_assert_ptr_ne(stack, MAP_FAILED);
	pid = uvd_cpu_spawn(exit_with, &arg, stack + STACK);
	if (uvd_cpu_lacks(uvd_cpu, UVD_CPU_SENDERS)) {
		ck_assert_int_eq(pid, -ENOSYS);
	} else {
		ck_assert_int_gt(pid, 0);
		ck_assert_int_eq(waitpid(pid, &status, __WALL), pid);
		ck_assert_int_eq(WEXITSTATUS(status), 3);
	}
	munmap(stack, STACK);
}
END_TEST

START_TEST(test_system_call_passes_all_arguments_and_leaves_errno_alone)
{
	const int memory = memfd_create("cpu", 0);
	struct statx stx = {};

	ck_assert_int_ge(memory, 0);
	errno = 0;
	ck_assert_int_eq(uvd_cpu_syscall(SYS_close, -1, 0, 0, 0, 0), -EBADF);
	ck_assert_int_eq(errno, 0);
	ck_assert_int_eq(uvd_cpu_syscall(SYS_fallocate, memory, 0, 8192, 4096, 0), 0);
	ck_assert_int_eq(lseek(memory, 0, SEEK_END), 12288);
	ck_assert_int_eq(uvd_cpu_syscall(SYS_statx, memory, (long)"", AT_EMPTY_PATH, STATX_TYPE, (long)&stx), 0);
	ck_assert_uint_eq(stx.stx_mode & S_IFMT, S_IFREG);
	close(memory);
}
END_TEST

/* The calls in which a client waits, by the names that this CPU's programs have for them. */
static const struct {
	const char *name;
	enum uvd_cpu_call call;
} waits[] = {
	{ "write", UVD_CPU_CALL_WRITE },    { "pwrite64", UVD_CPU_CALL_PWRITE }, { "writev", UVD_CPU_CALL_WRITEV },
	{ "ioctl", UVD_CPU_CALL_IOCTL },    { "open", UVD_CPU_CALL_OPEN },	 { "openat", UVD_CPU_CALL_OPENAT },
	{ "openat2", UVD_CPU_CALL_OPENAT }, { "read", UVD_CPU_CALL_OTHER },	 { "close", UVD_CPU_CALL_OTHER },
};

static void check_numbers(uint32_t arch)
{
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		const int nr = seccomp_syscall_resolve_name_arch(arch, waits[i].name);

		/* i386: read and close are other calls of x86-64. */
		if (nr >= 0 && (arch == seccomp_arch_native() || waits[i].call))
			ck_assert_msg(uvd_cpu_call_of(nr) == waits[i].call, "%s is %d", waits[i].name, nr);
	}
}

START_TEST(test_numbers_of_calls_are_the_kernels)
{
	check_numbers(seccomp_arch_native());
	if (uvd_cpu == UVD_CPU_X86_64) {
		check_numbers(SCMP_ARCH_X86);
		check_numbers(SCMP_ARCH_X32);
	}
}
END_TEST

START_TEST(test_what_is_called_instead_exists_and_the_other_does_not)
{
	static const char *const names[] = { "access", "poll", "select", "pipe" };

	for (int cpu = 0; cpu < UVD_CPUS; cpu++)
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			const char *instead = uvd_cpu_call_instead(cpu, names[i]);
			const int nr = seccomp_syscall_resolve_name_arch(arches[cpu], names[i]);

			ck_assert_msg((nr < 0) == !!instead, "%s of %s", names[i], uvd_cpu_name(cpu));
			if (instead)
				ck_assert_int_ge(seccomp_syscall_resolve_name_arch(arches[cpu], instead), 0);
		}
}
END_TEST

/* ---- registers of a signal --------------------------------------------------------------------------------------- */

static volatile uintptr_t crashed_at, returns_to;

static void on_crash(int sig, siginfo_t *info, void *context)
{
	crashed_at = uvd_cpu_signal_pc(context);
	returns_to = uvd_cpu_signal_caller(context);
	_exit(crashed_at == 16 && returns_to > UVD_CPU_PAGE_MIN ? 5 : 6);
}

START_TEST(test_crash_of_a_call_to_no_function_has_its_address_and_its_caller)
{
	const struct sigaction on = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO };
	void (*volatile none)(void) = (void (*)(void))16;
	int status;
	pid_t pid = fork();

	if (!pid) {
		sigaction(SIGSEGV, &on, NULL);
		none();
		_exit(7);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 5);
}
END_TEST

START_TEST(test_registers_of_a_trapped_call_are_its_arguments_and_its_result)
{
	ucontext_t context = {};

	uvd_cpu_signal_return(&context, -EACCES);
#if defined(__x86_64__)
	context.uc_mcontext.gregs[REG_RDI] = 11;
	context.uc_mcontext.gregs[REG_RSI] = 12;
	ck_assert_int_eq(context.uc_mcontext.gregs[REG_RAX], -EACCES);
#else
	ck_assert_int_eq(context.uc_mcontext.regs[0], -EACCES);
	context.uc_mcontext.regs[0] = 11;
	context.uc_mcontext.regs[1] = 12;
#endif
	ck_assert_uint_eq(uvd_cpu_signal_arg(&context, 0), 11);
	ck_assert_uint_eq(uvd_cpu_signal_arg(&context, 1), 12);
}
END_TEST

/* ---- pages and docs ---------------------------------------------------------------------------------------------- */

START_TEST(test_pages_are_a_multiple_of_the_smallest)
{
	ck_assert_uint_eq(uvd_cpu_page_size() % UVD_CPU_PAGE_MIN, 0);
	if (uvd_cpu_page_size() == 4096)
		ck_assert_uint_eq(uvd_cpu_huge_page(), 2 << 20);
}
END_TEST

static char *read_docs(void)
{
	enum { MOST = 1 << 16 };
	FILE *f = fopen(CPU_MD, "re");
	char *text = calloc(1, MOST);

	ck_assert(f && text && fread(text, 1, MOST - 1, f) > 0);
	fclose(f);
	return text;
}

/* Each sentence is a row of the table, and the table has no other rows. */
START_TEST(test_docs_list_what_each_cpu_lacks)
{
	char *docs = read_docs(), *table = strstr(docs, "<!-- lacks -->"), *end = strstr(docs, "<!-- /lacks -->"),
	     row[512];
	int rows = -2; /* the heads */

	ck_assert(table && end);
	*end = 0;
	for (char *line = strstr(table, "\n| "); line; line = strstr(line + 1, "\n| "))
		rows++;
	for (int cpu = 0; cpu < UVD_CPUS; cpu++)
		for (int part = 0; part < UVD_CPU_PARTS; part++) {
			const char *sentence = uvd_cpu_lacks(cpu, part);

			if (!sentence)
				continue;
			snprintf(row, sizeof(row), "\n| %s | %s | ", uvd_cpu_name(cpu), sentence);
			ck_assert_msg(strstr(table, row), "docs/cpu.md has no row:%s", row);
			rows--;
		}
	ck_assert_msg(!rows, "docs/cpu.md has %d rows that src/cpu/parts.c does not have", rows);
	free(docs);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("cpu");

	tcase_add_test(t, test_this_build_is_for_this_cpu);
	tcase_add_test(t, test_loans_are_lacking_where_nothing_gives_them);
	tcase_add_test(t, test_spawned_process_shares_memory_or_is_lacking);
	tcase_add_test(t, test_system_call_passes_all_arguments_and_leaves_errno_alone);
	tcase_add_test(t, test_numbers_of_calls_are_the_kernels);
	tcase_add_test(t, test_what_is_called_instead_exists_and_the_other_does_not);
	tcase_add_test(t, test_crash_of_a_call_to_no_function_has_its_address_and_its_caller);
	tcase_add_test(t, test_registers_of_a_trapped_call_are_its_arguments_and_its_result);
	tcase_add_test(t, test_pages_are_a_multiple_of_the_smallest);
	tcase_add_test(t, test_docs_list_what_each_cpu_lacks);
	return run_suite("cpu", t);
}
