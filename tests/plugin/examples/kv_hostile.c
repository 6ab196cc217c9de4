/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kv_hostile CASE: owners that break the rules of plugins/kv/kv.h, and readers of them, in one process with two
 * contexts. Exit status 0: the case holds; 77: this machine cannot run it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../plugins/kv/client.h"

enum { LENGTH = 1 << 16, SLOTS = 64, PAGE = 4096, LARGE = 4 * PAGE };

static struct hostile {
	struct ibv_context *owner, *reader;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *base;
	struct kv_memory memory;
	struct kv_published store;
	int driver_id;
} h;

#define EXPECT(condition) expect(!!(condition), #condition, __LINE__)
#define EXPECT_ERR(call, want) expect_err(call, want, #call, __LINE__)

static void expect(int ok, const char *what, int line)
{
	if (ok)
		return;
	fprintf(stderr, "line %d: not so: %s\n", line, what);
	exit(1);
}

static void expect_err(int err, int want, const char *what, int line)
{
	if (err == want)
		return;
	fprintf(stderr, "line %d: %s: %s and not %s\n", line, what, err ? strerrorname_np(err) : "0",
		want ? strerrorname_np(want) : "0");
	exit(1);
}

static struct ibv_context *hostile_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	EXPECT(context);
	ibv_free_device_list(list);
	return context;
}

static void hostile_begin(void)
{
	h.owner = hostile_open();
	h.reader = hostile_open();
	h.driver_id = uverbsd_driver_id(h.reader->cmd_fd);
	h.pd = ibv_alloc_pd(h.owner);
	h.base = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(h.pd && h.base != MAP_FAILED);
	EXPECT(!kv_memory_init(&h.memory, h.base, LENGTH, SLOTS));
	h.mr = ibv_reg_mr(h.pd, h.base, LENGTH, IBV_ACCESS_REMOTE_READ);
	EXPECT(h.mr);
}

static void hostile_publish(void)
{
	hostile_begin();
	EXPECT(!kv_memory_set(&h.memory, "k", 1, "value", 5));
	EXPECT_ERR(kv_call_publish(h.owner, h.driver_id, h.mr, &h.store), 0);
}

static int hostile_get(void)
{
	uint32_t len = 64;
	char value[64];

	return kv_call_get(h.reader, h.driver_id, h.store.number, h.store.key, "k", 1, value, &len);
}

static struct kv_slot *hostile_slot_of(const void *key, uint16_t len)
{
	const uint64_t hash = kv_hash(key, len);
	struct kv_slot *slot = &h.memory.slots[hash & (SLOTS - 1)];

	while (slot->hash != hash)
		slot++;
	return slot;
}

static struct kv_slot *hostile_slot(void)
{
	return hostile_slot_of("k", 1);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static void case_header(void)
{
	static const uint32_t bad[] = {
		0, 3, 0x80000000, 2 * KV_MAX_SLOTS, KV_MAX_SLOTS, LENGTH / sizeof(struct kv_slot)
	};
	struct kv_header *header;
	struct ibv_mr *mr;

	hostile_begin();
	header = h.memory.header;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		header->num_slots = bad[i];
		EXPECT_ERR(kv_call_publish(h.owner, h.driver_id, h.mr, &h.store), EINVAL);
	}
	header->num_slots = SLOTS;
	header->magic++;
	EXPECT_ERR(kv_call_publish(h.owner, h.driver_id, h.mr, &h.store), EINVAL);
	header->magic--;
	header->reserved = 1;
	EXPECT_ERR(kv_call_publish(h.owner, h.driver_id, h.mr, &h.store), EINVAL);
	header->reserved = 0;
	mr = ibv_reg_mr(h.pd, h.base, 8, IBV_ACCESS_REMOTE_READ);
	EXPECT_ERR(kv_call_publish(h.owner, h.driver_id, mr, &h.store), EINVAL);
	mr = ibv_reg_mr(h.pd, h.base, LENGTH, IBV_ACCESS_LOCAL_WRITE);
	EXPECT_ERR(kv_call_publish(h.owner, h.driver_id, mr, &h.store), EACCES);
	EXPECT_ERR(ibv_dereg_mr(mr), 0);
	/* The refused ones have not left the region in use. */
	EXPECT_ERR(ibv_dereg_mr(h.mr), 0);
}

