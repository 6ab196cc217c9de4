/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sockets are opened, adopted and asked. docs/wire.md has the reasons for the options. */
#include "wire/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/util.h"
#include "wire/icrc.h"
#include "wire/internal.h"

enum {
	SNDBUF = 1 << 20, /* bytes: a batch of the longest packets, as the kernel counts them */
	NO_CHECK6_RX = 102, /* UDP_NO_CHECK6_RX, which <netinet/udp.h> lacks */
};

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static const struct in6_addr *socket_in6(const union ibv_gid *gid)
{
	return (const struct in6_addr *)gid;
}

socklen_t socket_name_of(union socket_name *name, const union ibv_gid *gid, uint16_t port, uint32_t scope)
{
	memset(name, 0, sizeof(*name));
	if (uvd_gid_is_ipv4(gid)) {
		name->v4.sin_family = AF_INET;
		name->v4.sin_port = htons(port);
		memcpy(&name->v4.sin_addr, gid->raw + 12, sizeof(name->v4.sin_addr));
		return sizeof(name->v4);
	}
	name->v6.sin6_family = AF_INET6;
	name->v6.sin6_port = htons(port);
	memcpy(&name->v6.sin6_addr, gid, sizeof(name->v6.sin6_addr));
	if (IN6_IS_ADDR_LINKLOCAL(socket_in6(gid)))
		name->v6.sin6_scope_id = scope;
	return sizeof(name->v6);
}

void socket_name_gid(const union socket_name *name, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (name->sa.sa_family == AF_INET) {
		memset(gid->raw + 10, 0xff, 2);
		memcpy(gid->raw + 12, &name->v4.sin_addr, sizeof(name->v4.sin_addr));
	} else if (name->sa.sa_family == AF_INET6) {
		memcpy(gid, &name->v6.sin6_addr, sizeof(*gid));
	}
}

uint16_t socket_name_port(const union socket_name *name)
{
	return ntohs(name->v4.sin_port);
}

const char *uvd_socket_address_text(const struct uvd_socket_address *a, char text[UVD_SOCKET_ADDRESS_TEXT])
{
	char scope[16] = "";

	if (uvd_gid_is_ipv4(&a->gid)) {
		inet_ntop(AF_INET, a->gid.raw + 12, text, UVD_SOCKET_ADDRESS_TEXT);
		return text;
	}
	inet_ntop(AF_INET6, &a->gid, text, UVD_SOCKET_ADDRESS_TEXT);
	if (IN6_IS_ADDR_LINKLOCAL(socket_in6(&a->gid)))
		snprintf(scope, sizeof(scope), "%%%u", a->scope);
	return strncat(text, scope, UVD_SOCKET_ADDRESS_TEXT - strlen(text) - 1);
}

/* Can packets of one machine come from this address? */
static bool socket_address_is_unicast(const struct uvd_socket_address *a)
{
	if (uvd_gid_is_ipv4(&a->gid))
		return a->gid.raw[12] && a->gid.raw[12] < 0xe0; /* neither 0.0.0.0/8, nor a group, nor beyond */
	/* bind() refuses a link-local address without a scope. */
	return !IN6_IS_ADDR_UNSPECIFIED(socket_in6(&a->gid)) && a->gid.raw[0] != 0xff;
}

/* ---- open -------------------------------------------------------------------------------------------------------- */

static int socket_set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

static int socket_get(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value;

	return getsockopt(fd, level, name, &value, &len) ? -errno : value;
}

