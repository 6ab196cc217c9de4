/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Parked calls: a write() to rdma_cm that waits for an event. The caller waits for the answer to its notification, and the thread that
 * serves its tree goes on with other calls. Only that thread calls these functions.
 */
#ifndef UVD_RUN_PARK_H
#define UVD_RUN_PARK_H

#include "run/cm_file.h"
#include "run/internal.h"

/* A write() or writev() to rdma_cm, and how much of it is done. */
struct uvd_run_cm_write {
	struct uvd_run_args args;
	struct uvd_run_pieces done; /* of a writev() */
};

/*
 * cm.c: carries out the part of the write that is not done yet. Returns its result, or the negative errno or UVD_CM_WAITS of the
 * command that ended it: w->done says how much was done before that.
 */
long uvd_run_cm_write(struct uvd_run_tree *tree, struct uvd_run_cm_file *f, struct uvd_run_cm_write *w);

/*
 * Carries the write of the current call out. If it has to wait for an event, and its fd is not O_NONBLOCK, it is parked. Returns the
 * final result of the call, or UVD_RUN_ANSWERED: it is parked, and will be answered.
 */
long uvd_run_park(struct uvd_run_tree *tree, struct uvd_run_cm_file *f, const struct uvd_run_cm_write *w);

void uvd_run_parking_init(struct uvd_run_tree *tree);
void uvd_run_parking_fini(struct uvd_run_tree *tree);
/*
 * Waits until a call arrives, or something has happened to a parked one, and carries out or ends such calls. Returns true if a call
 * has arrived. Call it only while calls are parked.
 */
bool uvd_run_parking_serve(struct uvd_run_tree *tree);
/* Forgets all parked calls: the processes of the tree have ended. */
void uvd_run_parking_end(struct uvd_run_tree *tree);

#endif
