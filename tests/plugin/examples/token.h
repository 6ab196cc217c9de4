/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The made-up calls of the plug-in `token`: what its clients need. */
#ifndef UVD_TESTS_TOKEN_H
#define UVD_TESTS_TOKEN_H

#include <linux/types.h>

enum { UVERBS_OBJECT_TOKEN = 0x1180 };
enum {
	UVERBS_METHOD_TOKEN_CREATE = 0x1180,
	UVERBS_METHOD_TOKEN_CHECK,
	UVERBS_METHOD_TOKEN_DESTROY,
	UVERBS_METHOD_TOKEN_QUERY
};
enum {
	IB_USER_VERBS_CMD_MAKE_TOKEN = 200,
	IB_USER_VERBS_CMD_CHECK_TOKEN,
	IB_USER_VERBS_CMD_END_TOKEN,
	IB_USER_VERBS_EX_CMD_COUNT_TOKENS,
};
enum { UVERBS_ATTR_CREATE_TOKEN_HANDLE = 0x1180, UVERBS_ATTR_CREATE_TOKEN_MADE_OF, UVERBS_ATTR_CREATE_TOKEN_RESP_RKEY };
enum {
	UVERBS_ATTR_CHECK_TOKEN_HANDLE = 0x1180,
	UVERBS_ATTR_CHECK_TOKEN_RKEY,
	UVERBS_ATTR_CHECK_TOKEN_COLOUR,
	UVERBS_ATTR_CHECK_TOKEN_RESP,
};
enum { UVERBS_ATTR_DESTROY_TOKEN_HANDLE = 0x1180 };
enum { UVERBS_ATTR_QUERY_TOKEN_RESP = 0x1180, UVERBS_ATTR_QUERY_TOKEN_RESP_SLOT };

/* The mask tells which fields of the request the command reads. */
enum { TOKEN_HAS_MR = 1, TOKEN_HAS_QP = 2, TOKEN_HAS_MEMORY = 4 };
enum { TOKEN_RED = 1, TOKEN_GREEN };

struct token_of {
	__u32 mask, pd_handle;
	__u32 mr_handle, mr_lkey, qpn, colour;
	__u32 plain; /* a field without a role */
	__u32 reserved;
	__aligned_u64 start, length;
};

struct make_token {
	__aligned_u64 response;
	struct token_of of;
};

struct make_token_resp {
	__u32 token_handle, rkey, reserved, colour;
};

struct check_token {
	__aligned_u64 response;
	__u32 token_handle, rkey;
};

struct check_token_resp {
	__u32 rkey, qpn, plain, colour;
};

struct end_token {
	__u32 token_handle;
};

struct count_tokens {
	__u32 num_tokens, pad; /* handles follow */
};

struct count_tokens_resp {
	__u32 red, green;
};

/* One field for each role in which two devices cannot always be compared, and one in which they can. */
struct query_token_resp {
	__u8 own_gid[16];
	__aligned_u64 guid, clock;
	__u32 machine, share, capacity, plain;
	__u16 own_lid;
	__u8 part[6];
};

#endif
