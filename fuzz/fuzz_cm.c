/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands of the connection manager, on two files of one user. The input is a list of steps: what is done, how, and the bytes of the
 * command's struct. At its end both files are closed: no identifier and no port may be left, and nothing charged.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm/command.h"
#include "cm/message.h"
#include "fuzz/client.h"
#include "fuzz/gen.h"
#include "fuzz/make_cm.h"
#include "host/host.h"
#include "persona/persona.h"

enum {
	COMMANDS = RDMA_USER_CM_CMD_JOIN_MCAST + 1,
	STEP_TIME_OUT = COMMANDS, /* the timer of the identifier that the first byte names runs out */
	STEP_REMOVE, /* the device */
	STEP_ADD,
	STEPS,
	STEP_HEAD = 3, /* bytes: the step, flags, half the length of the struct */
	MEMORY = 1 << 14, /* the client has so much, from address 0 on */
	RESPONSE = 1 << 13, /* where responses go */
	MOST_STEPS = 200,
};

/* Flags of a step. */
enum { OF_FILE_B = 1, LITTLE_ROOM = 2, NO_ROOM = 4, NO_RESPONSE = 8, SHORT_HEADER = 16 };

static struct uvd_engine engine;
static struct uvd_account *account;
static struct uvd_device device; /* only its configuration is looked at */
static struct uvd_cm *cm;
static bool has_device;
static uint8_t memory[MEMORY];

static int memory_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	if (src > MEMORY || len > MEMORY - src)
		return -EFAULT;
	memcpy(dst, memory + src, len);
	return 0;
}

static int memory_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	if (dst > MEMORY || len > MEMORY - dst)
		return -EFAULT;
	memcpy(memory + dst, src, len);
	return 0;
}

static const struct uvd_mem_ops memory_ops = { .read = memory_read, .write = memory_write };

static void cm_fuzz_init(void)
{
	struct uvd_account_limits limits;
	int err;

	fuzz_client_silence();
	uvd_account_limits_init(&limits);
	limits.max[UVD_RES_CM_IDS] = 24;
	if (uvd_host_engine(&engine, &limits, NULL))
		abort();
	account = uvd_host_account(&engine, UVD_HOST_UID);
	cm = uvd_cm_new(&engine, &err);
	if (!account || !cm)
		abort();
	cm->ephemeral = (struct uvd_port_range){ 50000, 50007 }; /* few, so that they can be used up */
	uvd_config_default(&device.config, uvd_persona_find("rxe"), 0);
}

static void device_set(bool there)
{
	if (there == has_device)
		return;
	has_device = there;
	if (there)
		cm->watch.added(&cm->watch, &device);
	else
		cm->watch.removed(&cm->watch, &device);
}

/* ---- one input ----------------------------------------------------------------------------------------------------- */

static int no_file(void *owner, struct uvd_caller *caller, int fd, struct uvd_cm_file **file)
{
	struct uvd_cm_file **files = owner;

	*file = fd == 0 || fd == 1 ? uvd_cm_file_get(files[fd]) : NULL;
	return *file || fd == 2 ? 0 : -ENOENT;
}

static const struct uvd_cm_file_ops file_ops = { .file_of = no_file };

static void step_time_out(uint8_t number)
{
	struct cm_id *id;

	cm_lock(cm);
	id = cm_number_find(&cm->ids, number);
	if (id && id->due) {
		cm_timer_stop(id);
		cm_timed_out(id);
	}
	cm_unlock(cm);
}

static void step_command(struct uvd_cm_file *file, uint32_t command, uint8_t flags, const uint8_t *in, size_t len)
{
	struct rdma_ucm_cmd_hdr hdr = { .cmd = command,
					.in = flags & SHORT_HEADER ? len / 2 : len,
					.out = CM_MOST_OUT };
	struct uvd_caller caller = uvd_host_caller(&memory_ops, &uvd_proc_local, account);
	const uint64_t response = flags & NO_RESPONSE ? MEMORY - 2 : RESPONSE;
	const size_t at = command == RDMA_USER_CM_CMD_CREATE_ID ? 8 : 0;
	bool known;
	const struct cm_row *row = cm_row(command, &known);

	if (flags & (LITTLE_ROOM | NO_ROOM))
		hdr.out = flags & NO_ROOM ? 0 : row ? row->least_out : 3;
	memset(memory, 0, sizeof(hdr) + 512);
	memcpy(memory, &hdr, sizeof(hdr));
	memcpy(memory + sizeof(hdr), in, len);
	if (row && (row->least_out || row->response))
		memcpy(memory + sizeof(hdr) + at, &response, sizeof(response));
	caller.tgid = 1;
	uvd_cm_write_from(file, &caller, 0, sizeof(hdr) + len);
}