static void case_header_later(void)
{
	hostile_publish();
	h.memory.header->num_slots = KV_MAX_SLOTS;
	h.memory.header->magic = 0;
	EXPECT_ERR(hostile_get(), 0);
}

static void case_slot(void)
{
	static const uint64_t offsets[] = { UINT64_MAX, UINT64_MAX - 5, LENGTH, LENGTH - 1, 1ull << 63 };
	struct kv_slot *slot;
	uint64_t offset;

	hostile_publish();
	slot = hostile_slot();
	offset = slot->offset;
	for (unsigned int i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
		slot->offset = offsets[i];
		EXPECT_ERR(hostile_get(), EIO);
	}
	slot->offset = offset;
	slot->value_len = UINT32_MAX;
	EXPECT_ERR(hostile_get(), EIO);
	slot->value_len = LENGTH;
	EXPECT_ERR(hostile_get(), ENOSPC);
	slot->value_len = 5;
	EXPECT_ERR(hostile_get(), 0);
	slot->version++;
	EXPECT_ERR(hostile_get(), EAGAIN);
}

static void case_key(void)
{
	static uint8_t key[300];
	uint32_t len = 64;
	char value[64];

	hostile_publish();
	EXPECT_ERR(kv_call_get(h.reader, h.driver_id, h.store.number, h.store.key, key, 0, value, &len), EINVAL);
	EXPECT_ERR(kv_call_get(h.reader, h.driver_id, h.store.number, h.store.key, key, 256, value, &len), EINVAL);
	EXPECT_ERR(kv_call_get(h.reader, h.driver_id, h.store.number, h.store.key, key, 255, value, &len), ENOENT);
	EXPECT(!kv_memory_set(&h.memory, key, 255, "", 0));
	EXPECT_ERR(kv_call_get(h.reader, h.driver_id, h.store.number, h.store.key, key, 255, value, &len), 0);
	EXPECT(len == 0);
	/* The hash and the length are right, the key is not: as if two hashes had collided. */
	h.base[hostile_slot_of("k", 1)->offset] ^= 1;
	EXPECT_ERR(hostile_get(), ENOENT);
}

static void case_unmapped(void)
{
	hostile_publish();
	munmap(h.base, LENGTH);
	EXPECT_ERR(hostile_get(), EFAULT);
}

