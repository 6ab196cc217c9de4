/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uverbsd/log.h>

#include "bed.h"
#include "core/core.h"
#include "objects/objects.h"
#include "../suite.h"

static int nothing(struct uvd_req *req)
{
	return 0;
}

static int ends(struct uvd_uobject *uobj, enum uvd_remove_reason why)
{
	return 0;
}

static const uvd_step steps[] = { nothing, NULL };

/* Log messages of the last merge. merge() merges bed_feature with a feature `plugin` that has one object row. */
static char said[4096];

static struct uvd_tree *merge_all(const struct uvd_feature *const *features, int *err)
{
	int fd = memfd_create("log", 0);
	struct uvd_log *log = uvd_log_new(fd, "test", UVD_DEBUG);
	struct uvd_tree *tree = uvd_tree_new(features, NULL, DRIVER, log, err);
	ssize_t n;

	uvd_log_free(log);
	n = pread(fd, said, sizeof(said) - 1, 0);
	said[n > 0 ? n : 0] = 0;
	close(fd);
	return tree;
}

static struct uvd_tree *merge(const struct uvd_object_row *row, int *err)
{
	const struct uvd_object_row *objects[] = { row, NULL };
	const struct uvd_feature plugin = { .name = "plugin", .objects = objects };
	const struct uvd_feature *features[] = { &bed_feature, &plugin, NULL };

	return merge_all(features, err);
}

static void refused(const struct uvd_object_row *row, int expected, const char *what)
{
	int err;

	ck_assert_ptr_null(merge(row, &err));
	ck_assert_int_eq(err, expected);
	ck_assert_msg(strstr(said, what), "the log says '%s'", said);
	ck_assert_msg(strstr(said, "plugin"), "the log says '%s'", said);
	if (expected == -EEXIST)
		ck_assert_msg(strstr(said, "toys"), "the log says '%s'", said);
}

static const struct uvd_attr_row extra_attr[] = { UVD_PTR_IN(A_IN, 8, 0) };
static const struct uvd_attr_row same_attr[] = { UVD_PTR_IN(A_OUT, 8, 0) };

START_TEST(test_two_methods_with_one_id_are_refused_and_both_owners_named)
{
	const struct uvd_method_row m = { .name = "M_NEW", .id = M_NEW, .steps = steps };
	const struct uvd_object_row row = { .name = "toy", .id = OBJ_TOY, .methods = &m, .num_methods = 1 };

	refused(&row, -EEXIST, "M_NEW");
}
END_TEST

START_TEST(test_two_attributes_with_one_id_are_refused)
{
	const struct uvd_method_row m = { .name = "M_NEW", .id = M_NEW, UVD_ROWS(attrs, same_attr) };
	const struct uvd_object_row row = { .name = "toy", .id = OBJ_TOY, .methods = &m, .num_methods = 1 };

	refused(&row, -EEXIST, "A_OUT");
}
END_TEST

START_TEST(test_two_commands_with_one_number_are_refused_but_not_plain_and_extended)
{
	struct uvd_write_row w = { .name = "W", .number = X_ECHO, .flags = UVD_WRITE_EX, .steps = steps };
	const struct uvd_object_row row = { .name = "toy", .id = OBJ_TOY, .writes = &w, .num_writes = 1 };
	struct uvd_tree *tree;
	int err;

	refused(&row, -EEXIST, "W");
	w.number = W_DESTROY;
	tree = merge(&row, &err);
	ck_assert_ptr_nonnull(tree);
	ck_assert_ptr_eq(tree->writes[1][W_DESTROY].row, &w);
	ck_assert_ptr_ne(tree->writes[0][W_DESTROY].row, &w);
	uvd_tree_free(tree);
}
END_TEST

START_TEST(test_two_ways_to_end_an_object_are_refused)
{
	const struct uvd_object_row row = { .name = "toy", .id = OBJ_TOY, .cls = UVD_CLASS_IDR, .destroy = ends };

	refused(&row, -EEXIST, "toy");
}
END_TEST

