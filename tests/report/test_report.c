/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A report of explanations and processes that this test makes up, on a device in its own process. */
#include <check.h>
#include <jansson.h>

#include "harness.h"
#include "report/report.h"
#include "../suite.h"

static struct harness bed;
static struct uvd_report *report;
static const char *program_name;
static uint64_t start; /* of every process, if it is asked now */

static void name_program(void *arg, pid_t pid, char *name, size_t size)
{
	snprintf(name, size, "%s", program_name);
}

static uint64_t start_of(void *arg, pid_t pid)
{
	return start;
}

static bool never_runs(void *arg, pid_t pid)
{
	return false;
}

static void setup(void)
{
	const struct uvd_report_config config = { .program = name_program, .started = start_of, .runs = never_runs };
	int err;

	program_name = "made-up";
	harness_open_with(&bed, "null", &uvd_mem_process);
	report = uvd_report_new(&bed.engine, &config, &err);
	ck_assert_msg(report, "%d", err);
}

static void teardown(void)
{
	uvd_report_free(report);
	harness_close(&bed);
}

static const struct uvd_reason one = { "made-up-one", "the \"first\" <one>", "mend it", "nobody" },
			       two = { "made-up-two", "the second", NULL, "nobody" };

/* Explains something of this kind to the opener of the device; status: of the completion, the event, or the errno. */
static void explain(enum uvd_explained_kind kind, const struct uvd_reason *reason, int status)
{
	const struct uvd_explained e = {
		.kind = kind,
		.why.reason = reason,
		.object = "QP",
		.number = 7,
		.status = status,
		.event = status,
		.err = -status,
		.verb = "MODIFY_QP",
	};

	uvd_file_explain(bed.dev, bed.file, 0, &e);
}

/* A process of this number opens the device, has a completion with an error, and closes it. */
static void process_fails(pid_t pid)
{
	struct uvd_file *was = bed.file;
	int err;

	bed.file = uvd_file_open(bed.dev, bed.account, &err);
	ck_assert_ptr_nonnull(bed.file);
	atomic_store(&bed.file->watched.opened_by, pid);
	explain(UVD_EXPLAINED_COMPLETION, &one, IBV_WC_LOC_PROT_ERR);
	uvd_file_close(bed.file);
	bed.file = was;
}

/* Ends the report, and returns it as its reader sees it. */
static json_t *report_read(void)
{
	int fd = memfd_create("report", MFD_CLOEXEC);
	json_t *document;
	FILE *f;

	uvd_report_end(report);
	ck_assert_int_eq(uvd_report_write(report, fd, UVD_REPORT_JSON), 0);
	f = fdopen(fd, "r");
	rewind(f);
	document = json_loadf(f, 0, NULL);
	ck_assert_ptr_nonnull(document);
	fclose(f);
	return document;
}

static json_t *process_at(json_t *document, size_t i)
{
	return json_array_get(json_object_get(document, "processes"), i);
}

static void check_issue(json_t *process, const char *key, size_t i, const char *code, int count, const char *part)
{
	json_t *issue = json_array_get(json_object_get(process, key), i);
	const char *text = json_string_value(json_object_get(issue, "text"));

	ck_assert_str_eq(json_string_value(json_object_get(issue, "code")), code);
	ck_assert_int_eq(json_integer_value(json_object_get(issue, "count")), count);
	ck_assert_msg(strstr(text, part), "%s", text);
}

START_TEST(test_failed_completions_are_findings_by_reason_and_status)
{
	json_t *document;

	explain(UVD_EXPLAINED_COMPLETION, &one, IBV_WC_LOC_PROT_ERR);
	explain(UVD_EXPLAINED_COMPLETION, &two, IBV_WC_LOC_PROT_ERR);
	explain(UVD_EXPLAINED_COMPLETION, &one, IBV_WC_LOC_PROT_ERR);
	explain(UVD_EXPLAINED_COMPLETION, &one, IBV_WC_REM_ACCESS_ERR);
	document = report_read();
	ck_assert_uint_eq(uvd_report_findings(report), 3);
	ck_assert_uint_eq(json_array_size(json_object_get(process_at(document, 0), "findings")), 3);
	check_issue(process_at(document, 0), "findings", 0, "completion-failed", 2,
		    "2 completions with LOC_PROT_ERR (made-up-one)");
	check_issue(process_at(document, 0), "findings", 1, "completion-failed", 1, "the second");
	check_issue(process_at(document, 0), "findings", 2, "completion-failed", 1, "REM_ACCESS_ERR");
	json_decref(document);
}
END_TEST

