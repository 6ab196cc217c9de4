/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "wq_verbs.h"
#include <unistd.h>

struct client wq_client;
int wq_events;
struct ib_uverbs_ex_create_wq_resp wq_resp;

void wq_init(bool has)
{
	client_init(NULL);
	fake.attr.raw_packet_caps = IBV_RAW_PACKET_CAP_CVLAN_STRIPPING;
	if (has) {
		fake.attr.orig_attr.device_cap_flags = IBV_DEVICE_XRC;
		fake.attr.max_wq_type_rq = 100;
		fake.attr.rss_caps.max_rwq_indirection_tables = 100;
	}
}

void wq_start(void)
{
	client_start();
	h.call->caller.proc = &harness_root; /* for CAP_NET_RAW */
	client_open(&wq_client, h.fd);
	wq_events = client_async_fd(&wq_client);
}

void wq_setup(void)
{
	wq_init(true);
	wq_start();
}

void wq_teardown(void)
{
	close(wq_events);
	client_teardown();
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

int create_wq_with(uint32_t type, uint32_t flags, struct wq *wq)
{
	const struct ib_uverbs_ex_create_wq cmd = { .user_handle = WQ_USER_HANDLE,
						    .wq_type = type,
						    .pd_handle = wq_client.pd,
						    .cq_handle = wq_client.cq,
						    .max_wr = WQ_MAX_WR,
						    .max_sge = WQ_MAX_SGE,
						    .create_flags = flags };
	int ret;

	wq_resp = (struct ib_uverbs_ex_create_wq_resp){};
	ret = uv_cmd(wq_client.fd, UV_WRITE_EX,
		     &(struct uv_cmd){ UV_EX(CREATE_WQ), &cmd, sizeof(cmd), &wq_resp, sizeof(wq_resp) });
	*wq = (struct wq){ wq_resp.wq_handle, wq_resp.wqn };
	return ret;
}

int create_wq(struct wq *wq)
{
	return create_wq_with(IBV_WQT_RQ, 0, wq);
}

int modify_wq(const struct wq *wq, struct ib_uverbs_ex_modify_wq cmd)
{
	cmd.wq_handle = wq->handle;
	return uv_cmd(wq_client.fd, UV_WRITE_EX, &(struct uv_cmd){ UV_EX(MODIFY_WQ), &cmd, sizeof(cmd) });
}

int modify_wq_state(const struct wq *wq, uint32_t state)
{
	return modify_wq(wq, (struct ib_uverbs_ex_modify_wq){ .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state });
}

int destroy_wq(const struct wq *wq, uint32_t *reported)
{
	const struct ib_uverbs_ex_destroy_wq cmd = { .wq_handle = wq->handle };
	struct ib_uverbs_ex_destroy_wq_resp resp = {};
	const int ret = uv_cmd(wq_client.fd, UV_WRITE_EX,
			       &(struct uv_cmd){ UV_EX(DESTROY_WQ), &cmd, sizeof(cmd), &resp, sizeof(resp) });

	if (reported)
		*reported = resp.events_reported;
	return ret;
}

int create_table(const struct wq *first, const struct wq *second, uint32_t *handle)
{
	const struct {
		struct ib_uverbs_ex_create_rwq_ind_table cmd;
		uint32_t handles[2];
	} in = { { .log_ind_tbl_size = second ? 1 : 0 }, { first->handle, second ? second->handle : 0 } };
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	const int ret = uv_cmd(wq_client.fd, UV_WRITE_EX,
			       &(struct uv_cmd){ UV_EX(CREATE_RWQ_IND_TBL), &in, sizeof(in), &resp, sizeof(resp) });

	*handle = resp.ind_tbl_handle;
	return ret;
}

int destroy_table(uint32_t handle)
{
	const struct ib_uverbs_ex_destroy_rwq_ind_table cmd = { .ind_tbl_handle = handle };

	return uv_cmd(wq_client.fd, UV_WRITE_EX, &(struct uv_cmd){ UV_EX(DESTROY_RWQ_IND_TBL), &cmd, sizeof(cmd) });
}

int create_qp_with(uint32_t table, const void *hash, size_t len, uint32_t *handle)
{
	const struct ib_uverbs_ex_create_qp cmd = { .pd_handle = wq_client.pd,
						    .qp_type = IBV_QPT_RAW_PACKET,
						    .comp_mask = IB_UVERBS_CREATE_QP_MASK_IND_TABLE,
						    .rwq_ind_tbl_handle = table };
	struct ib_uverbs_ex_create_qp_resp resp = {};
	const int ret =
		uv_cmd(wq_client.fd, UV_WRITE_EX,
		       &(struct uv_cmd){ UV_EX(CREATE_QP), &cmd, sizeof(cmd), &resp, sizeof(resp), (void *)hash, len });

	*handle = resp.base.qp_handle;
	return ret;
}

int create_qp(uint32_t table, uint32_t *handle)
{
	return create_qp_with(table, NULL, 0, handle);
}

int destroy_qp(uint32_t handle)
{
	return uv_destroy_qp(wq_client.fd, UV_WRITE, handle, NULL);
}

struct uverbsd_rx_hash toeplitz(void)
{
	struct uverbsd_rx_hash hash = { .function = IBV_RX_HASH_FUNC_TOEPLITZ,
					.fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_INNER,
					.key_len = 40 };

	for (unsigned int i = 0; i < hash.key_len; i++)
		hash.key[i] = i + 1;
	return hash;
}

uint32_t some_table(struct wq *wq)
{
	uint32_t table;

	ck_assert_int_eq(create_wq(wq), 0);
	ck_assert_int_eq(create_table(wq, NULL, &table), 0);
	return table;
}
