/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The broker's processes that may have to wait for a client: one for each socket of the engine process. Internal. */
#ifndef UVD_BROKER_CHILD_H
#define UVD_BROKER_CHILD_H

#include "broker/wire.h"

struct uvd_nodes;
struct uvd_ways;

/* Each serves the socket until the other side closes it, with no more than the capabilities that it needs. */
void uvd_questions_serve(int sock, const struct uvd_nodes *nodes);
void uvd_loan_serve(int sock, const struct uvd_nodes *nodes, struct uvd_ways *ways);

/* sandbox.c. false: capabilities cannot be dropped, so the process must not go on. mask: of enum uvd_privilege. */
enum uvd_role { UVD_ROLE_BROKER, UVD_ROLE_QUESTIONS, UVD_ROLE_LOAN, UVD_ROLE_ENGINE };
bool uvd_role_take(enum uvd_role role);

#endif
