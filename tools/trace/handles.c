/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The objects of an open file by handle or descriptor: their types by the parse tree, and details from their creation. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "reader.h"

enum { KEY = 24 };

/* Groups of rdma_cm have numbers of their own; all others of an open file are in one table. */
static void handle_key(char key[KEY], uint16_t object, uint32_t handle)
{
	snprintf(key, KEY, "%s%u", object == UVERBSD_OBJECT_CM_MCAST ? "group " : "", handle);
}

static json_t *handle_known(const struct uvd_trace_decoded *d, uint16_t object, uint32_t handle)
{
	char key[KEY];

	handle_key(key, object, handle);
	return d->open ? json_object_get(d->open->handles, key) : NULL;
}

const char *uvd_trace_type_of(const struct uvd_trace_decoded *d, uint32_t handle)
{
	return json_string_value(json_object_get(handle_known(d, UVD_NO_OBJECT, handle), "type"));
}

static void uses_add(struct uvd_trace_decoded *d, uint16_t object, uint32_t handle)
{
	char key[16];

	snprintf(key, sizeof(key), "%u", object);
	if (!json_object_get(d->uses, key))
		json_object_set_new(d->uses, key, json_integer(handle));
}

bool uvd_trace_uses(const struct uvd_trace_decoded *d, uint16_t object, uint32_t *handle)
{
	const json_t *used;
	char key[16];

	snprintf(key, sizeof(key), "%u", object);
	used = json_object_get(d->uses, key);
	if (used)
		*handle = json_integer_value(used);
	return used;
}

void uvd_trace_handle(struct uvd_trace_decoded *d, const char *name, uint16_t object, uint32_t handle)
{
	json_t *known = handle_known(d, object, handle);
	const char *note = json_string_value(json_object_get(known, "note")), *full;
	char text[2 * UVD_SHORT_NAME + 32], word[UVD_SHORT_NAME];
	const json_int_t is = json_integer_value(json_object_get(known, "object"));

	if (known && object == UVD_NO_OBJECT)
		object = is;
	/* A command need not use the field: without an SRQ, srq_handle is 0, and that is another object's. */
	if (known && object != is)
		return;
	uses_add(d, object, handle);
	full = d->script ? uvd_view_object(&d->script->view, object) : NULL;
	if (!full)
		return;
	uvd_short_object(full, word);
	snprintf(text, sizeof(text), "%s#%u%s%s%s", word, handle, note ? "(" : "", note ? note : "", note ? ")" : "");
	if (json_is_true(json_object_get(known, "gone")))
		snprintf(text, sizeof(text), "%s#%u(destroyed)", word, handle);
	json_object_set_new(d->handles, name, json_string(text));
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

static json_t *fd_known(const struct uvd_trace_decoded *d, int32_t fd)
{
	char key[16];

	snprintf(key, sizeof(key), "fd %d", fd);
	return d->open ? json_object_get(d->open->handles, key) : NULL;
}

void uvd_trace_fd(struct uvd_trace_decoded *d, const char *name, uint16_t object, int32_t fd)
{
	const json_t *known = fd_known(d, fd);
	char text[UVD_SHORT_NAME + 48], word[UVD_SHORT_NAME], number[16] = "";
	const char *full;

	if (fd < 0)
		return;
	if (known) {
		object = json_integer_value(json_object_get(known, "object"));
		snprintf(number, sizeof(number), "#%u",
			 (unsigned int)json_integer_value(json_object_get(known, "number")));
	}
	full = d->script ? uvd_view_object(&d->script->view, object) : NULL;
	if (!full)
		return;
	uvd_short_object(full, word);
	snprintf(text, sizeof(text), "%s%s(fd %d)", word, number, fd);
	json_object_set_new(d->handles, name, json_string(text));
}

/* The trace does not tell when a client closes a descriptor of events: a new object with its number replaces the old one. */
void uvd_trace_fd_created(struct uvd_trace_decoded *d, const char *name, uint16_t object, int32_t fd)
{
	char key[16], made[16];
	json_int_t number;

	json_object_set_new(d->roles, name, json_integer(UVD_ROLE_FD));
	if (!d->open || fd < 0 || d->call->result < 0)
		return;
	snprintf(made, sizeof(made), "made %u", object);
	number = json_integer_value(json_object_get(d->open->handles, made));
	json_object_set_new(d->open->handles, made, json_integer(number + 1));
	snprintf(key, sizeof(key), "fd %d", fd);
	json_object_set_new(d->open->handles, key, json_pack("{s:i,s:I}", "object", (int)object, "number", number));
	uvd_trace_fd(d, name, object, fd);
}

/* ---- fields ------------------------------------------------------------------------------------------------------ */

/* Is it a number by which peers and completions know an object? */
static bool role_is_number_of_object(enum uvd_role role)
{
	return role == UVD_ROLE_QPN || role == UVD_ROLE_SRQN || role == UVD_ROLE_WQN;
}

/*
 * Notes the role of an output. The number by which peers and completions know an object is shown as in "QP#3(qpn 71234)",
 * while other large numbers are shown in hexadecimal.
 */
static void role_add(struct uvd_trace_decoded *d, const json_t *to, const char *name, enum uvd_role role)
{
	const json_t *value = json_object_get(to, name);
	char text[24];

	if (to == d->out)
		json_object_set_new(d->roles, name, json_integer(role));
	if (!role_is_number_of_object(role) || !json_is_integer(value))
		return;
	snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(value));
	json_object_set_new(d->words, name, json_string(text));
}