START_TEST(test_rows_that_contradict_themselves_are_refused)
{
	struct uvd_attr_row attrs[] = {
		UVD_IDR(A_TOY, OBJ_TOY, UVD_UOBJ_NEW, UVD_MANDATORY),
		UVD_IDR(A_WRITE_TOY, OBJ_TOY, UVD_UOBJ_DESTROY, UVD_MANDATORY),
	};
	struct uvd_method_row m = { .name = "M_TWO", .id = 20, UVD_ROWS(attrs, attrs), .steps = steps };
	struct uvd_write_row w = {
		.name = "W_SHORT", .number = 30, .flags = UVD_WRITE_RESP, .req_size = 4, .steps = steps
	};
	struct uvd_object_row row = { .name = "more", .id = 50, .methods = &m, .num_methods = 1 };
	struct uvd_tree *tree;
	int err;

	ck_assert_ptr_null(merge(&row, &err));
	ck_assert_int_eq(err, -EINVAL);
	attrs[1].access = UVD_UOBJ_READ;
	tree = merge(&row, &err);
	ck_assert_ptr_nonnull(tree);
	uvd_tree_free(tree);
	attrs[0].flags = 0;
	ck_assert_ptr_null(merge(&row, &err));
	ck_assert_int_eq(err, -EINVAL);
	attrs[0].flags = UVD_MANDATORY;
	attrs[1].id = 0x5001;
	refused(&row, -EINVAL, "namespace");
	attrs[1].id = A_WRITE_TOY;
	row.id = 0x2000;
	refused(&row, -EINVAL, "namespace");
	row.id = 50;
	row.num_methods = 0;
	row.writes = &w;
	row.num_writes = 1;
	refused(&row, -EINVAL, "W_SHORT");
	w.req_size = 8;
	w.number = 256;
	refused(&row, -EINVAL, "W_SHORT");
}
END_TEST

START_TEST(test_a_feature_adds_attributes_to_a_method_of_another)
{
	static const struct uvd_attr_row driver_attr[] = {
		{ .name = "D", .id = 0x1005, .type = UVD_ATTR_PTR_IN, .min_len = 8, .len = 8 },
	};
	const struct uvd_method_row m[] = {
		{ .name = "M_NEW", .id = M_NEW, UVD_ROWS(attrs, extra_attr) },
		{ .name = "M_DESTROY", .id = M_DESTROY, UVD_ROWS(attrs, driver_attr) },
	};
	const struct uvd_object_row row = { .name = "toy", .id = OBJ_TOY, UVD_ROWS(methods, m) };
	const struct uvd_tree_method *tm;
	struct uvd_tree *tree;
	int err;

	tree = merge(&row, &err);
	ck_assert_ptr_nonnull(tree);
	tm = uvd_tree_method(tree, OBJ_TOY, M_NEW);
	ck_assert_ptr_nonnull(tm->row->steps);
	ck_assert_str_eq(tm->owner, "toys");
	ck_assert_ptr_eq(uvd_tree_attr(tm, A_IN)->row, &extra_attr[0]);
	ck_assert_str_eq(uvd_tree_attr(tm, A_IN)->owner, "plugin");
	ck_assert_ptr_nonnull(uvd_tree_attr(tm, A_TOY));
	ck_assert_uint_eq(tm->num_slots, 4);
	ck_assert_uint_eq(tm->num_mandatory, 2);
	tm = uvd_tree_method(tree, OBJ_TOY, M_DESTROY);
	ck_assert_ptr_eq(uvd_tree_attr(tm, 0x1005)->row, &driver_attr[0]);
	ck_assert_ptr_null(uvd_tree_attr(tm, 5));
	ck_assert_ptr_null(uvd_tree_attr(tm, 0x1004));
	ck_assert_ptr_null(uvd_tree_attr(tm, 0x2005));
	/* The destroy function of the object's own feature still applies. */
	ck_assert_ptr_nonnull(uvd_tree_object(tree, OBJ_TOY)->row->destroy);
	uvd_tree_free(tree);
}
END_TEST

