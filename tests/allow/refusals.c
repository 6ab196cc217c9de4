/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <arpa/inet.h>
#include <fcntl.h>
#include "refusals.h"

struct harness h;
uint8_t mem[4 * PAGE] __attribute__((aligned(PAGE)));
uint32_t pd, cq;
static int log_fd;

int refusals_context(enum uv_front front)
{
	return uv_get_context(h.fd, front, NULL, NULL);
}

int refusals_objects(void)
{
	return refusals_context(UV_METHOD) ?: uv_alloc_pd(h.fd, UV_WRITE, &pd) ?:
		       uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL);
}

void refusals_setup(void)
{
	harness_open_with(&h, BACKEND, &uvd_mem_process);
	uv_driver_id();
	harness_close(&h);
}

/* ---- a device ---------------------------------------------------------------------------------------------------- */

/* Replaces GID0 by the text of the device's first GID. */
static void add_text(const char *text)
{
	static const char quota[] = "quota ";
	const bool is_quota = !strncmp(text, quota, strlen(quota));
	const char *gid = strstr(text, "GID0");
	char full[256], ip[INET6_ADDRSTRLEN];

	if (is_quota)
		text += strlen(quota);
	inet_ntop(AF_INET6, &h.config.ports[0].gids[0], ip, sizeof(ip));
	snprintf(full, sizeof(full), "%.*s%s", gid ? (int)(gid - text) : (int)strlen(text), text, gid ? ip : "");
	ck_assert_int_eq(
		uvd_engine_text_add(&h.engine, h.config.ibdev, is_quota ? UVD_TEXT_QUOTA : UVD_TEXT_ALLOW, full), 0);
}

/* Two ports, each with P_Keys and GIDs of its own. */
static void configure(void)
{
	struct uvd_port_config *ports = h.config.ports;

	h.config.num_ports = 2;
	ports[0].num_gids = 2;
	ck_assert_int_eq(inet_pton(AF_INET6, GID1, &ports[0].gids[1]), 1);
	ports[1] = ports[0];
	ports[1].lid = 2;
	ports[1].num_pkeys = 1;
	ports[1].pkeys[0] = 0x8001;
	ports[1].num_gids = 1;
	ck_assert_int_eq(inet_pton(AF_INET6, "fe80::88", &ports[1].gids[0]), 1);
}

void refusals_prepare(const char *const *texts)
{
	harness_init(&h, BACKEND);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	h.engine.log = uvd_log_new(log_fd, "", UVD_WARN);
	configure();
	for (; *texts; texts++)
		add_text(*texts);
}

void refusals_begin(const char *const *texts)
{
	refusals_prepare(texts);
	harness_start(&h, &uvd_mem_process);
}

void refusals_log(int level)
{
	uvd_log_free(h.engine.log);
	h.engine.log = uvd_log_new(log_fd, "", level);
}

void refusals_read_log(char *text, size_t size)
{
	ssize_t n = pread(log_fd, text, size - 1, 0);

	ck_assert_int_ge(n, 0);
	text[n] = 0;
}

void refusals_end(void)
{
	struct uvd_log *log = h.engine.log;

	harness_close(&h);
	uvd_log_free(log);
	close(log_fd);
}

/* ---- a case ------------------------------------------------------------------------------------------------------ */

/* EFAULT is the kernel's own. */
static bool is_refused(const struct refusal_case *c)
{
	return c->err && c->err != EFAULT;
}

static void check_log(const struct refusal_case *c, enum uv_front front)
{
	char text[4096], expected[512];

	refusals_read_log(text, sizeof(text));
	if (!c->line) {
		ck_assert_msg(!*text, "%s, front %d: %s", c->name, front, text);
		return;
	}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(expected, sizeof(expected), c->line, getpid());
#pragma GCC diagnostic pop
	ck_assert_msg(strstr(text, expected), "%s, front %d: no `%s` in:\n%s", c->name, front, expected, text);
	ck_assert_msg(strchr(text, '\n') == text + strlen(text) - 1, "%s: no line, or more than one:\n%s", c->name,
		      text);
	snprintf(expected, sizeof(expected), ": %s: ", strerrorname_np(c->err));
	ck_assert_msg(strstr(text, expected), "%s: the line does not have its errno:\n%s", c->name, text);
	snprintf(expected, sizeof(expected), ", pid %d\n", getpid());
	ck_assert_msg(strstr(text, expected), "%s: the line does not end with the process:\n%s", c->name, text);
}

static void device_leak(void *arg, const char *device, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max)
{
	ck_abort_msg("user %u still holds %llu %s of %s", uid, (unsigned long long)used, uvd_limit_rows[res].name,
		     device);
}

static void run_in(const struct refusal_case *c, enum uv_front front)
{
	struct uvd_account *kept;
	int ret;

	refusals_begin(c->texts);
	/* An account outlives its files here, so that what was not given back is seen. */
	kept = uvd_account_on_device(h.account, h.dev->quota);
	ret = c->run(front);
	ck_assert_msg(ret == -c->err, "%s, front %d: %s", c->name, front, strerror(-ret));
	check_log(c, front);
	ck_assert_uint_eq(uvd_device_refused(h.dev), is_refused(c));
	harness_close_file(&h);
	uvd_accounts_each_quota(h.engine.accounts, device_leak, NULL);
	uvd_account_put(kept);
	refusals_end();
}

void refusals_run(const struct refusal_case *c)
{
	for (unsigned int front = 0; front < UV_FRONTS; front++)
		if (c->fronts >> front & 1)
			run_in(c, front);
}

void refusals_run_device(const struct refusal_of_device *d, int (*run)(enum uv_front front))
{
	char text[1024];
	int err = 0;

	refusals_prepare(d->texts);
	if (d->borrows) {
		strcpy(h.config.hca, "rxe0");
		h.config.memory = UVD_MEMORY_BORROW;
	}
	ck_assert_ptr_null(uvd_device_new(&h.engine, &h.config, &err));
	ck_assert_int_eq(err, -EINVAL);
	h.config.memory = UVD_MEMORY_BOUNCE;
	refusals_read_log(text, sizeof(text));
	ck_assert_msg(strstr(text, d->line), "%s", text);
	/* Without the texts the name can be had again. */
	uvd_engine_texts_forget(&h.engine, h.config.ibdev);
	harness_start(&h, &uvd_mem_process);
	ck_assert_int_eq(run(UV_WRITE), 0);
	refusals_end();
}
