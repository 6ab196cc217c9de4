/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * All cases, for both programs. Each test runs in its own process (CK_FORK), so a test that hangs is a single failure.
 * CK_RUN_CASE selects a case.
 */
#include <stdio.h>
#include <stdlib.h>
#include "../suite.h"
#include "abi.h"

int run_rules(const char *served_by, void (*teardown)(void))
{
	TCase *(*cases[])(void) = { case_write, case_context, case_ioctl, case_handle,	   case_mr,
				    case_event, case_cq,      case_qp,	  case_regression, case_srq,
				    case_mw,	case_mcast,   case_wq,	  case_flow,	   case_xrc,
				    case_rare,	case_data,    case_ucap,  case_unplug };
	Suite *suite = suite_create("abi");

	printf("%s: %s, served by %s\n", uv_node(), target()->name, served_by);
	fflush(stdout);
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(cases); i++) {
		TCase *tc = cases[i]();

		tcase_set_timeout(tc, 40);
		tcase_add_checked_fixture(tc, NULL, teardown);
		suite_add_tcase(suite, tc);
	}
	return run_cases(suite);
}
