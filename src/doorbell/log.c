/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The log of one open file. A client whose write() fails in the middle of its bytes (a pointer into a page that is not mapped)
 * leaves a piece of a record, and all later ones are at odd places. So a record is recognised by its bytes: if there is none at
 * the expected place this file looks for the next one, and rings every QP of the file, as it cannot know whose doorbell was lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "account/account.h"
#include "cpu/cpu.h"
#include "doorbell/internal.h"

enum {
	WINDOW = 1 << 20,
	GIVE_BACK = 64 << 10, /* bytes of records that are kept at most, once they are read */
	SEARCH = 16 << 10, /* bytes that one turn looks through for a record */
	/* At most in one turn: then it is another log's turn. */
	TURN_RECORDS = 256,
	TURN_QPS = 16,
	TORN_LOOKS = 32, /* at a record that is not whole yet */
};

struct doorbell_record {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_post_send post;
};
_Static_assert(sizeof(struct doorbell_record) == UVD_DOORBELL_BYTES, "the provider writes this struct");

enum { RECORD_WORDS = UVD_DOORBELL_BYTES / 8 };
typedef uint64_t __attribute__((aligned(1), may_alias)) doorbell_word;

/* ---- the client, after its call ---------------------------------------------------------------------------------- */

static int gone_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	return -EFAULT;
}

/* The response of POST_SEND tells only which work request is bad, and nobody reads it. */
static int gone_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	return 0;
}

static int gone_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	return 0;
}

static const struct uvd_mem_ops gone_mem = { .read = gone_read, .write = gone_write, .writev = gone_writev };

static int gone_open(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	return -ESRCH;
}

static struct uvd_proc gone_proc = { .open = gone_open };

static struct uvd_call *doorbell_call_new(const struct uvd_file *file, const struct uvd_caller *opener)
{
	struct uvd_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->works_later = true;
	call->caller = (struct uvd_caller){
		.mem = &gone_mem,
		.proc = &gone_proc,
		.tid = opener->tgid,
		.tgid = opener->tgid,
		.memfd = -1,
		.mapsfd = -1,
		.account = file->account,
		.log_user = opener->log_user,
	};
	return call;
}

/* ---- ringing ----------------------------------------------------------------------------------------------------- */

/* Returns false if the doorbell was refused. */
static bool log_ring(struct uvd_doorbell_log *log, const struct doorbell_record *record)
{
	struct uvd_work work;
	bool is_rung;

	log->call->file = log->file;
	is_rung = uvd_dispatch_write(log->call, record, sizeof(*record)) >= 0;
	work = uvd_call_take_work(log->call);
	if (work.run)
		uvd_doorbells_add_work(log->reader, work);
	return is_rung;
}

static struct doorbell_record record_for(uint32_t handle)
{
	return (struct doorbell_record){
		.hdr = { .command = IB_USER_VERBS_CMD_POST_SEND,
			 .in_words = sizeof(struct doorbell_record) / 4,
			 .out_words = sizeof(struct ib_uverbs_post_send_resp) / 4 },
		.post = { .response = 1, .qp_handle = handle, .wqe_size = sizeof(struct ib_uverbs_send_wr) },
	};
}

