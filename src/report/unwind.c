/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Finds the functions and lines of the stacks that were kept, by the unwind tables and debug information of the files that
 * were mapped. These are the client's, and so is each byte of a stack: a child process reads them, with limits, and sends
 * back texts.
 */
#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "report/internal.h"

bool uvd_report_has_stacks(void)
{
	return true;
}

/* ---- the child: one stack ---------------------------------------------------------------------------------------- */

struct unwind {
	FILE *out;
	const struct report_maps *maps; /* those that `dwfl` has */
	Dwfl *dwfl; /* NULL: none yet */
	const struct report_stack *stack;
	unsigned int nr, frames; /* the number of the stack; of its frames so far */
};

static pid_t unwind_next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	const bool is_first = !*thread_arg;

	*thread_arg = arg;
	return is_first ? 1 : 0;
}

static bool unwind_get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	*thread_arg = arg;
	return true;
}

/* The unwinder knows nothing of memory that the copy of the stack lacks. */
static bool unwind_read(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *result, void *arg)
{
	const struct report_stack *stack = ((struct unwind *)arg)->stack;

	if (addr < stack->sp || addr - stack->sp > stack->len || stack->len - (addr - stack->sp) < sizeof(*result))
		return false;
	memcpy(result, stack->bytes + (addr - stack->sp), sizeof(*result));
	return true;
}

/* The kernel tells two registers of a thread that waits. Others become known where a function has saved them. */
static bool unwind_set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct report_stack *stack = ((struct unwind *)arg)->stack;
	const Dwarf_Word sp = stack->sp;

	dwfl_thread_state_register_pc(thread, stack->pc);
	return dwfl_thread_state_registers(thread, UVD_CPU_DWARF_SP, 1, &sp);
}

static const Dwfl_Thread_Callbacks unwind_callbacks = {
	.next_thread = unwind_next_thread,
	.get_thread = unwind_get_thread,
	.memory_read = unwind_read,
	.set_initial_registers = unwind_set_registers,
};

/* Writes a text of the client's as one field of a line. */
static void unwind_put(struct unwind *u, const char *text)
{
	char copy[4 * REPORT_NAME];

	uvd_report_copy_text(copy, sizeof(copy), text ?: "");
	fprintf(u->out, "\t%s", copy);
}

static const struct report_module *unwind_module_at(const struct report_maps *maps, uint64_t pc)
{
	for (unsigned int i = 0; i < maps->num; i++)
		if (pc >= maps->modules[i].start && pc < maps->modules[i].end)
			return &maps->modules[i];
	return NULL;
}

/* Where in the source an address is. */
struct unwind_place {
	const char *function, *file; /* NULL: not known */
	int line;
	const char *module;
	uint64_t offset;
};

static void unwind_put_place(struct unwind *u, const struct unwind_place *place)
{
	fprintf(u->out, "%u\t%" PRIx64 "\t%d", u->nr, place->offset, place->line);
	unwind_put(u, place->module);
	unwind_put(u, place->function);
	unwind_put(u, place->file);
	fputc('\n', u->out);
}

/* Sets the place to that of the call that was inlined. */
static void unwind_leave_inlined(Dwarf_Die *die, Dwarf_Die *cu, struct unwind_place *place)
{
	Dwarf_Word file = 0, line = 0;
	Dwarf_Attribute attr;
	Dwarf_Files *files;
	size_t num;

	place->file = NULL;
	if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attr), &file) && !dwarf_getsrcfiles(cu, &files, &num))
		place->file = dwarf_filesrc(files, file, NULL, NULL);
	dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attr), &line);
	place->line = line;
}

/*
 * ibv_reg_mr() and others are inline functions of a header: the line of interest is that of the function which they are in. Writes the
 * inlined functions at this address, innermost first, and sets the place to that which follows. scopes: from innermost to outermost.
 */
