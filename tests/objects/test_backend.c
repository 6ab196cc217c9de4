/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Devices whose backend lacks a function, and port state changes. */
#include <sys/socket.h>
#include "tests.h"

static uint32_t pd, cq;

/* Rebuilds the device's tree from the current h.ops, as for a device with this backend. */
static void rebuild_tree(void)
{
	const struct uvd_feature *features[] = { &uvd_feature_common, h.dev->persona->feature, NULL };
	int err;

	uvd_tree_free(h.dev->trees->plain);
	h.dev->trees->plain = uvd_tree_new(features, &h.ops, h.dev->persona->driver_id, NULL, &err);
	ck_assert_ptr_nonnull(h.dev->trees->plain);
	atomic_store(&h.file->tree, h.dev->trees->plain);
}

START_TEST(test_a_command_whose_function_is_missing_is_eopnotsupp)
{
	struct ib_uverbs_resize_cq cmd = { .cqe = 10 };
	struct ib_uverbs_resize_cq_resp resp;
	struct ib_uverbs_attach_mcast attach = {};

	h.ops.resize_cq = NULL;
	h.ops.detach_mcast = NULL; /* one of the two that ATTACH_MCAST needs */
	rebuild_tree();
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	cmd.cq_handle = cq;
	ck_assert_int_eq(WRITE(&h, RESIZE_CQ, &cmd, &resp), -EOPNOTSUPP);
	ck_assert_int_eq(INVOKE(&h, RESIZE_CQ, &cmd, &resp), -EOPNOTSUPP);
	ck_assert_int_eq(WRITE_IN(&h, ATTACH_MCAST, &attach), -EOPNOTSUPP);
}
END_TEST

START_TEST(test_an_object_that_cannot_be_destroyed_is_absent)
{
	struct ib_uverbs_create_srq create = { .max_wr = 1, .max_sge = 1 };
	struct ib_uverbs_create_srq_resp resp;
	struct ib_uverbs_create_qp_resp qp;
	struct ib_uverbs_create_qp cmd;
	struct uv_tree tree = {};

	h.ops.destroy_srq = NULL;
	h.ops.dealloc_mw = NULL;
	rebuild_tree();
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(WRITE(&h, CREATE_SRQ, &create, &resp), -EOPNOTSUPP);
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_SRQ_HANDLE, 0);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, &tree), -EPROTONOSUPPORT);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, &tree), -EPROTONOSUPPORT);
	/* A QP cannot use an SRQ either. */
	cmd = (struct ib_uverbs_create_qp){
		.pd_handle = pd, .send_cq_handle = cq, .recv_cq_handle = cq, .qp_type = IBV_QPT_RC, .is_srq = 1
	};
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &qp), -EINVAL);
	ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_RC, pd, cq, &qp), 0);
}
END_TEST

/* A row that is left out must not count for the highest command number (write-05). */
START_TEST(test_write_05_the_highest_number_is_that_of_the_rows_that_are_there)
{
	static const struct uvd_object_row *const qp_only[] = { &uvd_object_qp, NULL };
	static const struct uvd_feature feature = { .name = "QPs", .objects = qp_only };
	const struct uvd_feature *features[] = { &feature, NULL };
	struct uvd_tree *tree;
	int err;

	tree = uvd_tree_new(features, &h.ops, 0, NULL, &err);
	ck_assert_uint_eq(tree->num_writes[1], (IB_USER_VERBS_EX_CMD_MODIFY_QP & IB_USER_VERBS_CMD_COMMAND_MASK) + 1);
	uvd_tree_free(tree);
	h.ops.modify_qp = NULL;
	tree = uvd_tree_new(features, &h.ops, 0, NULL, &err);
	ck_assert_uint_eq(tree->num_writes[1], IB_USER_VERBS_EX_CMD_CREATE_QP + 1);
	uvd_tree_free(tree);
}
END_TEST

/*
 * A method is absent if one of its attributes names an object that the device lacks. A method whose backend function is
 * missing fails after all other checks.
 */
START_TEST(test_methods_of_a_backend_without_device_memory_and_advice)
{
	struct ib_uverbs_sge sge = {};
	struct uv_tree tree = {};

	h.ops.dealloc_dm = NULL;
	h.ops.advise_mr = NULL;
	rebuild_tree();
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, &tree), -EPROTONOSUPPORT);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, &tree), -EPROTONOSUPPORT);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, &tree), -EINVAL);
	uv_attr_obj(&tree, UVERBS_ATTR_ADVISE_MR_PD_HANDLE, pd);
	uv_attr_const(&tree, UVERBS_ATTR_ADVISE_MR_ADVICE, 0);
	uv_attr_const(&tree, UVERBS_ATTR_ADVISE_MR_FLAGS, 0);
	uv_attr_in(&tree, UVERBS_ATTR_ADVISE_MR_SGE_LIST, &sge, sizeof(sge));
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, &tree), -EOPNOTSUPP);
}
END_TEST

