/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/rdma_user_rxe.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "emit.h"
#include "record.h"

static const char emit_head[] =
	"/*\n"
	" * %s\n"
	" *\n"
	" * cc -pthread -o reproduce THIS_FILE && ./reproduce [NODE]\n"
	" */\n"
	"#define _GNU_SOURCE\n"
	"#include <errno.h>\n"
	"#include <fcntl.h>\n"
	"#include <poll.h>\n"
	"#include <pthread.h>\n"
	"#include <rdma/ib_user_verbs.h>\n"
	"#include <rdma/rdma_user_rxe.h>\n"
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
	"\tuint64_t at, arg;\n"
	"\tunsigned long cmd; /* 0: a write() */\n"
	"\tsize_t len;\n"
	"\tint cm; /* it is on the node rdma_cm, after a wait of so many ms, and 1 */\n"
	"\tint closes, fd; /* closes fd, 2: the node; and does not ask the node */\n"
	"};\n"
	"\n"
	"static int node, cm;\n"
	"static pthread_barrier_t start;\n"
	"static pthread_t threads[16];\n"
	"static unsigned int group, pending;\n"
	"static uint32_t kept[40]; /* handles and descriptors that later calls use, by the number of the call */\n"
	"static struct {\n"
	"\tstruct mminfo mi;\n"
	"\tstruct rxe_queue_buf *queue;\n"
	"} receives[40];\n"
	"\n"
	"static void map(uint64_t at, size_t size, int prot)\n"
	"{\n"
	"\tif (mmap((void *)at, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != (void *)at)\n"
	"\t\texit(2);\n"
	"}\n"
	"\n"
	"/* Writes these bytes, and zeros up to size. */\n"
	"static void put(uint64_t at, size_t size, const char *hex)\n"
	"{\n"
	"\tunsigned int byte;\n"
	"\n"
	"\tmemset((void *)at, 0, size);\n"
	"\tfor (; sscanf(hex, \"%%2x\", &byte) == 1; hex += 2)\n"
	"\t\t*(volatile uint8_t *)at++ = byte;\n"
	"}\n"
	"\n"
	"static void keep(void *to, uint64_t at, size_t size)\n"
	"{\n"
	"\tmemcpy(to, (void *)at, size);\n"
	"}\n"
	"\n"
	"static void show(const char *text, long ret)\n"
	"{\n"
	"\tprintf(\"%%s: %%ld %%s\\n\", text, ret, ret < 0 ? strerror(errno) : \"ok\");\n"
	"\tfflush(stdout);\n"
	"}\n"
	"\n"
	"static long fail(int err)\n"
	"{\n"
	"\terrno = err;\n"
	"\treturn -1;\n"
	"}\n"
	"\n"
	"static void *make(void *arg)\n"
	"{\n"
	"\tstruct call c = *(struct call *)arg;\n"
	"\tlong ret;\n"
	"\n"
	"\tif (c.cm)\n"
	"\t\tpoll(&(struct pollfd){ .fd = cm, .events = POLLIN }, 1, c.cm - 1);\n"
	"\tif (group)\n"
	"\t\tpthread_barrier_wait(&start);\n"
	"\tif (c.closes)\n"
	"\t\tret = c.closes == 2 ? close(node) : c.fd > 2 && c.fd != node ? close(c.fd) : fail(EBADF);\n"
	"\telse\n"
	"\t\tret = c.cmd ? ioctl(node, c.cmd, c.arg) : write(c.cm ? cm : node, (void *)c.at, c.len);\n"
	"\tshow(c.text, ret);\n"
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
	"/* Reads one event. */\n"
	"static void event(const char *text, int fd, int wait)\n"
	"{\n"
	"\tstruct pollfd pfd = { .fd = fd, .events = POLLIN };\n"
	"\tint flags = fd <= 2 || fd == node ? -1 : fcntl(fd, F_GETFL);\n"
	"\tchar bytes[16];\n"
	"\n"
	"\tif (flags < 0) {\n"
	"\t\tshow(text, fail(EBADF));\n"
	"\t\treturn;\n"
	"\t}\n"
	"\tfcntl(fd, F_SETFL, flags | O_NONBLOCK);\n"
	"\tpoll(&pfd, 1, wait);\n"
	"\tshow(text, read(fd, bytes, sizeof(bytes)));\n"
	"}\n"
	"\n"
	"/* Posts one empty receive to the queue that the QP of call n shares with its client. */\n"
	"static void receive_by_queue(const char *text, unsigned int n)\n"
	"{\n"
	"\tstruct rxe_queue_buf *q = receives[n].queue;\n"
	"\tstruct mminfo *mi = &receives[n].mi;\n"
	"\n"
	"\tif (!q)\n"
	"\t\tq = mi->size ? mmap(NULL, mi->size, PROT_READ | PROT_WRITE, MAP_SHARED, node, mi->offset) : MAP_FAILED;\n"
	"\tif (q == MAP_FAILED) {\n"
	"\t\tshow(text, fail(EINVAL));\n"
	"\t\treturn;\n"
	"\t}\n"
	"\treceives[n].queue = q;\n"
	"\tmemset(q->data + ((size_t)q->producer_index << q->log2_elem_size), 0, 1u << q->log2_elem_size);\n"
	"\t__atomic_store_n(&q->producer_index, (q->producer_index + 1) & q->index_mask, __ATOMIC_RELEASE);\n"
	"\tshow(text, 0);\n"
	"}\n"
	"\n"
	"/* The same for a driver that takes receives by a command. */\n"
	"static void receive_by_command(const char *text, uint32_t qp, uint64_t response)\n"
	"{\n"
	"\tstruct {\n"
	"\t\tstruct ib_uverbs_cmd_hdr hdr;\n"
	"\t\tstruct ib_uverbs_post_recv cmd;\n"
	"\t\tstruct ib_uverbs_recv_wr wr;\n"
	"\t} msg = { { IB_USER_VERBS_CMD_POST_RECV, sizeof(msg) / 4, 1 },\n"
	"\t\t  { response, qp, 1, 0, sizeof(struct ib_uverbs_recv_wr) },\n"
	"\t\t  { 0 } };\n"
	"\n"
	"\tshow(text, write(node, &msg, sizeof(msg)) < 0 ? -1 : 0);\n"
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
	"\t}\n"
	"\tcm = open(\"/dev/infiniband/rdma_cm\", O_RDWR | O_NONBLOCK);\n"
	"\tmemset(kept, 0xff, sizeof(kept));\n";

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

