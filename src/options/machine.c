/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Finds out what decides defaults of devices, and carries it from the broker to its engine process. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "options/internal.h"

static bool machine_has_ipv6(void)
{
	const struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int sock = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const bool has = sock >= 0 && !bind(sock, (const void *)&sa, sizeof(sa));

	if (sock >= 0)
		close(sock);
	return has;
}

void uvd_options_machine_text(const struct uvd_option_machine *m, char text[UVD_MACHINE_TEXT])
{
	snprintf(text, UVD_MACHINE_TEXT, "%d,%d", m->maps_queues, m->has_ipv6);
}

const char *uvd_option_set_known_machine(const struct uvd_option_row *row, void *base, const char *text,
					 unsigned int nth)
{
	struct uvd_options *o = base;
	int maps_queues, has_ipv6;

	if (sscanf(text, "%d,%d", &maps_queues, &has_ipv6) != 2)
		return "is none";
	o->machine = (struct uvd_option_machine){ .maps_queues = maps_queues, .has_ipv6 = has_ipv6 };
	o->machine_is_known = true;
	return NULL;
}

/* A client's file is replaced in a loan, which takes ptrace, and by a broker. */
static bool machine_is_asked(const struct parser *p)
{
	return p->o->separate && p->o->grant_fds && p->can_map;
}

void uvd_option_machine_look(struct parser *p)
{
	struct uvd_option_machine *m = &p->o->machine;

	if (p->o->machine_is_known || p->failed)
		return;
	m->is_private = p->program == UVD_PROGRAM_RUN;
	m->has_ipv6 = machine_has_ipv6();
	if (machine_is_asked(p))
		m->unmapped = p->can_map();
	m->maps_queues = m->is_private || (machine_is_asked(p) && !m->unmapped);
}
