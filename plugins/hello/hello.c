/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * hello: the smallest plug-in. One object without handles has one method, which doubles a number:
 *
 *   uverbsctl run --plugin ./hello.so -- uverbsctl call HELLO SAY --number 21
 */
#include <errno.h>
#include <uverbsd/plugin.h>

/* Ids from 0x1000 on are for drivers; docs/extending.md says which of them are free. */
enum { UVERBS_OBJECT_HELLO = 0x1080 };
enum { UVERBS_METHOD_HELLO_SAY = 0x1080 };
enum {
	UVERBS_ATTR_HELLO_SAY_NUMBER = 0x1080, /* CONST: from 1 to UINT32_MAX */
	UVERBS_ATTR_HELLO_SAY_DOUBLED, /* PTR_OUT, u64 */
};

static int hello_say(struct uvd_req *req)
{
	uint64_t number;
	int ret = uvd_attr_const(req, UVERBS_ATTR_HELLO_SAY_NUMBER, UINT32_MAX, &number);

	if (ret)
		return ret;
	if (!number)
		return uvd_bad(req, -EINVAL, "number", number);
	number *= 2;
	return uvd_attr_copy_to(req, UVERBS_ATTR_HELLO_SAY_DOUBLED, &number);
}

static const uvd_step hello_say_steps[] = { hello_say, NULL };

static const struct uvd_attr_row hello_say_attrs[] = {
	UVD_CONST_IN(UVERBS_ATTR_HELLO_SAY_NUMBER, UVD_MANDATORY),
	UVD_PTR_OUT(UVERBS_ATTR_HELLO_SAY_DOUBLED, sizeof(uint64_t), UVD_MANDATORY),
};

static const struct uvd_method_row hello_methods[] = {
	UVD_METHOD(UVERBS_METHOD_HELLO_SAY, hello_say_attrs, hello_say_steps),
};

static const struct uvd_object_row hello_object = {
	.name = "UVERBS_OBJECT_HELLO",
	.id = UVERBS_OBJECT_HELLO,
	.cls = UVD_CLASS_NONE,
	UVD_ROWS(methods, hello_methods),
};

static const struct uvd_object_row *const hello_objects[] = { &hello_object, NULL };
static const struct uvd_feature hello_feature = { .name = "hello", .objects = hello_objects };
static const struct uvd_feature *const hello_features[] = { &hello_feature, NULL };

UVD_PLUGIN(.name = "hello", .version = "1", .description = "doubles a number", .features = hello_features);