START_TEST(test_a_method_that_needs_an_absent_object_is_not_there)
{
	static const struct uvd_attr_row needs[] = { UVD_IDR(A_TOY, OBJ_ABSENT, UVD_UOBJ_READ, UVD_MANDATORY) };
	static const struct uvd_attr_row some[] = {
		{ .name = "A_TOYS",
		  .id = A_TOYS,
		  .type = UVD_ATTR_IDRS_ARRAY,
		  .flags = UVD_MANDATORY,
		  .object = OBJ_ABSENT },
	};
	static const struct uvd_attr_row may[] = { UVD_IDR(A_TOY, OBJ_ABSENT, UVD_UOBJ_READ, 0) };
	const struct uvd_method_row m[] = {
		{ .name = "M_NEEDS", .id = 30, UVD_ROWS(attrs, needs), .steps = steps },
		{ .name = "M_MAY", .id = 31, UVD_ROWS(attrs, may), .steps = steps },
		{ .name = "M_NEEDS_SOME", .id = 32, UVD_ROWS(attrs, some), .steps = steps },
	};
	const struct uvd_object_row row = { .name = "toy", .id = OBJ_TOY, UVD_ROWS(methods, m) };
	struct uvd_tree *tree;
	int err;

	tree = merge(&row, &err);
	ck_assert_ptr_nonnull(tree);
	ck_assert_ptr_null(uvd_tree_method(tree, OBJ_TOY, 30));
	ck_assert_ptr_nonnull(uvd_tree_method(tree, OBJ_TOY, 31));
	ck_assert_ptr_null(uvd_tree_method(tree, OBJ_TOY, 32));
	uvd_tree_free(tree);
}
END_TEST

static int alloc_pd(struct uvd_pd *pd, struct uvd_udata *udata)
{
	return 0;
}

START_TEST(test_a_method_or_command_that_needs_what_the_backend_lacks_is_not_there)
{
	const struct uvd_method_row m[] = {
		{ .name = "M_PD", .id = 30, .steps = steps, .needs = { UVD_OP(alloc_pd) } },
		{ .name = "M_MR", .id = 31, .steps = steps, .needs = { UVD_OP(alloc_pd), UVD_OP(reg_mr) } },
	};
	const struct uvd_write_row w[] = {
		{ .name = "W_MR", .number = 0, .steps = steps, .needs = { UVD_OP(reg_mr) } },
		{ .name = "W_PD", .number = 1, .steps = steps, .needs = { UVD_OP(alloc_pd) } },
		{ .name = "W_LAST", .number = 2, .steps = steps, .needs = { UVD_OP(reg_mr) } },
	};
	const struct uvd_object_row row = { .name = "toy", .id = OBJ_TOY, UVD_ROWS(methods, m), UVD_ROWS(writes, w) };
	const struct uvd_object_row *objects[] = { &row, NULL };
	const struct uvd_feature feature = { .name = "plugin", .objects = objects };
	const struct uvd_feature *features[] = { &feature, NULL };
	const struct uvd_backend ops = { .alloc_pd = alloc_pd };
	struct uvd_tree *tree;
	int err;

	tree = uvd_tree_new(features, &ops, DRIVER, NULL, &err);
	ck_assert_ptr_nonnull(uvd_tree_method(tree, OBJ_TOY, 30));
	ck_assert_ptr_null(uvd_tree_method(tree, OBJ_TOY, 31));
	ck_assert_uint_eq(tree->num_writes[0], 2);
	ck_assert_ptr_null(tree->writes[0][0].row);
	ck_assert_ptr_eq(tree->writes[0][1].row, &w[1]);
	uvd_tree_free(tree);
}
END_TEST

/* ---- wrappers ---------------------------------------------------------------------------------------------------- */

static int otherwise(struct uvd_req *req)
{
	return 0;
}

static const uvd_step wrap_steps[] = { otherwise, NULL }, no_steps[] = { NULL };

static struct uvd_method_row wrap_method(const char *name, uint16_t id, enum uvd_when when)
{
	return (struct uvd_method_row){ .name = name, .id = id, .steps = wrap_steps, .when = when };
}

