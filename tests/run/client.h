/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef TESTS_RUN_CLIENT_H
#define TESTS_RUN_CLIENT_H

#include <rdma/ib_user_verbs.h>
#include <stdbool.h>
#include <sys/types.h>

#define NODE "/dev/infiniband/uverbs0"

extern const char *client_self; /* path of this program, for exec */

/* Ends the program with status 1 and says what was expected. */
void client_fail(const char *file, int line, const char *what) __attribute__((noreturn));

#define IS(what) ((what) ? (void)0 : client_fail(__FILE__, __LINE__, #what))
#define FAILS(call, err) IS((long)(call) == -1 && errno == (err))

/* Starts or stops a SIGALRM every 150 us, with SA_RESTART. */
void client_storm(bool on);

/* Waits for a child, which must exit with status 0. */
void client_wait_for(pid_t pid);

/* Returns the descriptor of the asynchronous events, or -1. */
int client_get_context(int fd);
/* Opens the device and gets a context. */
int client_open_context(void);
/* Returns the handle, or -1. */
int client_alloc_pd(int fd);
int client_dealloc_pd(int fd, int handle);
/* Returns how many PDs the file has, by ioctl, or -1. */
int client_count_pds(int fd);

struct client_pd_command {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_alloc_pd cmd;
	struct ib_uverbs_alloc_pd_resp resp;
};

/* Makes an ALLOC_PD, which answers to c->resp. */
void client_pd_command(struct client_pd_command *c);

/* client_node.c */
void client_node_is_a_character_device(void);
void client_node_by_other_paths(void);
void client_openat2_resolves_as_it_is_told(void);
void client_openat2_refuses_what_the_kernel_refuses(void);
void client_listing_shows_the_node(void);
void client_open_modes(void);
void client_built_in_sysfs_paths(void);
void client_other_files_are_the_kernels(void);
void client_netlink_rdma_is_refused(void);
void client_other_architectures_see_no_device(void);

/* client_files.c */
void client_duplicates_are_the_same_file(void);
void client_low_duplicate_keeps_ioctl_only(void);
void client_number_that_means_another_file(void);
void client_closed_by_another_thread(void);
void client_writev_is_one_command_a_piece(void);
void client_many_opens(void);
void client_no_number_left_is_emfile(void);
void client_read_of_the_device_is_einval(void);
void client_read_of_another_file_with_such_a_number(void);
void client_event_files(void);
void client_event_file_without_a_place_for_its_number(void);

/* client_processes.c */
void client_fork(void);
void client_vfork(void);
void client_vfork_opens_before_its_exec(void);
void client_vfork_has_a_thread_that_execs(void);
void client_exec(void);
void client_exec_by_a_thread(void);
void client_failed_exec_changes_nothing(void);
void client_set_id(void);
void client_threads(void);
void client_scm_rights(void);

/* numbers.c */
void client_number_dup2(void);
void client_number_dup3(void);
void client_number_close(void);
void client_number_close_range(void);
void client_number_closed_by_a_relative(void);
void client_number_looked_at_during_dup2(void);
void client_number_closed_by_a_ring(void);
void client_ring_reaches_no_device(void);
void client_number_of_a_recycled_thread(void);

/* storm.c, by libibverbs. */
void client_storm_post_send(void);
void client_writev_post_send(void);
void client_registers_in_a_vfork(void);

#endif
