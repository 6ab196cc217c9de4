/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The sockets of an engine on the wire, and the MTU of ports that they carry. */
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "backends/soft/fabric.h"
#include "fleet/internal.h"
#include "fleet/wire.h"
#include "util/util.h"

/*
 * rxe sends so many packets before it waits for an answer (RXE_MAX_UNACKED_PSNS), and nothing tells it of less room. If they find no room
 * in the receive buffer some are lost on a healthy link, and each loss costs a go-back, or rxe's timer.
 */
enum { WINDOW = 128 };

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* 4096 is IBV_MTU_4096. */
static enum ibv_mtu mtu_of_bytes(uint32_t bytes)
{
	return bytes < 256 ? IBV_MTU_256 : (enum ibv_mtu)(__builtin_ctz(bytes) - 7);
}

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
	return 128u << mtu;
}

static enum ibv_mtu mtu_lesser(enum ibv_mtu a, enum ibv_mtu b)
{
	return a < b ? a : b;
}

/* 1024 needs no large buffer: all hosts on Ethernet carry it, and rxe has it there. */
enum ibv_mtu uvd_fleet_wire_mtu(uint32_t link_mtu, uint32_t rcvbuf, bool is_ipv4)
{
	enum ibv_mtu mtu = mtu_of_bytes(uvd_wire_mtu(link_mtu, is_ipv4));

	while (mtu > IBV_MTU_1024 && uvd_wire_packets(rcvbuf, mtu_bytes(mtu)) < WINDOW)
		mtu--;
	return mtu;
}

/* 127.0.0.2 is an address of this machine, but not one of those that getifaddrs() tells. */
static int wire_loopback_mtu(const struct uvd_socket *s)
{
	struct ifreq request = { .ifr_name = "lo" };

	return ioctl(uvd_socket_fd(s), SIOCGIFMTU, &request) ? -errno : request.ifr_mtu;
}

static int wire_link_mtu(const struct uvd_socket *s)
{
	const union ibv_gid *gid = &uvd_socket_address(s)->gid;

	return uvd_gid_is_ipv4(gid) && gid->raw[12] == IN_LOOPBACKNET ? wire_loopback_mtu(s) : uvd_socket_link_mtu(s);
}

/* ---- sockets ----------------------------------------------------------------------------------------------------- */

static void wire_close_fds(const int *fds, unsigned int num)
{
	for (unsigned int i = 0; i < num; i++)
		close(fds[i]);
}

int uvd_fleet_wire_open(const struct uvd_wire_options *options, int fds[UVD_MAX_WIRES], struct uvd_log *log)
{
	for (unsigned int i = 0; i < options->num; i++) {
		fds[i] = uvd_socket_open_fd(&options->list[i], log);
		if (fds[i] >= 0)
			continue;
		wire_close_fds(fds, i);
		return fds[i];
	}
	return 0;
}

/* Looks at a duplicate, as the soft engine gets the descriptor. */
static int wire_look(struct uvd_fleet_wire_socket *look, int fd)
{
	const int copy = dup(fd);
	struct uvd_socket *s;
	int err = copy < 0 ? -errno : 0, mtu;

	if (err)
		return err;
	s = uvd_socket_adopt(copy, &err);
	if (!s) {
		close(copy);
		return err;
	}
	look->fd = fd;
	look->rcvbuf = uvd_socket_rcvbuf(s);
	mtu = wire_link_mtu(s);
	look->link_mtu = mtu < 0 ? 0 : mtu;
	uvd_socket_free(s);
	return mtu < 0 ? mtu : 0;
}

static void wire_fit(struct uvd_fleet_wire *w)
{
	w->largest_mtu = w->mtu = IBV_MTU_4096;
	for (unsigned int i = 0; i < w->options.num; i++) {
		const struct uvd_fleet_wire_socket *s = &w->sockets[i];
		const bool is_ipv4 = uvd_gid_is_ipv4(&w->options.list[i].gid);

		w->largest_mtu = mtu_lesser(w->largest_mtu, mtu_of_bytes(uvd_wire_mtu(s->link_mtu, is_ipv4)));
		w->mtu = mtu_lesser(w->mtu, uvd_fleet_wire_mtu(s->link_mtu, s->rcvbuf, is_ipv4));
	}
}