static void emit_arena(struct uvd_prog_run *run)
{
	struct uvd_prog_area areas[UVD_PROG_AREAS];

	uvd_prog_areas(areas);
	for (unsigned int n = 0; n < UVD_PROG_AREAS; n++)
		emit(run, "\tmap(%#llx, %#zx, %s);\n", (unsigned long long)areas[n].at, areas[n].size,
		     areas[n].writable ? "PROT_READ | PROT_WRITE" : "PROT_READ");
}

/* The call's name for a string of C. The program's file is not trusted to hold only names. */
static const char *emit_name(const struct uvd_prog_call *call, char text[UVD_PROG_MAX_TARGET + 16])
{
	char *end = text + sprintf(text, "%s ", uvd_prog_front_names[call->front]);

	for (const char *c = call->target; *c; c++)
		*end++ = isalnum((unsigned char)*c) || strchr("_#/.-", *c) ? *c : '?';
	*end = 0;
	return text;
}

/* Writes the bytes at an address of the arena. Zeros at the end are not spelt out. */
static void emit_bytes(struct uvd_prog_run *run, const uint8_t *bytes, size_t size)
{
	char text[2 * 512 + 1];

	for (size_t at = 0; at < size; at += 512) {
		size_t n = size - at < 512 ? size - at : 512, len = n;

		text[0] = 0;
		while (len && !bytes[at + len - 1])
			len--;
		for (size_t k = 0; k < len; k++)
			sprintf(text + 2 * k, "%02x", bytes[at + k]);
		emit(run, "\tput(%#llx, %zu, \"%s\");\n", (unsigned long long)(uintptr_t)(bytes + at), n, text);
	}
}

/* Is the word this label, or LABEL.OUTPUT? */
static bool word_is_of(const char *word, const char *label)
{
	size_t len = strcspn(word, ".");

	return *label && strlen(label) == len && !strncmp(word, label, len);
}

/* Does a later call read events from what call i has made, close it, or post receives to it? Returns its word, or NULL. */
static const char *word_of_later(const struct uvd_prog *p, unsigned int i, bool receive)
{
	for (unsigned int j = i + 1; j < p->num_calls; j++)
		if (p->calls[j].front > UVD_PROG_METHOD && p->calls[j].front != UVD_PROG_CM &&
		    (p->calls[j].front == UVD_PROG_RECV) == receive &&
		    word_is_of(p->calls[j].target, p->calls[i].label))
			return p->calls[j].target;
	return NULL;
}

