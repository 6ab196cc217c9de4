/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * client owner                      publishes a table, prints the store's number and key, and carries out the lines of
 *                                   its input: `set KEY VALUE`, `dereg`, `destroy`; prints 0 or the errno's name
 * client get NUMBER STORE_KEY KEY [ROOM]   prints the value, or the errno's name
 * client bench                      compares a GET with two RDMA READs
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "bench.h"
#include "client.h"

enum { LENGTH = 1 << 20, SLOTS = 1024 };

static const char *said(int err)
{
	return err ? strerrorname_np(err) : "0";
}

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

struct ibv_context *kv_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	must(!!context, "ibv_open_device");
	ibv_free_device_list(list);
	return context;
}

struct ibv_mr *kv_register(struct ibv_context *context, struct kv_memory *memory)
{
	void *base = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_mr *mr;

	must(base != MAP_FAILED, "mmap");
	must(!!pd, "ibv_alloc_pd");
	must(!kv_memory_init(memory, base, LENGTH, SLOTS), "kv_memory_init");
	mr = ibv_reg_mr(pd, base, LENGTH, IBV_ACCESS_REMOTE_READ);
	must(!!mr, "ibv_reg_mr");
	return mr;
}

static int owner_line(struct ibv_context *context, struct ibv_mr *mr, struct kv_memory *memory,
		      const struct kv_published *store, const char *line)
{
	char key[256], value[512];

	if (sscanf(line, "set %255s %511s", key, value) == 2)
		return kv_memory_set(memory, key, strlen(key), value, strlen(value));
	if (!strcmp(line, "dereg\n"))
		return ibv_dereg_mr(mr);
	if (!strcmp(line, "destroy\n"))
		return kv_call_destroy(context, uverbsd_driver_id(context->cmd_fd), store);
	return EINVAL;
}

static int owner(void)
{
	struct ibv_context *context = kv_open();
	struct kv_published store;
	struct kv_memory memory;
	struct ibv_mr *mr = kv_register(context, &memory);
	char line[1024];
	int err = kv_call_publish(context, uverbsd_driver_id(context->cmd_fd), mr, &store);

	if (err) {
		printf("%s\n", said(err));
		return 1;
	}
	printf("%u %" PRIu64 "\n", store.number, store.key);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("%s\n", said(owner_line(context, mr, &memory, &store, line)));
		fflush(stdout);
	}
	return 0;
}

static int reader(char **argv)
{
	const uint32_t number = strtoul(argv[0], NULL, 0);
	const uint64_t store_key = strtoull(argv[1], NULL, 0);
	struct ibv_context *context = kv_open();
	uint32_t len = argv[3] ? strtoul(argv[3], NULL, 0) : 4096;
	char value[65536];
	int err = kv_call_get(context, uverbsd_driver_id(context->cmd_fd), number, store_key, argv[2], strlen(argv[2]),
			      value, &len);

	if (err)
		printf("%s\n", said(err));
	else
		printf("%.*s\n", (int)len, value);
	return err != 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "owner"))
		return owner();
	if (argc >= 5 && argc <= 6 && !strcmp(argv[1], "get"))
		return reader(argv + 2);
	if (argc == 2 && !strcmp(argv[1], "bench"))
		return kv_bench();
	fprintf(stderr, "Usage: client owner|get NUMBER STORE_KEY KEY [ROOM]|bench\n");
	return 2;
}