START_TEST(test_dropped_messages_are_a_notice)
{
	json_t *document;

	explain(UVD_EXPLAINED_DROP, &one, 0);
	explain(UVD_EXPLAINED_DROP, &one, 0);
	document = report_read();
	ck_assert_uint_eq(uvd_report_findings(report), 0);
	check_issue(process_at(document, 0), "notices", 0, "dropped", 2,
		    "messages were dropped (made-up-one), the first: ");
	json_decref(document);
}
END_TEST

START_TEST(test_an_overrun_is_a_finding_another_event_a_notice_and_a_refused_call_neither)
{
	json_t *document;

	explain(UVD_EXPLAINED_EVENT, &uvd_reasons[UVD_WHY_CQ_OVERRUN], IBV_EVENT_CQ_ERR);
	explain(UVD_EXPLAINED_EVENT, &one, IBV_EVENT_QP_ACCESS_ERR);
	explain(UVD_EXPLAINED_CALL, &two, EINVAL);
	document = report_read();
	ck_assert_uint_eq(uvd_report_findings(report), 1);
	check_issue(process_at(document, 0), "findings", 0, "cq-overrun", 1, "CQ_ERR");
	check_issue(process_at(document, 0), "notices", 0, "event", 1, "QP_ACCESS_ERR");
	ck_assert_uint_eq(json_array_size(json_object_get(process_at(document, 0), "notices")), 1);
	json_decref(document);
}
END_TEST

START_TEST(test_overrun_has_the_number_of_lost_completions)
{
	const struct uvd_explained lost = {
		.kind = UVD_EXPLAINED_EVENT,
		.why = uvd_why(CQ_LOST, { 1 }, { 7 }),
		.event = IBV_EVENT_CQ_ERR,
	};
	json_t *document;

	explain(UVD_EXPLAINED_EVENT, &uvd_reasons[UVD_WHY_CQ_OVERRUN], IBV_EVENT_CQ_ERR);
	for (int i = 0; i < 2; i++)
		uvd_file_explain(bed.dev, bed.file, 0, &lost);
	document = report_read();
	ck_assert_uint_eq(uvd_report_findings(report), 1);
	check_issue(process_at(document, 0), "findings", 0, "cq-overrun", 1,
		    "1 event CQ_ERR (cq-overrun), 14 completions lost, the first: ");
	json_decref(document);
}
END_TEST

START_TEST(test_explanations_of_too_many_reasons_are_counted)
{
	enum { KINDS = 40, LISTED = 32 };
	json_t *document;

	for (int i = 0; i < KINDS; i++)
		explain(UVD_EXPLAINED_COMPLETION, &one, 100 + i);
	document = report_read();
	ck_assert_uint_eq(json_array_size(json_object_get(process_at(document, 0), "findings")), LISTED);
	ck_assert_int_eq(json_integer_value(json_object_get(process_at(document, 0), "reasons_cut")), KINDS - LISTED);
	json_decref(document);
}
END_TEST

START_TEST(test_processes_beyond_those_listed_share_a_part_that_counts_all_of_them)
{
	enum { PROCESSES = 600, LISTED = 512 };
	json_t *document, *others;

	for (int i = 0; i < PROCESSES; i++)
		process_fails(1000 + i);
	document = report_read();
	ck_assert_uint_eq(uvd_report_findings(report), LISTED + 1);
	others = process_at(document, LISTED);
	ck_assert_int_eq(json_integer_value(json_object_get(others, "stands_for")), PROCESSES - LISTED);
	check_issue(others, "findings", 0, "completion-failed", PROCESSES - LISTED, "LOC_PROT_ERR");
	json_decref(document);
}
END_TEST

START_TEST(test_a_number_that_comes_again_with_another_start_is_another_process)
{
	json_t *document;

	process_fails(1000);
	process_fails(1000);
	start = 1;
	process_fails(1000);
	document = report_read();
	ck_assert_uint_eq(json_array_size(json_object_get(document, "processes")), 2);
	check_issue(process_at(document, 0), "findings", 0, "completion-failed", 2, "2 completions");
	check_issue(process_at(document, 1), "findings", 0, "completion-failed", 1, "1 completion ");
	json_decref(document);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("report");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_failed_completions_are_findings_by_reason_and_status);
	tcase_add_test(tc, test_dropped_messages_are_a_notice);
	tcase_add_test(tc, test_an_overrun_is_a_finding_another_event_a_notice_and_a_refused_call_neither);
	tcase_add_test(tc, test_overrun_has_the_number_of_lost_completions);
	tcase_add_test(tc, test_explanations_of_too_many_reasons_are_counted);
	tcase_add_test(tc, test_processes_beyond_those_listed_share_a_part_that_counts_all_of_them);
	tcase_add_test(tc, test_a_number_that_comes_again_with_another_start_is_another_process);
	return run_suite("report", tc);
}