enum uvd_role uvd_trace_output_role(const struct uvd_trace_decoded *d, const char *name)
{
	return json_integer_value(json_object_get(d->roles, name));
}

/* A GID is shown as `uverbsctl call` takes it. One of zeros is left out as other zeros are. */
static void gid_add(struct uvd_trace_decoded *d, const char *name, const uint8_t *data)
{
	char text[INET6_ADDRSTRLEN];

	if (memcmp(data, &in6addr_any, sizeof(in6addr_any)))
		json_object_set_new(d->words, name, json_string(inet_ntop(AF_INET6, data, text, sizeof(text))));
}

/* Work requests of QPs are read by the type of the QP, and completions fail by their status. */
static void words_add(struct uvd_trace_decoded *d, const json_t *to, const char *name, const struct uvd_words *words)
{
	if (to == d->in && !strcmp(words->name, "ib_uverbs_qp_type"))
		d->qp_type = json_object_get(to, name);
	else if (to == d->out && !strcmp(words->name, "ibv_wc_status"))
		json_object_set(d->statuses, name, json_object_get(to, name));
}

/* The call creates, destroys or uses the object with this handle. */
static void field_handle(struct uvd_trace_decoded *d, const char *name, const struct uvd_field *f, uint32_t handle,
			 bool makes)
{
	const json_t *known = handle_known(d, f->object, handle);
	const json_int_t is = json_integer_value(json_object_get(known, "object"));

	if (makes) {
		d->created = handle;
		d->created_object = f->object;
		d->creates = d->call->result >= 0;
		snprintf(d->created_name, sizeof(d->created_name), "%s", f->name);
		return;
	}
	if (f->ends) {
		d->destroyed = handle;
		d->destroyed_object = f->object;
		d->destroys = true;
	}
	if (f->renews) {
		d->renewed = handle;
		d->renews = true;
	}
	uvd_trace_handle(d, name, known && uvd_field_is_of(f, is) ? is : f->object, handle);
}

/* makes: a response's field that can make an object does so. */
static void trace_field(struct uvd_trace_decoded *d, json_t *to, const char *name, const struct uvd_field *f,
			const uint8_t *data, bool makes)
{
	uvd_field_result(to, name, f, data);
	if ((f->role == UVD_ROLE_GID || f->role == UVD_ROLE_OWN_GID) && uvd_field_bytes(f) == sizeof(struct in6_addr))
		gid_add(d, name, data + f->at);
	role_add(d, to, name, f->role);
	if (f->count)
		return;
	if (f->words)
		words_add(d, to, name, f->words);
	if (f->role == UVD_ROLE_HANDLE)
		field_handle(d, name, f, uvd_field_get(f, data), makes);
	else if (f->role == UVD_ROLE_FD && to == d->out)
		uvd_trace_fd_created(d, name, f->object, uvd_field_get(f, data));
	else if (f->role == UVD_ROLE_FD)
		uvd_trace_fd(d, name, f->object, uvd_field_get(f, data));
}

void uvd_trace_struct(struct uvd_trace_decoded *d, json_t *to, const char *prefix, const struct uvd_struct *of,
		      const uint8_t *data, size_t len)
{
	char name[3 * UVD_SHORT_NAME];

	for (const struct uvd_field *f = of->fields; f->name; f++) {
		const bool read = uvd_field_is_read(of, f, data, len);

		if (!read && (!f->makes || uvd_field_end(f) > len))
			continue;
		snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "", f->name);
		trace_field(d, to, name, f, data, f->makes && read);
	}
}

void uvd_trace_value(struct uvd_trace_decoded *d, json_t *to, const char *name, const struct uvd_attr_fields *fields,
		     const uint8_t *data, size_t len)
{
	const struct uvd_struct *of = fields->of;
	char element[2 * UVD_SHORT_NAME];

	if (of && of->size && len > of->size && !(len % of->size)) {
		for (size_t i = 0; i < len / of->size; i++) {
			snprintf(element, sizeof(element), "%s.%zu", name, i);
			uvd_trace_struct(d, to, element, of, data + i * of->size, of->size);
		}
		return;
	}
	if (of) {
		uvd_trace_struct(d, to, name, of, data, len);
		return;
	}
	if (!len)
		return;
	uvd_words_result(to, name, fields->words, data, len);
	role_add(d, to, name, fields->role);
	if (fields->words)
		words_add(d, to, name, fields->words);
}

/* ---- what is remembered ------------------------------------------------------------------------------------------ */

/* Notes what people look for: the number that peers and completions know the object by, and the type of a QP. */
static void remember_details(const struct uvd_trace_decoded *d, json_t *known)
{
	const char *name;
	json_t *number;
	char note[64];

	json_object_foreach(d->out, name, number) {
		const enum uvd_role role = uvd_trace_output_role(d, name);

		if (!json_is_integer(number) || !role_is_number_of_object(role))
			continue;
		snprintf(note, sizeof(note), "%s %lld", uvd_role_name(role), (long long)json_integer_value(number));
		json_object_set_new(known, "note", json_string(note));
	}
	if (d->qp_type)
		json_object_set(known, "type", d->qp_type);
}

void uvd_trace_remember(struct uvd_trace_decoded *d)
{
	json_t *known = handle_known(d, d->destroyed_object, d->destroyed);
	char key[KEY];

	if (!d->open || d->call->result < 0)
		return;
	if (d->destroys && known)
		json_object_set_new(known, "gone", json_true());
	if (!d->creates)
		return;
	handle_key(key, d->created_object, d->created);
	known = json_pack("{s:i}", "object", (int)d->created_object);
	remember_details(d, known);
	json_object_set_new(d->open->handles, key, known);
}
