/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include "emit.h"

static const char emit_head[] =
	"/*\n"
	" * %s\n"
	" *\n"
	" * cc -pthread -o reproduce THIS_FILE && ./reproduce [NODE]\n"
	" */\n"
	"#define _GNU_SOURCE\n"
	"#include <errno.h>\n"
	"#include <fcntl.h>\n"
	"#include <pthread.h>\n"
	"#include <stdint.h>\n"
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#include <string.h>\n"
	"#include <sys/ioctl.h>\n"
	"#include <sys/mman.h>\n"
	"#include <unistd.h>\n"
	"\n"
	"struct call {\n"
	"\tconst char *text;\n"
	"\tuint64_t at, arg; /* at: where the message is; arg: the argument of an ioctl */\n"
	"\tunsigned long cmd; /* 0: a write() */\n"
	"\tsize_t len;\n"
	"};\n"
	"\n"
	"static int node;\n"
	"static pthread_barrier_t start;\n"
	"static pthread_t threads[16];\n"
	"static unsigned int group, pending;\n"
	"\n"
	"static void map(uint64_t at, size_t size, int prot)\n"
	"{\n"
	"\tif (mmap((void *)at, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != (void *)at)\n"
	"\t\texit(2);\n"
	"}\n"
	"\n"
	"static void put(uint64_t at, const char *hex)\n"
	"{\n"
	"\tunsigned int byte;\n"
	"\n"
	"\tfor (; sscanf(hex, \"%%2x\", &byte) == 1; hex += 2)\n"
	"\t\t*(volatile uint8_t *)at++ = byte;\n"
	"}\n"
	"\n"
	"static void *make(void *arg)\n"
	"{\n"
	"\tstruct call c = *(struct call *)arg;\n"
	"\tlong ret;\n"
	"\n"
	"\tif (group)\n"
	"\t\tpthread_barrier_wait(&start);\n"
	"\tret = c.cmd ? ioctl(node, c.cmd, c.arg) : write(node, (void *)c.at, c.len);\n"
	"\tprintf(\"%%s: %%ld %%s\\n\", c.text, ret, ret < 0 ? strerror(errno) : \"ok\");\n"
	"\tfflush(stdout);\n"
	"\treturn NULL;\n"
	"}\n"
	"\n"
	"/* Makes a call; the calls of a group at the same time. */\n"
	"static void call(struct call *c)\n"
	"{\n"
	"\tif (!group) {\n"
	"\t\tmake(c);\n"
	"\t\treturn;\n"
	"\t}\n"
	"\tpthread_create(&threads[pending++], NULL, make, c);\n"
	"\tif (pending < group)\n"
	"\t\treturn;\n"
	"\twhile (pending)\n"
	"\t\tpthread_join(threads[--pending], NULL);\n"
	"\tgroup = 0;\n"
	"}\n"
	"\n"
	"static void together(unsigned int n)\n"
	"{\n"
	"\tgroup = n;\n"
	"\tpthread_barrier_init(&start, NULL, n);\n"
	"}\n"
	"\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"\tconst char *path = argc > 1 ? argv[1] : \"%s\";\n"
	"\n"
	"\tnode = open(path, O_RDWR);\n"
	"\tif (node < 0) {\n"
	"\t\tperror(path);\n"
	"\t\treturn 2;\n"
	"\t}\n";

/* Appends to the file. The run's child has no descriptor of it: it closes all. */
static void __attribute__((format(printf, 2, 3))) emit(struct uvd_prog_run *run, const char *format, ...)
{
	FILE *out = fopen(run->emit, "ae");
	va_list ap;

	if (!out)
		return;
	va_start(ap, format);
	vfprintf(out, format, ap);
	va_end(ap);
	fclose(out);
}

static void emit_map(struct uvd_prog_run *run, uint64_t at, size_t size, const char *prot)
{
	emit(run, "\tmap(%#llx, %#zx, %s);\n", (unsigned long long)at, size, prot);
}

static void emit_arena(struct uvd_prog_run *run)
{
	for (run->slot = 0; run->slot < UVD_PROG_SLOTS; run->slot++) {
		emit_map(run, UVD_PROG_MSG(run), UVD_PROG_MSG_SIZE, "PROT_READ | PROT_WRITE");
		emit_map(run, UVD_PROG_IN(run), UVD_PROG_IN_SIZE, "PROT_READ | PROT_WRITE");
		emit_map(run, UVD_PROG_OUT(run), UVD_PROG_OUT_SIZE, "PROT_READ | PROT_WRITE");
	}
	run->slot = 0;
	emit_map(run, UVD_PROG_MEM, UVD_PROG_MEM_SIZE, "PROT_READ | PROT_WRITE");
	emit_map(run, UVD_PROG_RO, UVD_PROG_RO_SIZE, "PROT_READ");
	emit_map(run, UVD_PROG_SCRATCH, UVD_PROG_SCRATCH_SIZE, "PROT_READ | PROT_WRITE");
}

/* Writes the bytes at an address of the arena, without zeros at the end. */
static void emit_bytes(struct uvd_prog_run *run, const uint8_t *bytes, size_t len)
{
	char text[2 * 512 + 1] = "";

	while (len && !bytes[len - 1])
		len--;
	for (size_t at = 0; at < len; at += 512) {
		size_t n = len - at < 512 ? len - at : 512;

		for (size_t k = 0; k < n; k++)
			sprintf(text + 2 * k, "%02x", bytes[at + k]);
		emit(run, "\tput(%#llx, \"%s\");\n", (unsigned long long)(uintptr_t)(bytes + at), text);
	}
}

void uvd_prog_emit_group(struct uvd_prog_run *run, unsigned int n)
{
	emit(run, "\ttogether(%u);\n", n);
}

void uvd_prog_emit_call(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i,
			const struct uvd_prog_built *b)
{
	const struct uvd_prog_call *call = &p->calls[i];
	uintptr_t end = UVD_PROG_MSG(run) + UVD_PROG_MSG_SIZE;

	emit_bytes(run, b->msg, end - (uintptr_t)b->msg);
	if (call->front != UVD_PROG_WRITE)
		emit_bytes(run, (const uint8_t *)UVD_PROG_IN(run), 0x1000);
	emit(run, "\tcall(&(struct call){ \"%s %s\", %#llx, %#llx, %#lx, %zu });\n", uvd_prog_front_names[call->front],
	     call->target, (unsigned long long)(uintptr_t)b->msg, (unsigned long long)b->arg,
	     call->front == UVD_PROG_WRITE ? 0 : b->cmd, b->len);
}

int uvd_prog_emit(struct uvd_prog_run *run, const struct uvd_prog *p, const char *path, const char *comment)
{
	FILE *out = fopen(path, "we");

	if (!out)
		return -1;
	fprintf(out, emit_head, comment, run->node);
	if (fclose(out))
		return -1;
	run->emit = path;
	emit_arena(run);
	uvd_prog_run_start(run, p);
	uvd_prog_run_wait(run);
	emit(run, "\treturn 0;\n}\n");
	run->emit = NULL;
	return 0;
}