/* Carries out the step at data. Returns its size. */
static size_t step_run(struct uvd_cm_file *const files[2], const uint8_t *data, size_t size)
{
	const uint8_t step = data[0] % STEPS, flags = data[1];
	size_t len = 2u * data[2];

	if (len > size - STEP_HEAD)
		len = size - STEP_HEAD;
	if (step < COMMANDS)
		step_command(files[flags & OF_FILE_B], step, flags, data + STEP_HEAD, len);
	else if (step == STEP_TIME_OUT)
		step_time_out(flags);
	else
		device_set(step == STEP_ADD);
	return STEP_HEAD + len;
}

static void check_nothing_is_left(void)
{
	char text[256];

	if (cm->ids.lowest || cm->mcasts.lowest || !list_empty(&cm->messages))
		abort();
	for (unsigned int i = 0; i < CM_BUCKETS; i++)
		if (!list_empty(&cm->by_comm[i]) || !list_empty(&cm->by_remote[i]) ||
		    !list_empty(&cm->by_remote_qp[i]) || !list_empty(&cm->by_port[i]))
			abort();
	if (uvd_host_charged(&engine, text, sizeof(text), 0)) {
		fprintf(stderr, "%s\n", text);
		abort();
	}
}

static void cm_fuzz_run(const uint8_t *data, size_t size)
{
	struct uvd_cm_file *files[2];
	int err;

	device_set(true);
	for (int i = 0; i < 2; i++)
		files[i] = uvd_cm_open(cm, account, 1, false, &file_ops, files, &err);
	if (!files[0] || !files[1])
		abort();
	for (unsigned int n = 0; size >= STEP_HEAD && n < MOST_STEPS; n++) {
		const size_t used = step_run(files, data, size);

		data += used;
		size -= used;
	}
	for (int i = 0; i < 2; i++)
		uvd_cm_close(files[i]);
	check_nothing_is_left();
}

/* ---- changes ------------------------------------------------------------------------------------------------------- */

/* Writes a step that may succeed. Returns its size. */
static size_t step_make(struct fuzz_gen *gen, uint8_t *to)
{
	const uint8_t step =
		fuzz_any(gen, 100) < 95 ? fuzz_any(gen, COMMANDS) : COMMANDS + fuzz_any(gen, STEPS - COMMANDS);
	union {
		uint64_t words[64];
		uint8_t bytes[512];
	} in = {};
	const struct cm_row *row;
	bool known;

	row = step < COMMANDS ? cm_row(step, &known) : NULL;
	to[0] = step;
	to[1] = fuzz_chance(gen, 90) ? fuzz_any(gen, 2) : fuzz_any(gen, 32);
	to[2] = row ? (row->in + 1) / 2 : 0;
	if (row)
		fuzz_cm_fill(gen, step, in.words);
	if (step == STEP_TIME_OUT)
		to[1] = fuzz_any(gen, 6);
	memcpy(to + STEP_HEAD, in.bytes, 2u * to[2]);
	return STEP_HEAD + 2u * to[2];
}

/* Where a step begins: behind some steps. */
static size_t any_place(struct fuzz_gen *gen, const uint8_t *data, size_t size)
{
	size_t at = 0, len;

	for (unsigned int n = fuzz_any(gen, 40); n && size - at >= STEP_HEAD; n--) {
		len = STEP_HEAD + 2u * data[at + 2];
		if (len > size - at)
			break;
		at += len;
	}
	return at;
}

static size_t cm_fuzz_mutate(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max)
{
	uint8_t step[STEP_HEAD + 512];
	size_t at, len;

	if (size && fuzz_chance(gen, 25))
		return fuzz_mutate_bytes(gen, data, size, max);
	len = step_make(gen, step);
	at = fuzz_chance(gen, 50) ? size : any_place(gen, data, size);
	if (size + len > max)
		return size;
	memmove(data + at + len, data + at, size - at);
	memcpy(data + at, step, len);
	return size + len;
}

/* ---- seeds --------------------------------------------------------------------------------------------------------- */

struct seed {
	uint8_t *data;
	size_t size;
};