START_TEST(test_wrapper_must_fit)
{
	struct uvd_method_row m = wrap_method("M_USE", M_USE, UVD_STEPS_BEFORE);
	struct uvd_write_row w = { .name = "W", .number = 77, .steps = wrap_steps, .when = UVD_STEPS_AFTER };
	struct uvd_object_row row = { .name = "toy", .id = OBJ_TOY, .methods = &m, .num_methods = 1 };

	m.steps = NULL;
	refused(&row, -EINVAL, "it wraps, but has no steps");
	m.steps = no_steps;
	refused(&row, -EINVAL, "it wraps, but has no steps");
	m.steps = wrap_steps;
	m.name = "M_OTHER";
	refused(&row, -EEXIST, "M_OTHER");
	m.id = 35;
	refused(&row, -EINVAL, "it wraps what no feature has");
	row = (struct uvd_object_row){ .name = "toy", .id = OBJ_TOY, .writes = &w, .num_writes = 1 };
	refused(&row, -EINVAL, "it wraps what no feature has");
	w.number = W_SECOND_FAILS;
	refused(&row, -EEXIST, "command W");
	/* No wrapper: a second command, even of the same name. */
	w.name = "W_SECOND_FAILS";
	w.when = UVD_STEPS_OWN;
	refused(&row, -EEXIST, "command W_SECOND_FAILS");
}
END_TEST

/* The method that destroys has no steps of its own, and its wrapper comes first. */
START_TEST(test_wrapper_of_a_method_without_steps)
{
	const struct uvd_method_row m = wrap_method("M_DESTROY", M_DESTROY, UVD_STEPS_BEFORE);
	const struct uvd_object_row row = { .name = "toy", .id = OBJ_TOY, .methods = &m, .num_methods = 1 };
	const struct uvd_object_row *objects[] = { &row, NULL };
	const struct uvd_feature wraps = { .name = "wraps", .objects = objects };
	const struct uvd_feature *features[] = { &wraps, &bed_feature, NULL };
	const struct uvd_tree_method *tm;
	int err;
	struct uvd_tree *tree = uvd_tree_new(features, NULL, DRIVER, NULL, &err);

	ck_assert_ptr_nonnull(tree);
	tm = uvd_tree_method(tree, OBJ_TOY, M_DESTROY);
	ck_assert_str_eq(tm->owner, "toys");
	ck_assert(tm->before[0] == otherwise && !tm->before[1]);
	ck_assert_ptr_null(tm->steps[0]);
	uvd_tree_free(tree);
}
END_TEST