/* REREG_MR by INVOKE_WRITE: the providers of uverbsd's personas have no ibv_rereg_mr(). */
static int hostile_rereg(void)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ib_uverbs_rereg_mr cmd = {
		.response = (uintptr_t)&resp,
		.mr_handle = h.mr->handle,
		.flags = IBV_REREG_MR_CHANGE_ACCESS,
		.access_flags = 0,
	};
	struct uverbsd_call call = {};

	uverbsd_in(&call, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd));
	uverbsd_out(&call, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
	uverbsd_const(&call, UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_REREG_MR);
	return uverbsd_call(h.owner->cmd_fd, h.driver_id, &call, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
}

static void case_in_use(void)
{
	hostile_publish();
	EXPECT_ERR(ibv_dereg_mr(h.mr), EBUSY);
	EXPECT_ERR(hostile_rereg(), EBUSY);
	EXPECT_ERR(hostile_get(), 0);
	EXPECT_ERR(kv_call_destroy(h.owner, h.driver_id, &h.store), 0);
	EXPECT_ERR(hostile_rereg(), 0);
	EXPECT_ERR(kv_call_publish(h.owner, h.driver_id, h.mr, &h.store), EACCES);
	EXPECT_ERR(ibv_dereg_mr(h.mr), 0);
}

static void case_query(void)
{
	struct kv_info info = {};
	struct uverbsd_call call = {};

	hostile_publish();
	EXPECT_ERR(hostile_get(), 0);
	EXPECT_ERR(hostile_get(), 0);
	uverbsd_handle(&call, UVERBS_ATTR_KV_STORE_QUERY_HANDLE, h.store.handle);
	uverbsd_out(&call, UVERBS_ATTR_KV_STORE_QUERY_RESP, &info, sizeof(info));
	EXPECT_ERR(
		uverbsd_call(h.owner->cmd_fd, h.driver_id, &call, UVERBS_OBJECT_KV_STORE, UVERBS_METHOD_KV_STORE_QUERY),
		0);
	EXPECT(info.gets == 2 && info.number == h.store.number && info.num_slots == SLOTS);
}

static int hostile_open_reader(uint64_t key, uint32_t *reader)
{
	struct uverbsd_call call = {};
	int err;

	uverbsd_handle(&call, UVERBS_ATTR_KV_READER_OPEN_HANDLE, 0);
	uverbsd_in(&call, UVERBS_ATTR_KV_READER_OPEN_NUMBER, &h.store.number, sizeof(h.store.number));
	uverbsd_in(&call, UVERBS_ATTR_KV_READER_OPEN_STORE_KEY, &key, sizeof(key));
	err = uverbsd_call(h.reader->cmd_fd, h.driver_id, &call, UVERBS_OBJECT_KV_READER, UVERBS_METHOD_KV_READER_OPEN);
	*reader = uverbsd_handle_of(&call, UVERBS_ATTR_KV_READER_OPEN_HANDLE);
	return err;
}

/* with_number: names the store twice. */
static int hostile_get_by_reader(uint32_t reader, bool with_number)
{
	struct uverbsd_call call = {};
	char value[64];
	uint32_t len;

	uverbsd_handle(&call, UVERBS_ATTR_KV_STORE_GET_READER, reader);
	if (with_number)
		uverbsd_in(&call, UVERBS_ATTR_KV_STORE_GET_NUMBER, &h.store.number, sizeof(h.store.number));
	uverbsd_in(&call, UVERBS_ATTR_KV_STORE_GET_KEY, "k", 1);
	uverbsd_out(&call, UVERBS_ATTR_KV_STORE_GET_RESP_VALUE, value, sizeof(value));
	uverbsd_out(&call, UVERBS_ATTR_KV_STORE_GET_RESP_LENGTH, &len, sizeof(len));
	return uverbsd_call(h.reader->cmd_fd, h.driver_id, &call, UVERBS_OBJECT_KV_STORE, UVERBS_METHOD_KV_STORE_GET);
}

static void case_reader(void)
{
	uint32_t reader;

	hostile_publish();
	EXPECT_ERR(hostile_open_reader(h.store.key + 1, &reader), EACCES);
	EXPECT_ERR(hostile_open_reader(h.store.key, &reader), 0);
	EXPECT_ERR(hostile_get_by_reader(reader, false), 0);
	EXPECT_ERR(hostile_get_by_reader(reader, true), EINVAL);
	/* A reader does not keep the store: the owner can end it, and the region with it. */
	EXPECT_ERR(kv_call_destroy(h.owner, h.driver_id, &h.store), 0);
	EXPECT_ERR(ibv_dereg_mr(h.mr), 0);
	EXPECT_ERR(hostile_get_by_reader(reader, false), EACCES);
}

/* A child publishes and exits without a word. */
static void case_exit(void)
{
	int ends[2], status;

	EXPECT(!pipe(ends));
	if (!fork()) {
		hostile_publish();
		EXPECT(write(ends[1], &h.store, sizeof(h.store)) == sizeof(h.store));
		_exit(0);
	}
	EXPECT(read(ends[0], &h.store, sizeof(h.store)) == sizeof(h.store));
	EXPECT(wait(&status) > 0 && !status);
	h.reader = hostile_open();
	h.driver_id = uverbsd_driver_id(h.reader->cmd_fd);
	/* The engine destroys the store when it notices the exit. Until then the memory is gone. */
	for (int err = EFAULT; err == EFAULT;) {
		err = hostile_get();
		EXPECT(err == EFAULT || err == EACCES);
	}
}

static void *writes_values(void *stop)
{
	const uint64_t used = h.memory.used;
	char value[4000];

	for (unsigned int i = 0; !atomic_load((atomic_bool *)stop); i++) {
		memset(value, 'a' + i % 26, sizeof(value));
		/* Uses one of two places, so that a value is overwritten while a reader may copy it. */
		if (i % 2 == 0)
			h.memory.used = used;
		EXPECT(!kv_memory_set(&h.memory, "k", 1, value, i & 1 ? 4000 : 3000));
	}
	return NULL;
}

/* While the owner writes, every GET returns one whole value. */
static void case_torn(void)
{
	unsigned int got = 0, again = 0;
	atomic_bool stop = false;
	char value[4000];
	pthread_t thread;

	hostile_publish();
	EXPECT(!pthread_create(&thread, NULL, writes_values, &stop));
	while (got < 3000 && again < 100000) {
		uint32_t len = sizeof(value);
		int err = kv_call_get(h.reader, h.driver_id, h.store.number, h.store.key, "k", 1, value, &len);

		if (err == EAGAIN) {
			again++;
			continue;
		}
		EXPECT_ERR(err, 0);
		if (len == 5)
			continue;
		EXPECT(len == ((value[0] - 'a') & 1 ? 4000 : 3000));
		for (uint32_t i = 0; i < len; i++)
			EXPECT(value[i] == value[0]);
		got++;
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	printf("%u values, %u EAGAIN\n", got, again);
	EXPECT(got >= 100); /* without values nothing is checked */
}

/*
 * An owner whose memory holds up a reader, which the test starts in another run. Meanwhile the owner destroys the
 * store and deregisters the region; then the memory answers.
 */
static void case_slow_owner(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg;
	struct uffdio_copy copy;
	struct uffd_msg msg;
	uint8_t *page;
	int fd;

	hostile_publish();
	/* The last page of a large value is missing: the engine waits for that, while a small read would fail. */
	hostile_slot()->offset = LENGTH - LARGE;
	hostile_slot()->value_len = LARGE - 1;
	h.base[LENGTH - LARGE] = 'k';
	page = h.base + LENGTH - PAGE;
	fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		exit(77);
	madvise(page, PAGE, MADV_DONTNEED);
	reg = (struct uffdio_register){ .range = { (uintptr_t)page, PAGE }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	if (ioctl(fd, UFFDIO_REGISTER, &reg))
		exit(77);
	printf("%u %" PRIu64 "\n", h.store.number, h.store.key);
	fflush(stdout);
	EXPECT(read(fd, &msg, sizeof(msg)) == sizeof(msg)); /* now the engine waits for the page */
	EXPECT_ERR(kv_call_destroy(h.owner, h.driver_id, &h.store), 0);
	EXPECT_ERR(ibv_dereg_mr(h.mr), 0);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	copy = (struct uffdio_copy){ .dst = reg.range.start, .src = (uintptr_t)page, .len = PAGE };
	EXPECT(!ioctl(fd, UFFDIO_COPY, &copy));
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "header", case_header },
	{ "header_later", case_header_later },
	{ "slot", case_slot },
	{ "key", case_key },
	{ "unmapped", case_unmapped },
	{ "in_use", case_in_use },
	{ "query", case_query },
	{ "reader", case_reader },
	{ "exit", case_exit },
	{ "torn", case_torn },
	{ "slow_owner", case_slow_owner },
};

int main(int argc, char **argv)
{
	alarm(280); /* not to be stuck */
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (argc == 2 && !strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	return 2;
}
