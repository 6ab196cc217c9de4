/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl doctor: tells the transports that this machine and this user can have. It tries them, and believes no version number. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "util/util.h"

enum { WHY = 1024 };

/* Keeps the first line, without what begins the messages of `uverbsctl run`. */
static void check_keep_reason(char why[WHY])
{
	static const char begins[] = "uverbsctl run: ";

	why[strcspn(why, "\n")] = 0;
	if (!strncmp(why, begins, strlen(begins)))
		memmove(why, why + strlen(begins), strlen(why + strlen(begins)) + 1);
}

static __attribute__((noreturn)) void check_execute_run(int said)
{
	dup2(said, STDOUT_FILENO);
	dup2(said, STDERR_FILENO);
	execl("/proc/self/exe", "uverbsctl", "run", "--", "/proc/self/exe", "--version", NULL);
	dprintf(said, "/proc/self/exe: %s: is /proc mounted?\n", uvd_errno_name(errno));
	_exit(1);
}

/* Runs this program, which an image without any other has, too. Returns false with the reason why it did not run. */
static bool check_run(char why[WHY])
{
	const int said = memfd_create("uverbsctl doctor", MFD_CLOEXEC);
	const pid_t pid = said < 0 ? -1 : fork();
	int status = -1;
	ssize_t n;

	if (!pid)
		check_execute_run(said);
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		snprintf(why, WHY, "no process: %s", uvd_errno_name(errno));
		n = strlen(why);
	} else {
		n = pread(said, why, WHY - 1, 0);
	}
	if (said >= 0)
		close(said);
	why[n > 0 ? n : 0] = 0;
	check_keep_reason(why);
	return !status;
}

/* Opens what uverbsd makes its nodes with, which loads the module if it can be loaded. */
static bool check_cuse(char why[WHY])
{
	const int fd = open("/dev/cuse", O_RDWR | O_CLOEXEC);
	const int err = errno;

	if (fd >= 0) {
		close(fd);
		if (!geteuid())
			return true;
		snprintf(why, WHY, "root must start uverbsd, and this is user %u", (unsigned int)geteuid());
	} else if (err == ENOENT || err == ENODEV || err == ENXIO) {
		snprintf(why, WHY, "/dev/cuse: %s: load the module (modprobe cuse); in a container, give it the device",
			 uvd_errno_name(err));
	} else {
		snprintf(why, WHY, "/dev/cuse: %s: %s", uvd_errno_name(err),
			 geteuid() ? "root must start uverbsd" : "give this container or service the device");
	}
	return false;
}

static bool check_tell(const char *name, bool (*check)(char why[WHY]))
{
	char why[WHY] = "";
	const bool has = check(why);

	printf("%-14s %s%s%s\n", name, has ? "works" : "does not work", *why && !has ? ": " : "", has ? "" : why);
	return has;
}

static int doctor_command(const struct uvd_args *args)
{
	const bool has_run = check_tell("uverbsctl run", check_run), has_cuse = check_tell("uverbsd", check_cuse);

	(void)args;
	return has_run || has_cuse ? 0 : 1;
}

const struct uvd_command uvd_command_doctor = {
	.name = "doctor",
	.purpose = "tell whether this machine can have devices, and why not",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl doctor", "what can be had here" },
			{ "uverbsctl doctor && uverbsctl run -- ibv_devinfo", "only if it can" },
			{ "sudo uverbsctl doctor", "what root can have here" },
			{},
		},
	.text =
		(const char *const[]){
			"Tries whether `uverbsctl run` works here, and whether uverbsd would get its nodes (CUSE). A transport that cannot "
			"be had has the reason behind it.",
			NULL },
	.exits =
		(const struct uvd_command_exit[]){
			{ "0", "one of them works" },
			{ "1", "none works" },
			{ "2", "the command line is wrong" },
			{},
		},
	.run = doctor_command,
};
