/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Clients for the tests of src/client and src/pin: real processes that obey numbers sent through a pipe. */
#ifndef TEST_CHILD_H
#define TEST_CHILD_H

#include <check.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/client.h"
#include "../suite.h"

struct child {
	pid_t pid;
	int to, from;
};

/* The child's side. */
void tell(uint64_t value);
uint64_t listen_for_order(void); /* exits if the test has closed the pipe */

/* Our side. */
struct child child_start(void (*run)(void *arg), void *arg);
uint64_t child_says(struct child *c);
void child_order(struct child *c, uint64_t order);
void child_end(struct child *c); /* kills and reaps it */

/* In a child: executes this program anew as exec_client(), which sends the address of its variable exec_word. */
void exec_self(void);
extern uint64_t exec_word;
#define EXEC_WORD 0x4558454344415441ull

/* Starts a process that shares the caller's memory without being its thread. It sleeps until it is killed. */
pid_t clone_vm_sleeper(void);
/* Starts a process with the given pid, which must be free. It sleeps until it is killed. */
pid_t fork_with_pid(pid_t pid);
/* Changes the calling process to user and group 65534, and keeps it dumpable. */
void drop_rights(void);

static inline struct uvd_caller caller_of(pid_t tid)
{
	return (struct uvd_caller){ .mem = &uvd_mem_process, .proc = &uvd_proc_local, .tid = tid, .memfd = -1 };
}

/* Returns how many descriptors this process has that select() takes. */
unsigned int low_fds(void);

/* main() of the test programs that start themselves as clients. */
int run_client_tests(int argc, char **argv, Suite *suite);

#endif
