/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Numbers that the device chooses: handles, descriptors, keys of regions and windows, numbers of QPs and SRQs. What a creating
 * call answers is the object's number from then on: no other object may get it, and each later answer must be the number that
 * stands for the recorded one.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "replay.h"

enum uvd_role uvd_replay_handle_kind(uint16_t object)
{
	return object == UVERBSD_OBJECT_CM_MCAST ? UVD_REPLAY_GROUP : UVD_ROLE_HANDLE;
}

/* Finds the device that has this number of its own. */
static uint64_t device_of_number(const struct uvd_replay *r, enum uvd_role kind, uint64_t was)
{
	const struct uvd_replay_file *f = r->files;

	while (f && (f->cm || !uvd_prog_numbers_find(&r->numbers, kind, f->number, was)))
		f = f->next;
	return f ? f->number : 0;
}

/* Handles and descriptors belong to an open file; the device has the other numbers. */
uint64_t uvd_replay_scope(const struct uvd_replay_call *c, enum uvd_role kind, uint64_t was)
{
	const bool handle = kind == UVD_ROLE_HANDLE || kind == UVD_REPLAY_GROUP;

	if (c->f->cm && (handle || kind == UVD_ROLE_SOCKADDR))
		return UVD_REPLAY_CM_SCOPE;
	if (handle || kind == UVD_ROLE_FD)
		return c->f->file;
	if (c->f->cm)
		return device_of_number(c->r, kind, was);
	return c->was->open ? c->was->open->file.number : 0;
}

static struct uvd_prog_number number_new(const struct uvd_replay_call *c, enum uvd_role kind, uint64_t was,
					 uint64_t now, enum uvd_prog_number_state state)
{
	return (struct uvd_prog_number){
		.kind = kind,
		.scope = uvd_replay_scope(c, kind, was),
		.theirs = was,
		.ours = now,
		.of.file = c->f->file,
		.state = state,
	};
}

static const struct uvd_prog_number *number_find(const struct uvd_replay_call *c, enum uvd_role kind, uint64_t was)
{
	return uvd_prog_numbers_find(&c->r->numbers, kind, uvd_replay_scope(c, kind, was), was);
}

static void descriptor_close(const struct uvd_prog_number *fd)
{
	if (fd->state != UVD_PROG_NUMBER_LOST && fd->ours > STDERR_FILENO)
		close(fd->ours);
}

void uvd_replay_learn(struct uvd_replay_call *c, enum uvd_role kind, uint64_t was, uint64_t now)
{
	const struct uvd_prog_number pair = number_new(c, kind, was, now, UVD_PROG_NUMBER_GONE),
				     *before = number_find(c, kind, was);

	/* The client closed its descriptor before it got this number again: the trace does not tell closes of events. */
	if (before && kind == UVD_ROLE_FD && before->ours != now)
		descriptor_close(before);
	uvd_prog_numbers_note(&c->r->numbers, &pair);
}

void uvd_replay_learn_lost(struct uvd_replay_call *c, enum uvd_role kind, uint64_t was)
{
	const struct uvd_prog_number pair = number_new(c, kind, was, 0, UVD_PROG_NUMBER_LOST);

	uvd_prog_numbers_note(&c->r->numbers, &pair);
}

uint64_t uvd_replay_number(struct uvd_replay_call *c, enum uvd_role kind, uint64_t was)
{
	const struct uvd_prog_number *pair = number_find(c, kind, was);

	if (!pair)
		return was;
	if (pair->state == UVD_PROG_NUMBER_LOST)
		c->skip = "it uses an object that was not created again";
	return pair->ours;
}

bool uvd_replay_number_known(const struct uvd_replay_call *c, enum uvd_role kind, uint64_t was, uint64_t *now)
{
	const struct uvd_prog_number *pair = number_find(c, kind, was);

	if (!pair || pair->state == UVD_PROG_NUMBER_LOST)
		return false;
	*now = pair->ours;
	return true;
}

bool uvd_replay_number_bind(struct uvd_replay_call *c, enum uvd_role kind, uint64_t was, uint64_t now, uint32_t handle)
{
	const struct uvd_prog_output o = { .role = kind, .is_number = true, .theirs = was, .ours = now };
	struct uvd_prog_number pair = number_new(c, kind, was, now, UVD_PROG_NUMBER_LIVE);
	struct uvd_prog_answers a = uvd_replay_answers(c);

	a.gives = true;
	a.of.handle = pair.of.handle = handle;
	uvd_prog_numbers_reuse(&c->r->numbers, kind, pair.scope, was);
	if (uvd_prog_numbers_agree(&a, &o))
		return true;
	/* The calls after this one use it all the same. */
	uvd_prog_numbers_note(&c->r->numbers, &pair);
	return false;
}

void uvd_replay_numbers_end(struct uvd_replay *r, uint64_t file, const uint32_t *handle)
{
	uvd_prog_numbers_end(&r->numbers, (struct uvd_prog_object){ file, handle ? *handle : UVD_PROG_ALL_OBJECTS });
}

void uvd_replay_forget(struct uvd_replay *r, uint64_t file)
{
	uvd_replay_numbers_end(r, file, NULL);
	for (const struct uvd_prog_number *p = r->numbers.others; p; p = p->next)
		if (p->scope == file && p->kind == UVD_ROLE_FD &&
		    p == uvd_prog_numbers_find(&r->numbers, UVD_ROLE_FD, file, p->theirs))
			descriptor_close(p);
	uvd_prog_numbers_forget(&r->numbers, UVD_ROLE_FD, file);
	uvd_prog_numbers_forget(&r->numbers, UVD_ROLE_HANDLE, file);
}
