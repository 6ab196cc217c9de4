/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Can the dynamic loader map this file in a sandbox that allows no code that is writable? Otherwise the kernel would
 * kill the process in the middle of the mapping, and say nothing of the reason.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "plugin/internal.h"

enum { MAX_HEADERS = 64, MAX_DYNAMIC = 512 };

static bool elf_read(int fd, void *to, size_t size, off_t at)
{
	return pread(fd, to, size, at) == (ssize_t)size;
}

/* Does it need relocations in its code? */
static bool elf_has_textrel(int fd, const ElfW(Phdr) * p)
{
	ElfW(Dyn) d;

	for (unsigned int i = 0; i < MAX_DYNAMIC && (i + 1) * sizeof(d) <= p->p_filesz; i++) {
		if (!elf_read(fd, &d, sizeof(d), p->p_offset + i * sizeof(d)) || d.d_tag == DT_NULL)
			return false;
		if (d.d_tag == DT_TEXTREL || (d.d_tag == DT_FLAGS && d.d_un.d_val & DF_TEXTREL))
			return true;
	}
	return false;
}

/* Returns what is wrong, or NULL. *stack is set if the file says that its stacks hold no code. */
static const char *elf_check_header(int fd, const ElfW(Phdr) * p, bool *stack)
{
	if (p->p_type == PT_LOAD && (p->p_flags & (PF_W | PF_X)) == (PF_W | PF_X))
		return "it has code that is writable";
	if (p->p_type == PT_DYNAMIC && elf_has_textrel(fd, p))
		return "it has relocations in its code: compile it with -fPIC";
	if (p->p_type == PT_GNU_STACK)
		*stack = !(p->p_flags & PF_X);
	return NULL;
}

int uvd_plugin_elf_check(const char *path, int fd, char error[UVD_PLUGIN_ERROR])
{
	const char *wrong = NULL;
	bool stack = false;
	ElfW(Ehdr) e;
	ElfW(Phdr) p;

	if (!elf_read(fd, &e, sizeof(e), 0) || memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_type != ET_DYN ||
	    e.e_phentsize != sizeof(p) || e.e_phnum > MAX_HEADERS)
		return uvd_plugin_error(error, -ELIBBAD, "%s: not a shared object", path);
	for (unsigned int i = 0; i < e.e_phnum && !wrong; i++) {
		if (!elf_read(fd, &p, sizeof(p), e.e_phoff + i * sizeof(p)))
			return uvd_plugin_error(error, -ELIBBAD, "%s: file too short", path);
		wrong = elf_check_header(fd, &p, &stack);
	}
	if (!wrong && !stack)
		wrong = "it needs stacks that hold code: link it with -z noexecstack";
	return wrong ? uvd_plugin_error(error, -ELIBBAD, "%s: with two processes no code may be writable: %s", path,
					wrong)
		     : 0;
}
