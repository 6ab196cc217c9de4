/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The connection manager: /dev/infiniband/rdma_cm, which librdmacm uses. The kernel has it in ucma.c (commands and events), cma.c
 * (identifiers, addresses, ports) and cm.c (the states of a connection, InfiniBand 12.9) of drivers/infiniband/core.
 *
 * A client writes commands (rdma/rdma_user_cm.h), and GET_EVENT waits for the next event of the file. This room knows no transport: a
 * transport opens files, passes it each write(), and keeps a call that has to wait.
 *
 * Locking: one lock of struct uvd_cm protects identifiers, ports, connections and events of all files. It is held briefly, and never
 * while a client's memory is accessed. Every function may be called from any thread, and those without a caller wait for nobody.
 */
#ifndef UVD_CM_H
#define UVD_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "client/client.h"
#include "util/util.h"

struct uvd_account;
struct uvd_log;
struct uvd_tree;
struct uvd_cm; /* the connection manager of one engine */
struct uvd_cm_file; /* one open of the node: struct ucma_file */
struct uvd_engine;

/* The name of the node in /dev/infiniband, and of its entry in class/misc. */
#define UVD_CM_NODE "rdma_cm"
enum { UVD_CM_ABI = 4 /* class/misc/rdma_cm/abi_version: RDMA_USER_CM_ABI_VERSION */ };

/* uvd_cm_write() returns these beside a result and a negative errno. */
enum {
	/* Nothing was changed: there is no event. The transport answers -EAGAIN if the file is O_NONBLOCK, else it waits (uvd_cm_wait()). */
	UVD_CM_WAITS = -0x20000,
	/* Nothing was changed: the command's struct is longer than the write(). The transport calls uvd_cm_write_from(). */
	UVD_CM_IS_SHORT,
};

/* Functions of a file's transport. owner: that of uvd_cm_open(). */
struct uvd_cm_file_ops {
	/*
	 * The file has `num` events now; added: one has come. Events go only by a command on this file, or by a MIGRATE_ID that
	 * takes an identifier from it. Called with the lock held, so it must not wait, nor call a function of this room; not
	 * after uvd_cm_close(). NULL: nobody asks for that.
	 */
	void (*events)(void *owner, unsigned int num, bool added);
	/*
	 * Which file is this descriptor of the caller? (MIGRATE_ID) Returns 0, with *file NULL: it is an open of the node, and the transport
	 * cannot tell which; -ENOENT: it is not open; -EINVAL: it is another kind of file. Called without the lock. A file that it
	 * returns has a reference for uvd_cm_file_put(), and the transport keeps it open until the command ends.
	 */
	int (*file_of)(void *owner, struct uvd_caller *caller, int fd, struct uvd_cm_file **file);
};

/* The engine must outlive it. Returns NULL, with a negative errno in *err. */
struct uvd_cm *uvd_cm_new(struct uvd_engine *engine, int *err);
/* All files must be closed. NULL: nothing. */
void uvd_cm_free(struct uvd_cm *cm);

/*
 * Opens the node. The account pays for the file, its identifiers and events; NULL: nobody does. opener: the process, for MIGRATE_ID and
 * for status. privileged: it may do more than its user (struct uvd_watched). Returns NULL, with a negative errno in *err.
 */
struct uvd_cm_file *uvd_cm_open(struct uvd_cm *cm, struct uvd_account *account, pid_t opener, bool privileged,
				const struct uvd_cm_file_ops *ops, void *owner, int *err);
/* The last close: destroys the identifiers, as their DESTROY_ID would. No call may be in progress, and none may wait. */
void uvd_cm_close(struct uvd_cm_file *file);
/* A reference keeps the struct, and not the file open. */
struct uvd_cm_file *uvd_cm_file_get(struct uvd_cm_file *file);
void uvd_cm_file_put(struct uvd_cm_file *file);

/*
 * Carries out a write() of `size` bytes: one command (ucma_write()). Returns its result, a negative errno, UVD_CM_WAITS or
 * UVD_CM_IS_SHORT. The transport has checked that the caller is the opener (ib_safe_file_access()).
 */
long uvd_cm_write(struct uvd_cm_file *file, struct uvd_caller *caller, const void *data, size_t size);
/* The same where the bytes are at `addr` of the caller. */
long uvd_cm_write_from(struct uvd_cm_file *file, struct uvd_caller *caller, uint64_t addr, size_t size);

/*
 * A call that waits for an event. The transport keeps it, and carries the call out anew after ready(): so whoever makes an event
 * touches no memory of the client that waits for it.
 */
struct uvd_cm_waiter {
	struct list_head of_file;
	/*
	 * Called once, with the lock held: must not wait, nor call a function of this room. An event calls it for all that wait for
	 * the file. The waiter does not wait any more before the call, and is not touched after it.
	 */
	void (*ready)(struct uvd_cm_waiter *waiter);
};
/* Returns false if the file has an event already: then ready() is not called. */
bool uvd_cm_wait(struct uvd_cm_file *file, struct uvd_cm_waiter *waiter);
/* Does not wait any longer. Returns false if ready() was called, also if it was long ago; it is not running when this returns. */
bool uvd_cm_wait_end(struct uvd_cm_file *file, struct uvd_cm_waiter *waiter);
/* For poll(): POLLIN, or 0 (ucma_poll()). */
bool uvd_cm_has_events(struct uvd_cm_file *file);

/*
 * The node's commands as a parse tree of write() commands with UVD_WRITE_CM. It is the same for each ABI 4, the kernel's,
 * too, and no client can ask for it. NULL: *err is -ENOMEM.
 */
struct uvd_cm_tree;
struct uvd_cm_tree *uvd_cm_tree_new(struct uvd_log *log, int *err);
void uvd_cm_tree_free(struct uvd_cm_tree *t);
const struct uvd_tree *uvd_cm_tree_of(const struct uvd_cm_tree *t);

/* The facts about an identifier, for a status. Addresses with their ports; "": none. */
struct uvd_cm_facts {
	uint32_t number; /* that its client has */
	char device[64]; /* "": it is bound to none */
	uint8_t port;
	uint8_t qp_type; /* enum ibv_qp_type */
	uint32_t qp_num; /* 0: not known yet */
	const char *space, *state;
	pid_t pid; /* the opener of its file */
	uid_t uid;
	char src[64], dst[64];
};
/* Stores the facts of at most `max` identifiers, by number. Returns how many it has stored. */
unsigned int uvd_cm_copy_facts(struct uvd_cm *cm, struct uvd_cm_facts *facts, unsigned int max);

#endif
