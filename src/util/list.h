/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Doubly linked lists, with the names and meanings of the kernel's <linux/list.h>. The caller locks. */
#ifndef UVD_UTIL_LIST_H
#define UVD_UTIL_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* The head of a list, or a member's links. Initialize a head before use; a member needs no initialization. */
struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list->prev = list;
}

static inline void list_add(struct list_head *member, struct list_head *after)
{
	member->next = after->next;
	member->prev = after;
	after->next->prev = member;
	after->next = member;
}

static inline void list_add_tail(struct list_head *member, struct list_head *list)
{
	list_add(member, list->prev);
}

static inline void list_del_init(struct list_head *member)
{
	member->prev->next = member->next;
	member->next->prev = member->prev;
	INIT_LIST_HEAD(member);
}

static inline bool list_empty(const struct list_head *list)
{
	return list->next == list;
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_first_entry(list, type, member) list_entry((list)->next, type, member)
#define list_last_entry(list, type, member) list_entry((list)->prev, type, member)
#define list_for_each_entry(pos, list, member) \
	for (pos = list_first_entry(list, typeof(*pos), member); &pos->member != (list); \
	     pos = list_first_entry(&pos->member, typeof(*pos), member))

/* The same; the loop may take pos out of the list and free it. next: of pos's type, the loop's own. */
#define list_for_each_entry_safe(pos, next, list, member) \
	for (pos = list_first_entry(list, typeof(*pos), member), \
	    next = list_first_entry(&pos->member, typeof(*pos), member); \
	     &pos->member != (list); pos = next, next = list_first_entry(&next->member, typeof(*next), member))

#endif
