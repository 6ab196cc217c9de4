/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Values of requests that the client's allow-lists (core/allow.h) may refuse. */
#include <arpa/inet.h>
#include <stdio.h>

#include "objects/internal.h"
#include "objects/xrc.h"
#include "persona/persona.h"

/* Returns the client's list of this kind. NULL: it is not restricted. */
static struct uvd_allow_list *req_allow_list(struct uvd_req *req, enum uvd_allow_kind kind)
{
	const struct uvd_allowed *allowed = uvd_file_allowed(req->file);

	return allowed ? allowed->lists[kind] : NULL;
}

static int req_allow_refuse(struct uvd_req *req, struct uvd_allow_list *list, const char *what, const char *word)
{
	return uvd_file_refuse(req->file, req->caller, req->name, list, what, word);
}

int uvd_req_allow_access(struct uvd_req *req, const char *field, uint32_t access)
{
	struct uvd_allow_list *list = req_allow_list(req, UVD_ALLOW_ACCESS);
	const uint64_t missing = list ? uvd_allow_missing(list, access) : 0;
	char words[192], what[256];

	if (!missing)
		return 0;
	uvd_allow_access_names(missing, words, sizeof(words));
	snprintf(what, sizeof(what), "%s %s (of 0x%x)", field, words, access);
	return req_allow_refuse(req, list, what, words);
}

/*
 * Can no list check the P_Keys, or the GIDs, of such a QP's packets? A raw QP builds its packets itself. A datagram's
 * source GID is in its work request: in a mapped queue that is the client's memory.
 */
static bool qp_type_escapes(const struct uvd_req *req, uint32_t type, enum uvd_allow_kind kind)
{
	if (type == IBV_QPT_RAW_PACKET || type == IBV_QPT_DRIVER)
		return true;
	return type == IBV_QPT_UD && kind == UVD_ALLOW_GIDS && req->dev->persona->queues;
}

int uvd_req_allow_qp_type(struct uvd_req *req, uint32_t type)
{
	static const enum uvd_allow_kind headers[] = { UVD_ALLOW_PKEYS, UVD_ALLOW_GIDS };
	struct uvd_allow_list *list = req_allow_list(req, UVD_ALLOW_QP_TYPES);
	const char *name = uvd_allow_qp_type_name(type);
	char what[96];

	if (!uvd_file_allowed(req->file))
		return 0;
	snprintf(what, sizeof(what), "qp_type %s", name);
	if (list && !uvd_allow_has(list, type))
		return req_allow_refuse(req, list, what, name);
	for (unsigned int i = 0; i < UVD_COUNT(headers); i++) {
		list = req_allow_list(req, headers[i]);
		if (!list || list->all || !qp_type_escapes(req, type, headers[i]))
			continue;
		snprintf(what, sizeof(what), "qp_type %s, whose packets can have any %s", name,
			 headers[i] == UVD_ALLOW_PKEYS ? "P_Key" : "GID");
		return req_allow_refuse(req, list, what, "all");
	}
	return 0;
}

/* The list that refuses a value, if one does. The caller logs it later, without locks. */
struct allow_verdict {
	struct uvd_allow_list *list; /* NULL: the value is allowed */
	char what[160], word[INET6_ADDRSTRLEN];
};

static int allow_verdict_end(struct uvd_req *req, const struct allow_verdict *v)
{
	return v->list ? req_allow_refuse(req, v->list, v->what, v->word) : 0;
}

static void allow_judge_gid(struct uvd_req *req, unsigned int port, unsigned int index, const union ibv_gid *gid,
			    struct allow_verdict *v)
{
	struct uvd_allow_list *list = req_allow_list(req, UVD_ALLOW_GIDS);

	if (!list || uvd_allow_has_gid(list, gid))
		return;
	v->list = list;
	inet_ntop(AF_INET6, gid, v->word, sizeof(v->word));
	snprintf(v->what, sizeof(v->what), "sgid_index %u of port %u, GID %s", index, port, v->word);
}

int uvd_req_allow_gid(struct uvd_req *req, const struct ibv_ah_attr *attr, const union ibv_gid *gid)
{
	struct allow_verdict v = {};

	allow_judge_gid(req, attr->port_num, attr->grh.sgid_index, gid, &v);
	return allow_verdict_end(req, &v);
}

/* A backend may take the source GID from the QP's port, where the index of the address handle means another GID. */
int uvd_req_allow_ah(struct uvd_req *req, const struct uvd_qp *qp, const struct uvd_ah *ah)
{
	struct uvd_allow_list *list = req_allow_list(req, UVD_ALLOW_GIDS);
	const uint8_t port = __atomic_load_n(&qp->port, __ATOMIC_RELAXED);
	char what[96];

	if (!list || list->all || !ah->attr.is_global || ah->attr.port_num == port)
		return 0;
	snprintf(what, sizeof(what), "address handle of port %u on a QP of port %u", ah->attr.port_num, port);
	return req_allow_refuse(req, list, what, "all");
}

