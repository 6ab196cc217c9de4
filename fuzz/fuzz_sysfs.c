/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The sysfs directory. The first byte chooses: a configuration that an engine process may have sent to the broker is
 * checked and published; or a directory that a dead process left behind is read. Its owner's file and the file of a node
 * are the rest, separated by a zero byte.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fuzz/target.h"
#include "options/options.h"
#include "persona/persona.h"
#include "plugin/plugin.h"
#include "sysfs/sysfs.h"

static char sysfs_root[64];
static struct uvd_plugins *sysfs_names;
static unsigned int sysfs_orphans;

static void sysfs_exit(void)
{
	uvd_sysfs_destroy(sysfs_root);
	rmdir(sysfs_root);
}

static void sysfs_init(void)
{
	snprintf(sysfs_root, sizeof(sysfs_root), "%s/fuzz-sysfs-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	sysfs_names = uvd_plugins_new(NULL);
	if (!sysfs_names || !mkdtemp(sysfs_root) || uvd_sysfs_create(sysfs_root, NULL))
		abort();
	atexit(sysfs_exit);
}

static void sysfs_publish(const uint8_t *data, size_t size)
{
	const uint64_t values[UVD_PORT_COUNTERS] = { 1, size };
	struct uvd_sysfs_counters shown = {};
	struct uvd_device_config config;
	const struct uvd_persona *persona;

	uvd_config_default(&config, &uvd_persona_rxe, 0);
	memcpy(&config, data, size < sizeof(config) ? size : sizeof(config));
	if (!uvd_options_device_ok(sysfs_names, &config) || config.number < 0)
		return;
	persona = uvd_plugins_persona(sysfs_names, config.persona);
	if (uvd_sysfs_add(sysfs_root, &config, persona, makedev(1, 2), NULL))
		return;
	uvd_sysfs_set_port(sysfs_root, &config, 1, size % 2);
	uvd_sysfs_set_counters(sysfs_root, &config, persona, 1, &shown, values);
	uvd_sysfs_remove(sysfs_root, &config);
}

static void sysfs_orphan(void *arg, const char *name, dev_t rdev)
{
	sysfs_orphans++;
}

static void sysfs_put(const char *name, const uint8_t *text, size_t len)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", sysfs_root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, len) < 0)
		abort();
	close(fd);
}

static void sysfs_leave(const uint8_t *data, size_t size)
{
	const size_t owner = strnlen((const char *)data, size);
	char path[128];

	snprintf(path, sizeof(path), "%s/class/infiniband_verbs/uverbs7", sysfs_root);
	mkdir(path, 0755);
	sysfs_put(".owner", data, owner);
	sysfs_put("class/infiniband_verbs/uverbs7/dev", data + owner, size - owner);
	uvd_sysfs_each_orphan(sysfs_root, sysfs_orphan, NULL);
	/* The owner may be a living process now. */
	sysfs_put(".owner", (const uint8_t *)"0", 1);
	if (uvd_sysfs_create(sysfs_root, NULL))
		abort();
}

static void sysfs_run(const uint8_t *data, size_t size)
{
	if (size)
		(data[0] & 1 ? sysfs_leave : sysfs_publish)(data + 1, size - 1);
}

static size_t sysfs_seed(unsigned int n, uint8_t *data, size_t max, char name[64])
{
	static const char left[] = "\1"
				   "77777 12345\n\0"
				   "231:7\n";
	struct uvd_device_config config;

	if (n > 2)
		return 0;
	snprintf(name, 64, "seed-%u", n);
	if (n == 2) {
		memcpy(data, left, sizeof(left));
		return sizeof(left);
	}
	uvd_config_default(&config, n ? &uvd_persona_hfi1 : &uvd_persona_rxe, n);
	data[0] = 0;
	memcpy(data + 1, &config, sizeof(config));
	return 1 + sizeof(config);
}

const struct fuzz_target fuzz_target = {
	.name = "fuzz_sysfs",
	.init = sysfs_init,
	.run = sysfs_run,
	.seed = sysfs_seed,
};