static void emit_keep(struct uvd_prog_run *run, const char *to, unsigned int i, uint64_t at, size_t size)
{
	emit(run, "\tkeep(&%s[%u], %#llx, %zu);\n", to, i, (unsigned long long)at, size);
}

/* Emits a keep() of the driver's part of QP i's response, which says in which memory its receives are. */
static void emit_queue(struct uvd_prog_run *run, unsigned int i)
{
	const struct uvd_prog_record *r = &run->records[i];

	for (unsigned int n = 0; n < r->num_regions; n++)
		if (!strncmp(r->regions[n].name, "uhw", 3) && r->regions[n].len >= sizeof(struct mminfo)) {
			emit_keep(run, "receives", i, UVD_PROG_OUT(run) + r->regions[n].at, sizeof(struct mminfo));
			return;
		}
}

void uvd_prog_emit_outputs(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, const uint8_t *msg)
{
	const struct uvd_prog_record *r = &run->records[i];
	const char *word = word_of_later(p, i, false), *dot;
	const uint8_t *at = NULL;
	size_t size;

	if (r->ret < 0)
		return;
	if (word_of_later(p, i, true)) {
		word = p->calls[i].label;
		emit_queue(run, i);
	}
	if (!word)
		return;
	dot = strchr(word, '.');
	at = uvd_prog_output_at(r, dot ? dot + 1 : "handle", &size);
	if (!at && !dot)
		at = uvd_prog_output_at(r, "fd", &size);
	if (at)
		emit_keep(run, "kept", i, UVD_PROG_OUT(run) + (at - r->out), size < 4 ? size : 4);
	else if (!dot && r->new_at)
		emit_keep(run, "kept", i, (uintptr_t)msg + r->new_at + offsetof(struct ib_uverbs_attr, data), 4);
}

/* Returns the number of the call that has made what the target of call i names, or i. */
static unsigned int target_call(const struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i)
{
	for (unsigned int j = 0; j < i; j++)
		if (word_is_of(p->calls[i].target, p->calls[j].label) && run->records[j].done &&
		    run->records[j].ret >= 0)
			return j;
	return i;
}

static void emit_target(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, char *text, size_t size)
{
	unsigned int j = target_call(run, p, i);

	if (j < i)
		snprintf(text, size, "kept[%u]", j);
	else
		snprintf(text, size, "%d", (int)uvd_prog_value_of(run, p, i, p->calls[i].target));
}

void uvd_prog_emit_other(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i)
{
	const struct uvd_prog_call *call = &p->calls[i];
	const char *wait = uvd_prog_item(call, "wait");
	char target[32], name[UVD_PROG_MAX_TARGET + 16];

	emit_name(call, name);
	emit_target(run, p, i, target, sizeof(target));
	if (call->front == UVD_PROG_CLOSE && !strcmp(call->target, UVD_PROG_DEVICE))
		emit(run, "\tcall(&(struct call){ .text = \"%s\", .closes = 2 });\n", name);
	else if (call->front == UVD_PROG_CLOSE)
		emit(run, "\tcall(&(struct call){ .text = \"%s\", .closes = 1, .fd = %s });\n", name, target);
	else if (call->front == UVD_PROG_EVENT)
		emit(run, "\tevent(\"%s\", %s, %d);\n", name, target, wait ? atoi(wait) : 0);
	else if (run->driver_id == RDMA_DRIVER_RXE)
		emit(run, "\treceive_by_queue(\"%s\", %u);\n", name, target_call(run, p, i));
	else
		emit(run, "\treceive_by_command(\"%s\", %s, %#llx);\n", name, target, UVD_PROG_SCRATCH);
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
	const bool writes = call->front == UVD_PROG_WRITE || call->front == UVD_PROG_CM;
	const char *wait = uvd_prog_item(call, "wait");
	char name[UVD_PROG_MAX_TARGET + 16];

	emit_bytes(run, b->msg, end - (uintptr_t)b->msg);
	if (!writes)
		emit_bytes(run, (const uint8_t *)UVD_PROG_IN(run), 0x1000);
	emit(run, "\tcall(&(struct call){ .text = \"%s\", ", emit_name(call, name));
	if (call->front == UVD_PROG_CM)
		emit(run, ".cm = %d, ", 1 + (wait ? atoi(wait) : 0));
	if (writes)
		emit(run, ".at = %#llx, .len = %zu });\n", (unsigned long long)(uintptr_t)b->msg, b->len);
	else
		emit(run, ".cmd = %#lx, .arg = %#llx });\n", b->cmd, (unsigned long long)b->arg);
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
