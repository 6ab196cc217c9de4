/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a plug-in declares, as JSON between the process that maps its code and one that must not. The reader trusts
 * nothing: it uses the facts for file names, sysfs files and terminals. There are no functions among the facts. Where a
 * NULL or another value makes a difference, the reader sets a stub.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/internal.h"

enum { MAX_LIST = 256 /* entries */, MAX_TEXT = 255 /* bytes */ };

struct uvd_plugin_facts {
	json_t *root; /* has the texts */
	struct uvd_plugin_option *options;
	struct uvd_backend *backends;
	struct uvd_persona *personas;
	struct uvd_counter_file *counters; /* of all personas, one after the other */
	struct uvd_filter *filters;
	struct uvd_plugin_option *filter_options; /* of all filters, one after the other */
	const struct uvd_backend **backend_list;
	const struct uvd_persona **persona_list;
	const struct uvd_filter **filter_list;
};

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static json_t *facts_pack_options(const struct uvd_plugin_option *options)
{
	json_t *list = json_array();

	for (const struct uvd_plugin_option *o = options; o && o->name; o++)
		if (json_array_append_new(list, json_pack("{s:s, s:s?, s:s?, s:s?}", "name", o->name, "value", o->value,
							  "metavar", o->metavar, "help", o->help)))
			goto failed;
	return list;
failed:
	json_decref(list);
	return NULL;
}

static json_t *facts_pack_backends(const struct uvd_backend *const *backends)
{
	json_t *list = json_array();

	for (const struct uvd_backend *const *b = backends; b && *b; b++)
		if (json_array_append_new(list, json_pack("{s:s, s:b}", "name", (*b)->name, "maps_queues",
							  uvd_backend_maps_queues(*b))))
			goto failed;
	return list;
failed:
	json_decref(list);
	return NULL;
}

static json_t *facts_pack_counters(const struct uvd_counter_file *files)
{
	json_t *list = json_array();

	for (const struct uvd_counter_file *f = files; f && f->name; f++)
		if (json_array_append_new(
			    list, json_pack("{s:s, s:I}", "name", f->name, "counters", (json_int_t)f->counters)))
			goto failed;
	return list;
failed:
	json_decref(list);
	return NULL;
}

static json_t *facts_pack_persona(const struct uvd_persona *p)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:I, s:b, s:i, s:I, s:b, s:b, s:o}",
			 "name", p->name, "ibdev_prefix", p->ibdev_prefix, "modalias", p->modalias, "board_id",
			 p->board_id, "fw_ver", p->fw_ver, "node_desc", p->node_desc, "driver_id", p->driver_id,
			 "abi_version", p->abi_version, "vendor_id", (json_int_t)p->vendor_id, "vendor_part_id",
			 (json_int_t)p->vendor_part_id, "hw_ver", (json_int_t)p->hw_ver, "has_hw_rev", p->has_hw_rev,
			 "link_layer", p->link_layer, "unusable_caps", (json_int_t)p->unusable_caps, "has_ip_gid",
			 p->has_ip_gid, "queues", !!p->queues, "hw_counters", facts_pack_counters(p->hw_counters));
}

static json_t *facts_pack_personas(const struct uvd_persona *const *personas)
{
	json_t *list = json_array();

	for (const struct uvd_persona *const *p = personas; p && *p; p++)
		if (json_array_append_new(list, facts_pack_persona(*p)))
			goto failed;
	return list;
failed:
	json_decref(list);
	return NULL;
}

static json_t *facts_pack_filters(const struct uvd_filter *const *filters)
{
	json_t *list = json_array();

	for (const struct uvd_filter *const *f = filters; f && *f; f++)
		if (json_array_append_new(list,
					  json_pack("{s:s, s:s?, s:o}", "name", (*f)->name, "description",
						    (*f)->description, "options", facts_pack_options((*f)->options))))
			goto failed;
	return list;
failed:
	json_decref(list);
	return NULL;
}

static char *facts_dump(json_t *root)
{
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	return text;
}

