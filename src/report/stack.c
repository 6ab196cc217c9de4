/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Keeps the stack of a thread that waits in a system call: where it is, the bytes at its top, and which files its process has
 * mapped. No more than that while the thread waits: unwind.c does the work, in a process of its own.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/client.h"
#include "cpu/cpu.h"
#include "report/internal.h"

/* ---- which objects a call has made ------------------------------------------------------------------------------- */

enum { MADE = 4 /* a call makes one, as a rule */ };

/* The objects that this thread's current call has made. They may have ended: so a serial number goes with each. */
static _Thread_local struct stack_made {
	const struct uvd_uobject *self;
	uint64_t serial;
} made[MADE];
static _Thread_local unsigned int num_made;

void uvd_report_stack_made(const struct report_object *object)
{
	if (num_made < MADE)
		made[num_made++] = (struct stack_made){ object->self, object->serial };
}

/* Returns the object if it lives. Caller holds the lock. */
static struct report_object *stack_made_at(struct uvd_report *r, const struct stack_made *m)
{
	struct report_object *object = *uvd_report_object_at(r, m->self);

	return object && object->serial == m->serial ? object : NULL;
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

void uvd_report_maps_put(struct report_maps *maps)
{
	if (!maps || --maps->refs)
		return;
	for (unsigned int i = 0; i < maps->num; i++)
		free(maps->modules[i].path);
	free(maps);
}

static uint64_t stack_hash(uint64_t hash, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len--)
		hash = (hash ^ *at++) * UINT64_C(0x100000001b3);
	return hash;
}

/* Adds a line of /proc/PID/maps: a file from its offset 0 begins a module, and other parts of the file belong to that. */
static void maps_add_line(struct report_maps *maps, const char *line)
{
	struct report_module *last = maps->num ? &maps->modules[maps->num - 1] : NULL;
	uint64_t start, end, offset;
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %" SCNx64 " %*s %*u %n", &start, &end, &offset, &path) != 3 ||
	    !path || line[path] != '/')
		return;
	if (last && offset && !strcmp(last->path, line + path)) {
		last->end = end;
		return;
	}
	if (offset || maps->num == REPORT_MODULES)
		return;
	last = &maps->modules[maps->num];
	*last = (struct report_module){ .start = start, .end = end, .path = strdup(line + path) };
	maps->num += last->path != NULL;
}

/* Reads the caller's mappings, of which a hostile client can have very many. Returns NULL, or modules without build ids. */
static struct report_maps *maps_read(struct uvd_caller *c)
{
	enum { MOST_LINES = 20000 };
	struct report_maps *maps = uvd_zalloc(sizeof(*maps) + REPORT_MODULES * sizeof(maps->modules[0]));
	int fd = c->proc->open(c->proc, c->tid, "maps", O_RDONLY);
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
	char line[PATH_MAX + 128];

	if (fd >= 0 && !in)
		close(fd);
	for (int i = 0; maps && in && i < MOST_LINES && fgets(line, sizeof(line), in); i++) {
		line[strcspn(line, "\n")] = 0;
		maps_add_line(maps, line);
	}
	if (in)
		fclose(in);
	if (!maps)
		return NULL;
	maps->refs = 1;
	for (unsigned int i = 0; i < maps->num; i++) {
		const struct report_module *m = &maps->modules[i];
		const uint64_t place[2] = { m->start, m->end };

		maps->hash = stack_hash(maps->hash, place, sizeof(place));
		maps->hash = stack_hash(maps->hash, m->path, strlen(m->path));
	}
	return maps;
}

/* Finds the build id in a module's notes, which are the client's. */
static void module_find_id(struct report_module *m, const uint8_t *notes, size_t len)
{
	size_t at = 0;

	while (len - at >= sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *note = (const void *)(notes + at);
		const size_t name = ((size_t)note->n_namesz + 3) & ~(size_t)3,
			     desc = ((size_t)note->n_descsz + 3) & ~(size_t)3;

		at += sizeof(*note);
		if (name > len - at || desc > len - at - name)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && name == 4 && !memcmp(notes + at, "GNU", 4) &&
		    note->n_descsz <= sizeof(m->id)) {
			m->id_len = note->n_descsz;
			memcpy(m->id, notes + at + name, m->id_len);
			return;
		}
		at += name + desc;
	}
}

/* Reads the build id of a module from the client's memory: it is that of the file as it was then. */
static void module_read_id(struct uvd_caller *c, struct report_module *m)
{
	enum { HEADERS = 2048, NOTES = 1024 };
	uint8_t head[HEADERS] __attribute__((aligned(8))), notes[NOTES] __attribute__((aligned(8)));
	const Elf64_Ehdr *elf = (const void *)head;
	const Elf64_Phdr *ph;

	if (uvd_caller_read(c, head, m->start, sizeof(head)) || memcmp(elf->e_ident, ELFMAG, SELFMAG) ||
	    elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_phentsize != sizeof(*ph) || elf->e_phoff % 8 ||
	    elf->e_phoff > HEADERS)
		return;
	for (unsigned int i = 0; i < elf->e_phnum && !m->id_len; i++) {
		const uint64_t at = elf->e_phoff + i * sizeof(*ph);
		size_t len;

		if (at + sizeof(*ph) > HEADERS)
			return;
		ph = (const void *)(head + at);
		len = ph->p_filesz < NOTES ? ph->p_filesz : NOTES;
		if (ph->p_type == PT_NOTE && !uvd_caller_read(c, notes, m->start + ph->p_offset, len))
			module_find_id(m, notes, len);
	}
}

