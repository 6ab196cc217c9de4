/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Addresses that the machine loses and gets back. rtnetlink tells of each change. As news can be lost, and two interfaces can have one
 * address, each one only makes the fleet look at all addresses.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "fleet/internal.h"
#include "util/util.h"

enum { ANSWER_BYTES = 32768, MOST_IPS = UVD_MAX_DEVICES * UVD_MAX_ADDRESSES };

/* The look at the machine finds which addresses of devices are there: those of all devices, without duplicates. */
struct looked {
	unsigned int num;
	union ibv_gid gids[MOST_IPS];
	bool there[MOST_IPS];
	bool torn; /* an address has changed meanwhile */
	uint32_t answer[ANSWER_BYTES / 4];
};

/* ---- the sockets --------------------------------------------------------------------------------------------------- */

static int netlink_open(uint32_t groups)
{
	const struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = groups };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), err;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (const struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int uvd_fleet_addresses_open(struct uvd_fleet_addresses *a)
{
	int events = netlink_open(RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR), dump;

	if (events < 0)
		return events;
	dump = netlink_open(0);
	if (dump < 0) {
		close(events);
		return dump;
	}
	a->events = events;
	a->dump = dump;
	return 0;
}

/* ---- what the machine has ------------------------------------------------------------------------------------------ */

static int dump_request(int fd)
{
	const struct {
		struct nlmsghdr head;
		struct ifaddrmsg addr;
	} request = {
		.head = { .nlmsg_len = sizeof(request),
			  .nlmsg_type = RTM_GETADDR,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
	};

	return send(fd, &request, sizeof(request), 0) == sizeof(request) ? 0 : -errno;
}

/* The address is the local one; IFA_ADDRESS is the peer's on a point-to-point link, and the only one of most IPv6 addresses. */
static bool message_address(const struct nlmsghdr *head, union ibv_gid *gid)
{
	const struct ifaddrmsg *addr = NLMSG_DATA(head);
	const size_t size = addr->ifa_family == AF_INET ? 4 : 16;
	const struct rtattr *found = NULL;
	int left = IFA_PAYLOAD(head);

	for (const struct rtattr *a = IFA_RTA(addr); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (RTA_PAYLOAD(a) == size && (a->rta_type == IFA_LOCAL || (a->rta_type == IFA_ADDRESS && !found)))
			found = a;
	if (!found || (addr->ifa_family != AF_INET && addr->ifa_family != AF_INET6))
		return false;
	*gid = (union ibv_gid){ .raw = { [10] = 0xff, 0xff } };
	memcpy(gid->raw + 16 - size, RTA_DATA(found), size);
	return true;
}

static void note_address(struct looked *looked, const union ibv_gid *gid)
{
	for (unsigned int i = 0; i < looked->num; i++)
		if (!memcmp(&looked->gids[i], gid, sizeof(*gid)))
			looked->there[i] = true;
}

/* NLMSG_OK(), which compares a signed number with an unsigned one. `left` is below 0 behind the padding of the last message. */
static bool message_is_whole(const struct nlmsghdr *head, int left)
{
	return left >= (int)sizeof(*head) && head->nlmsg_len >= sizeof(*head) && head->nlmsg_len <= (unsigned int)left;
}

/* Takes in one datagram of an answer. Returns 1: more will come; 0: that was the end; or a negative errno. */
static int dump_take(struct looked *looked, int left)
{
	union ibv_gid gid;

	for (const struct nlmsghdr *head = (const void *)looked->answer; message_is_whole(head, left);
	     head = NLMSG_NEXT(head, left)) {
		looked->torn = looked->torn || head->nlmsg_flags & NLM_F_DUMP_INTR;
		if (head->nlmsg_type == NLMSG_DONE)
			return 0;
		if (head->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)NLMSG_DATA(head))->error ?: -EIO;
		if (head->nlmsg_type == RTM_NEWADDR && message_address(head, &gid))
			note_address(looked, &gid);
	}
	return 1;
}

/* Asks the kernel, which answers at once. */
static int look_at_addresses(int fd, struct looked *looked)
{
	int ret = dump_request(fd) ?: 1;
	ssize_t got;

	while (ret > 0) {
		got = recv(fd, looked->answer, sizeof(looked->answer), 0);
		ret = got < 0 ? -errno : dump_take(looked, got);
	}
	return ret;
}

/* ---- devices ------------------------------------------------------------------------------------------------------- */

static void want_address(struct looked *looked, const union ibv_gid *gid)
{
	for (unsigned int i = 0; i < looked->num; i++)
		if (!memcmp(&looked->gids[i], gid, sizeof(*gid)))
			return;
	looked->gids[looked->num++] = *gid;
}

static bool was_seen(const struct uvd_fleet_addresses *a, const union ibv_gid *gid)
{
	for (unsigned int i = 0; i < a->num_seen; i++)
		if (!memcmp(&a->seen[i], gid, sizeof(*gid)))
			return true;
	return false;
}

static void note_seen(struct uvd_fleet_addresses *a, const union ibv_gid *gid)
{
	union ibv_gid *seen = was_seen(a, gid) ? NULL : realloc(a->seen, (a->num_seen + 1) * sizeof(*seen));

	if (!seen)
		return;
	a->seen = seen;
	a->seen[a->num_seen++] = *gid;
}

static void log_address(const struct uvd_device *dev, const union ibv_gid *gid, bool there)
{
	const bool is_ipv4 = IN6_IS_ADDR_V4MAPPED(gid->raw);
	char text[INET6_ADDRSTRLEN];

	inet_ntop(is_ipv4 ? AF_INET : AF_INET6, gid->raw + (is_ipv4 ? 12 : 0), text, sizeof(text));
	uvd_logf(dev->engine->log, there ? UVD_INFO : UVD_WARN, "%s: the machine has %s the address %s",
		 dev->config.ibdev, there ? "got back" : "lost", text);
}

static void set_address(struct uvd_fleet *f, const union ibv_gid *gid, bool there)
{
	struct uvd_device *dev;

	for (unsigned int i = 0; (dev = uvd_fleet_device(f, i)); i++)
		if (uvd_device_set_ip(dev, gid, there))
			log_address(dev, gid, there);
}

static void addresses_look(struct uvd_fleet *f)
{
	struct looked *looked = calloc(1, sizeof(*looked));
	struct uvd_device *dev;
	int err = looked ? 0 : -ENOMEM;

	for (unsigned int i = 0; looked && (dev = uvd_fleet_device(f, i)); i++)
		for (unsigned int n = 0; n < dev->config.ips.num; n++)
			want_address(looked, &dev->config.ips.gids[n]);
	err = err ?: look_at_addresses(f->addresses.dump, looked);
	/* A change that came meanwhile will be told. */
	for (unsigned int i = 0; !err && !looked->torn && i < looked->num; i++) {
		if (looked->there[i])
			note_seen(&f->addresses, &looked->gids[i]);
		if (was_seen(&f->addresses, &looked->gids[i]))
			set_address(f, &looked->gids[i], looked->there[i]);
	}
	if (err)
		uvd_log_limited(f->log, UVD_WARN, "cannot look at the machine's addresses: %s", uvd_errno_name(err));
	free(looked);
}

static void fleet_on_address(struct ev_loop *loop, struct ev_io *w, int events)
{
	struct uvd_fleet *f = w->data;
	char news[4096];

	/* An overflow (ENOBUFS) is news, too. */
	while (recv(f->addresses.events, news, sizeof(news), MSG_DONTWAIT) >= 0 || errno == ENOBUFS)
		;
	addresses_look(f);
}

static bool addresses_start(struct uvd_fleet *f)
{
	struct uvd_fleet_addresses *a = &f->addresses;
	int err;

	if (ev_is_active(&a->on_event))
		return true;
	err = a->events ? 0 : uvd_fleet_addresses_open(a);
	if (err) {
		uvd_logf(f->log, UVD_WARN, "cannot see when the machine loses an address: %s", uvd_errno_name(err));
		return false;
	}
	ev_io_init(&a->on_event, fleet_on_address, a->events, EV_READ);
	a->on_event.data = f;
	ev_io_start(f->loop, &a->on_event);
	return true;
}

void uvd_fleet_watch_addresses(struct uvd_fleet *f)
{
	struct uvd_device *dev;
	bool has = false;

	for (unsigned int i = 0; f->loop && (dev = uvd_fleet_device(f, i)); i++)
		has = has || dev->config.ips.num;
	if (has && addresses_start(f))
		addresses_look(f);
}

void uvd_fleet_addresses_close(struct uvd_fleet *f)
{
	struct uvd_fleet_addresses *a = &f->addresses;

	if (ev_is_active(&a->on_event))
		ev_io_stop(f->loop, &a->on_event);
	if (a->events) {
		close(a->events);
		close(a->dump);
	}
	free(a->seen);
	*a = (struct uvd_fleet_addresses){};
}
