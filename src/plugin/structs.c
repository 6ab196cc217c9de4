/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Backends, personas and filters of a plug-in that was compiled against older or newer headers of the same API version. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/internal.h"

enum { MAX_STRUCTS = 64 /* backends, personas or filters of a plug-in */ };

static bool structs_rest_is_zero(const char *theirs, size_t from, size_t size)
{
	while (from < size && !theirs[from])
		from++;
	return from >= size;
}

/* Returns an array of n + 1 pointers that uvd_module_structs_free() frees with what they point to, or NULL. */
static void **structs_list_new(struct uvd_module *m, unsigned int n)
{
	unsigned int have = 0;
	void **all, **list;

	while (m->structs && m->structs[have])
		have++;
	/* The list itself, its structs, and the final NULL. */
	all = realloc(m->structs, (have + n + 2) * sizeof(*all));
	if (!all)
		return NULL;
	m->structs = all;
	list = all[have] = uvd_zalloc((n + 1) * sizeof(*list));
	memset(all + have + 1, 0, (n + 1) * sizeof(*all));
	return list;
}

/* Sets *list to a list of zero-extended copies. theirs: bytes of each struct in the plug-in; ours: here. */
static int structs_extend(struct uvd_module *m, const void *const **list, size_t theirs, size_t ours, const char *what,
			  char error[UVD_PLUGIN_ERROR])
{
	void **copies, **owned;
	unsigned int n = 0;

	while (*list && (*list)[n] && n <= MAX_STRUCTS)
		n++;
	if (!n || theirs == ours)
		return 0;
	if (theirs < sizeof(void *) || n > MAX_STRUCTS)
		return uvd_plugin_error(error, -ELIBBAD, "%s: %s is wrong: %zu", m->path,
					n > MAX_STRUCTS ? "the length of a list" : what, theirs);
	for (unsigned int i = 0; i < n; i++)
		if (!structs_rest_is_zero((*list)[i], ours, theirs))
			return uvd_plugin_error(error, -ENOEXEC, "%s: it needs a newer uverbsd: %s is %zu, and not %zu",
						m->path, what, theirs, ours);
	copies = structs_list_new(m, n);
	if (!copies)
		return uvd_plugin_error(error, -ENOMEM, "%s: ENOMEM", m->path);
	owned = m->structs;
	while (*owned != copies)
		owned++;
	for (unsigned int i = 0; i < n; i++) {
		copies[i] = owned[i + 1] = uvd_zalloc(ours);
		if (!copies[i])
			return uvd_plugin_error(error, -ENOMEM, "%s: ENOMEM", m->path);
		memcpy(copies[i], (*list)[i], theirs < ours ? theirs : ours);
	}
	*list = (const void *const *)copies;
	return 0;
}

int uvd_module_structs_extend(struct uvd_module *m, char error[UVD_PLUGIN_ERROR])
{
	struct uvd_plugin *p = &m->plugin;

	return structs_extend(m, (const void *const **)&p->backends, p->backend_size, sizeof(struct uvd_backend),
			      "backend_size", error)
		       ?: structs_extend(m, (const void *const **)&p->personas, p->persona_size,
					 sizeof(struct uvd_persona), "persona_size", error)
		       ?: structs_extend(m, (const void *const **)&p->filters, p->filter_size,
					 sizeof(struct uvd_filter), "filter_size", error);
}

void uvd_module_structs_free(struct uvd_module *m)
{
	for (void **s = m->structs; s && *s; s++)
		free(*s);
	free(m->structs);
	m->structs = NULL;
}