char *uvd_facts_write_error(int err, const char *error)
{
	return facts_dump(json_pack("{s:i, s:s}", "errno", err, "error", error));
}

char *uvd_facts_write(const struct uvd_plugin *p)
{
	json_t *root = json_pack("{s:s, s:s?, s:s?, s:o, s:o, s:o, s:o}", "name", p->name, "version", p->version,
				 "description", p->description, "options", facts_pack_options(p->options), "backends",
				 facts_pack_backends(p->backends), "personas", facts_pack_personas(p->personas),
				 "filters", facts_pack_filters(p->filters));

	return root ? facts_dump(root)
		    : uvd_facts_write_error(-EILSEQ, "a text of the plug-in is missing, or is not UTF-8");
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The first fault counts. */
struct facts_reader {
	const char *fault; /* NULL: there is none */
};

/* Is it one line of up to `most` bytes without control characters? jansson has checked that it is UTF-8 without zero bytes. */
static bool facts_text_ok(const char *text, size_t most)
{
	const unsigned char *c = (const unsigned char *)text;

	for (; *c; c++)
		if (*c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] < 0xa0))
			return false;
	return (size_t)(c - (const unsigned char *)text) <= most;
}

/* Returns a text, or NULL if it is absent and may be. */
static const char *facts_get_text(struct facts_reader *r, const json_t *of, const char *key, bool optional)
{
	const json_t *value = json_object_get(of, key);
	const char *text = json_string_value(value);

	if (!text && optional && (!value || json_is_null(value)))
		return NULL;
	if (!text || !facts_text_ok(text, MAX_TEXT))
		r->fault = r->fault ?: key;
	return text;
}

/* Returns a name of the plug-in, or of a file. */
static const char *facts_get_name(struct facts_reader *r, const json_t *of, const char *key)
{
	const char *name = json_string_value(json_object_get(of, key));

	if (!name || !uvd_plugin_name_ok(name, "-_", 47))
		r->fault = r->fault ?: key;
	return name;
}

static json_int_t facts_get_number(struct facts_reader *r, const json_t *of, const char *key, json_int_t most)
{
	const json_t *value = json_object_get(of, key);
	const json_int_t number = json_integer_value(value);

	if (!json_is_integer(value) || number < 0 || number > most)
		r->fault = r->fault ?: key;
	return number;
}

static bool facts_get_bool(struct facts_reader *r, const json_t *of, const char *key)
{
	const json_t *value = json_object_get(of, key);

	if (!json_is_boolean(value))
		r->fault = r->fault ?: key;
	return json_is_true(value);
}

/* Returns how many entries the list has; after a fault 0. */
static size_t facts_count(struct facts_reader *r, const json_t *of, const char *key)
{
	const json_t *list = json_object_get(of, key);

	if (!json_is_array(list) || json_array_size(list) > MAX_LIST)
		r->fault = r->fault ?: key;
	return r->fault ? 0 : json_array_size(list);
}

/* Returns zeroed memory for n entries and one more. */
static void *facts_alloc(struct facts_reader *r, size_t n, size_t size)
{
	void *entries = calloc(n + 1, size);

	if (!entries)
		r->fault = r->fault ?: "memory";
	return entries;
}

/* Returns the name of an option, of the plug-in or of a filter. */
static const char *facts_get_option(struct facts_reader *r, const json_t *of)
{
	const char *name = json_string_value(json_object_get(of, "name"));

	if (!name || !uvd_plugin_name_ok(name, "-_.", 63))
		r->fault = r->fault ?: "options";
	return name;
}

/* The caller's list has room for all options. */
static void facts_fill_options(struct facts_reader *r, const json_t *of, struct uvd_plugin_option *options)
{
	const json_t *list = json_object_get(of, "options"), *entry;
	const size_t n = facts_count(r, of, "options");

	for (size_t i = 0; i < n && !r->fault; i++) {
		entry = json_array_get(list, i);
		options[i].name = facts_get_option(r, entry);
		options[i].value = facts_get_text(r, entry, "value", true);
		options[i].metavar = facts_get_text(r, entry, "metavar", true);
		options[i].help = facts_get_text(r, entry, "help", true);
	}
}

