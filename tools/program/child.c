/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "child.h"
#include "util/util.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the child --------------------------------------------------------------------------------------------------- */

static void child_give_up(struct uvd_child *c, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", c->who, c->shared->p.name, why);
	c->shared->unusable = true;
	_exit(1);
}

void uvd_child_program(struct uvd_child *c)
{
	struct uvd_child_shared *s = c->shared;
	char left[sizeof(s->found.text) - 64];
	int node;

	uvd_prog_arena_clear();
	uvd_prog_run_reset(c->run, &s->p);
	s->calls += s->p.num_calls;
	alarm(c->run->patience);
	node = uvd_in_process_open();
	if (node < 0)
		child_give_up(c, "it cannot open its device");
	uvd_prog_run_calls(c->run, &s->p, node);
	uvd_in_process_close();
	alarm(0);
	if (c->run->trouble[0])
		fprintf(stderr, "%s: %s: %s\n", c->who, s->p.name, c->run->trouble);
	else if (c->model)
		uvd_program_check_model(c->run, &s->p, &s->found);
	if (!s->found.kind && c->leak_seconds && uvd_in_process_leaks(left, sizeof(left), c->leak_seconds)) {
		s->found.kind = UVD_PROGRAM_LEAK;
		snprintf(s->found.text, sizeof(s->found.text), "leak: after the program the device has %s", left);
	}
}

void uvd_child_trial(void *arg)
{
	struct uvd_child *c = arg;
	const unsigned int times = uvd_prog_races(&c->shared->p) ? UVD_PROGRAM_RACES : 1;

	for (unsigned int i = 0; i < times && !c->shared->found.kind && !c->run->trouble[0]; i++)
		uvd_child_program(c);
}

/* Ends by exit(), so that a sanitizer can report leaks. */
static void child_main(struct uvd_child *c, void (*what)(void *arg), void *arg)
{
	signal(SIGPIPE, SIG_IGN);
	if (uvd_prog_arena_make() || uvd_in_process_start())
		_exit(2);
	what(arg);
	uvd_in_process_stop();
	c->shared->ended = true;
	exit(0);
}

/* ---- its parent -------------------------------------------------------------------------------------------------- */

/* The finding of a child that has not ended by itself. */
static void child_died(struct uvd_child *c, int status)
{
	struct uvd_program_finding *found = &c->shared->found;
	const struct uvd_prog *p = &c->shared->p;
	const unsigned int call = uvd_program_last_call(c->run, p);

	found->d.call = call;
	snprintf(found->d.target, sizeof(found->d.target), "%s", p->calls[call].target);
	found->kind = UVD_PROGRAM_LOST;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
		found->kind = UVD_PROGRAM_HANG;
		snprintf(found->text, sizeof(found->text), "hang: call %u, %s, did not return in %u seconds", call + 1,
			 found->d.target, c->run->patience);
	} else if (WIFSIGNALED(status)) {
		snprintf(found->text, sizeof(found->text), "lost: the engine died by SIG%s in call %u, %s",
			 sigabbrev_np(WTERMSIG(status)), call + 1, found->d.target);
	} else {
		snprintf(found->text, sizeof(found->text), "lost: the engine exited with status %d in call %u, %s",
			 WEXITSTATUS(status), call + 1, found->d.target);
	}
}

int uvd_child_run(struct uvd_child *c, void (*what)(void *arg), void *arg)
{
	struct uvd_child_shared *s = c->shared;
	const unsigned long before = s->calls;
	int status;
	pid_t pid;

	s->found = (struct uvd_program_finding){};
	s->ended = s->unusable = false;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		/* The child does not outlive its parent. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child_main(c, what, arg);
	}
	if (pid < 0)
		fprintf(stderr, "%s: no process for the device: %s\n", c->who, uvd_errno_name(errno));
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	if (pid < 0 || s->unusable || (!s->ended && s->calls == before))
		return -1;
	if (!s->ended)
		child_died(c, status);
	return 0;
}

static int child_options(struct uvd_child *c, int n, char **run_options)
{
	static char level[] = "--log-level", error[] = "error";

	snprintf(c->name, sizeof(c->name), "%s --in-process", c->who);
	c->argv = calloc(n + 4, sizeof(*c->argv));
	if (!c->argv)
		return -1;
	c->argv[0] = c->name;
	c->argv[1] = level;
	c->argv[2] = error;
	memcpy(c->argv + 3, run_options, n * sizeof(*c->argv));
	c->parsed = uvd_options_parse(&c->options, UVD_PROGRAM_RUN, NULL, NULL, n + 3, c->argv) < 0;
	if (c->parsed && c->options.first_arg < n + 3)
		fprintf(stderr, "%s: %s: only options of `uverbsctl run` are allowed\n", c->name,
			c->argv[c->options.first_arg]);
	return c->parsed && c->options.first_arg == n + 3 ? 0 : -1;
}

int uvd_child_init(struct uvd_child *c, const char *who, int n, char **run_options)
{
	int driver;

	*c = (struct uvd_child){ .who = who };
	if (child_options(c, n, run_options))
		return -1;
	c->shared = mmap(NULL, sizeof(*c->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c->shared == MAP_FAILED)
		c->shared = NULL;
	uvd_in_process_options(&c->options, who);
	driver = uvd_in_process_driver(&c->options);
	if (c->shared && driver >= 0 && !uvd_in_process_learn())
		c->run = uvd_prog_run_new_with(&uvd_in_process_ops, "/dev/infiniband/uverbs0", driver);
	return c->run ? 0 : -1;
}

void uvd_child_free(struct uvd_child *c)
{
	if (c->run)
		uvd_prog_run_free(c->run);
	if (c->shared)
		munmap(c->shared, sizeof(*c->shared));
	if (c->parsed)
		uvd_options_free(&c->options);
	free(c->argv);
}
