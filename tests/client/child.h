/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Real clients for the tests of src/client and src/pin: processes that obey numbers sent through a pipe.
 */
#ifndef TEST_CHILD_H
#define TEST_CHILD_H

#include <check.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/client.h"

struct child {
	pid_t pid;
	int to, from;
};

/* The child's side. */
void tell(uint64_t value);
uint64_t listen_for_order(void); /* ends the process when the test has gone */

/* Our side. */
struct child child_start(void (*run)(void *arg), void *arg);
uint64_t child_says(struct child *c);
void child_order(struct child *c, uint64_t order);
void child_end(struct child *c); /* kills and reaps it */

/* In a child: becomes this program again, as exec_client(). It tells the address of its variable exec_word. */
void exec_self(void);
extern uint64_t exec_word;
#define EXEC_WORD 0x4558454344415441ull

/* A process that shares all memory but is no thread; it sleeps until it is killed. */
pid_t clone_vm_sleeper(void);
/* A process with this very pid, which must be free. It sleeps. */
pid_t fork_with_pid(pid_t pid);
/* In the calling process: user and group 65534, still readable in /proc. */
void drop_rights(void);

static inline struct uvd_caller caller_of(pid_t tid)
{
	return (struct uvd_caller){ .mem = &uvd_mem_process, .proc = &uvd_proc_local, .tid = tid, .memfd = -1 };
}

/* main() of every test program. */
int run_suite(int argc, char **argv, Suite *suite);

#endif