/* The null backend has every function that a row needs. */
START_TEST(test_the_null_backend_has_every_row)
{
	const struct uvd_feature *features[] = { &uvd_feature_common, NULL };
	struct uvd_tree *all, *null;
	int err;

	all = uvd_tree_new(features, NULL, 0, NULL, &err);
	null = uvd_tree_new(features, &uvd_backend_null, 0, NULL, &err);
	for (unsigned int ex = 0; ex < 2; ex++) {
		ck_assert_uint_eq(null->num_writes[ex], all->num_writes[ex]);
		for (unsigned int i = 0; i < all->num_writes[ex]; i++)
			ck_assert_ptr_eq(null->writes[ex][i].row, all->writes[ex][i].row);
	}
	for (unsigned int i = 0; i < all->num_objects[0]; i++)
		ck_assert_ptr_eq(null->objects[0][i].row, all->objects[0][i].row);
	uvd_tree_free(all);
	uvd_tree_free(null);
}
END_TEST

/* ---- ports ------------------------------------------------------------------------------------------------------- */

static char changes[64];

/* When the backend is told, a query must already return the new state. */
static void see_change(struct uvd_ibdev *dev, uint8_t port, bool up)
{
	struct ibv_port_attr attr;

	uvd_config_query_port(dev, port, &attr);
	snprintf(changes + strlen(changes), sizeof(changes) - strlen(changes), "%u%s%c ", port, up ? "up" : "down",
		 attr.state == (up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN) ? '+' : '-');
}

static unsigned int port_state(void)
{
	struct ib_uverbs_query_port cmd = { .port_num = 1 };
	struct ib_uverbs_query_port_resp resp = {};

	ck_assert_int_eq(WRITE(&h, QUERY_PORT, &cmd, &resp), 0);
	return resp.state;
}