static void facts_read_options(struct facts_reader *r, struct uvd_plugin_facts *f)
{
	f->options = facts_alloc(r, facts_count(r, f->root, "options"), sizeof(*f->options));
	facts_fill_options(r, f->root, f->options);
}

static int facts_stub_doorbell(struct uvd_qp *qp, struct uvd_work *work)
{
	return -EOPNOTSUPP;
}

static void facts_stub_drop_posts(struct uvd_qp *qp)
{
}

static void facts_read_backends(struct facts_reader *r, struct uvd_plugin_facts *f)
{
	const json_t *list = json_object_get(f->root, "backends"), *entry;
	const size_t n = facts_count(r, f->root, "backends");

	f->backends = facts_alloc(r, n, sizeof(*f->backends));
	f->backend_list = facts_alloc(r, n, sizeof(*f->backend_list));
	for (size_t i = 0; i < n && !r->fault; i++) {
		entry = json_array_get(list, i);
		f->backends[i].name = facts_get_name(r, entry, "name");
		if (facts_get_bool(r, entry, "maps_queues")) {
			f->backends[i].ring_doorbell = facts_stub_doorbell;
			f->backends[i].drop_posts = facts_stub_drop_posts;
		}
		f->backend_list[i] = &f->backends[i];
	}
}

static void facts_read_counters(struct facts_reader *r, const json_t *persona, struct uvd_counter_file *files)
{
	const json_t *list = json_object_get(persona, "hw_counters"), *entry;
	const size_t n = facts_count(r, persona, "hw_counters");

	for (size_t i = 0; i < n && !r->fault; i++) {
		entry = json_array_get(list, i);
		files[i].name = facts_get_name(r, entry, "name");
		files[i].counters = facts_get_number(r, entry, "counters", UINT32_MAX);
	}
}

static void facts_read_persona(struct facts_reader *r, const json_t *of, struct uvd_counter_file *files,
			       struct uvd_persona *p)
{
	static const struct uvd_persona_queues stub_queues;

	facts_read_counters(r, of, files);
	*p = (struct uvd_persona){
		.name = facts_get_name(r, of, "name"),
		.ibdev_prefix = facts_get_name(r, of, "ibdev_prefix"),
		.driver_id = facts_get_number(r, of, "driver_id", UINT16_MAX),
		.abi_version = facts_get_number(r, of, "abi_version", INT32_MAX),
		.modalias = facts_get_text(r, of, "modalias", false),
		.board_id = facts_get_text(r, of, "board_id", false),
		.fw_ver = facts_get_text(r, of, "fw_ver", false),
		.node_desc = facts_get_text(r, of, "node_desc", false),
		.vendor_id = facts_get_number(r, of, "vendor_id", UINT32_MAX),
		.vendor_part_id = facts_get_number(r, of, "vendor_part_id", UINT32_MAX),
		.hw_ver = facts_get_number(r, of, "hw_ver", UINT32_MAX),
		.has_hw_rev = facts_get_bool(r, of, "has_hw_rev"),
		.hw_counters = files,
		.link_layer = facts_get_number(r, of, "link_layer", UINT8_MAX),
		.unusable_caps = facts_get_number(r, of, "unusable_caps", UINT32_MAX),
		.has_ip_gid = facts_get_bool(r, of, "has_ip_gid"),
		.queues = facts_get_bool(r, of, "queues") ? &stub_queues : NULL,
	};
}

static void facts_read_personas(struct facts_reader *r, struct uvd_plugin_facts *f)
{
	const json_t *list = json_object_get(f->root, "personas");
	const size_t n = facts_count(r, f->root, "personas");
	size_t files = 0;

	for (size_t i = 0; i < n; i++)
		files += facts_count(r, json_array_get(list, i), "hw_counters") + 1;
	f->personas = facts_alloc(r, n, sizeof(*f->personas));
	f->persona_list = facts_alloc(r, n, sizeof(*f->persona_list));
	f->counters = facts_alloc(r, files, sizeof(*f->counters));
	files = 0;
	for (size_t i = 0; i < n && !r->fault; i++) {
		facts_read_persona(r, json_array_get(list, i), f->counters + files, &f->personas[i]);
		files += facts_count(r, json_array_get(list, i), "hw_counters") + 1;
		f->persona_list[i] = &f->personas[i];
	}
}

