/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The personas that are part of the engine, and what a device takes over from its persona. */
#ifndef UVD_PERSONA_H
#define UVD_PERSONA_H

#include <stdint.h>
#include <uverbsd/backend.h>
#include <uverbsd/config.h>
#include <uverbsd/persona.h>

extern const struct uvd_persona uvd_persona_hfi1, uvd_persona_rxe;
/*
 * Copies to *ops the functions of the backend that a device with this persona has. With mapped queues these are all
 * except poll_cq, post_recv and post_srq_recv, whose commands the provider does not use. Returns 0, or -EOPNOTSUPP if
 * the persona has mapped queues and the backend does not.
 */
int uvd_persona_ops(const struct uvd_persona *persona, const struct uvd_backend *backend, struct uvd_backend *ops);
/* Returns the persona of that name, or NULL. */
const struct uvd_persona *uvd_persona_find(const char *name);
/* Returns persona number i, from 0, or NULL if there are no more. */
const struct uvd_persona *uvd_persona_at(unsigned int i);
/*
 * Sets *config to the defaults for device `index` of the engine, as `uverbsd` without options uses them: the persona's
 * names and ids, the soft backend, common limits, GUIDs that differ by device, and on InfiniBand a LID for each port
 * (index + 1 for port 1).
 */
void uvd_config_default(struct uvd_device_config *config, const struct uvd_persona *persona, unsigned int index);
/* Sets the GUID (host order) of node and system image, and the GIDs made from it. The rest of *config must be set. */
void uvd_config_set_guid(struct uvd_device_config *config, uint64_t guid);

#endif
