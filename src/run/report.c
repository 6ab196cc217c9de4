/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* --report: where it is written, and what it has to ask about processes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/launch.h"
#include "util/util.h"

static uint64_t report_started(void *arg, pid_t pid)
{
	struct uvd_process_stat stat;

	return uvd_process_stat(pid, &stat) ? stat.start : 0;
}

/* The process's last file is closed before it is a zombie, when it has PF_EXITING already. */
static bool report_runs(void *arg, pid_t pid)
{
	enum { PF_EXITING = 4 };
	struct uvd_process_stat stat;

	return uvd_process_stat(pid, &stat) && !(stat.flags & PF_EXITING) && stat.state != 'Z' && stat.state != 'X';
}

/* Opens FILE at the beginning, so that a wrong name is told before PROGRAM runs. */
static int report_open(struct uvd_run_outputs *o, const char *path)
{
	int fd;

	o->owns_report = strcmp(path, "-") != 0;
	fd = o->owns_report ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : STDERR_FILENO;
	o->report = fd;
	return fd < 0 ? -errno : 0;
}

int uvd_run_report_begin(struct uvd_run_outputs *o, struct uvd_run_engine *e, const struct uvd_run_options *options)
{
	const struct uvd_report_config config = {
		.program = uvd_run_program_name,
		.started = report_started,
		.runs = report_runs,
		.stacks = options->report_stacks,
	};
	int err;

	if (!options->report)
		return 0;
	if (config.stacks && !uvd_report_has_stacks()) {
		uvd_logf(e->log, UVD_ERR, "--report-stacks: this uverbsctl was built without libdw");
		return -EOPNOTSUPP;
	}
	err = report_open(o, options->report);
	if (!err)
		e->report = uvd_report_new(&e->core, &config, &err);
	if (err)
		uvd_logf(e->log, UVD_ERR, "--report=%s: %s", options->report, uvd_errno_name(err));
	return err;
}

void uvd_run_report_exit(struct uvd_run_tree *tree, int status)
{
	if (tree->engine->report && uvd_run_caller(tree))
		uvd_report_exits(tree->engine->report, uvd_caller_tgid(&tree->call->caller), status);
}

bool uvd_run_report_finish(struct uvd_run_outputs *o, struct uvd_run_engine *e, enum uvd_report_format format)
{
	bool is_bad;
	int err;

	uvd_report_end(e->report);
	err = uvd_report_write(e->report, o->report, format);
	if (err)
		uvd_logf(e->log, UVD_ERR, "--report: not written: %s", uvd_errno_name(err));
	is_bad = err || uvd_report_findings(e->report);
	uvd_report_free(e->report);
	e->report = NULL;
	if (o->owns_report)
		close(o->report);
	return is_bad;
}
