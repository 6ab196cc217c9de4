/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* For the model: what a call's text and the schema say about it, before it is made. */
#ifndef UVD_PROG_MODEL_CALL_H
#define UVD_PROG_MODEL_CALL_H

#include "format.h"
#include "shape.h"

/* Is the message as the fields say, without corruption? */
bool uvd_model_call_is_whole(const struct uvd_prog_call *call);
/* Is a size below what the schema requires? Such a call must fail. */
bool uvd_model_call_is_short(const struct uvd_prog_call *call, const struct uvd_shape_command *shape);
/* Is an attribute shorter than the schema requires? */
bool uvd_model_method_is_short(const struct uvd_prog_call *call, const struct uvd_method_row *row);
/* Does the call have each attribute at most once, and all that the method needs, uncorrupted? */
bool uvd_model_method_is_complete(const struct uvd_prog_call *call, const struct uvd_method_row *row);
/* Does the call destroy an object or close a descriptor, if it succeeds? */
bool uvd_model_call_ends(const struct uvd_prog_call *call);
/* May the call make an object? */
bool uvd_model_call_may_make(const struct uvd_prog_call *call);

#endif
