/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The attributes of the ioctl methods, and the schema's rows by name. */
#include <ctype.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "objects/objects.h"
#include "shape.h"

#define AT(s, m) offsetof(struct ib_uverbs_##s, m), sizeof(((struct ib_uverbs_##s *)0)->m)
#define I(s, m, words) \
	{ \
#m, AT(s, m), words \
	}
#define O(s, m) \
	{ \
#m, AT(s, m), NULL \
	}
#define FIELDS(a) \
	{ \
		a, sizeof(a) / sizeof((a)[0]) \
	}

#define CAP(words_wr, words_sge, words_inline) \
	I(qp_cap, max_send_wr, words_wr), I(qp_cap, max_recv_wr, words_wr), I(qp_cap, max_send_sge, words_sge), \
		I(qp_cap, max_recv_sge, words_sge), I(qp_cap, max_inline_data, words_inline)
static const struct uvd_shape_field cap_in[] = { CAP("4 1 0 16 1048577 -1", "1 0 32 33 -1", "0 64 512 -1") };
static const struct uvd_shape_field cap_out[] = { CAP(NULL, NULL, NULL) };
static const struct uvd_shape_field gid_entry_out[] = { O(gid_entry, gid), O(gid_entry, gid_index),
							O(gid_entry, port_num), O(gid_entry, gid_type),
							O(gid_entry, netdev_ifindex) };
#define P(m) \
	{ \
#m, AT(query_port_resp_ex, legacy_resp.m), NULL \
	}
static const struct uvd_shape_field port_out[] = { P(port_cap_flags),
						   P(max_msg_sz),
						   P(bad_pkey_cntr),
						   P(qkey_viol_cntr),
						   P(gid_tbl_len),
						   P(pkey_tbl_len),
						   P(lid),
						   P(sm_lid),
						   P(state),
						   P(max_mtu),
						   P(active_mtu),
						   P(lmc),
						   P(max_vl_num),
						   P(sm_sl),
						   P(subnet_timeout),
						   P(init_type_reply),
						   P(active_width),
						   P(active_speed),
						   P(phys_state),
						   P(link_layer),
						   P(flags),
						   P(reserved),
						   O(query_port_resp_ex, port_cap_flags2) };
static const struct uvd_shape_field destroy_cq_out[] = { O(destroy_cq_resp, comp_events_reported),
							 O(destroy_cq_resp, async_events_reported) };
static const struct uvd_shape_field events_out[] = { O(destroy_qp_resp, events_reported) };
static const struct uvd_shape_field sge_in[] = { { "addr", 0, 8, "mem none" },
						 { "length", 8, 4, "16 0" },
						 { "lkey", 12, 4, "<lkey> 0" } };

/* NUMBER: an input number. BACK: an output number. */
#define NUMBER(a, size, words) \
	{ \
#a, size, \
		{ \
			(const struct uvd_shape_field[]){ { "value", 0, size, words } }, 1 \
		} \
	}
#define BACK(a, name, size) \
	{ \
#a, size, \
		{ \
			(const struct uvd_shape_field[]){ { name, 0, size, NULL } }, 1 \
		} \
	}

