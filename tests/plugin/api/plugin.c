/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A small plug-in: an object that keeps a number. test_plugin_api.py compiles it with the installed headers alone. */
#include <errno.h>
#include <stdlib.h>
#include <uverbsd/request.h>
enum { THING = 0x1100, NEW = 0x1100, HANDLE = 0x1100, VALUE };
static int make(struct uvd_req *req)
{
	uint64_t *thing = malloc(sizeof(*thing));
	int ret = thing ? uvd_attr_copy_from(req, VALUE, thing) : -ENOMEM;

	if (!ret)
		uvd_attr_set_object(req, HANDLE, thing);
	return ret;
}
static int end(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	free(uvd_uobject_object(uobj));
	return 0;
}
static const uvd_step steps[] = { make, NULL };
static const struct uvd_attr_row attrs[] = { UVD_IDR(HANDLE, THING, UVD_UOBJ_NEW, UVD_MANDATORY),
					     UVD_PTR_IN(VALUE, 8, UVD_MANDATORY) };
static const struct uvd_method_row methods[] = { UVD_METHOD(NEW, attrs, steps) };
const struct uvd_object_row thing = {
	.name = "THING", .id = THING, .cls = UVD_CLASS_IDR, .destroy = end, UVD_ROWS(methods, methods)
};
