/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "tests/wire_qp/script.h"

static char trace_text[8192];
static size_t trace_len;

static const struct {
	const char *name;
	uint8_t syndrome;
} syndromes[] = {
	{ "ACK", UVD_AETH_ACK },
	{ "NAK_SEQ", UVD_AETH_SEQUENCE_ERROR },
	{ "NAK_REQ", UVD_AETH_INVALID_REQUEST },
	{ "NAK_ACC", UVD_AETH_ACCESS_ERROR },
	{ "NAK_OP", UVD_AETH_OPERATION_ERROR },
};
enum { SYNDROMES = sizeof(syndromes) / sizeof(syndromes[0]) };

void trace(const char *format, ...)
{
	va_list args;

	if (trace_len && trace_text[trace_len - 1] == ';' && *format != '.' && *format != ' ')
		trace(" ");
	va_start(args, format);
	trace_len += vsnprintf(trace_text + trace_len, sizeof(trace_text) - trace_len, format, args);
	va_end(args);
	ck_assert_uint_lt(trace_len, sizeof(trace_text));
}

static void trace_acknowledge(const struct uvd_packet *p)
{
	if ((p->syndrome & UVD_AETH_KIND) == UVD_AETH_RNR)
		trace("RNR%u", p->syndrome & UVD_AETH_VALUE);
	for (int i = 0; i < SYNDROMES; i++)
		if (p->syndrome == syndromes[i].syndrome)
			trace("%s", syndromes[i].name);
}

/* Is it one more in the middle, of which nothing but the PSN is new? */
static bool is_one_more(const struct uvd_packet *p)
{
	static uint32_t opcode, psn;
	const bool is_next = p->opcode == opcode && p->psn == ((psn + 1) & UVD_PSN_MASK);
	const bool is_plain = !(uvd_opcode_info(p->opcode)->is & (UVD_IS_FIRST | UVD_IS_LAST)) && !p->ack_req;

	psn = p->psn;
	opcode = is_plain ? p->opcode : UVD_CNP;
	return is_plain && is_next && trace_len;
}

void trace_packet(struct machine *m, const struct uvd_packet *p)
{
	const struct uvd_opcode_info *info = uvd_opcode_info(p->opcode);

	if (is_one_more(p)) {
		if (strcmp(trace_text + trace_len - 4, "...;"))
			trace("...;");
		return;
	}
	if (p->opcode == UVD_RC_ACKNOWLEDGE)
		trace_acknowledge(p);
	else
		trace("%s", info->name + strlen("RC_"));
	trace("%+d", uvd_psn_diff(p->psn, FIRST_PSN));
	if (p->payload_len)
		trace(" %uB", p->payload_len);
	if (p->ack_req)
		trace(" A");
	if (p->solicited)
		trace(" S");
	if (info->is & UVD_HAS_RETH)
		trace(" at=%lu len=%u", p->va, p->length);
	if (info->is & UVD_HAS_IMMDT)
		trace(" imm=%u", p->imm);
	if (info->is & UVD_HAS_IETH)
		trace(" inv=%u", p->invalidate_rkey);
	if (info->is & UVD_HAS_ATOMICETH)
		trace(" add=%lu", p->swap_add);
	if (info->is & UVD_HAS_ATOMICACKETH)
		trace(" old=%lu", p->original);
	if (info->is & UVD_HAS_AETH)
		trace(" m%u", p->msn);
	if (info->is & UVD_HAS_AETH && p->opcode != UVD_RC_ACKNOWLEDGE && p->syndrome != UVD_AETH_ACK)
		trace(" syndrome=%u", p->syndrome);
	trace("; ");
}

/* Sets opcode and syndrome. Returns false if there is no such packet. */
static bool read_name(const char *name, size_t len, struct uvd_packet *p)
{
	p->opcode = UVD_RC_ACKNOWLEDGE;
	if (!strncmp(name, "RNR", 3)) {
		p->syndrome = UVD_AETH_RNR | atoi(name + 3);
		return true;
	}
	if (!strncmp(name, "CREDITS", 7)) {
		p->syndrome = UVD_AETH_ACK_KIND | atoi(name + 7);
		return true;
	}
	for (int i = 0; i < SYNDROMES; i++) {
		p->syndrome = syndromes[i].syndrome;
		if (strlen(syndromes[i].name) == len && !strncmp(syndromes[i].name, name, len))
			return true;
	}
	p->syndrome = UVD_AETH_ACK;
	for (unsigned int op = 0; op <= UVD_OPERATION_MASK; op++) {
		const char *known = uvd_opcode_info(op)->name;

		p->opcode = op;
		if (known && strlen(known + 3) == len && !strncmp(known + 3, name, len))
			return true;
	}
	return false;
}

static void read_field(const char *text, struct uvd_packet *p)
{
	const char *value = strchr(text, '=');
	const uint64_t number = strtoull(value ? value + 1 : text, NULL, 0);

	if (!strcmp(text, "A"))
		p->ack_req = true;
	else if (!strcmp(text, "S"))
		p->solicited = true;
	else if (!strncmp(text, "at=", 3))
		p->va = number;
	else if (!strncmp(text, "len=", 4))
		p->length = number;
	else if (!strncmp(text, "key=", 4))
		p->rkey = number;
	else if (!strncmp(text, "imm=", 4))
		p->imm = number;
	else if (!strncmp(text, "inv=", 4))
		p->invalidate_rkey = number;
	else if (!strncmp(text, "add=", 4))
		p->swap_add = number;
	else if (!strncmp(text, "old=", 4))
		p->original = number;
	else if (!strncmp(text, "credits=", 8))
		p->syndrome = UVD_AETH_ACK_KIND | number;
	else if (*text == 'm')
		p->msn = strtoul(text + 1, NULL, 0);
	else if (text[strlen(text) - 1] == 'B')
		p->payload_len = number;
	else
		ck_abort_msg("no field of a packet: %s", text);
}

unsigned int read_packets(char *text, struct uvd_packet *packets, unsigned int most)
{
	static uint8_t payload[UVD_IB_MTU_MAX];
	unsigned int num = 0;
	char *end, *words;

	for (char *one = strtok_r(text, ",", &end); one; one = strtok_r(NULL, ",", &end)) {
		char *word = strtok_r(one, " ", &words);
		const size_t len = strcspn(word, "+-");
		struct uvd_packet *p = &packets[num];

		*p = (struct uvd_packet){ .payload = payload };
		if (!read_name(word, len, p))
			return 0;
		p->psn = (FIRST_PSN + atoi(word + len)) & UVD_PSN_MASK;
		while ((word = strtok_r(NULL, " ", &words)))
			read_field(word, p);
		ck_assert_uint_lt(++num, most);
	}
	return num;
}

void run_rule(const struct rule *rule, void (*statement)(char *text))
{
	char script[2048], *end;

	trace_len = 0;
	trace_text[0] = 0;
	snprintf(script, sizeof(script), "%s", rule->script);
	for (char *one = strtok_r(script, ";", &end); one; one = strtok_r(NULL, ";", &end))
		statement(one + strspn(one, " "));
	while (trace_len && trace_text[trace_len - 1] == ' ')
		trace_text[--trace_len] = 0;
	ck_assert_msg(!strcmp(trace_text, rule->trace), "%s (%s)\nscript:   %s\nexpected: %s\nis:       %s", rule->name,
		      rule->source, rule->script, rule->trace, trace_text);
}