static const struct uvd_shape_attr attrs[] = {
	NUMBER(CREATE_CQ_CQE, 4, "16 1 0 100 32767 32768 -1"),
	NUMBER(CREATE_CQ_USER_HANDLE, 8, "0x1111 0 -1"),
	NUMBER(CREATE_CQ_COMP_VECTOR, 4, "0 1 2 -1"),
	NUMBER(CREATE_CQ_FLAGS, 4, "0 1 2 4 -1"),
	BACK(CREATE_CQ_RESP_CQE, "cqe", 4),
	{ "DESTROY_CQ_RESP", 8, FIELDS(destroy_cq_out) },
	{ "DESTROY_QP_RESP", 4, FIELDS(events_out) },
	{ "DESTROY_SRQ_RESP", 4, FIELDS(events_out) },
	{ "CREATE_QP_CAP", 20, FIELDS(cap_in) },
	NUMBER(CREATE_QP_USER_HANDLE, 8, "0x2222 0 -1"),
	NUMBER(CREATE_QP_TYPE, 8, "2 4 3 8 9 10 0 1 5 255 -1"),
	NUMBER(CREATE_QP_FLAGS, 4, "0 0x1000 2 0x100 0x200 0x800 1 -1"),
	NUMBER(CREATE_QP_SOURCE_QPN, 4, "1 0"),
	{ "CREATE_QP_RESP_CAP", 20, FIELDS(cap_out) },
	BACK(CREATE_QP_RESP_QP_NUM, "qpn", 4),
	NUMBER(CREATE_SRQ_TYPE, 8, "0 1 2 3 -1"),
	NUMBER(CREATE_SRQ_USER_HANDLE, 8, "0x3333 0"),
	NUMBER(CREATE_SRQ_MAX_WR, 4, "16 1 0 100 1048577 -1"),
	NUMBER(CREATE_SRQ_MAX_SGE, 4, "1 0 2 27 28 -1"),
	NUMBER(CREATE_SRQ_LIMIT, 4, "0 1 100"),
	NUMBER(CREATE_SRQ_MAX_NUM_TAGS, 4, "0 1"),
	BACK(CREATE_SRQ_RESP_MAX_WR, "max_wr", 4),
	BACK(CREATE_SRQ_RESP_MAX_SGE, "max_sge", 4),
	BACK(CREATE_SRQ_RESP_SRQ_NUM, "srqn", 4),
	NUMBER(INFO_OBJECT_ID, 8, "1 2 3 5 7 0 17 0x1000 -1"),
	BACK(INFO_TOTAL_HANDLES, "total", 4),
	{ "INFO_HANDLES_LIST", 16, {} },
	NUMBER(QUERY_PORT_PORT_NUM, 8, "1 0 2 255 256 -1"),
	{ "QUERY_PORT_RESP", 32, FIELDS(port_out) },
	NUMBER(QUERY_GID_TABLE_ENTRY_SIZE, 8, "32 0 16 -1"),
	NUMBER(QUERY_GID_TABLE_FLAGS, 4, "0 1"),
	{ "QUERY_GID_TABLE_RESP_ENTRIES", 640, { gid_entry_out, UVD_COUNT(gid_entry_out), 32 } },
	BACK(QUERY_GID_TABLE_RESP_NUM_ENTRIES, "entries", 8),
	NUMBER(QUERY_GID_ENTRY_PORT, 8, "1 0 2 -1"),
	NUMBER(QUERY_GID_ENTRY_GID_INDEX, 8, "0 1 2 15 1024 -1"),
	NUMBER(QUERY_GID_ENTRY_FLAGS, 4, "0 1"),
	{ "QUERY_GID_ENTRY_RESP_ENTRY", 32, FIELDS(gid_entry_out) },
	BACK(GET_CONTEXT_NUM_COMP_VECTORS, "num_comp_vectors", 4),
	BACK(GET_CONTEXT_CORE_SUPPORT, "core_support", 8),
	BACK(QUERY_MR_RESP_LKEY, "lkey", 4),
	BACK(QUERY_MR_RESP_RKEY, "rkey", 4),
	BACK(QUERY_MR_RESP_LENGTH, "length", 8),
	BACK(QUERY_MR_RESP_IOVA, "iova", 8),
	NUMBER(ADVISE_MR_ADVICE, 8, "0 1 2 -1"),
	NUMBER(ADVISE_MR_FLAGS, 4, "0 1 2"),
	{ "ADVISE_MR_SGE_LIST", 16, FIELDS(sge_in) },
	NUMBER(REG_DMABUF_MR_OFFSET, 8, "0 4096"),
	NUMBER(REG_DMABUF_MR_LENGTH, 8, "4096"),
	NUMBER(REG_DMABUF_MR_IOVA, 8, "0 1"),
	NUMBER(REG_DMABUF_MR_FD, 4, "-1 0"),
	NUMBER(REG_DMABUF_MR_ACCESS_FLAGS, 4, "7 2 16"),
	BACK(REG_DMABUF_MR_RESP_LKEY, "lkey", 4),
	BACK(REG_DMABUF_MR_RESP_RKEY, "rkey", 4),
};

