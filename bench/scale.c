/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * scale [ROUNDS] [OBJECTS]: the cost of commands when one open file has many objects, on the null backend in this
 * process. There is no transport, and the client's memory is that of this process. Each round runs with 1000 objects,
 * many times, and with OBJECTS (default 1000000). The results are medians over the rounds (default 5). They are CPU
 * times of the only thread, so that other load on the machine does not count. MRs have one round, because most of their
 * time is spent in the kernel. A last test opens many files.
 */
#include <malloc.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/resource.h>
#include <unistd.h>
#include "clock.h"
#include "host/host.h"
#include "persona/persona.h"

enum { FEW = 1000, MAX_ROUNDS = 99, FILES = 10000 };

static struct uvd_engine engine;
static struct uvd_device *dev;
static struct uvd_call call;
static uint32_t pd, cq, qp; /* handles in the open file */
static char memory[4096] __attribute__((aligned(4096)));

static uint64_t cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "scale: %s failed\n", what);
	exit(1);
}

static long write_command(uint32_t command, void *in, size_t in_len, void *out, size_t out_len)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		uint8_t in[512];
	} msg __attribute__((aligned(8))) = { .hdr = { command, (8 + in_len) / 4, out_len / 4 } };

	if (out)
		*(uint64_t *)in = (uintptr_t)out;
	memcpy(msg.in, in, in_len);
	return uvd_dispatch_write(&call, &msg, 8 + in_len);
}

#define COMMAND(n, in, out) write_command(IB_USER_VERBS_CMD_##n, in, sizeof(*(in)), out, sizeof(*(out)))
#define COMMAND_IN(n, in) write_command(IB_USER_VERBS_CMD_##n, in, sizeof(*(in)), NULL, 0)

/* ---- the objects ------------------------------------------------------------------------------------------------- */

static uint32_t create_pd(void)
{
	struct ib_uverbs_alloc_pd_resp resp;
	struct ib_uverbs_alloc_pd in = {};

	must(COMMAND(ALLOC_PD, &in, &resp) > 0, "ALLOC_PD");
	return resp.pd_handle;
}

static void destroy_pd(uint32_t handle)
{
	struct ib_uverbs_dealloc_pd in = { .pd_handle = handle };

	must(COMMAND_IN(DEALLOC_PD, &in) > 0, "DEALLOC_PD");
}

/* Commands that look the PD up: they allocate and free a memory window. */
static void use_pd(uint32_t handle)
{
	struct ib_uverbs_alloc_mw in = { .pd_handle = handle, .mw_type = IBV_MW_TYPE_1 };
	struct ib_uverbs_dealloc_mw end = {};
	struct ib_uverbs_alloc_mw_resp resp;

	must(COMMAND(ALLOC_MW, &in, &resp) > 0, "ALLOC_MW");
	end.mw_handle = resp.mw_handle;
	must(COMMAND_IN(DEALLOC_MW, &end) > 0, "DEALLOC_MW");
}

static uint32_t create_ah(void)
{
	struct ib_uverbs_create_ah in = { .pd_handle = pd, .attr = { .dlid = 1, .port_num = 1 } };
	struct ib_uverbs_create_ah_resp resp;

	must(COMMAND(CREATE_AH, &in, &resp) > 0, "CREATE_AH");
	return resp.ah_handle;
}

static void destroy_ah(uint32_t handle)
{
	struct ib_uverbs_destroy_ah in = { .ah_handle = handle };

	must(COMMAND_IN(DESTROY_AH, &in) > 0, "DESTROY_AH");
}

static void use_ah(uint32_t handle)
{
	struct {
		struct ib_uverbs_post_send cmd;
		struct ib_uverbs_send_wr wr;
	} in = { .cmd = { .qp_handle = qp, .wr_count = 1, .wqe_size = sizeof(in.wr) },
		 .wr = { .opcode = IBV_WR_SEND, .wr.ud.ah = handle } };
	struct ib_uverbs_post_send_resp resp;

	must(COMMAND(POST_SEND, &in, &resp) > 0, "POST_SEND");
}

static uint32_t create_mr(void)
{
	struct ib_uverbs_reg_mr in = {
		.start = (uintptr_t)memory, .length = 8, .hca_va = (uintptr_t)memory, .pd_handle = pd
	};
	struct ib_uverbs_reg_mr_resp resp;

	must(COMMAND(REG_MR, &in, &resp) > 0, "REG_MR (without CAP_IPC_LOCK?)");
	return resp.mr_handle;
}

static void destroy_mr(uint32_t handle)
{
	struct ib_uverbs_dereg_mr in = { .mr_handle = handle };

	must(COMMAND_IN(DEREG_MR, &in) > 0, "DEREG_MR");
}

