/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <search.h>
#include <stdlib.h>
#include "numbers.h"

/* ---- the trees --------------------------------------------------------------------------------------------------- */

static int number_order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int number_order_theirs(const void *a, const void *b)
{
	const struct uvd_prog_number *x = a, *y = b;

	return number_order(x->kind, y->kind) ?: number_order(x->scope, y->scope) ?: number_order(x->theirs, y->theirs);
}

static int number_order_ours(const void *a, const void *b)
{
	const struct uvd_prog_number *x = a, *y = b;

	return number_order(x->kind, y->kind) ?: number_order(x->scope, y->scope) ?: number_order(x->ours, y->ours);
}

typedef int (*number_order_fn)(const void *a, const void *b);

static struct uvd_prog_number *tree_find(void *const *tree, const struct uvd_prog_number *key, number_order_fn order)
{
	struct uvd_prog_number *const *node = tfind(key, tree, order);

	return node ? *node : NULL;
}

/* Puts the pair in the place of the one that the tree has. Without memory for a node it is not found. */
static void tree_put(void **tree, struct uvd_prog_number *pair, number_order_fn order)
{
	struct uvd_prog_number **node = tsearch(pair, tree, order);

	if (node)
		*node = pair;
}

static void tree_remove(void **tree, const struct uvd_prog_number *pair, number_order_fn order)
{
	if (tree_find(tree, pair, order) == pair)
		tdelete(pair, tree, order);
}

static void tree_node_free(void *pair)
{
}

/* ---- look-ups ---------------------------------------------------------------------------------------------------- */

static struct uvd_prog_number number_key(enum uvd_role kind, uint64_t scope, uint64_t theirs, uint64_t ours)
{
	return (struct uvd_prog_number){ .kind = kind, .scope = scope, .theirs = theirs, .ours = ours };
}

static bool list_has(const struct uvd_prog_number *p, uint64_t theirs, uint64_t ours)
{
	while (p && (p->theirs != theirs || p->ours != ours))
		p = p->next;
	return p;
}

bool uvd_prog_numbers_has(const struct uvd_prog_numbers *n, uint64_t theirs, uint64_t ours)
{
	return list_has(n->live, theirs, ours) || list_has(n->others, theirs, ours);
}

const struct uvd_prog_number *uvd_prog_numbers_find(const struct uvd_prog_numbers *n, enum uvd_role kind,
						    uint64_t scope, uint64_t theirs)
{
	const struct uvd_prog_number key = number_key(kind, scope, theirs, 0);

	return tree_find(&n->by_theirs, &key, number_order_theirs);
}

/* Does another object that exists have one of the two numbers? */
static bool number_is_taken(const struct uvd_prog_numbers *n, const struct uvd_prog_number *pair)
{
	const struct uvd_prog_number *theirs = tree_find(&n->by_theirs, pair, number_order_theirs),
				     *ours = tree_find(&n->by_ours, pair, number_order_ours);

	if (pair->theirs && theirs && theirs->state == UVD_PROG_NUMBER_LIVE && theirs->ours != pair->ours)
		return true;
	return pair->ours && ours && ours->theirs != pair->theirs;
}

bool uvd_prog_numbers_are_bound(const struct uvd_prog_numbers *n, enum uvd_role kind, uint64_t scope, uint64_t theirs,
				uint64_t ours)
{
	const struct uvd_prog_number key = number_key(kind, scope, theirs, ours),
				     *found = tree_find(&n->by_ours, &key, number_order_ours);

	return found && found->theirs == theirs;
}

bool uvd_prog_numbers_check(const struct uvd_prog_numbers *n, enum uvd_role kind, uint64_t scope, uint64_t theirs,
			    uint64_t ours)
{
	const struct uvd_prog_number key = number_key(kind, scope, theirs, ours);

	return !number_is_taken(n, &key);
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

static struct uvd_prog_number **list_of(struct uvd_prog_numbers *n, const struct uvd_prog_number *p)
{
	return p->state == UVD_PROG_NUMBER_LIVE ? &n->live : &n->others;
}

void uvd_prog_numbers_note(struct uvd_prog_numbers *n, const struct uvd_prog_number *pair)
{
	struct uvd_prog_number *copy = malloc(sizeof(*copy)), **list;

	if (!copy)
		return;
	*copy = *pair;
	list = list_of(n, copy);
	copy->next = *list;
	*list = copy;
	tree_put(&n->by_theirs, copy, number_order_theirs);
	if (copy->state == UVD_PROG_NUMBER_LIVE)
		tree_put(&n->by_ours, copy, number_order_ours);
}

bool uvd_prog_numbers_bind(struct uvd_prog_numbers *n, const struct uvd_prog_number *pair)
{
	if (number_is_taken(n, pair))
		return false;
	uvd_prog_numbers_note(n, pair);
	return true;
}

/* Takes the pair at *at from its list, and adds it to those of objects that are gone. */
static void number_end(struct uvd_prog_numbers *n, struct uvd_prog_number **at)
{
	struct uvd_prog_number *p = *at;

	*at = p->next;
	p->state = UVD_PROG_NUMBER_GONE;
	p->next = n->others;
	n->others = p;
	tree_remove(&n->by_ours, p, number_order_ours);
}

void uvd_prog_numbers_reuse(struct uvd_prog_numbers *n, enum uvd_role kind, uint64_t scope, uint64_t theirs)
{
	const struct uvd_prog_number *found = theirs ? uvd_prog_numbers_find(n, kind, scope, theirs) : NULL;
	struct uvd_prog_number **at = &n->live;

	if (!found || found->state != UVD_PROG_NUMBER_LIVE)
		return;
	while (*at != found)
		at = &(*at)->next;
	number_end(n, at);
}

void uvd_prog_numbers_end(struct uvd_prog_numbers *n, struct uvd_prog_object of)
{
	struct uvd_prog_number **at = &n->live;

	while (*at)
		if ((*at)->of.file == of.file && (of.handle == UVD_PROG_ALL_OBJECTS || (*at)->of.handle == of.handle))
			number_end(n, at);
		else
			at = &(*at)->next;
}

static void list_forget(struct uvd_prog_numbers *n, struct uvd_prog_number **at, enum uvd_role kind, uint64_t scope)
{
	struct uvd_prog_number *p;

	while ((p = *at)) {
		if (p->scope != scope || p->kind != kind) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		tree_remove(&n->by_theirs, p, number_order_theirs);
		tree_remove(&n->by_ours, p, number_order_ours);
		free(p);
	}
}

void uvd_prog_numbers_forget(struct uvd_prog_numbers *n, enum uvd_role kind, uint64_t scope)
{
	list_forget(n, &n->live, kind, scope);
	list_forget(n, &n->others, kind, scope);
}

static void list_free(struct uvd_prog_number *p)
{
	struct uvd_prog_number *next;

	for (; p; p = next) {
		next = p->next;
		free(p);
	}
}

void uvd_prog_numbers_clear(struct uvd_prog_numbers *n)
{
	tdestroy(n->by_theirs, tree_node_free);
	tdestroy(n->by_ours, tree_node_free);
	list_free(n->live);
	list_free(n->others);
	*n = (struct uvd_prog_numbers){};
}