static void unwind_inlined(struct unwind *u, Dwarf_Die *scopes, int num, Dwarf_Die *cu, struct unwind_place *place)
{
	for (int i = 0; i < num; i++) {
		const int tag = dwarf_tag(&scopes[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		place->function = dwarf_diename(&scopes[i]) ?: place->function;
		if (tag == DW_TAG_subprogram)
			return;
		unwind_put_place(u, place);
		unwind_leave_inlined(&scopes[i], cu, place);
	}
}

static void unwind_scopes(struct unwind *u, Dwfl_Module *module, uint64_t pc, struct unwind_place *place)
{
	Dwarf_Die *scopes = NULL, *around = NULL, *cu;
	int num, inner = 0;
	Dwarf_Addr bias;

	cu = dwfl_module_addrdie(module, pc, &bias);
	num = cu ? dwarf_getscopes(cu, pc - bias, &scopes) : 0;
	while (inner < num && dwarf_tag(&scopes[inner]) != DW_TAG_inlined_subroutine &&
	       dwarf_tag(&scopes[inner]) != DW_TAG_subprogram)
		inner++;
	/* The scopes of the address go from an inlined function to where it was defined; these, to where it was inlined. */
	num = inner < num ? dwarf_getscopes_die(&scopes[inner], &around) : 0;
	unwind_inlined(u, around, num, cu, place);
	free(around);
	free(scopes);
}

/* pc: an address within the instruction that has called, or that made the system call. */
static void unwind_tell(struct unwind *u, uint64_t pc)
{
	const struct report_module *mapped = unwind_module_at(u->maps, pc);
	Dwfl_Module *module = dwfl_addrmodule(u->dwfl, pc);
	Dwfl_Line *line = module ? dwfl_module_getsrc(module, pc) : NULL;
	struct unwind_place place = { .offset = mapped ? pc - mapped->start : pc,
				      .module = mapped ? strrchr(mapped->path, '/') + 1 : NULL };

	if (line)
		place.file = dwfl_lineinfo(line, NULL, &place.line, NULL, NULL, NULL);
	if (module)
		place.function = dwfl_module_addrname(module, pc);
	if (module)
		unwind_scopes(u, module, pc, &place);
	unwind_put_place(u, &place);
}

static int unwind_frame(Dwfl_Frame *frame, void *arg)
{
	struct unwind *u = arg;
	bool is_activation;
	Dwarf_Addr pc;

	if (u->frames++ == REPORT_FRAMES || !dwfl_frame_pc(frame, &pc, &is_activation))
		return DWARF_CB_ABORT;
	unwind_tell(u, is_activation ? pc : pc - 1);
	return DWARF_CB_OK;
}

/* ---- the child: the files of a process --------------------------------------------------------------------------- */

/* Is it the file that was mapped? The path may be another file's by now, or have been in another mount namespace. */
static bool unwind_is_file(int fd, const struct report_module *m)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	const void *id;
	const ssize_t len = elf ? dwelf_elf_gnu_build_id(elf, &id) : -1;
	const bool same = m->id_len ? len == (ssize_t)m->id_len && !memcmp(id, m->id, len) : elf && len <= 0;

	elf_end(elf);
	return same;
}

static void unwind_add_module(struct unwind *u, const struct report_module *m)
{
	int fd = open(m->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return;
	/* libdwfl takes the fd over if it succeeds. */
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !unwind_is_file(fd, m) ||
	    !dwfl_report_elf(u->dwfl, m->path, m->path, fd, m->start, false))
		close(fd);
}

static bool unwind_begin(struct unwind *u)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
	};

	if (u->dwfl && u->maps == u->stack->maps)
		return true;
	dwfl_end(u->dwfl);
	u->maps = u->stack->maps;
	u->dwfl = dwfl_begin(&callbacks);
	if (!u->dwfl)
		return false;
	dwfl_report_begin(u->dwfl);
	for (unsigned int i = 0; i < u->maps->num; i++)
		unwind_add_module(u, &u->maps->modules[i]);
	dwfl_report_end(u->dwfl, NULL, NULL);
	/* Without it there are no frames but the first. */
	dwfl_attach_state(u->dwfl, NULL, 1, &unwind_callbacks, u);
	return true;
}

static void unwind_one(struct unwind *u, const struct report_stack *stack)
{
	u->stack = stack;
	u->frames = 0;
	if (!unwind_begin(u))
		return;
	dwfl_getthread_frames(u->dwfl, 1, unwind_frame, u);
	if (!u->frames)
		unwind_tell(u, stack->pc - 1);
	fflush(u->out);
}

/* ---- all stacks -------------------------------------------------------------------------------------------------- */

