/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The nodes of User Capabilities: which file is an open of one, and what waits while one is made or removed. */
#include <fcntl.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "core/internal.h"
#include "objects/internal.h"
#include "tests.h"

/* ---- a transport whose nodes are memfds, and which stops in the work for the capability "perm_slow" -------------- */

static int memfd; /* perm_slow's; 0: none */
static sem_t stopped, go_on;

static void stop_if_slow(const char *name)
{
	if (strcmp(name, "perm_slow"))
		return;
	sem_post(&stopped);
	sem_wait(&go_on);
}

static int node_create(struct uvd_engine *engine, const char *name, unsigned int bit, struct uvd_ucap_node *node)
{
	int fd = memfd_create(name, MFD_CLOEXEC);
	struct stat st;

	uvd_might_fault(); /* stops the program if this thread holds a lock */
	ck_assert(!fstat(fd, &st));
	*node = (struct uvd_ucap_node){ .priv = strdup(name), .dev = st.st_dev, .ino = st.st_ino };
	if (!strcmp(name, "perm_slow")) {
		ck_assert_int_eq(memfd, 0);
		memfd = fd;
	} else {
		close(fd);
	}
	stop_if_slow(name);
	return 0;
}

static void node_remove(struct uvd_engine *engine, const struct uvd_ucap_node *node)
{
	uvd_might_fault();
	stop_if_slow(node->priv);
	if (!strcmp(node->priv, "perm_slow")) {
		close(memfd);
		memfd = 0;
	}
	free(node->priv);
}

static const struct uvd_ucap_ops node_ops = { .create = node_create, .remove = node_remove };

static void begin(void)
{
	ck_assert(!sem_init(&stopped, 0, 0) && !sem_init(&go_on, 0, 0));
	h.engine.ucaps.ops = &node_ops;
}

/* Returns false if no thread stops in the transport within a tenth of a second. */
static bool another_stops(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_nsec += 100 * 1000 * 1000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	return !sem_timedwait(&stopped, &end);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *get_slow(void *arg)
{
	return (void *)(intptr_t)uvd_ucap_get(&h.engine, "perm_slow");
}

static void *put_slow(void *arg)
{
	uvd_ucap_put(&h.engine, (intptr_t)arg);
	return NULL;
}

/* GET_CONTEXT's part for ucaps. Returns the mask, or an errno. */
static void *look_up(void *fd)
{
	const int32_t fds[] = { (intptr_t)fd };
	uint64_t mask;
	int ret = uvd_ucaps_of_fds(&h.engine, &h.call->caller, fds, 1, &mask);

	return (void *)(intptr_t)(ret ? ret : (intptr_t)mask);
}

static pthread_t start(void *(*fn)(void *arg), intptr_t arg)
{
	pthread_t thread;

	ck_assert(!pthread_create(&thread, NULL, fn, (void *)arg));
	return thread;
}

static intptr_t join(pthread_t thread)
{
	void *ret;

	ck_assert(!pthread_join(thread, &ret));
	return (intptr_t)ret;
}

/* ---- which file it is -------------------------------------------------------------------------------------------- */

static struct uvd_ucap_node next_node;

static int next_node_create(struct uvd_engine *engine, const char *name, unsigned int bit, struct uvd_ucap_node *node)
{
	*node = next_node;
	return 0;
}

static void nothing_remove(struct uvd_engine *engine, const struct uvd_ucap_node *node)
{
}

static const struct uvd_ucap_ops next_node_ops = { .create = next_node_create, .remove = nothing_remove };

/* Is the open file `fd` one of a node that fstat() describes so? */
static bool is_node(const struct uvd_ucap_node *node, int fd)
{
	intptr_t found;
	int bit;

	h.engine.ucaps.ops = &next_node_ops;
	next_node = *node;
	bit = uvd_ucap_get(&h.engine, "perm");
	found = (intptr_t)look_up((void *)(intptr_t)fd);
	uvd_ucap_put(&h.engine, bit);
	ck_assert(found == -EINVAL || found == 1 << bit);
	return found > 0;
}

START_TEST(test_node_that_is_a_character_device_has_its_number)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
	struct stat st;

	ck_assert(!fstat(null, &st));
	ck_assert(is_node(&(struct uvd_ucap_node){ .rdev = st.st_rdev }, null));
	ck_assert(!is_node(&(struct uvd_ucap_node){ .rdev = st.st_rdev }, zero));
	ck_assert(!is_node(&(struct uvd_ucap_node){ .rdev = st.st_rdev }, memfd_create("x", MFD_CLOEXEC)));
}
END_TEST