/* The wrapper's feature may come first. Its backend operations decide about the wrapper alone. */
START_TEST(test_wrappers_are_merged_in_any_order)
{
	const struct uvd_method_row own = { .name = "M", .id = 30, .steps = steps };
	const struct uvd_write_row own_write = { .name = "W", .number = 1, .steps = steps };
	struct uvd_method_row m[] = {
		wrap_method("M", 30, UVD_STEPS_BEFORE),
		wrap_method("M", 30, UVD_STEPS_AFTER),
		wrap_method("M", 30, UVD_STEPS_INSTEAD),
	};
	struct uvd_write_row w = { .name = "W", .number = 1, .steps = wrap_steps, .when = UVD_STEPS_BEFORE };
	const struct uvd_object_row first = {
		.name = "toy", .id = 30, UVD_ROWS(methods, m), .writes = &w, .num_writes = 1
	};
	const struct uvd_object_row second = {
		.name = "toy", .id = 30, .methods = &own, .num_methods = 1, .writes = &own_write, .num_writes = 1
	};
	const struct uvd_object_row *first_objects[] = { &first, NULL }, *second_objects[] = { &second, NULL };
	const struct uvd_feature wraps = { .name = "wraps", .objects = first_objects };
	const struct uvd_feature has = { .name = "has", .objects = second_objects };
	const struct uvd_feature *orders[][3] = { { &wraps, &has, NULL }, { &has, &wraps, NULL } };
	const struct uvd_backend ops = { .alloc_pd = alloc_pd };
	const struct uvd_tree_method *tm;
	struct uvd_tree *tree;
	int err;

	for (int i = 0; i < 2; i++) {
		tree = uvd_tree_new(orders[i], &ops, DRIVER, NULL, &err);
		ck_assert_ptr_nonnull(tree);
		tm = uvd_tree_method(tree, 30, 30);
		ck_assert_ptr_eq(tm->row, &own);
		ck_assert_str_eq(tm->owner, "has");
		ck_assert(tm->steps[0] == otherwise && tm->steps[1] == otherwise && tm->steps[2] == otherwise);
		ck_assert_ptr_null(tm->steps[3]);
		ck_assert_ptr_eq(tree->writes[0][1].row, &own_write);
		ck_assert(tree->writes[0][1].steps[0] == otherwise && tree->writes[0][1].steps[1] == nothing);
		uvd_tree_free(tree);
	}
	m[2].needs[0] = w.needs[0] = UVD_OP(reg_mr);
	tree = uvd_tree_new(orders[0], &ops, DRIVER, NULL, &err);
	tm = uvd_tree_method(tree, 30, 30);
	ck_assert(tm->steps[0] == otherwise && tm->steps[1] == nothing && tm->steps[2] == otherwise);
	ck_assert_ptr_eq(tree->writes[0][1].steps, steps);
	uvd_tree_free(tree);
}
END_TEST

/* Each row of a feature with a User Capability names it, also within another feature's object. No other row does. */
struct marked {
	unsigned int with, without;
};

static int count_marked(void *arg, const struct uverbsd_tree_row *row)
{
	struct marked *marked = arg;
	const bool ours = !strcmp(row->owner, "privileged");

	ck_assert_msg(ours == !strcmp(row->ucap, "uverbs_test"), "%s of %s has '%s'", row->name, row->owner, row->ucap);
	ck_assert(ours || !row->ucap[0]);
	marked->with += ours;
	marked->without += !ours;
	return 0;
}

START_TEST(test_a_row_names_its_feature_and_the_capability_that_it_wants)
{
	static const struct uvd_attr_row attrs[] = { UVD_PTR_IN(A_IN, 8, 0) };
	static const struct uvd_method_row m[] = {
		{ .name = "M_NEW", .id = M_NEW, UVD_ROWS(attrs, attrs) },
		{ .name = "M_MORE", .id = 0x1003, UVD_ROWS(attrs, attrs), .steps = steps },
	};
	static const struct uvd_write_row w[] = { { .name = "W", .number = 40, .steps = steps } };
	static const struct uvd_object_row toy = {
		.name = "toy", .id = OBJ_TOY, UVD_ROWS(methods, m), UVD_ROWS(writes, w)
	};
	static const struct uvd_object_row own = { .name = "own", .id = 0x1003, .cls = UVD_CLASS_IDR };
	static const struct uvd_object_row *const objects[] = { &toy, &own, NULL };
	static const struct uvd_feature privileged = { .name = "privileged",
						       .ucap = "uverbs_test",
						       .objects = objects };
	const struct uvd_feature *features[] = { &bed_feature, &privileged, NULL };
	struct marked before = {}, marked = {};
	int err;
	struct uvd_tree *tree = uvd_tree_new(features + 1, NULL, DRIVER, NULL, &err);

	/* Without bed_feature, M_NEW has attributes but no steps. */
	ck_assert_ptr_null(tree);
	ck_assert_int_eq(err, -EINVAL);
	features[1] = NULL;
	tree = uvd_tree_new(features, NULL, DRIVER, NULL, &err);
	uvd_tree_describe(tree, count_marked, &before);
	uvd_tree_free(tree);
	features[1] = &privileged;
	tree = uvd_tree_new(features, NULL, DRIVER, NULL, &err);
	ck_assert_ptr_nonnull(tree);
	uvd_tree_describe(tree, count_marked, &marked);
	uvd_tree_free(tree);
	ck_assert_uint_eq(before.with, 0);
	/* The attribute of M_NEW, M_MORE, its attribute, W, and the object `own`. */
	ck_assert_uint_eq(marked.with, 5);
	ck_assert_uint_eq(marked.without, before.without);
}
END_TEST