/* ---- the stack --------------------------------------------------------------------------------------------------- */

/* Reads where a thread that waits in a system call has made it. Returns false if it does not wait, or if it may not be read. */
static bool stack_read_registers(struct uvd_caller *c, uint64_t *pc, uint64_t *sp)
{
	int fd = c->proc->open(c->proc, c->tid, "syscall", O_RDONLY);
	char text[256];
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	return sscanf(text, "%*d %*x %*x %*x %*x %*x %*x %" SCNx64 " %" SCNx64, sp, pc) == 2;
}

/* Copies what is readable from sp on. */
static struct report_stack *stack_copy(struct uvd_caller *c, uint64_t pc, uint64_t sp)
{
	const size_t page = uvd_cpu_page_size(), first = page - sp % page;
	struct report_stack *stack = uvd_zalloc(sizeof(*stack) + REPORT_STACK), *fitting;
	size_t len = first < REPORT_STACK ? first : REPORT_STACK;

	if (!stack || uvd_caller_read(c, stack->bytes, sp, len)) {
		free(stack);
		return NULL;
	}
	/* Page by page: behind the first frame there may be nothing. */
	while (len < REPORT_STACK) {
		const size_t more = REPORT_STACK - len < page ? REPORT_STACK - len : page;

		if (uvd_caller_read(c, stack->bytes + len, sp + len, more))
			break;
		len += more;
	}
	stack->pc = pc;
	stack->sp = sp;
	stack->len = len;
	fitting = realloc(stack, sizeof(*stack) + len);
	return fitting ?: stack;
}

static struct report_stack *stack_take(struct uvd_caller *c)
{
	uint64_t pc, sp;

	return stack_read_registers(c, &pc, &sp) ? stack_copy(c, pc, sp) : NULL;
}

void uvd_report_stack_free(struct uvd_report *r, struct report_stack *stack)
{
	if (!stack)
		return;
	r->stack_bytes -= sizeof(*stack) + stack->len;
	uvd_report_maps_put(stack->maps);
	free(stack);
}

/* Gives the stack to the first object that still lives. Returns false if there is none. Caller holds the lock. */
static bool stack_give(struct uvd_report *r, struct report_stack *stack, struct report_maps *maps)
{
	struct report_object *object = NULL;

	for (unsigned int i = 0; i < num_made && (!object || object->stack); i++)
		object = stack_made_at(r, &made[i]);
	if (!object || object->stack)
		return false;
	if (!object->process->maps || object->process->maps->hash != maps->hash) {
		uvd_report_maps_put(object->process->maps);
		object->process->maps = maps;
		maps->refs++;
	}
	stack->maps = object->process->maps;
	stack->maps->refs++;
	object->stack = stack;
	r->stack_bytes += sizeof(*stack) + stack->len;
	return true;
}

/* Does the process of these objects have the same modules as at its last stack? Then their build ids are known. */
static bool stack_knows_maps(struct uvd_report *r, const struct report_maps *maps)
{
	const struct report_object *object;
	bool known;

	uvd_lock(&r->lock);
	object = stack_made_at(r, &made[0]);
	known = object && object->process->maps && object->process->maps->hash == maps->hash;
	uvd_unlock(&r->lock);
	return known;
}

static bool stack_has_room(struct uvd_report *r)
{
	bool has_room;

	uvd_lock(&r->lock);
	has_room = r->stack_bytes + sizeof(struct report_stack) + REPORT_STACK <= REPORT_STACKS;
	r->stacks_lost += !has_room;
	uvd_unlock(&r->lock);
	return has_room;
}

static void stack_keep(struct uvd_report *r, struct uvd_caller *c)
{
	struct report_stack *stack = stack_has_room(r) ? stack_take(c) : NULL;
	struct report_maps *maps = stack ? maps_read(c) : NULL;
	bool given = false;

	if (maps && !stack_knows_maps(r, maps))
		for (unsigned int i = 0; i < maps->num; i++)
			module_read_id(c, &maps->modules[i]);
	/* If the call has ended meanwhile, all this may be another thread's. */
	uvd_lock(&r->lock);
	if (maps && uvd_caller_waits(c))
		given = stack_give(r, stack, maps);
	uvd_report_maps_put(maps);
	uvd_unlock(&r->lock);
	if (!given)
		free(stack);
}

void uvd_report_take_stack(struct uvd_report *r, struct uvd_caller *caller)
{
	if (!num_made)
		return;
	stack_keep(r, caller);
	num_made = 0;
}