static void expect_event(int fd, enum ibv_event_type type)
{
	struct ib_uverbs_async_event_desc event = {};

	ck_assert_int_eq(recv(fd, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
	ck_assert_uint_eq(event.event_type, type);
	ck_assert_uint_eq(event.element, 1);
}

START_TEST(test_a_port_that_changes_is_told_to_queries_backend_and_every_open_file)
{
	struct ib_uverbs_get_context_resp first = {}, second = {};
	struct ib_uverbs_async_event_desc event;
	struct uvd_file *file = h.file, *other;
	int err;

	ck_assert_int_eq(harness_get_context(&h, &first), 0);
	other = uvd_file_open(h.dev, h.account, &err);
	h.file = h.call->file = other;
	ck_assert_int_eq(harness_get_context(&h, &second), 0);
	h.ops.port_changed = see_change;
	ck_assert_int_eq(uvd_device_set_port(h.dev, 1, true), 1); /* it is already up */
	ck_assert_int_eq(uvd_device_set_port(h.dev, 1, false), 0);
	ck_assert_int_eq(uvd_device_set_port(h.dev, 1, false), 1);
	ck_assert_uint_eq(port_state(), IBV_PORT_DOWN);
	ck_assert_int_eq(uvd_device_set_port(h.dev, 1, true), 0);
	ck_assert_uint_eq(port_state(), IBV_PORT_ACTIVE);
	ck_assert_str_eq(changes, "1down+ 1up+ ");
	expect_event(first.async_fd, IBV_EVENT_PORT_ERR);
	expect_event(first.async_fd, IBV_EVENT_PORT_ACTIVE);
	expect_event(second.async_fd, IBV_EVENT_PORT_ERR);
	expect_event(second.async_fd, IBV_EVENT_PORT_ACTIVE);
	ck_assert_int_lt(recv(first.async_fd, &event, sizeof(event), MSG_DONTWAIT), 0);
	uvd_file_close(other);
	h.file = h.call->file = file;
}
END_TEST

static struct uvd_port_config adapter_port;
static int adapter_errno, watched = -1;

static int take_port(struct uvd_ibdev *dev, uint8_t port, struct uvd_port_config *now,
		     struct uvd_gid_attr gid_attrs[UVD_MAX_GIDS])
{
	ck_assert_uint_eq(port, 1);
	*now = adapter_port;
	strcpy(gid_attrs[1].ndev, "eth1");
	return adapter_errno;
}

static int publish_tables(struct uvd_device *dev, unsigned int port)
{
	const struct uvd_port_config *now = &dev->config.ports[port - 1];
	char event;

	ck_assert_int_lt(recv(watched, &event, sizeof(event), MSG_PEEK | MSG_DONTWAIT), 0);
	snprintf(changes + strlen(changes), sizeof(changes) - strlen(changes), "%u:%x,%u,%x,%s ", port, now->lid,
		 now->num_gids, now->pkeys[0], dev->config.gid_attrs[0][1].ndev);
	return 0;
}

static const enum ibv_event_type port_events[] = { IBV_EVENT_PORT_ACTIVE,      IBV_EVENT_PORT_ERR,
						   IBV_EVENT_LID_CHANGE,       IBV_EVENT_PKEY_CHANGE,
						   IBV_EVENT_SM_CHANGE,	       IBV_EVENT_GID_CHANGE,
						   IBV_EVENT_CLIENT_REREGISTER };

/* The adapter's port has another LID, and fails the query (err). */
static void change_adapter(enum ibv_event_type type, uint16_t lid, int err)
{
	adapter_port.lid = lid;
	adapter_errno = err;
	changes[0] = 0;
	h.dev->ib.event_handler(&h.dev->ib, type, 1);
}

START_TEST(test_an_adapters_port_is_published_before_clients_get_its_event)
{
	struct ib_uverbs_get_context_resp resp = {};

	ck_assert_int_eq(harness_get_context(&h, &resp), 0);
	watched = resp.async_fd;
	h.ops.take_port = take_port;
	h.engine.publish_tables = publish_tables;
	adapter_port = h.dev->config.ports[0];
	adapter_port.num_gids = 2;
	adapter_port.num_pkeys = 1;
	adapter_port.pkeys[0] = 0x8005;
	adapter_port.down = true;
	for (unsigned int i = 0; i < UVD_COUNT(port_events); i++) {
		change_adapter(port_events[i], 0x2a + i, 0);
		ck_assert_uint_eq(strtoul(changes + 2, NULL, 16), 0x2a + i);
		ck_assert_str_eq(strchr(changes, ','), ",2,8005,eth1 ");
		ck_assert_uint_eq(h.dev->ib.config.ports[0].lid, 0x2a + i);
		expect_event(resp.async_fd, port_events[i]);
	}
	ck_assert_uint_eq(port_state(), IBV_PORT_DOWN);
	/* The adapter does not answer: what is known stays, and clients get the event. */
	change_adapter(IBV_EVENT_GID_CHANGE, 0x99, -EIO);
	ck_assert_str_eq(changes, "");
	ck_assert_uint_ne(h.dev->config.ports[0].lid, 0x99);
	expect_event(resp.async_fd, IBV_EVENT_GID_CHANGE);
}
END_TEST

static void watch_addresses(struct uvd_device_watch *watch, const struct uvd_device *dev)
{
	snprintf(changes + strlen(changes), sizeof(changes) - strlen(changes), "watch:%x ", dev->config.ips.lost);
}

static int publish_lost(struct uvd_device *dev, unsigned int port)
{
	char event;

	ck_assert_int_lt(recv(watched, &event, sizeof(event), MSG_PEEK | MSG_DONTWAIT), 0);
	snprintf(changes + strlen(changes), sizeof(changes) - strlen(changes), "%u:%x ", port,
		 dev->config.ports[port - 1].lost_gids);
	return 0;
}

/* The second and the third GID of the port are an address of the machine's. */
static union ibv_gid address_of_the_machine(void)
{
	const union ibv_gid ip = { .raw = { [10] = 0xff, 0xff, 192, 0, 2, 9 } };
	struct uvd_device_config *const configs[] = { &h.dev->config, &h.dev->ib.config };

	for (unsigned int i = 0; i < UVD_COUNT(configs); i++) {
		configs[i]->ips = (struct uvd_ips){ .num = 1, .gids = { ip } };
		configs[i]->ports[0].num_gids = 3;
		configs[i]->ports[0].gids[1] = configs[i]->ports[0].gids[2] = ip;
	}
	return ip;
}

START_TEST(test_gid_goes_and_comes_with_its_address_before_clients_get_the_event)
{
	const union ibv_gid ip = address_of_the_machine(), other = { .raw = { 0x20, 1 } };
	struct uvd_device_watch watch = { .addresses = watch_addresses };
	struct ib_uverbs_get_context_resp resp = {};
	struct ibv_gid_entry entry;

	ck_assert_int_eq(harness_get_context(&h, &resp), 0);
	watched = resp.async_fd;
	h.engine.publish_tables = publish_lost;
	h.engine.watch = &watch;
	changes[0] = 0;
	ck_assert(!uvd_device_set_ip(h.dev, &other, false));
	ck_assert(!uvd_device_set_ip(h.dev, &ip, true));
	ck_assert_str_eq(changes, "");
	ck_assert(uvd_device_set_ip(h.dev, &ip, false));
	ck_assert_str_eq(changes, "1:6 watch:1 ");
	expect_event(resp.async_fd, IBV_EVENT_GID_CHANGE);
	ck_assert_int_eq(uvd_config_query_gid(&h.dev->ib, 1, 0, &entry), 0);
	ck_assert_int_eq(uvd_config_query_gid(&h.dev->ib, 1, 1, &entry), -ENODATA);
	ck_assert(!uvd_device_set_ip(h.dev, &ip, false));
	changes[0] = 0;
	ck_assert(uvd_device_set_ip(h.dev, &ip, true));
	ck_assert_str_eq(changes, "1:0 watch:0 ");
	expect_event(resp.async_fd, IBV_EVENT_GID_CHANGE);
	ck_assert_int_eq(uvd_config_query_gid(&h.dev->ib, 1, 2, &entry), 0);
	h.engine.watch = NULL;
}
END_TEST

START_TEST(test_address_that_is_no_gid_goes_without_an_event)
{
	const union ibv_gid ip = address_of_the_machine();
	struct uvd_device_watch watch = { .addresses = watch_addresses };
	struct ib_uverbs_get_context_resp resp = {};
	char event;

	h.dev->config.ports[0].num_gids = h.dev->ib.config.ports[0].num_gids = 1;
	ck_assert_int_eq(harness_get_context(&h, &resp), 0);
	h.engine.publish_tables = publish_lost;
	h.engine.watch = &watch;
	changes[0] = 0;
	ck_assert(uvd_device_set_ip(h.dev, &ip, false));
	ck_assert_str_eq(changes, "watch:1 ");
	ck_assert_int_lt(recv(resp.async_fd, &event, sizeof(event), MSG_PEEK | MSG_DONTWAIT), 0);
	h.engine.watch = NULL;
}
END_TEST

static void event_of_no_port(enum ibv_event_type type, uint8_t port)
{
	h.dev->ib.event_handler(&h.dev->ib, type, port);
	ck_assert_str_eq(changes, "");
}

START_TEST(test_an_adapters_port_is_asked_for_only_by_events_of_its_ports)
{
	h.ops.take_port = take_port;
	h.engine.publish_tables = publish_tables;
	adapter_port = h.dev->config.ports[0];
	changes[0] = 0;
	event_of_no_port(IBV_EVENT_DEVICE_FATAL, 1);
	event_of_no_port(IBV_EVENT_GID_CHANGE, 0);
	event_of_no_port(IBV_EVENT_GID_CHANGE, h.dev->config.num_ports + 1);
	uvd_device_set_gone(h.dev);
	event_of_no_port(IBV_EVENT_GID_CHANGE, 1);
	atomic_store(&h.dev->gone, false);
	h.dev->ib.event_handler(&h.dev->ib, IBV_EVENT_GID_CHANGE, 1);
	ck_assert_str_ne(changes, "");
}
END_TEST

static void *report_change(void *arg)
{
	h.dev->ib.event_handler(&h.dev->ib, IBV_EVENT_GID_CHANGE, 1);
	return NULL;
}

static void (*close_behind)(struct uvd_ibdev *dev);

static void close_after_a_change(struct uvd_ibdev *dev)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, report_change, NULL), 0);
	pthread_join(thread, NULL);
	if (close_behind)
		close_behind(dev);
}

