/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "bed.h"

struct harness h;
struct trace trace = { .lock = PTHREAD_MUTEX_INITIALIZER };
char error[UVD_PLUGIN_ERROR];

/* Only the toys call these functions: without this table the linker leaves them out. */
extern void *const plugin_functions[];
void *const plugin_functions[] = { uvd_plugin_engine_data };

void bed_setup(void)
{
	trace.text[0] = error[0] = 0;
	trace.fail_device = NULL;
	harness_open_with(&h, "null", &uvd_mem_process);
}

void bed_teardown(void)
{
	harness_close(&h);
}

/* Root need not trust the folders of a build. */
static uid_t toy_owner(void)
{
	return getuid() ?: 1;
}

int toy_load(const char *toy, const char *value)
{
	char path[4096], address[64];
	const char *values[] = { address, value, NULL };
	const bool traces = !strncmp(toy, "kv", 2) || strstr("before after instead instead2", toy);

	snprintf(path, sizeof(path), TOYS "/%s.so", toy);
	snprintf(address, sizeof(address), "trace=%p", (void *)&trace);
	return uvd_engine_plugin_load(&h.engine, &(struct uvd_plugin_request){ path, traces ? values : values + 1 },
				      toy_owner(), error);
}

int toy_reload(const char *name, const char *toy)
{
	char path[4096];

	snprintf(path, sizeof(path), TOYS "/%s.so", toy ?: "");
	return uvd_engine_plugin_reload(&h.engine, name, toy ? &(struct uvd_plugin_request){ .path = path } : NULL,
					toy_owner(), error);
}

int toy_unload(const char *name, bool wait)
{
	return uvd_engine_plugin_unload(&h.engine, name, wait, NULL, NULL, NULL, error);
}

bool toy_is_mapped(const char *toy)
{
	char line[4096], name[64];
	FILE *maps = fopen("/proc/self/maps", "r");
	bool found = false;

	ck_assert_ptr_nonnull(maps);
	snprintf(name, sizeof(name), "memfd:%s.so", toy);
	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, name) != NULL;
	fclose(maps);
	return found;
}

int open_context(void)
{
	int fd = uv_open(), async = -1, ret;

	if (fd < 0)
		return fd;
	ret = uv_get_context(fd, UV_WRITE, &async, NULL);
	if (async >= 0)
		close(async);
	if (!ret)
		return fd;
	uv_close(fd);
	return ret;
}

static void kv_tree(struct uv_tree *tree, uint16_t method)
{
	uv_tree_init(tree, OBJ_KV, method);
	tree->hdr.driver_id = RDMA_DRIVER_HFI1;
}

int kv_create(int fd, uint32_t *handle)
{
	struct uv_tree tree;
	int ret;

	kv_tree(&tree, M_KV_CREATE);
	uv_attr_obj(&tree, A_KV_HANDLE, 0);
	ret = uv_ioctl(fd, &tree);
	*handle = uv_attr_find(&tree, A_KV_HANDLE)->data;
	return ret;
}

int kv_destroy(int fd, uint32_t handle)
{
	struct uv_tree tree;

	kv_tree(&tree, M_KV_DESTROY);
	uv_attr_obj(&tree, A_KV_HANDLE, handle);
	return uv_ioctl(fd, &tree);
}

int kv_version(int fd, struct kv_answer *answer)
{
	struct uv_tree tree;
	int ret;

	kv_tree(&tree, M_KV_ASK);
	uv_attr_out(&tree, A_KV_ANSWER, answer, sizeof(*answer));
	ret = uv_ioctl(fd, &tree);
	return ret ?: (int)answer->version;
}

const char *traced(void)
{
	static char text[sizeof(trace.text)];

	pthread_mutex_lock(&trace.lock);
	strcpy(text, trace.text);
	trace.text[0] = 0;
	pthread_mutex_unlock(&trace.lock);
	return text;
}
