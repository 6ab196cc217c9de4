/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Runs calls on one open file: one from the command line, or the lines of a script. */
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "script.h"
#include "persona/persona.h"
#include "util/util.h"

/* HEX: digits of bytes that are printed. */
enum { MAX_WORDS = 128, MAX_MEMORY = 1 << 30, HEX = 128 };

void uvd_script_complain(const struct uvd_script *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->said->message, sizeof(s->said->message), fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s: ", s->view.who);
	if (s->line)
		fprintf(stderr, "line %u: ", s->line);
	fprintf(stderr, "%s\n", s->said->message);
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

static const char *persona_of(unsigned int driver_id)
{
	const struct uvd_persona *persona;

	for (unsigned int i = 0; (persona = uvd_persona_at(i)); i++)
		if (persona->driver_id == driver_id)
			return persona->name;
	return "hfi1";
}

/*
 * Is this the node of a device that has only commands? A command number with undefined bits is EINVAL there. Nothing is
 * written to a file that is no character device.
 */
static bool takes_commands(int fd)
{
	const struct ib_uverbs_cmd_hdr hdr = { .command = 0x00ffff00, .in_words = sizeof(hdr) / 4 };
	struct stat st;

	return !fstat(fd, &st) && S_ISCHR(st.st_mode) && write(fd, &hdr, sizeof(hdr)) < 0 && errno == EINVAL;
}

/* Only uverbsd's devices that have ioctl tell their tree. For others, take what devices of this build accept. */
static bool learn_tree(struct uvd_script *s, const char *node)
{
	const bool known = uvd_view_guess(&s->view, node);
	const int ret = uvd_view_ask_file(&s->view, s->fd);
	const unsigned int driver_id = s->view.driver_id;

	s->has_ioctl = ret != -ENOTTY;
	s->tells_tree = !ret;
	if (ret == -ENOTTY && !known && !takes_commands(s->fd)) {
		uvd_script_complain(s, "%s: not a uverbs device", node);
		return false;
	}
	if (ret == -ENOTTY || ret == -EPROTONOSUPPORT) {
		if (uvd_view_build(&s->view, NULL, persona_of(driver_id)))
			return false;
		s->view.driver_id = driver_id;
	} else if (ret) {
		uvd_script_complain(s, "%s: no parse tree: %s", node, uvd_errno_name(ret));
		return false;
	}
	uvd_view_finish(&s->view);
	return true;
}

bool uvd_script_open(struct uvd_script *s, const char *node)
{
	s->fd = open(node, O_RDWR | O_CLOEXEC);
	if (s->fd < 0) {
		uvd_script_complain(s, "%s: %s", node, uvd_errno_name(errno));
		return false;
	}
	if (!uvd_node_is_cm(node))
		return learn_tree(s, node);
	s->has_context = true; /* there is none */
	if (uvd_view_cm(&s->view))
		return false;
	uvd_view_finish(&s->view);
	return true;
}

void uvd_script_close(struct uvd_script *s)
{
	if (s->fd >= 0)
		close(s->fd);
	uvd_view_free(&s->view);
	for (size_t i = 0; i < s->num_variables; i++)
		free(s->variables[i].memory);
	free(s->variables);
}

/* ---- one call ---------------------------------------------------------------------------------------------------- */

/* Removes "--" from the names of attributes. Returns false after a message. */
static bool check_args(const struct uvd_script *s, unsigned int num, char **args)
{
	for (unsigned int i = 0; i < num; i += 2) {
		if (strncmp(args[i], "--", 2) || !args[i][2]) {
			uvd_script_complain(s, "`%s` is not an attribute: write --ATTRIBUTE VALUE", args[i]);
			return false;
		}
		if (i + 1 == num) {
			uvd_script_complain(s, "%s has no value", args[i]);
			return false;
		}
	}
	for (unsigned int i = 0; i < num; i += 2)
		args[i] += 2;
	return true;
}

/* Long bytes, such as private data, are cut: --json has all of them. */
static void print_string(const char *name, const char *text)
{
	const bool cut = strlen(text) > HEX && !text[strspn(text, "0123456789abcdef")];

	printf(" %s=%.*s%s", name, cut ? HEX : INT_MAX, text, cut ? "..." : "");
}

static void print_text(const struct uvd_outcome *out, const char *object, const char *method)
{
	const char *name;
	json_t *value;

	printf("%s %s", object, method);
	json_object_foreach(out->results, name, value) {
		if (json_is_string(value))
			print_string(name, json_string_value(value));
		else
			printf(" %s=%lld", name, (long long)json_integer_value(value));
	}
	putchar('\n');
}

/* Prints an object for a line. Steals the references of `object`, `method` and `error`. */
static void print_json(const struct uvd_script *s, json_t *object, json_t *method, json_t *error, json_t *results,
		       const char *saved)
{
	json_t *o = json_object();

	if (s->line)
		json_object_set_new(o, "line", json_integer(s->line));
	if (saved)
		json_object_set_new(o, "saved", json_string(saved));
	json_object_set_new(o, "object", object);
	json_object_set_new(o, "method", method);
	json_object_set_new(o, "error", error);
	if (*s->said->message)
		json_object_set_new(o, "message", json_string(s->said->message));
	json_object_set(o, "results", results);
	json_dumpf(o, stdout, 0);
	putchar('\n');
	json_decref(o);
	s->said->printed = true;
}

static void print_call_json(const struct uvd_script *s, const struct uvd_outcome *out,
			    const struct uverbsd_tree_row *row, const char *saved)
{
	print_json(s, json_string(uvd_view_object(&s->view, row->object)), json_string(row->name),
		   out->err ? json_string(uvd_errno_name(out->err)) : json_null(), out->results, saved);
}

/* The object of a line without a call: empty, `memory`, or wrong. */
static void print_line_json(const struct uvd_script *s, bool ok, json_t *results, const char *saved)
{
	if (s->json && !s->said->printed)
		print_json(s, json_null(), json_null(), ok ? json_null() : json_string("no call"), results, saved);
	json_decref(results);
	fflush(stdout);
}

static void report(const struct uvd_script *s, const struct uvd_outcome *out, const struct uverbsd_tree_row *row,
		   const char *saved)
{
	char object[UVD_SHORT_NAME], method[UVD_SHORT_NAME];

	uvd_short_object(uvd_view_object(&s->view, row->object), object);
	uvd_short_method(s, row, method);
	if (out->err)
		uvd_script_complain(s, "%s %s: %s", object, method, uvd_errno_name(out->err));
	if (s->json)
		print_call_json(s, out, row, saved);
	else if (!out->err)
		print_text(out, object, method);
	fflush(stdout);
}

static bool is_named(const struct uverbsd_tree_row *row, const char *end)
{
	const size_t len = strlen(row->name), n = strlen(end);

	return len >= n && !strcmp(row->name + len - n, end);
}

static bool send_call(struct uvd_script *s, const struct uvd_tree_entry *e, unsigned int num, char **args, bool save,
		      struct uvd_outcome *out)
{
	if (e->row.kind == UVERBSD_TREE_METHOD)
		return uvd_call_method(s, e, num, args, save, out);
	return uvd_call_command(s, e, num, args, save, out);
}

static bool get_context(struct uvd_script *s, const char *name)
{
	char *words[] = { (char *)"DEVICE", (char *)name };
	const struct uvd_tree_entry *e = uvd_find_call(s, words);
	struct uvd_outcome out = { .results = json_object() };
	bool ok = e && send_call(s, e, 0, NULL, false, &out);

	json_decref(out.results);
	if (ok && out.err == -EPROTONOSUPPORT && e->row.kind == UVERBSD_TREE_METHOD)
		return get_context(s, "CMD_GET_CONTEXT"); /* a kernel before the method */
	if (ok && out.err)
		uvd_script_complain(s, "GET_CONTEXT, before the first call: %s", uvd_errno_name(out.err));
	return ok && !out.err;
}

/* Calls GET_CONTEXT once, before the first call that is neither it nor the tree query, which needs none. */
static bool ensure_context(struct uvd_script *s, const struct uverbsd_tree_row *row)
{
	if (s->no_context || s->has_context || row->object == UVERBSD_OBJECT_TREE)
		return true;
	s->has_context = is_named(row, "_GET_CONTEXT") || get_context(s, "GET_CONTEXT");
	return s->has_context;
}

/* A context with User Capabilities has a larger tree. */
static bool learn_more(struct uvd_script *s)
{
	int ret;

	uvd_view_free(&s->view);
	ret = uvd_view_ask_file(&s->view, s->fd);
	if (ret)
		uvd_script_complain(s, "no parse tree of the context: %s", uvd_errno_name(ret));
	uvd_view_finish(&s->view);
	return !ret;
}

static bool run_call(struct uvd_script *s, unsigned int num, char **words, const char *saved)
{
	const struct uvd_tree_entry *e;
	struct uvd_outcome out = { .results = json_object() };
	bool ok;

	if (num < 2) {
		uvd_script_complain(s, "a call is OBJECT METHOD [--ATTRIBUTE VALUE...]");
		json_decref(out.results);
		return false;
	}
	e = uvd_find_call(s, words);
	ok = e && check_args(s, num - 2, words + 2) && ensure_context(s, &e->row) &&
	     send_call(s, e, num - 2, words + 2, saved, &out);
	if (ok)
		report(s, &out, &e->row, saved);
	if (ok && !out.err && s->tells_tree && is_named(&e->row, "_GET_CONTEXT"))
		ok = learn_more(s);
	ok = ok && !out.err && (!saved || uvd_variable_set(s, saved, out.handle, NULL));
	json_decref(out.results);
	return ok;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static bool is_name(const char *word)
{
	return strlen(word) < sizeof(((struct uvd_variable *)0)->name) && *word &&
	       word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")] == '\0';
}

/* `NAME = memory SIZE`: zeroed pages for the calls to come. Its address is the value. */
static bool run_memory(struct uvd_script *s, const char *name, const char *size_text)
{
	uint64_t size;
	void *memory;

	if (!uvd_value_number(s, "memory", size_text, &size))
		return false;
	if (!size || size > MAX_MEMORY) {
		uvd_script_complain(s, "memory: the size is 1 to %u bytes", MAX_MEMORY);
		return false;
	}
	size = (size + 4095) / 4096 * 4096;
	memory = aligned_alloc(4096, size);
	if (!memory) {
		uvd_script_complain(s, "memory: ENOMEM");
		return false;
	}
	memset(memory, 0, size);
	if (uvd_variable_set(s, name, (intptr_t)memory, memory)) {
		print_line_json(s, true, json_pack("{s:I}", "address", (json_int_t)(intptr_t)memory), name);
		return true;
	}
	free(memory);
	return false;
}

static bool run_words(struct uvd_script *s, unsigned int num, char **words)
{
	if (num < 2 || strcmp(words[1], "="))
		return run_call(s, num, words, NULL);
	if (!is_name(words[0])) {
		uvd_script_complain(s, "`%s` is not a name of letters, digits and _", words[0]);
		return false;
	}
	if (num == 4 && uvd_names_equal(words[2], "memory"))
		return run_memory(s, words[0], words[3]);
	return run_call(s, num - 2, words + 2, words[0]);
}

bool uvd_script_run(struct uvd_script *s, unsigned int num, char **words)
{
	bool ok;

	s->said->printed = false;
	*s->said->message = '\0';
	ok = !num || run_words(s, num, words);
	print_line_json(s, ok, json_object(), NULL);
	return ok;
}

/* Splits a line; `#` begins a comment. Returns false after a message. */
static bool split_line(const struct uvd_script *s, char *line, char **words, unsigned int *num)
{
	char *save = NULL;

	*num = 0;
	for (char *word = strtok_r(line, " \t\r\n", &save); word && *word != '#';
	     word = strtok_r(NULL, " \t\r\n", &save)) {
		if (*num == MAX_WORDS) {
			uvd_script_complain(s, "more than %u words", MAX_WORDS);
			return false;
		}
		words[(*num)++] = word;
	}
	return true;
}

bool uvd_script_run_file(struct uvd_script *s, FILE *file)
{
	char *line = NULL, *words[MAX_WORDS];
	bool ok = true, all = true;
	unsigned int num;
	size_t size = 0;

	while ((ok || s->keep_going) && getline(&line, &size, file) >= 0) {
		s->line++;
		ok = split_line(s, line, words, &num);
		if (ok)
			ok = uvd_script_run(s, num, words);
		else
			print_line_json(s, false, json_object(), NULL);
		all = all && ok;
	}
	if (ferror(file)) {
		uvd_script_complain(s, "cannot read the script: %s", uvd_errno_name(errno));
		all = false;
	}
	free(line);
	return all;
}