int uvd_fleet_wire_init(struct uvd_fleet_wire *w, const struct uvd_wire_options *options, const int *fds,
			struct uvd_log *log)
{
	char text[UVD_SOCKET_ADDRESS_TEXT];
	int err = 0;

	*w = (struct uvd_fleet_wire){ .options = *options };
	for (unsigned int i = 0; i < options->num && !err; i++) {
		err = wire_look(&w->sockets[i], fds[i]);
		if (err)
			uvd_logf(log, UVD_ERR, "wire: %s: cannot learn the MTU of its interface: %s",
				 uvd_socket_address_text(&options->list[i], text), uvd_errno_name(err));
	}
	if (err)
		*w = (struct uvd_fleet_wire){};
	else
		wire_fit(w);
	return err;
}

int uvd_fleet_wire_start(struct uvd_fleet_wire *w, const struct uvd_wire_options *options, struct uvd_log *log)
{
	int fds[UVD_MAX_WIRES], err = uvd_fleet_wire_open(options, fds, log);

	return err ?: uvd_fleet_wire_init(w, options, fds, log);
}

int uvd_fleet_wire_give(struct uvd_fleet_wire *w, struct uvd_plugins *plugins, struct uvd_log *log)
{
	struct uvd_module *soft = w->options.num ? uvd_plugins_get(plugins, uvd_plugin_soft.name) : NULL;
	int err = 0;

	if (!soft)
		return 0;
	for (unsigned int i = 0; i < w->options.num && !err; i++) {
		err = uvd_fabric_add_wire(soft->data, w->sockets[i].fd);
		if (!err)
			w->sockets[i].fd = -1;
	}
	w->fabric = soft->data;
	/* A peer that still knows a QP of an earlier engine with this address must not find another QP of its number. */
	uvd_fabric_set_random_qpn(soft->data);
	uvd_module_put(soft);
	if (err)
		uvd_logf(log, UVD_ERR, "wire: cannot use its sockets: %s", uvd_errno_name(err));
	return err;
}

void uvd_fleet_wire_close(struct uvd_fleet_wire *w)
{
	for (unsigned int i = 0; i < w->options.num; i++)
		if (w->sockets[i].fd >= 0)
			close(w->sockets[i].fd);
	*w = (struct uvd_fleet_wire){};
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

void uvd_fleet_wire_set_mtu(const struct uvd_fleet_wire *w, struct uvd_device_config *config, struct uvd_log *log)
{
	for (unsigned int i = 0; i < config->num_ports && config->num_wires; i++) {
		struct uvd_port_config *port = &config->ports[i];

		if (port->active_mtu > w->largest_mtu)
			uvd_logf(log, UVD_WARN,
				 "%s: --mtu %u: the wire's interface carries %u at most, which it is now",
				 config->ibdev, mtu_bytes(port->active_mtu), mtu_bytes(w->largest_mtu));
		port->active_mtu = mtu_lesser(port->active_mtu ?: w->mtu, w->largest_mtu);
	}
}

static json_t *wire_status_drops(const struct uvd_fleet_wire *w, unsigned int i)
{
	json_t *object = json_object();
	const char *name = "";
	uint64_t packets;

	for (unsigned int reason = 0; w->fabric && name; reason++) {
		name = uvd_fabric_wire_drops(w->fabric, i, reason, &packets);
		if (name && packets)
			json_object_set_new(object, name, json_integer((json_int_t)packets));
	}
	return object;
}

json_t *uvd_fleet_wire_status(const struct uvd_fleet_wire *w)
{
	json_t *list = json_array();
	char text[UVD_SOCKET_ADDRESS_TEXT];

	for (unsigned int i = 0; i < w->options.num; i++) {
		const struct uvd_fleet_wire_socket *s = &w->sockets[i];
		const struct uvd_socket_address *a = &w->options.list[i];

		json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:i, s:I, s:i, s:o}", "address",
						      uvd_socket_address_text(a, text), "port",
						      a->port ?: UVD_ROCE_PORT, "link_mtu", s->link_mtu, "mtu",
						      mtu_bytes(w->mtu), "receive_buffer", (json_int_t)s->rcvbuf,
						      "packets", uvd_wire_packets(s->rcvbuf, mtu_bytes(w->mtu)),
						      "dropped", wire_status_drops(w, i)));
	}
	return list;
}
