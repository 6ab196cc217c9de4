/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's table of reasons, and explanations as text and as JSON. reasons.h has the rows; docs/reasons.md lists them
 * (`uverbsctl explain --list`).
 */
#ifndef UVD_EXPLAIN_H
#define UVD_EXPLAIN_H

#include <stddef.h>
#include <sys/types.h>
#include <uverbsd/reason.h>

enum uvd_reason_code {
#define UVD_REASON(name, code, text, remedy, source) UVD_WHY_##name,
#include "explain/reasons.h"
#undef UVD_REASON
	UVD_NUM_REASONS,
};

/* By enum uvd_reason_code. */
extern const struct uvd_reason uvd_reasons[UVD_NUM_REASONS];

/* The other arguments are initializers of the values, such as { 7 } or { .word = "l_key" }. */
#define uvd_why(name, ...) ((struct uvd_why){ &uvd_reasons[UVD_WHY_##name], { __VA_ARGS__ } })

/* --explain: the form of explanations in the log. */
enum uvd_explain_form { UVD_EXPLAIN_TEXT, UVD_EXPLAIN_JSON, UVD_EXPLAIN_OFF };

enum { UVD_EXPLAINED_TEXT = 768 /* bytes of a text, with the final 0: longer ones are cut */ };

/*
 * Write a text, and return its length, which is below size. uvd_why_text(): the reason and its remedy. uvd_explained_text(): a
 * line of all that is known, without the device and the process. uvd_explained_json(): one object, with both.
 */
size_t uvd_why_text(char *out, size_t size, const struct uvd_why *why);
size_t uvd_explained_text(char *out, size_t size, const struct uvd_explained *explained);
size_t uvd_explained_json(char *out, size_t size, const struct uvd_explained *explained, const char *device, pid_t pid);

#endif