static void use_mr(uint32_t handle)
{
	uint32_t lkey, rkey;
	uint64_t length;
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[4];
	} tree = {
		.hdr = { .length = sizeof(tree),
			 .object_id = UVERBS_OBJECT_MR,
			 .method_id = UVERBS_METHOD_QUERY_MR,
			 .num_attrs = 4,
			 .driver_id = RDMA_DRIVER_HFI1 },
		.attrs = { { UVERBS_ATTR_QUERY_MR_HANDLE, 0, 1, {}, { handle } },
			   { UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4, 1, {}, { (uintptr_t)&lkey } },
			   { UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4, 1, {}, { (uintptr_t)&rkey } },
			   { UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8, 1, {}, { (uintptr_t)&length } } },
	};

	must(!uvd_dispatch_ioctl(&call, RDMA_VERBS_IOCTL, (uintptr_t)&tree), "QUERY_MR");
}

static const struct type {
	const char *name;
	uint32_t (*create)(void);
	void (*use)(uint32_t handle);
	void (*destroy)(uint32_t handle);
	int rounds; /* the maximum */
} types[] = {
	{ "PD", create_pd, use_pd, destroy_pd, MAX_ROUNDS },
	{ "AH", create_ah, use_ah, destroy_ah, MAX_ROUNDS },
	{ "MR", create_mr, use_mr, destroy_mr, 1 },
};

/* ---- an open file ------------------------------------------------------------------------------------------------ */

static void open_file(void)
{
	struct ib_uverbs_ioctl_hdr hdr = { .length = sizeof(hdr),
					   .object_id = UVERBS_OBJECT_DEVICE,
					   .method_id = UVERBS_METHOD_GET_CONTEXT,
					   .driver_id = RDMA_DRIVER_HFI1 };
	int err;

	call.file = uvd_file_open(dev, NULL, &err);
	must(call.file, "open");
	must(!uvd_dispatch_ioctl(&call, RDMA_VERBS_IOCTL, (uintptr_t)&hdr), "GET_CONTEXT");
}

