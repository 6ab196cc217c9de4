/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Allow-lists: which verbs, objects and values the clients of a device may use. An administrator writes them as texts,
 * one by one:
 *
 *	[user:NAME:|ucap:NAME:]KIND:WORD[,WORD...]
 *	[user:NAME:|ucap:NAME:]none
 *
 * Texts of one KIND and one subject (everybody, a user, the holders of a User Capability) make one list. A kind without a
 * list is not restricted. `none` makes an empty list of each kind that has none yet. For a client the list of the most
 * specific subject counts: a capability of its context, then its user, then everybody.
 *
 * A struct uvd_allow is made by one thread, and constant afterwards but for its counters.
 */
#ifndef UVD_ALLOW_H
#define UVD_ALLOW_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum uvd_allow_kind {
	UVD_ALLOW_VERBS,
	UVD_ALLOW_OBJECTS,
	UVD_ALLOW_ACCESS,
	UVD_ALLOW_QP_TYPES,
	UVD_ALLOW_PKEYS,
	UVD_ALLOW_GIDS,
	UVD_ALLOW_KINDS,
};

enum uvd_allow_subject { UVD_ALLOW_EVERYBODY, UVD_ALLOW_USER, UVD_ALLOW_UCAP };

enum { UVD_ALLOW_WORD = 64 /* bytes of a word, with the final 0 */ };

/* A list has an entry for each value that it allows. */
struct uvd_allow_value {
	uint64_t number; /* verbs, objects: the hash of the name; access: one flag; QP type; P_Key */
	union ibv_gid gid;
};

struct uvd_allow_entry {
	struct uvd_allow_value value;
	char word[UVD_ALLOW_WORD]; /* as the administrator wrote it */
};

struct uvd_allow_list {
	struct uvd_allow_list *next;
	enum uvd_allow_kind kind;
	enum uvd_allow_subject subject;
	uid_t uid; /* of a user */
	char name[UVD_ALLOW_WORD]; /* of the user or the capability */
	bool all; /* everything is allowed */
	unsigned int num;
	struct uvd_allow_entry *entries;
	_Atomic uint64_t refused; /* calls */
};

struct uvd_allow {
	struct uvd_allow_list *lists;
};

/* The lists that count for a client. NULL: the kind is not restricted. */
struct uvd_allowed {
	struct uvd_allow_list *lists[UVD_ALLOW_KINDS];
};

/* Returns NULL if there is no memory. The caller frees it. */
struct uvd_allow *uvd_allow_new(void);
void uvd_allow_free(struct uvd_allow *allow); /* NULL is allowed */
/* Adds a text. Returns NULL, or a message that says what is wrong with it, as in "`access:X` contains ...". */
const char *uvd_allow_add(struct uvd_allow *allow, const char *text);
/* Returns a copy of a right text with the id of its user in the place of the name. NULL: no memory. */
char *uvd_allow_without_names(const char *text);
/* Is the text right, as far as that is known without a device? Returns NULL or the message. */
const char *uvd_allow_check(const char *text);

/*
 * Finds the lists of a client. uid: its user; -1: not known. has_ucap: does it hold the capability of this name? NULL:
 * it holds none. Returns false if nothing is restricted.
 */
bool uvd_allow_find(const struct uvd_allow *allow, uid_t uid, bool (*has_ucap)(void *arg, const char *name), void *arg,
		    struct uvd_allowed *allowed);
/* Does the list have this number, or this GID? */
bool uvd_allow_has(const struct uvd_allow_list *list, uint64_t number);
bool uvd_allow_has_gid(const struct uvd_allow_list *list, const union ibv_gid *gid);
/* Returns the flags of `access` that the list lacks. */
uint64_t uvd_allow_missing(const struct uvd_allow_list *list, uint64_t access);

/* The word of a kind, as in "access". */
const char *uvd_allow_kind_name(enum uvd_allow_kind kind);
/* Writes the words with which each text of this list begins, such as "user:alice:access:". */
void uvd_allow_prefix(const struct uvd_allow_list *list, char *text, size_t size);

/* ---- names (names.c) --------------------------------------------------------------------------------------------- */

/*
 * The name of the verb that a command's or method's row carries out. Both ABIs and the extended commands share it:
 * CREATE_QP for IB_USER_VERBS_CMD_CREATE_QP, IB_USER_VERBS_EX_CMD_CREATE_QP and UVERBS_METHOD_QP_CREATE.
 */
void uvd_allow_verb_name(const char *row, char name[UVD_ALLOW_WORD]);
/*
 * Returns the number of that verb in lists. 0: it is always allowed, because it only ends objects, or only carries
 * another verb.
 */
uint64_t uvd_allow_verb(const char *row);
/* The name of an object's row without UVERBS_OBJECT_, and its number in lists. 0: it is always allowed. */
const char *uvd_allow_object_name(const char *row);
uint64_t uvd_allow_object(const char *row);
/* Adds the verbs of a group to the list, if the word is the name of one. Returns whether it is, or -ENOMEM. */
int uvd_allow_add_group(struct uvd_allow_list *list, const char *word);
/* Adds one entry. Returns 0 or -ENOMEM. */
int uvd_allow_list_add(struct uvd_allow_list *list, const char *word, const struct uvd_allow_value *value);
/* Returns the number of a name of a verb or an object. */
uint64_t uvd_allow_hash(const char *name);
/* Finds the access flag or the QP type of this name. Returns false if there is none. */
bool uvd_allow_access_value(const char *word, uint64_t *value);
bool uvd_allow_qp_type_value(const char *word, uint64_t *value);
/* Writes the names of the flags, separated by commas; the value of those without a name in hexadecimal. */
void uvd_allow_access_names(uint64_t access, char *text, size_t size);
/* Returns the name of a QP type; NULL: it has none. */
const char *uvd_allow_qp_type_name(uint64_t type);

#endif
