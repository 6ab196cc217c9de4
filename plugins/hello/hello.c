/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * hello: the smallest plug-in. One object without handles has one method, which doubles a number and greets by name:
 *
 *   uverbsctl run --plugin ./hello.so -- uverbsctl call HELLO SAY --number 21
 */
#include <errno.h>
#include <stdio.h>
#include <uverbsd/plugin.h>

/* Ids from 0x1000 on are for drivers; docs/extending.md says which of them are free. */
enum { UVERBS_OBJECT_HELLO = 0x1080 };
enum { UVERBS_METHOD_HELLO_SAY = 0x1080 };
enum {
	UVERBS_ATTR_HELLO_SAY_NUMBER = 0x1080, /* CONST: any number but 0 */
	UVERBS_ATTR_HELLO_SAY_NAME, /* PTR_IN: at most 31 bytes; optional */
	UVERBS_ATTR_HELLO_SAY_DOUBLED, /* PTR_OUT, u64 */
	UVERBS_ATTR_HELLO_SAY_TEXT, /* PTR_OUT: a text that ends with a 0 byte; optional */
};

static int hello_say(struct uvd_req *req)
{
	const size_t len = uvd_attr_len(req, UVERBS_ATTR_HELLO_SAY_NAME);
	char name[32] = "world", text[40] = ""; /* all of it goes to the client */
	uint64_t number;
	int ret = uvd_attr_const(req, UVERBS_ATTR_HELLO_SAY_NUMBER, UINT32_MAX, &number);

	if (ret)
		return ret;
	if (!number)
		return uvd_bad(req, -EINVAL, "number", number);
	if (len >= sizeof(name))
		return uvd_bad(req, -EINVAL, "name", len);
	if (len)
		ret = uvd_attr_copy_from(req, UVERBS_ATTR_HELLO_SAY_NAME, &name);
	number *= 2;
	if (!ret)
		ret = uvd_attr_copy_to(req, UVERBS_ATTR_HELLO_SAY_DOUBLED, &number);
	if (ret || !uvd_attr_is_present(req, UVERBS_ATTR_HELLO_SAY_TEXT))
		return ret;
	snprintf(text, sizeof(text), "hello, %s", name);
	return uvd_attr_copy_to_or_zero(req, UVERBS_ATTR_HELLO_SAY_TEXT, &text);
}

static const uvd_step hello_say_steps[] = { hello_say, NULL };

static const struct uvd_attr_row hello_say_attrs[] = {
	UVD_CONST_IN(UVERBS_ATTR_HELLO_SAY_NUMBER, UVD_MANDATORY),
	UVD_PTR_IN_MIN(UVERBS_ATTR_HELLO_SAY_NAME, 1, 0),
	UVD_PTR_OUT(UVERBS_ATTR_HELLO_SAY_DOUBLED, sizeof(uint64_t), UVD_MANDATORY),
	UVD_PTR_OUT_MIN(UVERBS_ATTR_HELLO_SAY_TEXT, 1, 0),
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