START_TEST(test_the_close_of_a_backend_can_wait_for_its_thread_that_reports_a_change)
{
	h.ops.take_port = take_port;
	h.engine.publish_tables = publish_tables;
	adapter_port = h.dev->config.ports[0];
	changes[0] = 0;
	close_behind = h.ops.close;
	h.ops.close = close_after_a_change;
	uvd_device_remove(h.dev);
	ck_assert_str_eq(changes, ""); /* the sysfs directory may have another device of its name */
}
END_TEST

START_TEST(test_set_port_of_no_such_port_is_einval)
{
	ck_assert_int_eq(uvd_device_set_port(h.dev, 0, false), -EINVAL);
	ck_assert_int_eq(uvd_device_set_port(h.dev, h.config.num_ports + 1, false), -EINVAL);
	ck_assert_int_eq(uvd_device_set_port(h.dev, 257, false), -EINVAL);
}
END_TEST

TEST_LIST(test_a_command_whose_function_is_missing_is_eopnotsupp, test_an_object_that_cannot_be_destroyed_is_absent,
	  test_write_05_the_highest_number_is_that_of_the_rows_that_are_there, test_the_null_backend_has_every_row,
	  test_methods_of_a_backend_without_device_memory_and_advice,
	  test_a_port_that_changes_is_told_to_queries_backend_and_every_open_file,
	  test_an_adapters_port_is_published_before_clients_get_its_event,
	  test_the_close_of_a_backend_can_wait_for_its_thread_that_reports_a_change,
	  test_an_adapters_port_is_asked_for_only_by_events_of_its_ports,
	  test_gid_goes_and_comes_with_its_address_before_clients_get_the_event,
	  test_address_that_is_no_gid_goes_without_an_event, test_set_port_of_no_such_port_is_einval)
