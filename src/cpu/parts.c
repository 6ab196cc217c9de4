/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The parts that each architecture lacks. docs/cpu.md has a copy of the sentences, which tests/cpu/test_cpu.c compares. */
#include <string.h>
#include "cpu/cpu.h"

static const char *const cpu_names[UVD_CPUS] = { [UVD_CPU_X86_64] = "x86_64", [UVD_CPU_AARCH64] = "aarch64" };

static const char *const cpu_lacks[UVD_CPU_PARTS][UVD_CPUS] = {
	[UVD_CPU_LOANS][UVD_CPU_AARCH64] =
		"loans of clients' threads are not written for aarch64: the registers of a stopped thread, the entry "
		"stops of the calls that it makes for us, and how its own call is restarted",
	[UVD_CPU_SENDERS][UVD_CPU_AARCH64] =
		"senders are not written for aarch64: the start of a process that shares the daemon's memory",
	[UVD_CPU_COMPAT][UVD_CPU_AARCH64] =
		"32-bit clients are not written for aarch64: their system call numbers are other calls in 64-bit "
		"programs, so a daemon refuses their ioctl()",
};

static const struct {
	enum uvd_cpu cpu;
	const char *name, *instead;
} cpu_calls_instead[] = {
	{ UVD_CPU_AARCH64, "access", "faccessat" },
	{ UVD_CPU_AARCH64, "poll", "ppoll" },
	{ UVD_CPU_AARCH64, "select", "pselect6" },
	{ UVD_CPU_AARCH64, "pipe", "pipe2" },
};

const char *uvd_cpu_name(enum uvd_cpu cpu)
{
	return cpu_names[cpu];
}

const char *uvd_cpu_lacks(enum uvd_cpu cpu, enum uvd_cpu_part part)
{
	return cpu_lacks[part][cpu];
}

const char *uvd_cpu_call_instead(enum uvd_cpu cpu, const char *name)
{
	for (size_t i = 0; i < sizeof(cpu_calls_instead) / sizeof(cpu_calls_instead[0]); i++)
		if (cpu_calls_instead[i].cpu == cpu && !strcmp(cpu_calls_instead[i].name, name))
			return cpu_calls_instead[i].instead;
	return NULL;
}