const struct uvd_shape_attr *uvd_shape_attr(const char *name)
{
	for (unsigned int i = 0; i < UVD_COUNT(attrs); i++)
		if (!strcasecmp(attrs[i].name, name))
			return &attrs[i];
	return NULL;
}

/* ---- the schema's rows by name ----------------------------------------------------------------------------------- */

static const struct uvd_object_row *object_at(unsigned int i)
{
	return uvd_feature_common.objects[i];
}

static const char *without(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(name, prefix, len) ? name : name + len;
}

const char *uvd_shape_object_name(uint16_t object)
{
	static char name[32];

	if (object == UVERBS_OBJECT_COMP_CHANNEL)
		return "channel";
	if (object == UVERBS_OBJECT_ASYNC_EVENT)
		return "async";
	for (unsigned int i = 0; object_at(i); i++) {
		const char *from = without(object_at(i)->name, "UVERBS_OBJECT_");
		unsigned int n = 0;

		if (object_at(i)->id != object)
			continue;
		for (; from[n] && n < sizeof(name) - 1; n++)
			name[n] = tolower(from[n]);
		name[n] = 0;
		return name;
	}
	return "unknown";
}

bool uvd_shape_method_at(unsigned int n, struct uvd_shape_method *ref)
{
	for (unsigned int i = 0; object_at(i); i++) {
		if (n < object_at(i)->num_methods) {
			ref->object = object_at(i)->id;
			ref->row = &object_at(i)->methods[n];
			ref->method = ref->row->id;
			return true;
		}
		n -= object_at(i)->num_methods;
	}
	return false;
}

const char *uvd_shape_method_name(const struct uvd_method_row *row)
{
	return without(row->name, "UVERBS_METHOD_");
}

bool uvd_shape_method(const char *name, struct uvd_shape_method *ref)
{
	unsigned int object, method;

	if (sscanf(name, "#%i/%i", &object, &method) == 2) {
		*ref = (struct uvd_shape_method){ object, method, NULL };
		return true;
	}
	for (unsigned int i = 0; uvd_shape_method_at(i, ref); i++)
		if (!strcmp(uvd_shape_method_name(ref->row), name))
			return true;
	return false;
}

const struct uvd_write_row *uvd_shape_write(unsigned int number, bool ex)
{
	for (unsigned int i = 0; object_at(i); i++)
		for (unsigned int n = 0; n < object_at(i)->num_writes; n++) {
			const struct uvd_write_row *row = &object_at(i)->writes[n];

			if (row->number == number && !!(row->flags & UVD_WRITE_EX) == ex)
				return row;
		}
	return NULL;
}

const char *uvd_shape_attr_name(const struct uvd_attr_row *row)
{
	static char name[64];
	const char *from = without(row->name, "UVERBS_ATTR_");
	unsigned int n;

	for (n = 0; from[n] && n < sizeof(name) - 1; n++)
		name[n] = tolower(from[n]);
	name[n] = 0;
	return name;
}

const struct uvd_attr_row *uvd_shape_attr_row(const struct uvd_method_row *row, const char *name)
{
	for (unsigned int i = 0; row && i < row->num_attrs; i++)
		if (!strcmp(uvd_shape_attr_name(&row->attrs[i]), name))
			return &row->attrs[i];
	return NULL;
}

const struct uvd_attr_row *uvd_shape_method_end(const struct uvd_method_row *row)
{
	for (unsigned int i = 0; i < row->num_attrs; i++)
		if (row->attrs[i].type == UVD_ATTR_IDR && row->attrs[i].access == UVD_UOBJ_DESTROY)
			return &row->attrs[i];
	return NULL;
}