/* If a feature uses another name for an id, the two features use the id for different things. */
START_TEST(test_one_id_with_two_names_is_refused_and_both_owners_named)
{
	const struct uvd_method_row method = { .name = "M_MINE", .id = M_NEW };
	struct uvd_object_row row = { .name = "toy", .id = OBJ_TOY, .methods = &method, .num_methods = 1 };

	refused(&row, -EEXIST, "M_MINE");
	row = (struct uvd_object_row){ .name = "mine", .id = OBJ_TOY };
	refused(&row, -EEXIST, "mine");
}
END_TEST

START_TEST(test_an_id_that_uverbsd_keeps_for_itself_is_refused_to_a_plug_in)
{
	const struct uvd_object_row row = { .name = "mine", .id = UVERBSD_OBJECT_TREE };
	const struct uvd_object_row *const objects[] = { &row, NULL };
	const struct uvd_feature plugin = { .name = "plugin", .objects = objects };
	const struct uvd_feature *features[] = { &bed_feature, &uvd_feature_own, &plugin, NULL };
	int err;

	ck_assert_ptr_null(merge_all(features, &err));
	ck_assert_int_eq(err, -EEXIST);
	ck_assert_msg(strstr(said, "'uverbsd' and 'plugin'"), "the log says '%s'", said);
}
END_TEST

static int second_ends(void *arg, const struct uverbsd_tree_row *row)
{
	return ++*(int *)arg == 2 ? 77 : 0;
}

START_TEST(test_a_walk_ends_where_it_is_told_to)
{
	int err, rows = 0;
	const struct uvd_object_row row = { .name = "toy", .id = OBJ_TOY };
	struct uvd_tree *tree = merge(&row, &err);

	ck_assert_int_eq(uvd_tree_describe(tree, second_ends, &rows), 77);
	ck_assert_int_eq(rows, 2);
	uvd_tree_free(tree);
}
END_TEST

/* Merges a method that has this one attribute. Returns 0 or a negative errno. */
static int merge_attr_row(const struct uvd_attr_row *attr)
{
	const struct uvd_method_row m = { .name = "method", .id = 60, .attrs = attr, .num_attrs = 1, .steps = steps };
	const struct uvd_object_row row = { .name = "toy", .id = OBJ_TOY, .methods = &m, .num_methods = 1 };
	int err;

	uvd_tree_free(merge(&row, &err));
	return err;
}

START_TEST(test_attributes_of_no_kind_are_refused)
{
	const struct uvd_attr_row good = { .name = "a", .id = 1, .type = UVD_ATTR_PTR_IN, .min_len = 4, .len = 4 };
	const struct uvd_attr_row elem[] = { { .name = "e", .type = UVD_ATTR_PTR_IN } };
	struct uvd_attr_row bad = good;

	ck_assert_int_eq(merge_attr_row(&good), 0);
	bad.type = 0;
	ck_assert_int_eq(merge_attr_row(&bad), -EINVAL);
	bad.type = UVD_ATTR_RAW_FD + 1;
	ck_assert_int_eq(merge_attr_row(&bad), -EINVAL);
	bad.type = UVD_ATTR_PTR_IN;
	bad.min_len = 5;
	ck_assert_int_eq(merge_attr_row(&bad), -EINVAL);
	bad = (struct uvd_attr_row){ .name = "a", .type = UVD_ATTR_ENUM_IN };
	ck_assert_int_eq(merge_attr_row(&bad), -EINVAL);
	bad.elems = elem;
	bad.num_elems = 1;
	ck_assert_int_eq(merge_attr_row(&bad), 0);
	bad = (struct uvd_attr_row)UVD_IDR(A_TOY, OBJ_ABSENT, UVD_UOBJ_READ, 0);
	ck_assert_int_eq(merge_attr_row(&bad), 0);
	bad = (struct uvd_attr_row)UVD_IDR(A_TOY, 0xffff, UVD_UOBJ_READ, UVD_MANDATORY);
	ck_assert_int_eq(merge_attr_row(&bad), 0);
	/* The ids of provider data are accepted without the flag of provider data. */
	bad = (struct uvd_attr_row){ .name = "a", .id = UVD_ATTR_UHW_IN, .type = UVD_ATTR_PTR_IN };
	ck_assert_int_eq(merge_attr_row(&bad), 0);
	bad.id = UVD_ATTR_UHW_OUT;
	ck_assert_int_eq(merge_attr_row(&bad), 0);
}
END_TEST