START_TEST(test_node_that_is_another_file_has_its_inode_and_file_system)
{
	int fd = memfd_create("node", MFD_CLOEXEC), other = memfd_create("other", MFD_CLOEXEC);
	struct stat st;

	ck_assert(!fstat(fd, &st));
	ck_assert(is_node(&(struct uvd_ucap_node){ .dev = st.st_dev, .ino = st.st_ino }, fd));
	ck_assert(!is_node(&(struct uvd_ucap_node){ .dev = st.st_dev, .ino = st.st_ino }, other));
	ck_assert(!is_node(&(struct uvd_ucap_node){ .dev = st.st_dev + 1, .ino = st.st_ino }, fd));
}
END_TEST

/* ---- while a node is made or removed ----------------------------------------------------------------------------- */

START_TEST(test_others_are_created_and_removed_while_a_node_is_made_and_removed)
{
	pthread_t maker, remover;
	int slow, other;

	begin();
	maker = start(get_slow, 0);
	sem_wait(&stopped);
	other = uvd_ucap_get(&h.engine, "perm_other");
	ck_assert_int_ge(other, 0);
	uvd_ucap_put(&h.engine, other);
	sem_post(&go_on);
	slow = join(maker);
	ck_assert_int_ge(slow, 0);
	remover = start(put_slow, slow);
	sem_wait(&stopped);
	ck_assert_int_eq(uvd_ucap_get(&h.engine, "perm_other"), other);
	uvd_ucap_put(&h.engine, other);
	sem_post(&go_on);
	join(remover);
}
END_TEST

START_TEST(test_two_threads_that_create_one_capability_make_one_node)
{
	pthread_t first, second;
	int bit;

	begin();
	first = start(get_slow, 0);
	sem_wait(&stopped);
	second = start(get_slow, 0);
	ck_assert(!another_stops());
	sem_post(&go_on);
	bit = join(first);
	ck_assert_int_ge(bit, 0);
	ck_assert_int_eq(join(second), bit);
	ck_assert_uint_eq(h.engine.ucaps.list[bit].refs, 2);
	uvd_ucap_put(&h.engine, bit);
	ck_assert_int_ne(memfd, 0);
	sem_post(&go_on);
	uvd_ucap_put(&h.engine, bit);
	ck_assert_int_eq(memfd, 0);
}
END_TEST

START_TEST(test_capability_is_created_again_only_after_its_node_is_removed)
{
	pthread_t remover, maker;
	int bit;

	begin();
	sem_post(&go_on);
	bit = uvd_ucap_get(&h.engine, "perm_slow");
	sem_wait(&stopped);
	remover = start(put_slow, bit);
	sem_wait(&stopped);
	maker = start(get_slow, 0);
	ck_assert(!another_stops());
	sem_post(&go_on);
	join(remover);
	sem_post(&go_on);
	ck_assert_int_eq(join(maker), bit);
	ck_assert_uint_eq(h.engine.ucaps.list[bit].refs, 1);
	sem_post(&go_on);
	uvd_ucap_put(&h.engine, bit);
}
END_TEST

START_TEST(test_client_that_opens_a_node_before_it_is_ready_has_its_capability)
{
	pthread_t maker, client;
	int bit;

	begin();
	maker = start(get_slow, 0);
	sem_wait(&stopped);
	client = start(look_up, memfd);
	ck_assert(!another_stops()); /* time for the client */
	sem_post(&go_on);
	bit = join(maker);
	ck_assert_int_ge(bit, 0);
	ck_assert_int_eq(join(client), 1 << bit);
	sem_post(&go_on);
	uvd_ucap_put(&h.engine, bit);
}
END_TEST

TEST_LIST(test_node_that_is_a_character_device_has_its_number,
	  test_node_that_is_another_file_has_its_inode_and_file_system,
	  test_others_are_created_and_removed_while_a_node_is_made_and_removed,
	  test_two_threads_that_create_one_capability_make_one_node,
	  test_capability_is_created_again_only_after_its_node_is_removed,
	  test_client_that_opens_a_node_before_it_is_ready_has_its_capability)