/* A key that is not in the published table is unknown, and refused. */
static void allow_judge_pkey(struct uvd_req *req, uint8_t port, unsigned int index, struct allow_verdict *v)
{
	struct uvd_allow_list *list = req_allow_list(req, UVD_ALLOW_PKEYS);
	const struct uvd_port_config *config = NULL;
	uint16_t pkey;

	if (!list || list->all)
		return;
	if (uvd_port_valid(req->dev, port))
		config = &req->dev->config.ports[port - 1];
	if (!config || index >= __atomic_load_n(&config->num_pkeys, __ATOMIC_ACQUIRE)) {
		snprintf(v->word, sizeof(v->word), "all");
		snprintf(v->what, sizeof(v->what), "pkey_index %u of port %u, beyond the published table", index, port);
		v->list = list;
		return;
	}
	/* An adapter's table can change. */
	pkey = __atomic_load_n(&config->pkeys[index], __ATOMIC_RELAXED);
	if (!uvd_allow_has(list, pkey)) {
		snprintf(v->word, sizeof(v->word), "0x%04x", pkey);
		snprintf(v->what, sizeof(v->what), "pkey_index %u of port %u, P_Key %s", index, port, v->word);
	} else {
		return;
	}
	v->list = list;
}

/* A slot that is empty now may have a GID later. */
static void allow_judge_slot(struct uvd_req *req, uint8_t port, unsigned int index, struct allow_verdict *v)
{
	struct uvd_allow_list *list = req_allow_list(req, UVD_ALLOW_GIDS);
	struct ibv_gid_entry gid;

	if (!list || list->all)
		return;
	if (!uvd_ops(req)->query_gid(&req->dev->ib, port, index, &gid)) {
		allow_judge_gid(req, port, index, &gid.gid, v);
		return;
	}
	v->list = list;
	snprintf(v->word, sizeof(v->word), "all");
	snprintf(v->what, sizeof(v->what), "sgid_index %u of port %u, an empty slot", index, port);
}

/*
 * Judges the P_Key and the source GID that the QP would have: a new port has others at the same indices. Caller holds
 * the lock of allow_lock_of(). Returns 0, or an error of query_qp().
 */
static int allow_judge_path(struct uvd_req *req, struct uvd_qp *qp, const struct ibv_qp_attr *attr, uint32_t mask,
			    struct allow_verdict *v)
{
	const struct ibv_ah_attr *ah = &attr->ah_attr;
	struct uvd_qp_init_attr init = {};
	struct ibv_qp_attr now = {};
	uint8_t port;
	int ret;

	if (!(mask & (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV)))
		return 0;
	ret = uvd_ops(req)->query_qp(qp, &now, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV, &init);
	if (ret)
		return ret;
	/* qp->port is stored after the change, outside of the lock: the backend knows better. */
	port = mask & IBV_QP_PORT ? attr->port_num : now.port_num ?: __atomic_load_n(&qp->port, __ATOMIC_RELAXED);
	if (mask & (IBV_QP_PKEY_INDEX | IBV_QP_PORT))
		allow_judge_pkey(req, port, mask & IBV_QP_PKEY_INDEX ? attr->pkey_index : now.pkey_index, v);
	if (!(mask & IBV_QP_AV))
		ah = &now.ah_attr;
	if (ah->is_global)
		allow_judge_slot(req, port, ah->grh.sgid_index, v);
	return 0;
}

/*
 * A change of a QP can take long, as an adapter asks the network for the peer's address. So the lock is of those alone who can
 * change the QP: its file, and for an XRC target all that have its domain.
 */
static pthread_mutex_t *allow_lock_of(const struct uvd_req *req, const struct uvd_qp *qp)
{
	struct uvd_xrcd_domain *domain = qp->xrcd ? qp->xrcd->owner : NULL;

	return domain ? &domain->allow_lock : &req->file->allow_lock;
}

/* A backend without query_qp() cannot tell what the QP has. */
static int req_modify_checked(struct uvd_req *req, struct uvd_qp *qp, struct ibv_qp_attr *attr, uint32_t mask)
{
	struct uvd_udata *udata = uvd_req_fetch_udata(req);
	pthread_mutex_t *lock = allow_lock_of(req, qp);
	struct allow_verdict v = {};
	int ret;

	if (!udata)
		return -ENOMEM;
	if (!uvd_ops(req)->query_qp)
		return -EOPNOTSUPP;
	uvd_lock(lock);
	ret = allow_judge_path(req, qp, attr, mask, &v);
	if (!ret && !v.list)
		ret = uvd_ops(req)->modify_qp(qp, attr, mask, udata);
	uvd_unlock(lock);
	return v.list ? allow_verdict_end(req, &v) : ret ? uvd_refused(req, ret) : 0;
}

static int req_modify(struct uvd_req *req, struct uvd_qp *qp, struct ibv_qp_attr *attr, uint32_t mask)
{
	int ret = uvd_ops(req)->modify_qp(qp, attr, mask, uvd_req_udata(req));

	return ret ? uvd_refused(req, ret) : 0;
}

int uvd_req_modify_qp(struct uvd_req *req, struct uvd_qp *qp, struct ibv_qp_attr *attr, uint32_t mask)
{
	struct allow_verdict v = {};
	int ret = 0;

	if (!uvd_file_allowed(req->file))
		return req_modify(req, qp, attr, mask);
	if (mask & IBV_QP_ACCESS_FLAGS)
		ret = uvd_req_allow_access(req, "qp_access_flags", attr->qp_access_flags);
	if (!ret && mask & IBV_QP_ALT_PATH)
		allow_judge_pkey(req, attr->alt_port_num, attr->alt_pkey_index, &v);
	ret = ret ?: allow_verdict_end(req, &v);
	if (ret)
		return ret;
	if (!req_allow_list(req, UVD_ALLOW_PKEYS) && !req_allow_list(req, UVD_ALLOW_GIDS))
		return req_modify(req, qp, attr, mask);
	return req_modify_checked(req, qp, attr, mask);
}