START_TEST(test_the_first_fault_of_a_feature_ends_it)
{
	const struct uvd_attr_row bad[] = { { .name = "bad" }, { .name = "worse" } };
	const struct uvd_method_row methods[] = {
		{ .name = "m", .id = 60, UVD_ROWS(attrs, bad), .steps = steps },
		{ .name = "n", .id = 61, .steps = steps },
	};
	const struct uvd_write_row writes[] = {
		{ .name = "w", .number = 60 },
		{ .name = "x", .number = 61, .steps = steps },
	};
	const struct uvd_object_row by_method = { .name = "toy", .id = OBJ_TOY, UVD_ROWS(methods, methods) };
	const struct uvd_object_row by_write = { .name = "toy", .id = OBJ_TOY, UVD_ROWS(writes, writes) };
	const struct uvd_object_row any = { .name = "any", .id = 0xffff };
	const struct uvd_object_row *both[] = { &by_write, &by_method, NULL };
	const struct uvd_feature first = { .name = "first", .objects = both }, second = { .name = "second" };
	const struct uvd_feature *features[] = { &bed_feature, &first, &second, NULL };
	int err;

	refused(&by_method, -EINVAL, "bad");
	refused(&by_write, -EINVAL, "no steps");
	refused(&any, -EINVAL, "any object");
	ck_assert_ptr_null(merge_all(features, &err));
	ck_assert_int_eq(err, -EINVAL);
}
END_TEST