static void facts_read_filters(struct facts_reader *r, struct uvd_plugin_facts *f)
{
	const json_t *list = json_object_get(f->root, "filters");
	const size_t n = facts_count(r, f->root, "filters");
	size_t options = 0;

	for (size_t i = 0; i < n; i++)
		options += facts_count(r, json_array_get(list, i), "options") + 1;
	f->filters = facts_alloc(r, n, sizeof(*f->filters));
	f->filter_list = facts_alloc(r, n, sizeof(*f->filter_list));
	f->filter_options = facts_alloc(r, options, sizeof(*f->filter_options));
	options = 0;
	for (size_t i = 0; i < n && !r->fault; i++) {
		const json_t *of = json_array_get(list, i);

		f->filters[i].name = facts_get_name(r, of, "name");
		f->filters[i].description = facts_get_text(r, of, "description", true);
		f->filters[i].options = f->filter_options + options;
		facts_fill_options(r, of, f->filter_options + options);
		options += facts_count(r, of, "options") + 1;
		f->filter_list[i] = &f->filters[i];
	}
}

static void facts_read_all(struct facts_reader *r, struct uvd_plugin_facts *f, struct uvd_plugin *plugin)
{
	facts_read_options(r, f);
	facts_read_backends(r, f);
	facts_read_personas(r, f);
	facts_read_filters(r, f);
	*plugin = (struct uvd_plugin){
		.api_version = UVD_API_VERSION,
		.struct_size = sizeof(*plugin),
		.name = facts_get_name(r, f->root, "name"),
		.version = facts_get_text(r, f->root, "version", true),
		.description = facts_get_text(r, f->root, "description", true),
		.options = f->options,
		.backends = f->backend_list,
		.personas = f->persona_list,
		.filters = f->filter_list,
	};
}

/* Does the text tell an error? Then returns it, and the message. */
static int facts_read_error(const char *what, const json_t *root, char error[UVD_PLUGIN_ERROR])
{
	const char *message = json_string_value(json_object_get(root, "error"));
	const json_int_t err = json_integer_value(json_object_get(root, "errno"));

	if (!message)
		return 0;
	if (err >= 0 || err < -4095 || !facts_text_ok(message, UVD_PLUGIN_ERROR - 1))
		return uvd_plugin_error(error, -EPROTO, "%s: the process that looked at it told a wrong error", what);
	return uvd_plugin_error(error, err, "%s", message);
}

void uvd_facts_free(struct uvd_plugin_facts *f)
{
	if (!f)
		return;
	json_decref(f->root);
	free(f->options);
	free(f->backends);
	free(f->personas);
	free(f->counters);
	free(f->filters);
	free(f->filter_options);
	free(f->backend_list);
	free(f->persona_list);
	free(f->filter_list);
	free(f);
}

int uvd_facts_read(const char *what, const char *text, size_t len, struct uvd_plugin *plugin,
		   struct uvd_plugin_facts **facts, char error[UVD_PLUGIN_ERROR])
{
	struct uvd_plugin_facts *f = uvd_zalloc(sizeof(*f));
	struct facts_reader r = {};
	int err = f ? 0 : uvd_plugin_error(error, -ENOMEM, "%s: ENOMEM", what);

	if (err)
		return err;
	f->root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	err = json_is_object(f->root) ? facts_read_error(what, f->root, error)
				      : uvd_plugin_error(error, -EPROTO, "%s: it told no facts", what);
	if (!err) {
		facts_read_all(&r, f, plugin);
		if (r.fault)
			err = uvd_plugin_error(error, -EPROTO, "%s: it declares a wrong `%s`", what, r.fault);
	}
	if (!err)
		*facts = f;
	else
		uvd_facts_free(f);
	return err;
}