static void seed_step(struct seed *seed, uint8_t step, uint8_t flags, const void *in, size_t len)
{
	uint8_t *to = seed->data + seed->size;

	to[0] = step;
	to[1] = flags;
	to[2] = (len + 1) / 2;
	memcpy(to + STEP_HEAD, in, len);
	seed->size += STEP_HEAD + 2u * to[2];
}

#define STEP(seed, COMMAND, ...) seed_step(seed, RDMA_USER_CM_CMD_##COMMAND, 0, &(__VA_ARGS__), sizeof(__VA_ARGS__))

/* A listener, 0, and a connection to it: 1, whose other end is 2. */
static void seed_connection(struct seed *seed, uint16_t ps)
{
	struct rdma_ucm_bind bind = { .id = 0, .addr_size = sizeof(struct sockaddr_in) };
	struct rdma_ucm_resolve_addr resolve = { .id = 1, .timeout_ms = 1, .dst_size = sizeof(struct sockaddr_in) };
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(7000) };

	memcpy(&bind.addr, &addr, sizeof(addr));
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memcpy(&resolve.dst_addr, &addr, sizeof(addr));
	STEP(seed, CREATE_ID, (struct rdma_ucm_create_id){ .uid = 1, .ps = ps, .qp_type = IBV_QPT_RC });
	STEP(seed, BIND, bind);
	STEP(seed, LISTEN, (struct rdma_ucm_listen){ .id = 0, .backlog = 2 });
	STEP(seed, CREATE_ID, (struct rdma_ucm_create_id){ .uid = 2, .ps = ps, .qp_type = IBV_QPT_RC });
	STEP(seed, RESOLVE_ADDR, resolve);
	STEP(seed, RESOLVE_ROUTE, (struct rdma_ucm_resolve_route){ .id = 1, .timeout_ms = 1 });
	STEP(seed, CONNECT, (struct rdma_ucm_connect){ .id = 1, .conn_param = { .qp_num = 1, .valid = 1 } });
	STEP(seed, ACCEPT, (struct rdma_ucm_accept){ .id = 2, .uid = 3, .conn_param = { .qp_num = 2, .valid = 1 } });
	STEP(seed, ACCEPT, (struct rdma_ucm_accept){ .id = 1 });
}

/* The end of it. */
static void seed_end(struct seed *seed)
{
	STEP(seed, INIT_QP_ATTR, (struct rdma_ucm_init_qp_attr){ .id = 1, .qp_state = IBV_QPS_RTR });
	STEP(seed, QUERY, (struct rdma_ucm_query){ .id = 1, .option = RDMA_USER_CM_QUERY_PATH });
	for (int i = 0; i < 6; i++)
		STEP(seed, GET_EVENT, (struct rdma_ucm_get_event){});
	STEP(seed, DISCONNECT, (struct rdma_ucm_disconnect){ .id = 1 });
	STEP(seed, DISCONNECT, (struct rdma_ucm_disconnect){ .id = 2 });
	seed_step(seed, STEP_TIME_OUT, 1, "", 0);
	STEP(seed, MIGRATE_ID, (struct rdma_ucm_migrate_id){ .id = 1, .fd = 0 });
	STEP(seed, DESTROY_ID, (struct rdma_ucm_destroy_id){ .id = 1 });
}

/* Programs of steps that may succeed. */
static void seed_steps(struct seed *seed, unsigned int n)
{
	enum { SEED_STEPS = 40 };
	struct fuzz_gen gen;

	fuzz_gen_init(&gen, n + 1);
	for (unsigned int i = 0; i < SEED_STEPS; i++)
		seed->size += step_make(&gen, seed->data + seed->size);
}

static size_t cm_fuzz_seed(unsigned int n, uint8_t *data, size_t max, char name[64])
{
	enum { CONNECTIONS = 4, SEEDS = CONNECTIONS + 12 };
	static const uint16_t spaces[] = { RDMA_PS_TCP, RDMA_PS_UDP };
	struct seed seed = { .data = data };

	if (n == SEEDS || max < FUZZ_MAX_INPUT)
		return 0;
	snprintf(name, 64, n < CONNECTIONS ? "connection-%u" : "steps-%u", n);
	if (n >= CONNECTIONS) {
		seed_steps(&seed, n);
		return seed.size;
	}
	seed_connection(&seed, spaces[n / 2]);
	if (n % 2)
		seed_end(&seed);
	return seed.size;
}

const struct fuzz_target fuzz_target = {
	.name = "fuzz_cm",
	.init = cm_fuzz_init,
	.run = cm_fuzz_run,
	.mutate = cm_fuzz_mutate,
	.seed = cm_fuzz_seed,
};