START_TEST(test_a_feature_without_objects_adds_nothing)
{
	const struct uvd_feature empty = { .name = "empty" };
	const struct uvd_feature *features[] = { &empty, &bed_feature, NULL };
	struct uvd_tree *tree;
	int err;

	tree = merge_all(features, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_ptr_nonnull(uvd_tree_object(tree, OBJ_TOY));
	uvd_tree_free(tree);
}
END_TEST

/* A feature may extend an object or method of a feature that comes later in the list. */
START_TEST(test_what_is_added_to_may_come_later)
{
	const struct uvd_method_row use = { .name = "M_USE", .id = M_USE };
	const struct uvd_object_row row = { .name = "toy", .id = OBJ_TOY, .methods = &use, .num_methods = 1 };
	const struct uvd_object_row *objects[] = { &row, NULL };
	const struct uvd_feature early = { .name = "early", .objects = objects };
	const struct uvd_feature *features[] = { &early, &bed_feature, NULL };
	struct uvd_tree *tree;
	int err;

	tree = merge_all(features, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(uvd_tree_object(tree, OBJ_TOY)->row->cls, UVD_CLASS_IDR);
	ck_assert_ptr_nonnull(uvd_tree_method(tree, OBJ_TOY, M_USE)->row->steps);
	uvd_tree_free(tree);
}
END_TEST

/* Bed_feature's row for the device has neither class nor destroy function, so another feature may define the latter. */
START_TEST(test_a_class_is_defined_once)
{
	const struct uvd_object_row row = { .name = "device", .id = OBJ_DEVICE, .destroy = ends };
	int err;

	uvd_tree_free(merge(&row, &err));
	ck_assert_int_eq(err, 0);
}
END_TEST

START_TEST(test_words_for_what_there_is_not)
{
	ck_assert_str_eq(uvd_tree_type_name(99), "?");
	ck_assert_str_eq(uvd_tree_type_name(0), "?");
	ck_assert_str_eq(uvd_tree_access_name(99), "?");
	ck_assert_str_eq(uvd_tree_class_name(99), "?");
}
END_TEST

static int stop_at(void *arg, const struct uverbsd_tree_row *row)
{
	return !--*(int *)arg ? -EDOM : 0;
}

START_TEST(test_a_walk_can_be_ended_at_any_row)
{
	int err, left;
	struct uvd_tree *tree = merge_all((const struct uvd_feature *[]){ &bed_feature, NULL }, &err);

	for (int n = 1; left = n, uvd_tree_describe(tree, stop_at, &left) == -EDOM; n++)
		ck_assert_int_eq(left, 0);
	ck_assert_int_gt(left, 0);
	uvd_tree_free(tree);
}
END_TEST

START_TEST(test_what_is_not_in_the_tree_is_not_found)
{
	int err;
	const struct uvd_object_row row = { .name = "driver's", .id = 0x1003, .cls = UVD_CLASS_IDR };
	struct uvd_tree *tree = merge(&row, &err);

	ck_assert_ptr_nonnull(uvd_tree_object(tree, 0x1003));
	ck_assert_ptr_null(uvd_tree_object(tree, 0x1002));
	ck_assert_ptr_null(uvd_tree_object(tree, 0x1fff));
	ck_assert_ptr_null(uvd_tree_object(tree, 0xffff));
	ck_assert_ptr_null(uvd_tree_object(tree, OBJ_ABSENT));
	ck_assert_ptr_null(uvd_tree_method(tree, OBJ_ABSENT, 0));
	ck_assert_ptr_null(uvd_tree_method(tree, OBJ_TOY, 0x1000));
	ck_assert_ptr_null(uvd_tree_method(tree, OBJ_TOY, 0x2000));
	ck_assert_uint_eq(tree->num_writes[0], W_DESTROY_CQ + 1);
	ck_assert_uint_eq(tree->num_writes[1], X_ECHO + 1);
	uvd_tree_free(tree);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, test_two_methods_with_one_id_are_refused_and_both_owners_named);
	tcase_add_test(tc, test_two_attributes_with_one_id_are_refused);
	tcase_add_test(tc, test_two_commands_with_one_number_are_refused_but_not_plain_and_extended);
	tcase_add_test(tc, test_two_ways_to_end_an_object_are_refused);
	tcase_add_test(tc, test_rows_that_contradict_themselves_are_refused);
	tcase_add_test(tc, test_a_feature_adds_attributes_to_a_method_of_another);
	tcase_add_test(tc, test_a_method_that_needs_an_absent_object_is_not_there);
	tcase_add_test(tc, test_a_method_or_command_that_needs_what_the_backend_lacks_is_not_there);
	tcase_add_test(tc, test_a_row_names_its_feature_and_the_capability_that_it_wants);
	tcase_add_test(tc, test_one_id_with_two_names_is_refused_and_both_owners_named);
	tcase_add_test(tc, test_an_id_that_uverbsd_keeps_for_itself_is_refused_to_a_plug_in);
	tcase_add_test(tc, test_a_walk_ends_where_it_is_told_to);
	tcase_add_test(tc, test_attributes_of_no_kind_are_refused);
	tcase_add_test(tc, test_the_first_fault_of_a_feature_ends_it);
	tcase_add_test(tc, test_a_feature_without_objects_adds_nothing);
	tcase_add_test(tc, test_what_is_added_to_may_come_later);
	tcase_add_test(tc, test_a_class_is_defined_once);
	tcase_add_test(tc, test_wrapper_must_fit);
	tcase_add_test(tc, test_wrapper_of_a_method_without_steps);
	tcase_add_test(tc, test_wrappers_are_merged_in_any_order);
	tcase_add_test(tc, test_words_for_what_there_is_not);
	tcase_add_test(tc, test_a_walk_can_be_ended_at_any_row);
	tcase_add_test(tc, test_what_is_not_in_the_tree_is_not_found);
	return run_suite("tree", tc);
}