/* Calls fn for each object that is left and has a stack. */
static void unwind_each(struct uvd_report *r, void (*fn)(void *arg, struct report_left *left), void *arg)
{
	for (unsigned int i = 0; i <= r->num_processes; i++) {
		struct report_process *p = i < r->num_processes ? r->processes[i] : r->others;

		for (unsigned int k = 0; p && k < p->num_listed; k++)
			if (p->left[k]->stack)
				fn(arg, p->left[k]);
	}
}

static void unwind_left(void *arg, struct report_left *left)
{
	struct unwind *u = arg;

	unwind_one(u, left->stack);
	u->nr++;
}

static void __attribute__((noreturn)) unwind_main(struct uvd_report *r, int fd)
{
	const struct rlimit seconds = { REPORT_UNWIND_MS / 1000, REPORT_UNWIND_MS / 1000 }, none = { 0, 0 };
	struct unwind u = { .out = fdopen(fd, "w") };

	setrlimit(RLIMIT_CPU, &seconds);
	setrlimit(RLIMIT_CORE, &none);
	/* A file of a client's must not crash with the engine's words, and nothing is looked for on the network. */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGABRT, SIG_DFL);
	unsetenv("DEBUGINFOD_URLS");
	elf_version(EV_CURRENT);
	if (u.out)
		unwind_each(r, unwind_left, &u);
	_exit(0);
}

/* ---- what the child sends ---------------------------------------------------------------------------------------- */

struct unwind_find {
	unsigned int nr;
	struct report_left *left;
};

static void unwind_find_left(void *arg, struct report_left *left)
{
	struct unwind_find *find = arg;

	if (!find->nr--)
		find->left = left;
}

/* A line has a frame of the stack of this number: see unwind_tell(). */
static void unwind_take_line(struct uvd_report *r, char *line)
{
	struct unwind_find find = { 0 };
	struct report_frame *frame;
	char *field[6];

	for (int i = 0; i < 6; i++)
		field[i] = strsep(&line, "\t");
	if (!field[5])
		return;
	find.nr = strtoul(field[0], NULL, 10);
	unwind_each(r, unwind_find_left, &find);
	if (!find.left || find.left->num_frames == REPORT_FRAMES)
		return;
	if (!find.left->frames)
		find.left->frames = calloc(REPORT_FRAMES, sizeof(*find.left->frames));
	if (!find.left->frames)
		return;
	frame = &find.left->frames[find.left->num_frames++];
	frame->offset = strtoull(field[1], NULL, 16);
	frame->line = strtol(field[2], NULL, 10);
	uvd_report_copy_text(frame->module, sizeof(frame->module), field[3]);
	uvd_report_copy_text(frame->function, sizeof(frame->function), field[4]);
	uvd_report_copy_text(frame->file, sizeof(frame->file), field[5]);
}

/* Reads lines until the child ends, or its time is over. */
static void unwind_take(struct uvd_report *r, int fd)
{
	const uint64_t end = uvd_now_ns() + REPORT_UNWIND_MS * UINT64_C(1000000);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char text[4096];
	size_t have = 0;

	for (;;) {
		const uint64_t now = uvd_now_ns();
		char *newline;
		ssize_t n;

		if (now >= end || poll(&p, 1, (end - now) / 1000000 + 1) <= 0)
			return;
		n = read(fd, text + have, sizeof(text) - have);
		if (n <= 0)
			return;
		have += n;
		while ((newline = memchr(text, '\n', have))) {
			const size_t len = newline + 1 - text;

			*newline = 0;
			unwind_take_line(r, text);
			have -= len;
			memmove(text, text + len, have);
		}
		if (have == sizeof(text))
			return;
	}
}

static void unwind_count(void *arg, struct report_left *left)
{
	++*(unsigned int *)arg;
}

void uvd_report_unwind(struct uvd_report *r)
{
	unsigned int num = 0;
	int pipes[2];
	pid_t child;

	unwind_each(r, unwind_count, &num);
	if (!num || pipe2(pipes, O_CLOEXEC))
		return;
	child = fork();
	if (!child) {
		close(pipes[0]);
		unwind_main(r, pipes[1]);
	}
	close(pipes[1]);
	if (child > 0) {
		unwind_take(r, pipes[0]);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	close(pipes[0]);
}