static void make_qp(void)
{
	struct ib_uverbs_create_cq cq_in = { .cqe = 16, .comp_channel = -1 };
	struct ib_uverbs_create_qp qp_in = {
		.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .qp_type = IBV_QPT_UD
	};
	struct ib_uverbs_create_cq_resp cq_resp;
	struct ib_uverbs_create_qp_resp qp_resp;

	pd = create_pd();
	must(COMMAND(CREATE_CQ, &cq_in, &cq_resp) > 0, "CREATE_CQ");
	cq = cq_resp.cq_handle;
	qp_in.pd_handle = pd;
	qp_in.send_cq_handle = qp_in.recv_cq_handle = cq;
	must(COMMAND(CREATE_QP, &qp_in, &qp_resp) > 0, "CREATE_QP");
	qp = qp_resp.qp_handle;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

enum step { CREATE, USE, USE_ANY, DESTROY, STEPS };
static const char *const step_names[] = { "create", "use, in order", "use, in any order", "destroy" };
static uint32_t *handles, *shuffled;
static double took[2][STEPS][MAX_ROUNDS], closing[MAX_ROUNDS];

static void shuffle(unsigned int n)
{
	static unsigned int seed = 1;

	memcpy(shuffled, handles, n * sizeof(*handles));
	for (unsigned int i = n - 1; i; i--) {
		unsigned int j = (rand_r(&seed) * 32768ull + rand_r(&seed)) % (i + 1);
		uint32_t t = shuffled[i];

		shuffled[i] = shuffled[j];
		shuffled[j] = t;
	}
}

/* Creates, uses and destroys n objects in the open file. Adds the nanoseconds of each step to ns[]. */
static void scale_run(const struct type *type, unsigned int n, double ns[STEPS])
{
	uint64_t at[STEPS + 1];

	at[CREATE] = cpu_now();
	for (unsigned int i = 0; i < n; i++)
		handles[i] = type->create();
	at[USE] = cpu_now();
	for (unsigned int i = 0; i < n; i++)
		type->use(handles[i]);
	ns[USE] += cpu_now() - at[USE];
	shuffle(n);
	ns[CREATE] += at[USE] - at[CREATE];
	at[USE_ANY] = cpu_now();
	for (unsigned int i = 0; i < n; i++)
		type->use(shuffled[i]);
	at[DESTROY] = cpu_now();
	for (unsigned int i = 0; i < n; i++)
		type->destroy(handles[i]);
	at[STEPS] = cpu_now();
	ns[USE_ANY] += at[DESTROY] - at[USE_ANY];
	ns[DESTROY] += at[STEPS] - at[DESTROY];
}

static double close_full(const struct type *type, unsigned int n)
{
	uint64_t start;

	for (unsigned int i = 0; i < n; i++)
		type->create();
	start = cpu_now();
	uvd_file_close(call.file);
	return (cpu_now() - start) / 1e9;
}

static int compare(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : 1;
}

static double median(double *v, int n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

static size_t allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static size_t resident(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	must(f && fscanf(f, "%*d %ld", &pages) == 1, "statm");
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

/*
 * Reports the memory of n objects. malloc_trim() first returns freed memory, so that the growth of the resident set is
 * theirs.
 */
static void report_bytes(const struct type *type, unsigned int n)
{
	size_t bytes, rss;

	open_file();
	make_qp();
	malloc_trim(0);
	bytes = allocated();
	rss = resident();
	for (unsigned int i = 0; i < n; i++)
		type->create();
	printf("%s: %.0f bytes each, %.0f resident\n", type->name, (double)(allocated() - bytes) / n,
	       ((double)resident() - rss) / n);
	uvd_file_close(call.file);
}

static void report_type(const struct type *type, unsigned int many, int rounds)
{
	for (int r = 0; r < rounds; r++) {
		double few_ns[STEPS] = {}, many_ns[STEPS] = {};
		unsigned int times = many / 5 / FEW ?: 1;

		open_file();
		make_qp();
		for (unsigned int t = 0; t < times; t++)
			scale_run(type, FEW, few_ns);
		scale_run(type, many, many_ns);
		closing[r] = close_full(type, many);
		for (int s = 0; s < STEPS; s++) {
			took[0][s][r] = few_ns[s] / FEW / times;
			took[1][s][r] = many_ns[s] / many;
		}
	}
	for (int s = 0; s < STEPS; s++) {
		double few = median(took[0][s], rounds), lots = median(took[1][s], rounds);

		printf("%s, %s: %.0f ns beside %d, %.0f ns beside %u: %.2f\n", type->name, step_names[s], few, FEW,
		       lots, many, lots / few);
	}
	printf("%s: closing the file with %u: %.3f s\n", type->name, many, median(closing, rounds));
}

/*
 * For comparison: the cost of one access to memory that is in no cache. Follows a chain through n lines of 128 bytes in
 * random order.
 */
static void report_memory(unsigned int n)
{
	struct line {
		uint32_t next, pad[31];
	} *lines = calloc(n, sizeof(*lines));
	uint64_t start;
	uint32_t at = 0;

	must(lines, "memory");
	for (unsigned int i = 0; i < n; i++)
		handles[i] = i;
	shuffle(n);
	for (unsigned int i = 0; i < n; i++)
		lines[shuffled[i]].next = shuffled[(i + 1) % n];
	start = cpu_now();
	for (unsigned int i = 0; i < n; i++)
		at = lines[at].next;
	printf("one access to %zu MB in any order: %.0f ns\n", n * sizeof(*lines) >> 20,
	       (double)(cpu_now() - start) / n + (at > n));
	free(lines);
}

static void report_files(void)
{
	static struct uvd_file *files[FILES];
	size_t bytes = allocated();
	uint64_t start = cpu_now(), opened;

	for (int i = 0; i < FILES; i++) {
		open_file();
		files[i] = call.file;
		create_pd();
	}
	opened = cpu_now();
	printf("%d open files with a context and a PD: %.0f ns each, %.0f bytes each\n", FILES,
	       (double)(opened - start) / FILES, (double)(allocated() - bytes) / FILES);
	for (int i = 0; i < FILES; i++)
		uvd_file_close(files[i]);
	printf("closing them: %.0f ns each\n", (double)(cpu_now() - opened) / FILES);
}

int main(int argc, char **argv)
{
	int err, rounds = argc > 1 ? atoi(argv[1]) : 5;
	unsigned int many = argc > 2 ? strtoul(argv[2], NULL, 0) : 1000000;
	struct uvd_device_config config;
	struct rlimit limit;

	must(rounds > 0 && rounds <= MAX_ROUNDS && many >= FEW, "that number of rounds or objects");
	setvbuf(stdout, NULL, _IOLBF, 0);
	/*
	 * Registrations beyond the limit also ask for CAP_IPC_LOCK. With a limit of 0 all of them do, so that few and
	 * many cost alike.
	 */
	must(!getrlimit(RLIMIT_MEMLOCK, &limit), "getrlimit");
	limit.rlim_cur = 0;
	must(!setrlimit(RLIMIT_MEMLOCK, &limit), "setrlimit");
	handles = calloc(many, sizeof(*handles));
	shuffled = calloc(many, sizeof(*handles));
	must(handles && shuffled && !uvd_host_engine(&engine, NULL, NULL), "memory");
	uvd_config_default(&config, uvd_persona_find("hfi1"), 0);
	strcpy(config.backend, "null");
	dev = uvd_device_new(&engine, &config, &err);
	must(dev, "device");
	call.caller = uvd_host_caller(&uvd_mem_self, &uvd_proc_local, NULL);
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		report_bytes(&types[t], many);
		report_type(&types[t], many, rounds < types[t].rounds ? rounds : types[t].rounds);
	}
	report_files();
	report_memory(many);
	return 0;
}
