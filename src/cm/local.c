/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The carrier of messages between identifiers of one engine. */
#include <stdlib.h>
#include "cm/message.h"

static void local_send(struct uvd_cm *cm, const struct cm_msg *msg)
{
	struct cm_msg *copy = malloc(sizeof(*copy));

	if (!copy)
		return; /* lost, as on a wire */
	*copy = *msg;
	list_add_tail(&copy->of_cm, &cm->messages);
}

static bool local_reaches(struct uvd_cm *cm, const union cm_addr *dst)
{
	struct cm_device *device;
	uint8_t port;

	return cm_device_find(cm, dst, &device, &port);
}

const struct cm_carrier cm_local_carrier = { .send = local_send, .reaches = local_reaches };

void cm_local_deliver(struct uvd_cm *cm)
{
	struct cm_msg *msg;

	while (!list_empty(&cm->messages)) {
		msg = list_first_entry(&cm->messages, struct cm_msg, of_cm);
		list_del_init(&msg->of_cm);
		/* As a packet to an address that nobody has. */
		if (!cm_addr_is_lost(cm, &msg->dst))
			cm_receive(cm, msg);
		free(msg);
	}
}
