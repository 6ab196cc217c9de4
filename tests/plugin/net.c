/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A plug-in with a backend: one that only makes contexts. TAKEN: its name is one of uverbsd's. SIZE: of its struct
 * uvd_backend, 0: as it should be. Behind the struct, and at its end, is what the engine must not take for an operation
 * of an older plug-in's backend.
 */
#include <errno.h>
#include <uverbsd/plugin.h>

static int net_context(struct uvd_context *context, struct uvd_udata *udata)
{
	return 0;
}

static void net_context_end(struct uvd_context *context)
{
}

static int net_caps(struct uvd_ibdev *dev, struct uvd_comp_cntr_caps *caps)
{
	return -EXDEV;
}

static const struct {
	struct uvd_backend b;
	uint64_t beyond[2];
} backend = { .b = {
	.name = TAKEN ? "soft" : "net",
	.size_context = sizeof(struct uvd_context),
	.query_device = uvd_config_query_device,
	.query_port = uvd_config_query_port,
	.query_gid = uvd_config_query_gid,
	.alloc_context = net_context,
	.dealloc_context = net_context_end,
	.query_comp_cntr_caps = net_caps,
}, .beyond = { 0, SIZE == sizeof(struct uvd_backend) + 16 } };
static const struct uvd_backend *const backends[] = { &backend.b, NULL };

UVD_API const struct uvd_plugin uverbsd_plugin = {
	.api_version = UVD_API_VERSION,
	.struct_size = sizeof(struct uvd_plugin),
	.backend_size = SIZE ? SIZE : sizeof(struct uvd_backend),
	.name = "net",
	.backends = backends,
};
