/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Additions to the kernel's uverbs ABI since Linux 6.1, whose headers we build with. They are macros and follow the
 * kernel's headers, so that the same names in newer headers, which are enumerators, do not conflict.
 */
#ifndef UVD_UAPI_LATER_H
#define UVD_UAPI_LATER_H

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>

/* ---- enum ib_wc_flags, the wc_flags of struct ib_uverbs_wc, which no header for programs has ---------------------- */

#define UVD_WC_GRH (1 << 0)
#define UVD_WC_WITH_IMM (1 << 1)
#define UVD_WC_WITH_INVALIDATE (1 << 2)
#define UVD_WC_IP_CSUM_OK (1 << 3)

/* ---- struct sockaddr_ib of rdma/ib.h, which no header for programs has ------------------------------------------- */

#define UVD_AF_IB 27 /* AF_IB of linux/socket.h */

struct uvd_sockaddr_ib {
	__u16 family;
	__be16 pkey;
	__be32 flowinfo;
	__u8 gid[16];
	__be64 sid, sid_mask;
	__u64 scope_id;
};

/* ---- 6.17 -------------------------------------------------------------------------------------------------------- */

#define UVERBS_OBJECT_DMAH 17
#define UVERBS_METHOD_DMAH_ALLOC 0
#define UVERBS_METHOD_DMAH_FREE 1
#define UVERBS_ATTR_ALLOC_DMAH_HANDLE 0
#define UVERBS_ATTR_ALLOC_DMAH_CPU_ID 1
#define UVERBS_ATTR_ALLOC_DMAH_TPH_MEM_TYPE 2
#define UVERBS_ATTR_ALLOC_DMAH_PH 3
#define UVERBS_ATTR_FREE_DMA_HANDLE 0

#define UVERBS_METHOD_REG_MR 5
#define UVERBS_ATTR_REG_MR_HANDLE 0
#define UVERBS_ATTR_REG_MR_PD_HANDLE 1
#define UVERBS_ATTR_REG_MR_DMA_HANDLE 2
#define UVERBS_ATTR_REG_MR_IOVA 3
#define UVERBS_ATTR_REG_MR_ADDR 4
#define UVERBS_ATTR_REG_MR_LENGTH 5
#define UVERBS_ATTR_REG_MR_ACCESS_FLAGS 6
#define UVERBS_ATTR_REG_MR_FD 7
#define UVERBS_ATTR_REG_MR_FD_OFFSET 8
#define UVERBS_ATTR_REG_MR_RESP_LKEY 9
#define UVERBS_ATTR_REG_MR_RESP_RKEY 10

#define UVERBS_ATTR_CREATE_CQ_BUFFER_VA 8
#define UVERBS_ATTR_CREATE_CQ_BUFFER_LENGTH 9
#define UVERBS_ATTR_CREATE_CQ_BUFFER_FD 10
#define UVERBS_ATTR_CREATE_CQ_BUFFER_OFFSET 11

/* ---- after 6.18 -------------------------------------------------------------------------------------------------- */

#define UVERBS_OBJECT_DMABUF 18
#define UVERBS_METHOD_DMABUF_ALLOC 0
#define UVERBS_ATTR_ALLOC_DMABUF_HANDLE 0
#define UVERBS_ATTR_ALLOC_DMABUF_PGOFF 1

#define UVERBS_METHOD_QUERY_PORT_SPEED 7
#define UVERBS_ATTR_QUERY_PORT_SPEED_PORT_NUM 0
#define UVERBS_ATTR_QUERY_PORT_SPEED_RESP 1

/* ---- after 7.0 --------------------------------------------------------------------------------------------------- */

#define UVERBS_OBJECT_COMP_CNTR 19
#define UVERBS_METHOD_COMP_CNTR_CREATE 0
#define UVERBS_METHOD_COMP_CNTR_DESTROY 1
#define UVERBS_METHOD_COMP_CNTR_MODIFY 2
#define UVERBS_METHOD_COMP_CNTR_READ 3
#define UVERBS_ATTR_CREATE_COMP_CNTR_HANDLE 0
#define UVERBS_ATTR_DESTROY_COMP_CNTR_HANDLE 0
#define UVERBS_ATTR_MODIFY_COMP_CNTR_HANDLE 0
#define UVERBS_ATTR_MODIFY_COMP_CNTR_ENTRY 1
#define UVERBS_ATTR_MODIFY_COMP_CNTR_OP 2
#define UVERBS_ATTR_MODIFY_COMP_CNTR_VALUE 3
#define UVERBS_ATTR_READ_COMP_CNTR_HANDLE 0
#define UVERBS_ATTR_READ_COMP_CNTR_ENTRY 1
#define UVERBS_ATTR_READ_COMP_CNTR_RESP_VALUE 2

#define UVERBS_METHOD_QUERY_COMP_CNTR_CAPS 8
#define UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_MAX_COUNTERS 0
#define UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_MAX_VALUE 1
#define UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_SUPPORTED_QP_ATTACH_OPS 2

#define UVERBS_METHOD_QP_ATTACH_COMP_CNTR 2
#define UVERBS_ATTR_QP_ATTACH_COMP_CNTR_HANDLE 0
#define UVERBS_ATTR_QP_ATTACH_COMP_CNTR_CNTR_HANDLE 1
#define UVERBS_ATTR_QP_ATTACH_COMP_CNTR_OP_MASK 2

#define IB_UVERBS_COMP_CNTR_ENTRY_COMP 0
#define IB_UVERBS_COMP_CNTR_ENTRY_ERR 1
#define IB_UVERBS_COMP_CNTR_MODIFY_OP_SET 0
#define IB_UVERBS_COMP_CNTR_MODIFY_OP_INC 1
#define IB_UVERBS_QP_ATTACH_COMP_CNTR_OP_SEND (1 << 0)
#define IB_UVERBS_QP_ATTACH_COMP_CNTR_OP_RECV (1 << 1)
#define IB_UVERBS_QP_ATTACH_COMP_CNTR_OP_RDMA_READ (1 << 2)
#define IB_UVERBS_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ (1 << 3)
#define IB_UVERBS_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE (1 << 4)
#define IB_UVERBS_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE (1 << 5)

#define UVERBS_ATTR_CREATE_CQ_BUF_UMEM 12
#define UVERBS_ATTR_CREATE_QP_BUF_UMEM 15
#define UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM 16
#define UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM 17
#define UVERBS_ATTR_CREATE_SRQ_BUF_UMEM 14

enum { UVD_SIZEOF_BUFFER_DESC = 32 }; /* struct ib_uverbs_buffer_desc */

/*
 * An attribute row: where a queue lies in the client's memory. Only drivers whose queues lie there read it. Here only
 * its size is checked.
 */
#define UVD_BUF_UMEM(n) \
	{ \
		.name = #n, .id = n, .type = UVD_ATTR_PTR_IN, .min_len = UVD_SIZEOF_BUFFER_DESC, \
		.len = UVD_SIZEOF_BUFFER_DESC \
	}

#endif
