/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The files that a run writes beside its work: --trace and --pcap. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/capture.h"
#include "run/launch.h"
#include "trace/trace.h"
#include "util/util.h"

/*
 * Returns an emptied file or another file such as a pipe, or a negative errno. -EEXIST: it is the capture's file, whose
 * bytes the trace must not replace.
 */
static int outputs_open_trace(const struct uvd_run_outputs *o, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), err = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (o->capture && st.st_dev == o->pcap_dev && st.st_ino == o->pcap_ino)
		err = -EEXIST;
	else if (S_ISREG(st.st_mode) && ftruncate(fd, 0))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int uvd_run_record(struct uvd_run_outputs *o, struct uvd_run_engine *e, const char *path)
{
	const struct uvd_recorder_config config = { .program = uvd_run_program_name };
	int fd, err = 0;

	if (!path)
		return 0;
	o->trace = path;
	o->log = e->log;
	fd = outputs_open_trace(o, path);
	if (fd < 0)
		err = fd;
	else
		o->recorder = uvd_recorder_new(&e->core, fd, &config, &err);
	if (!err)
		return 0;
	if (fd >= 0)
		close(fd);
	uvd_logf(e->log, UVD_ERR, "--trace %s: %s%s", path, uvd_errno_name(err),
		 err == -EEXIST ? ": --pcap writes this file: give the trace another name" : "");
	return err;
}

void uvd_run_record_end(struct uvd_run_outputs *o)
{
	int err = uvd_recorder_free(o->recorder);

	o->recorder = NULL;
	if (err)
		uvd_logf(o->log, UVD_ERR, "--trace %s: the trace is not complete: %s", o->trace, uvd_errno_name(err));
}

/* Returns a new or emptied file, or a negative errno. A pipe could keep the end of the run waiting. Sets o->pcap_*. */
static int outputs_open_pcap(struct uvd_run_outputs *o, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && !ftruncate(fd, 0)) {
		o->pcap_dev = st.st_dev;
		o->pcap_ino = st.st_ino;
		return fd;
	}
	close(fd);
	return -EINVAL;
}

int uvd_run_capture(struct uvd_run_outputs *o, struct uvd_run_engine *e, const char *path)
{
	int fd, err = 0;

	if (!path)
		return 0;
	o->pcap = path;
	o->log = e->log;
	fd = outputs_open_pcap(o, path);
	if (fd < 0)
		err = fd;
	else
		o->capture = uvd_capture_new(fd, 0, &err);
	if (!err)
		return 0;
	if (fd >= 0)
		close(fd);
	uvd_logf(e->log, UVD_ERR, "--pcap %s: %s%s", path, uvd_errno_name(err),
		 err == -EINVAL ? ": it must be a regular file" : "");
	return err;
}

void uvd_run_capture_end(struct uvd_run_outputs *o)
{
	struct uvd_capture_result result;

	if (!o->capture)
		return;
	result = uvd_capture_end(o->capture);
	if (result.err)
		uvd_logf(o->log, UVD_ERR, "--pcap %s: only the first %" PRIu64 " packets are in the file: %s", o->pcap,
			 result.packets, uvd_errno_name(result.err));
	if (result.lost)
		uvd_logf(o->log, UVD_WARN,
			 "--pcap %s: %" PRIu64 " packets lost: they came faster than they could be written", o->pcap,
			 result.lost);
}