static int socket_set_options(int fd, bool is_ipv4, uint32_t rcvbuf)
{
	int err;

	/* PROBE: packets are never cut up, and all that have "do not fragment" and no connection have identification 0. */
	if (is_ipv4) {
		err = socket_set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
		err = err ?: socket_set(fd, IPPROTO_IP, IP_RECVERR, 1);
	} else {
		err = socket_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
		err = err ?: socket_set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
		err = err ?: socket_set(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
		/* rxe and adapters send no UDP checksum; the ICRC protects their packets. */
		err = err ?: socket_set(fd, IPPROTO_UDP, NO_CHECK6_RX, 1);
	}
	/* A kernel without it delivers each datagram alone. */
	socket_set(fd, SOL_UDP, UDP_GRO, 1);
	/* Without privilege the kernel gives what net.core.rmem_max and wmem_max allow, and says nothing. */
	if (socket_set(fd, SOL_SOCKET, SO_RCVBUFFORCE, rcvbuf))
		socket_set(fd, SOL_SOCKET, SO_RCVBUF, rcvbuf);
	if (socket_set(fd, SOL_SOCKET, SO_SNDBUFFORCE, SNDBUF))
		socket_set(fd, SOL_SOCKET, SO_SNDBUF, SNDBUF);
	return err;
}

static const char *socket_remedy(int err)
{
	switch (err) {
	case -EADDRINUSE:
		return "another engine has this address: give each its own, or join that engine with --join; or the "
		       "kernel's rxe has the port in this network namespace: `modprobe -r rdma_rxe`, or use another "
		       "namespace";
	case -EADDRNOTAVAIL:
		return "not an address of this machine and network namespace: `ip address` shows those";
	case -EINVAL:
		return "not the address of one machine; a link-local one needs its interface";
	case -EAFNOSUPPORT:
		return "this kernel has no such addresses";
	default:
		return "cannot open a UDP socket";
	}
}

static int socket_open(const struct uvd_socket_address *a, uint16_t port)
{
	const bool is_ipv4 = uvd_gid_is_ipv4(&a->gid);
	union socket_name name;
	int fd, err;

	if (!socket_address_is_unicast(a))
		return -EINVAL;
	fd = socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = socket_set_options(fd, is_ipv4, a->rcvbuf ?: UVD_SOCKET_RCVBUF);
	if (!err && bind(fd, &name.sa, socket_name_of(&name, &a->gid, port, a->scope)))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int uvd_socket_open_fd(const struct uvd_socket_address *a, struct uvd_log *log)
{
	const uint16_t port = a->port ?: UVD_ROCE_PORT;
	const int fd = socket_open(a, port);
	char text[UVD_SOCKET_ADDRESS_TEXT];

	if (fd < 0)
		uvd_logf(log, UVD_ERR, "wire: %s port %u: %s: %s", uvd_socket_address_text(a, text), port,
			 uvd_errno_name(fd), socket_remedy(fd));
	return fd;
}

/* Is it a socket as socket_open() makes them? */
static bool socket_is_ours(int fd, const union socket_name *name)
{
	const bool is_ipv4 = name->sa.sa_family == AF_INET;

	if (socket_get(fd, SOL_SOCKET, SO_TYPE) != SOCK_DGRAM || !socket_name_port(name))
		return false;
	return is_ipv4 ? socket_get(fd, IPPROTO_IP, IP_MTU_DISCOVER) == IP_PMTUDISC_PROBE
		       : name->sa.sa_family == AF_INET6 &&
				 socket_get(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER) == IPV6_PMTUDISC_PROBE;
}

struct uvd_socket *uvd_socket_adopt(int fd, int *err)
{
	union socket_name name = { 0 };
	socklen_t len = sizeof(name);
	struct uvd_socket *s;

	*err = -EINVAL;
	if (getsockname(fd, &name.sa, &len) || !socket_is_ours(fd, &name))
		return NULL;
	s = calloc(1, sizeof(*s));
	*err = s ? 0 : -ENOMEM;
	if (!s)
		return NULL;
	pthread_mutex_init(&s->tap_lock, NULL);
	s->fd = fd;
	atomic_init(&s->segments, true);
	s->is_ipv4 = name.sa.sa_family == AF_INET;
	socket_name_gid(&name, &s->address.gid);
	s->address.port = socket_name_port(&name);
	s->address.scope = s->is_ipv4 ? 0 : name.v6.sin6_scope_id;
	s->address.rcvbuf = uvd_socket_rcvbuf(s);
	return s;
}

void uvd_socket_free(struct uvd_socket *s)
{
	if (!s)
		return;
	close(s->fd);
	pthread_mutex_destroy(&s->tap_lock);
	free(s);
}

int uvd_socket_fd(const struct uvd_socket *s)
{
	return s->fd;
}

const struct uvd_socket_address *uvd_socket_address(const struct uvd_socket *s)
{
	return &s->address;
}

void uvd_socket_set_tap(struct uvd_socket *s, uvd_socket_tap_fn *tap, void *user)
{
	s->tap_user = user;
	s->tap = tap;
}

/* ---- errors that the network has told ---------------------------------------------------------------------------- */

/* Stores what the kernel has queued about one datagram. */
static void socket_read_error(struct uvd_socket_error *e, const struct sock_extended_err *ee)
{
	e->err = -(int)ee->ee_errno;
	e->mtu = ee->ee_errno == EMSGSIZE ? ee->ee_info : 0;
	e->is_local = ee->ee_origin == SO_EE_ORIGIN_LOCAL;
	if (!e->is_local) {
		union socket_name by = { 0 };

		/* The kernel has appended the address in the control message. */
		memcpy(&by, SO_EE_OFFENDER(ee),
		       ((const struct sockaddr *)SO_EE_OFFENDER(ee))->sa_family == AF_INET6 ? sizeof(by.v6)
											    : sizeof(by.v4));
		socket_name_gid(&by, &e->by);
	}
}

int uvd_socket_error(struct uvd_socket *s, struct uvd_socket_error *e)
{
	char control[256] __attribute__((aligned(8)));
	union socket_name to = { 0 };
	struct iovec iov = { e->quote, sizeof(e->quote) };
	struct msghdr m = { .msg_name = &to,
			    .msg_namelen = sizeof(to),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	ssize_t len;

	memset(e, 0, sizeof(*e));
	do
		len = recvmsg(s->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return errno == EAGAIN ? 0 : -errno;
	e->quote_len = len;
	socket_name_gid(&to, &e->to);
	e->to_port = socket_name_port(&to);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
		    (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
			socket_read_error(e, (const struct sock_extended_err *)CMSG_DATA(c));
	return 1;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

uint32_t uvd_wire_mtu(uint32_t link_mtu, bool is_ipv4)
{
	const uint32_t headers = (is_ipv4 ? 20 : 40) + 8 + UVD_IB_HEADERS_MAX + UVD_ICRC_BYTES;

	for (uint32_t mtu = UVD_IB_MTU_MAX; mtu >= UVD_IB_MTU_MIN; mtu /= 2)
		if (headers + mtu <= link_mtu)
			return mtu;
	return 0;
}

int uvd_socket_link_mtu(const struct uvd_socket *s)
{
	struct ifreq request = { 0 };
	struct ifaddrs *all, *i;
	union ibv_gid gid;

	if (getifaddrs(&all))
		return -errno;
	for (i = all; i; i = i->ifa_next) {
		if (!i->ifa_addr)
			continue;
		socket_name_gid((const union socket_name *)i->ifa_addr, &gid);
		if (!memcmp(&gid, &s->address.gid, sizeof(gid)) &&
		    (!s->address.scope || if_nametoindex(i->ifa_name) == s->address.scope))
			break;
	}
	if (i)
		snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", i->ifa_name);
	freeifaddrs(all);
	if (!i)
		return -EADDRNOTAVAIL;
	return ioctl(s->fd, SIOCGIFMTU, &request) ? -errno : request.ifr_mtu;
}

int uvd_socket_route_mtu(const struct uvd_socket *s, const union ibv_gid *to)
{
	union socket_name from_name, to_name;
	const socklen_t from_len = socket_name_of(&from_name, &s->address.gid, 0, s->address.scope);
	const socklen_t to_len = socket_name_of(&to_name, to, s->address.port, s->address.scope);
	int fd, mtu;

	if (uvd_gid_is_ipv4(to) != s->is_ipv4)
		return -EAFNOSUPPORT;
	/* Only a connected socket has a route to ask about, and a connected socket counts its identifications up. */
	fd = socket(from_name.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, &from_name.sa, from_len) || connect(fd, &to_name.sa, to_len))
		mtu = -errno;
	else
		mtu = socket_get(fd, s->is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6, s->is_ipv4 ? IP_MTU : IPV6_MTU);
	close(fd);
	return mtu;
}

uint32_t uvd_socket_rcvbuf(const struct uvd_socket *s)
{
	const int bytes = socket_get(s->fd, SOL_SOCKET, SO_RCVBUF);

	return bytes < 0 ? 0 : bytes;
}

uint32_t uvd_wire_packets(uint32_t rcvbuf, uint32_t mtu)
{
	/* A struct sk_buff, and behind the data, which has room for an Ethernet header, a struct skb_shared_info. */
	enum { SK_BUFF = 256, SHARED_INFO = 320, ETHERNET = 32, MIN = 1024 };
	const uint32_t need = ETHERNET + 40 + 8 + UVD_BTH_BYTES + UVD_RETH_BYTES + mtu + UVD_ICRC_BYTES + SHARED_INFO;
	uint32_t data = MIN;

	while (data < need)
		data *= 2; /* kmalloc() rounds up to powers of two */
	return rcvbuf / (SK_BUFF + data);
}
