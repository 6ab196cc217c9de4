/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A plug-in: a shared object that adds verbs, backends, personas or filters to an engine. It exports one symbol,
 * `uverbsd_plugin`, a struct uvd_plugin, and calls the functions that the headers of this folder mark UVD_API. What is
 * in the daemon itself (the verbs, null, soft, the personas) registers by the same struct.
 *
 * A plug-in has no globals that it writes: one process can have several engines. Its state is what init(),
 * device_init() and context_init() return; uvd_plugin_engine_data() and its siblings find it during a call.
 *
 * The loader maps a private copy of the file, so the file can be replaced at any time. After a reload both versions
 * are in the process: an open file keeps the tree, and so the code, of its open. The old version is unmapped after its
 * last open file and its last device.
 *
 * Versions: UVD_API_VERSION grows when a plug-in that was compiled against older headers could misbehave; then the
 * loader refuses it, naming both versions. Otherwise struct uvd_plugin, struct uvd_backend, struct uvd_persona and
 * struct uvd_filter only grow at their end, and what an older plug-in does not have is zero. A newer plug-in loads if what the daemon does not
 * know is zero. Rows (schema.h), their roles (roles.h) and objects (objects.h) do not change within a version.
 */
#ifndef UVERBSD_PLUGIN_H
#define UVERBSD_PLUGIN_H

#include <stdint.h>
#include <uverbsd/api.h>
#include <uverbsd/backend.h>
#include <uverbsd/filter.h>
#include <uverbsd/persona.h>
#include <uverbsd/request.h>
#include <uverbsd/roles.h>
#include <uverbsd/schema.h>

struct uvd_log;
struct uvd_plugin_values;

/* An option that a plug-in declares: KEY=VALUE behind --plugin FILE, or `KEY = VALUE` in its section of the file. */
struct uvd_plugin_option {
	const char *name; /* letters, digits and '-'; NULL ends the list */
	const char *value; /* the default; NULL: none */
	const char *metavar; /* "BYTES", for --help */
	const char *help; /* one line */
};

struct uvd_plugin {
	uint32_t api_version; /* UVD_API_VERSION. The first field in every version */
	uint32_t struct_size; /* sizeof(struct uvd_plugin). The second field in every version */
	uint32_t backend_size, persona_size; /* sizeof(struct uvd_backend) and sizeof(struct uvd_persona) */
	const char *name; /* unique in an engine: letters, digits, '-', '_' */
	const char *version, *description; /* one line each; may be NULL */
	/* Lists that end with NULL; each may be NULL. */
	const struct uvd_feature *const *features; /* of every device of the engine */
	const struct uvd_backend *const *backends; /* selected by a device's option `backend` */
	const struct uvd_persona *const *personas; /* selected by a device's option `persona` */
	const struct uvd_plugin_option *options; /* ends with a name of NULL */
	/*
	 * Begin and end for an engine. The thread that loads the plug-in calls init(), which sets *data. It returns 0,
	 * or a negative errno: then the plug-in is not loaded. exit() comes after the last other call into the plug-in,
	 * on the thread that puts the last reference to it: the one that unloads it, or that closes the last open file.
	 * `values` is valid during init() only; log outlives the plug-in.
	 */
	int (*init)(const struct uvd_plugin_values *values, struct uvd_log *log, void **data);
	void (*exit)(void *data);
	/*
	 * Begin and end for a device (existing devices too, if the plug-in is loaded while they run) and for a context
	 * (ib_alloc_ucontext()). They return 0, or a negative errno: the load, the creation of the device, or
	 * GET_CONTEXT fails with it. Plug-ins begin in the order in which they were loaded, and end in the reverse one.
	 * context_init() comes after the backend's alloc_context. The engine calls context_exit() after the context's
	 * last object was destroyed and before the backend's dealloc_context, and device_exit() after the last open file
	 * of the device that knows the plug-in was closed. If the device was removed under open files, its backend is
	 * closed by then. A reload calls device_init() of the new version before device_exit() of the old one.
	 *
	 * Threads: init() and device_init() run one at a time. exit() and device_exit() can run on the thread that
	 * closes the last open file, in parallel with an init() or device_init() of another version or device.
	 * context_init() and context_exit() run in parallel.
	 */
	int (*device_init)(struct uvd_ibdev *dev, void *engine_data, void **data);
	void (*device_exit)(struct uvd_ibdev *dev, void *data);
	int (*context_init)(struct uvd_context *context, void *device_data, void **data);
	void (*context_exit)(struct uvd_context *context, void *data);
	/* Ends with NULL; may be NULL. Stacked over the backend of a device by its option `filter`, or `uverbsctl filter`. */
	const struct uvd_filter *const *filters;
	size_t filter_size; /* sizeof(struct uvd_filter) */
	/*
	 * What the fields of its own rows mean (roles.h): of its write() commands, and of the attributes of its methods. Each
	 * entry names a row; the lists end with an entry without a name; each may be NULL. All parts of uverbsd that name,
	 * make or repeat calls read them. A row without an entry has bytes and numbers only.
	 */
	const struct uvd_command_fields *commands;
	const struct uvd_attr_fields *attrs;
};

/* Begins the definition of a plug-in: UVD_PLUGIN(.name = "kv", .features = features); */
#define UVD_PLUGIN(...) \
	UVD_API const struct uvd_plugin uverbsd_plugin = { .api_version = UVD_API_VERSION, \
							   .struct_size = sizeof(struct uvd_plugin), \
							   .backend_size = sizeof(struct uvd_backend), \
							   .persona_size = sizeof(struct uvd_persona), \
							   .filter_size = sizeof(struct uvd_filter), \
							   __VA_ARGS__ }
extern UVD_API const struct uvd_plugin uverbsd_plugin;

/* Returns the value of a declared option: what the user gave, else the default, else NULL. For init(). */
UVD_API const char *uvd_plugin_value(const struct uvd_plugin_values *values, const char *name);
/*
 * Gets a number (decimal, 0x..., or with the suffix K, M or G). Returns 0, or -EINVAL after a message in the log: not a
 * number, or not from min to max. *out is unchanged if there is neither a value nor a default.
 */
UVD_API int uvd_plugin_number(const struct uvd_plugin_values *values, const char *name, uint64_t min, uint64_t max,
			      uint64_t *out);

/*
 * Return the plug-in's data during a call, for its steps: what init(), device_init() and context_init() have set. A
 * destroy function has no request: the object points to what it needs. `plugin` is &uverbsd_plugin. NULL: the plug-in
 * has no such function, or the file has no context yet. For uvd_plugin_context_data() also: the device is gone, and the
 * removal may be ending the context meanwhile.
 */
UVD_API void *uvd_plugin_engine_data(const struct uvd_req *req, const struct uvd_plugin *plugin);
UVD_API void *uvd_plugin_device_data(const struct uvd_req *req, const struct uvd_plugin *plugin);
UVD_API void *uvd_plugin_context_data(const struct uvd_req *req, const struct uvd_plugin *plugin);

#endif