/* Junk has no better price because the client has QPs: these rings do not make up for it. Returns false if there is no memory for it now. */
static bool log_ring_all(struct uvd_doorbell_log *log)
{
	const struct uvd_tree_object *qp = uvd_tree_object(uvd_file_tree(log->file), UVERBS_OBJECT_QP);
	uint32_t max = 16, num, *handles = NULL, *more;

	for (num = max; num == max;) {
		max *= 4;
		more = realloc(handles, max * sizeof(*handles));
		if (!more) {
			free(handles);
			return false;
		}
		handles = more;
		num = uvd_file_list(log->file, qp->row, handles, max);
	}
	for (unsigned int i = 0; i < num; i++) {
		const struct doorbell_record record = record_for(handles[i]);

		log_ring(log, &record);
	}
	free(handles);
	log->junk += num / TURN_QPS;
	return true;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* Copies the bytes at `at`. Returns how many of their words are not zero. */
static unsigned int log_copy(const struct uvd_doorbell_log *log, size_t at, struct doorbell_record *record)
{
	const volatile doorbell_word *from = (const doorbell_word *)(log->window + at);
	uint64_t words[RECORD_WORDS];
	unsigned int num = 0;

	/* The last word first: in most cases there is nothing. */
	for (int i = RECORD_WORDS - 1; i >= 0; i--) {
		words[i] = from[i];
		num += words[i] != 0;
	}
	/* The client has put requests into its queue before the record: they are read after it. */
	uvd_cpu_read_barrier();
	memcpy(record, words, sizeof(*record));
	return num;
}

/* The same, but waits a moment if the kernel is copying the record right now: to ring all QPs for that would take longer. */
static unsigned int log_copy_whole(const struct uvd_doorbell_log *log, size_t at, struct doorbell_record *record)
{
	unsigned int words = log_copy(log, at, record);

	for (int i = 0; i < TORN_LOOKS && words && words < RECORD_WORDS; i++) {
		uvd_cpu_relax();
		words = log_copy(log, at, record);
	}
	return words;
}

/*
 * Is this what a provider writes? The kernel may have copied only a part yet: no word of a whole one is 0, as no QP of a file with a log has
 * handle 0.
 */
static bool record_is_doorbell(const struct doorbell_record *r)
{
	const struct doorbell_record wanted = record_for(0);

	return r->hdr.command == wanted.hdr.command && r->hdr.in_words == wanted.hdr.in_words &&
	       r->hdr.out_words == wanted.hdr.out_words && r->post.response && r->post.qp_handle && !r->post.wr_count &&
	       !r->post.sge_count && r->post.wqe_size;
}

/* ---- the window -------------------------------------------------------------------------------------------------- */

static bool window_map(struct uvd_doorbell_log *log, off_t base)
{
	void *p = mmap(log->window, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED | (log->window ? MAP_FIXED : 0),
		       log->memfd, base);

	if (p == MAP_FAILED)
		return false;
	log->window = p;
	log->base = base;
	return true;
}

/* Gives back the pages before `at`. Of the window itself, as a sandbox may not have fallocate(). */
static void window_give_back(struct uvd_doorbell_log *log)
{
	const size_t end = log->at & -uvd_cpu_page_size();

	if (end > log->given)
		madvise(log->window + log->given, end - log->given, MADV_REMOVE);
	log->given = end;
}

/* After this a record and the search behind it fit into the window. Returns false if that cannot be now. */
static bool window_reaches(struct uvd_doorbell_log *log)
{
	const off_t next = log->base + (off_t)(log->at & -uvd_cpu_page_size());

	if (log->at - log->given >= GIVE_BACK)
		window_give_back(log);
	if (log->at + SEARCH + UVD_DOORBELL_BYTES <= WINDOW)
		return true;
	window_give_back(log);
	if (next + WINDOW > UVD_DOORBELL_FILE || !window_map(log, next))
		return false;
	log->at &= uvd_cpu_page_size() - 1;
	log->given = 0;
	return true;
}

void uvd_doorbell_log_trim(struct uvd_doorbell_log *log)
{
	const off_t end = log->base + WINDOW;

	window_give_back(log);
	/* A client can write at any position: what is there is no doorbell that we would ever read. */
	fallocate(log->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, end, UVD_DOORBELL_FILE - end);
	if (log->base > UVD_DOORBELL_LOG)
		fallocate(log->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, UVD_DOORBELL_LOG,
			  log->base - UVD_DOORBELL_LOG);
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

/*
 * The bytes at `at` are no doorbell, or not a whole one yet. Moves `at` to the next doorbell behind them; if there is none, to the last
 * place where one may have begun.
 */
static void log_search(struct uvd_doorbell_log *log)
{
	struct doorbell_record record;
	size_t last = log->at; /* the last byte that is not zero */

	log->junk++;
	log->ring_all = true;
	log->is_odd = true;
	for (size_t at = log->at; at < log->at + SEARCH; at++) {
		if (!log->window[at])
			continue;
		last = at;
		/* The command's lowest byte. This loop must be faster than a client that writes junk. */
		if (log->window[at] != IB_USER_VERBS_CMD_POST_SEND)
			continue;
		if (log_copy(log, at, &record) == RECORD_WORDS && record_is_doorbell(&record)) {
			log->at = at;
			log->is_odd = false;
			return;
		}
	}
	if (last - log->at >= UVD_DOORBELL_BYTES) {
		log->at = last - UVD_DOORBELL_BYTES + 1;
		log->is_odd = false; /* behind the bytes that were looked at there may be more */
	}
}

/* Reads records until there is no other one, or enough for one turn. Stores the QPs' handles. Returns the number of records. */
static unsigned int log_read(struct uvd_doorbell_log *log, uint32_t handles[TURN_QPS], unsigned int *num)
{
	struct doorbell_record record;
	unsigned int records = 0, words, i;

	while (records < TURN_RECORDS && *num < TURN_QPS && window_reaches(log)) {
		words = log_copy_whole(log, log->at, &record);
		if (!words || (log->is_odd && !log->is_new))
			break;
		log->is_odd = false;
		records++;
		if (words < RECORD_WORDS || !record_is_doorbell(&record)) {
			log_search(log);
			break;
		}
		log->at += UVD_DOORBELL_BYTES;
		for (i = 0; i < *num && handles[i] != record.post.qp_handle; i++)
			;
		if (i == *num)
			handles[(*num)++] = record.post.qp_handle;
	}
	return records;
}

bool uvd_doorbell_log_turn(struct uvd_doorbell_log *log)
{
	uint32_t handles[TURN_QPS];
	unsigned int num = 0, records = log_read(log, handles, &num);

	log->is_new = false;
	/* All records were read before the first QP is rung: one doorbell hands over what was posted before any of them. */
	for (unsigned int i = 0; i < num; i++) {
		const struct doorbell_record record = record_for(handles[i]);

		if (!log_ring(log, &record))
			log->junk++;
		else if (log->junk)
			log->junk--;
	}
	if (log->ring_all)
		log->ring_all = !log_ring_all(log);
	return records;
}

void uvd_doorbell_log_drain(struct uvd_doorbell_log *log)
{
	/* A client that adds doorbells meanwhile does not keep us: those come after the call. Nor does one that writes junk. */
	enum { MOST_TURNS = 4096, MOST_JUNK = 32 };
	unsigned int junk;

	pthread_mutex_lock(&log->lock);
	junk = log->junk;
	log->is_new = true;
	for (int i = 0; i < MOST_TURNS && log->junk < junk + MOST_JUNK && uvd_doorbell_log_turn(log); i++)
		;
	pthread_mutex_unlock(&log->lock);
	/* Carries out what was posted before the call, unless that takes long: a client counts on its completions. */
	uvd_doorbells_wait(log->reader);
}

void uvd_doorbell_log_give_back(struct uvd_doorbell_log *log)
{
	pthread_mutex_lock(&log->lock);
	uvd_doorbell_log_trim(log);
	pthread_mutex_unlock(&log->lock);
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

static bool posts_are_wrapped(struct uvd_file *file)
{
	const struct uvd_tree *tree = uvd_file_tree(file);

	return IB_USER_VERBS_CMD_POST_SEND >= tree->num_writes[0] || tree->writes[0][IB_USER_VERBS_CMD_POST_SEND].wraps;
}

const char *uvd_doorbell_refusal(struct uvd_file *file)
{
	const struct uvd_device *dev = file->dev;
	const struct uvd_backend *ops = atomic_load_explicit(&dev->ib.ops, memory_order_acquire);

	if (!dev->persona->queues || !dev->ops.ring_doorbell)
		return "its queues are not mapped";
	if (dev->config.write_abi)
		return "it takes commands by write()";
	if (ops->ring_doorbell != dev->ops.ring_doorbell)
		return "a filter looks at posts";
	if (posts_are_wrapped(file))
		return "a plug-in looks at posts";
	if (__atomic_load_n(&dev->engine->observers.complete, __ATOMIC_RELAXED))
		return "its calls are recorded";
	return NULL;
}

static void log_free(struct uvd_doorbell_log *log)
{
	if (log->window)
		munmap(log->window, WINDOW);
	uvd_uncharge_bytes(log->file->account, log->charged);
	free(log->call);
	pthread_mutex_destroy(&log->lock);
	free(log);
}

int uvd_doorbell_log_new(struct uvd_doorbells *r, struct uvd_file *file, int memfd, int number,
			 const struct uvd_caller *opener, struct uvd_doorbell_log **out)
{
	const uint64_t bytes = GIVE_BACK + sizeof(struct uvd_doorbell_log) + sizeof(struct uvd_call);
	int ret = uvd_charge_bytes(file->account, bytes);
	struct uvd_doorbell_log *log;

	if (ret)
		return ret;
	log = calloc(1, sizeof(*log));
	if (!log) {
		uvd_uncharge_bytes(file->account, bytes);
		return -ENOMEM;
	}
	log->reader = r;
	log->file = file;
	log->memfd = memfd;
	log->number = number;
	log->charged = bytes;
	log->watch = -1;
	INIT_LIST_HEAD(&log->place);
	pthread_mutex_init(&log->lock, NULL);
	log->call = doorbell_call_new(file, opener);
	/* Before the reader looks: its thread reads it. */
	file->logged = UVERBS_OBJECT_QP;
	ret = log->call && window_map(log, UVD_DOORBELL_LOG) ? uvd_doorbells_add(r, log) : -ENOMEM;
	if (ret) {
		file->logged = 0;
		log_free(log);
		return ret;
	}
	*out = log;
	return 0;
}

void uvd_doorbell_log_end(struct uvd_doorbell_log *log)
{
	struct uvd_doorbells *r;

	if (!log)
		return;
	r = log->reader;
	uvd_doorbells_remove(r, log);
	/* A turn may be in progress: the reader no longer finds the log, but has its lock. */
	pthread_mutex_lock(&log->lock);
	pthread_mutex_unlock(&log->lock);
	log_free(log);
	uvd_doorbells_put(r);
}
