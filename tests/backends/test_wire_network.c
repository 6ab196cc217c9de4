/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A network between two engines that delays packets and changes their order, as filters ask for. */
#include <stdlib.h>
#include <string.h>
#include "account/account.h"
#include "backends/soft/soft.h"
#include "backends/soft/wire/internal.h"
#include "tests/backends/bed.h"

enum { LENGTH = 200 << 10, DELAY_US = 20000 };

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static struct uvd_backend filtered;
static struct uvd_accounts *accounts;
static struct uvd_account *account;
static atomic_uint asked, held;
static _Atomic uint64_t hold_ns, delay_ns; /* 0: packets are not held, or not delayed */
static atomic_uint hold_each; /* how many packets come to one that is held */
static atomic_uint lost; /* the number of the packet that is lost, from 1 on; 0: none */

static void decide(struct uvd_message *message)
{
	const unsigned int n = atomic_fetch_add(&asked, 1);

	ck_assert(message->is_packet);
	message->delay_ns = delay_ns;
	if (n + 1 == lost)
		message->fate = UVD_FATE_LOSE;
	if (!hold_ns || n % hold_each || !message->may_hold)
		return;
	held++;
	message->fate = UVD_FATE_HOLD;
	message->hold_ns = hold_ns;
}

static void setup(void)
{
	struct uvd_account_limits limits;

	uvd_account_limits_init(&limits);
	accounts = uvd_accounts_new(&limits, NULL);
	account = uvd_account_get(accounts, (uid_t[]){ 1000 }, 1);
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_ETHERNET);
	filtered = uvd_backend_soft;
	filtered.carry_message = decide;
	a->side->dev.ops = b->side->dev.ops = &filtered;
	a->side->context->account = account;
	asked = held = 0;
	hold_ns = delay_ns = 0;
	lost = 0;
	hold_each = 3;
	for (int i = 0; i < BUF_SIZE; i++)
		a->buf[i] = i / 1000;
	a->retry_cnt = b->retry_cnt = 7;
}

static void teardown(void)
{
	a->side->context->account = NULL;
	bed_close(&bed);
	ck_assert_uint_eq(uvd_account_used(account, UVD_RES_BYTES), 0);
	uvd_account_put(account);
	uvd_accounts_free(accounts);
}

static void transfer(struct end *end, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = sge_at(end, 0, length);
	struct uvd_send_wr wr = wr_to(end == a ? b : a, opcode, &sge, 1);

	ck_assert_int_eq(post_send_wr(end, &wr), 0);
}

static const struct {
	enum ibv_wr_opcode opcode;
	unsigned int hold_each;
} orders[] = { { IBV_WR_SEND, 2 },	 { IBV_WR_SEND, 7 },	  { IBV_WR_RDMA_WRITE, 2 },
	       { IBV_WR_RDMA_WRITE, 7 }, { IBV_WR_RDMA_READ, 2 }, { IBV_WR_RDMA_READ, 7 } };

/* Acknowledgements and answers are packets, too: both ends ask the filters. */
START_TEST(test_payload_survives_another_order)
{
	const bool reads = orders[_i].opcode == IBV_WR_RDMA_READ;

	hold_ns = UINT64_C(2000000);
	hold_each = orders[_i].hold_each;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 1, 0, LENGTH), 0);
	transfer(reads ? b : a, orders[_i].opcode, LENGTH);
	expect(reads ? b->scq : a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert(!memcmp(a->buf, b->buf, LENGTH));
	ck_assert_uint_gt(held, 0);
}
END_TEST

/* The first packet arrives behind the second one: a UC message that does not begin with its first packet is dropped. */
START_TEST(test_held_packet_arrives_behind_the_next)
{
	hold_ns = UINT64_C(60000000000);
	hold_each = 1000;
	bed_connect(&bed, IBV_QPT_UC);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(post_recv_at(b, i, i * 1000, 1000), 0);
	for (int i = 0; i < 2; i++) {
		struct ibv_sge sge = sge_at(a, i * 5000, 500 + i);

		ck_assert_int_eq(send_wr(a, .wr_id = i, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1), 0);
	}
	ck_assert_uint_eq(wait_wc(b->rcq).byte_len, 501);
	ck_assert_uint_eq(wait_wc(b->rcq).byte_len, 500);
	ck_assert(!memcmp(a->buf + 5000, b->buf, 501) && !memcmp(a->buf, b->buf + 1000, 500));
}
END_TEST

START_TEST(test_held_packet_without_another_arrives_after_its_time)
{
	hold_ns = UINT64_C(1000) * DELAY_US;
	bed_connect(&bed, IBV_QPT_UC);
	ck_assert_int_eq(post_recv_at(b, 1, 0, 1000), 0);
	transfer(a, IBV_WR_SEND, 1000);
	expect(b->rcq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(held, 1);
}
END_TEST

/* Two messages of this length, in packets of 1024 bytes, and one of one packet. */
static const struct {
	unsigned int length, lost, receives, arrive;
	const char *code, *text; /* %x: the PSN that came, then the number of the QP */
	unsigned int psn;
} uc_drops[] = {
	{ 4000, 0, 3, 3, NULL },
	{ 4000, 1, 3, 2, "message-gap",
	  "packets before PSN %u are missing or out of order: QP 0x%x drops their message", 1 },
	{ 4000, 3, 3, 2, "message-gap",
	  "packets before PSN %u are missing or out of order: QP 0x%x drops their message", 3 },
	{ 4000, 4, 3, 2, "message-gap",
	  "packets before PSN %u are missing or out of order: QP 0x%x drops their message", 4 },
	{ LENGTH, 0, 0, 0, "message-no-receive", "no receive was posted at QP 0x%2$x", 0 },
};

static atomic_bool mark_was_written;

/* On the thread that has written it. */
static void look_at_mark(void)
{
	if (!*b->buf)
		mark_was_written = true;
}

/* The rest of a message whose beginning is dropped is no gap. */
START_TEST(test_dropped_uc_messages_are_explained_once_by_their_reason)
{
	const unsigned int psn = (a->psn + uc_drops[_i].psn) & UVD_PSN_MASK;
	char text[128];

	lost = uc_drops[_i].lost;
	bed_connect(&bed, IBV_QPT_UC);
	for (unsigned int i = 0; i < uc_drops[_i].receives; i++)
		ck_assert_int_eq(post_recv_at(b, i, 8192, 4000), 0);
	b->buf[0] = 1;
	mark_was_written = false;
	mm_written = look_at_mark;
	for (unsigned int i = 0; i < 3; i++)
		transfer(a, IBV_WR_SEND, i < 2 ? uc_drops[_i].length : 10);
	transfer(a, IBV_WR_RDMA_WRITE, 1);
	for (unsigned int i = 0; i < uc_drops[_i].arrive; i++)
		expect(b->rcq, i, IBV_WC_SUCCESS);
	wait_until(mark_was_written);
	if (uc_drops[_i].code) {
		snprintf(text, sizeof(text), uc_drops[_i].text, psn, b->qp->qp_num);
		ck_assert_msg(was_told(b, text), "%s", text);
	}
	ck_assert_uint_eq(times_explained(b, "message-gap") + times_explained(b, "message-no-receive") +
				  times_explained(b, "packets") + times_explained(b, "recv-short"),
			  !!uc_drops[_i].code);
}
END_TEST

struct uc_packet {
	uint8_t operation;
	uint32_t length, payload; /* length: of the message, as a first packet tells it */
};

/* b gets a packet of its peer's address. */
static void packet_comes(const struct uc_packet *packet, uint32_t psn)
{
	struct soft_qp *qp = soft_qp(b->qp);
	const struct uvd_packet p = {
		.opcode = UVD_TRANSPORT_UC | packet->operation,
		.pkey = 0xffff,
		.dest_qpn = b->qp->qp_num,
		.psn = psn,
		.va = (uintptr_t)b->buf,
		.rkey = b->mr->rkey,
		.length = packet->length,
		.payload = (const uint8_t *)a->buf,
		.payload_len = packet->payload,
	};
	const struct uvd_socket_in in = { .from = qp->wire->peer };

	if (wire_deliver(qp, qp->wire->socket, &in, &p))
		wire_defer(qp);
}

static const struct {
	struct uc_packet packets[2];
} contradictions[] = {
	{ { { UVD_SEND_FIRST, 0, 1024 }, { UVD_RDMA_WRITE_LAST, 0, 10 } } },
	{ { { UVD_RDMA_WRITE_FIRST, 1034, 1024 }, { UVD_SEND_LAST, 0, 10 } } },
	{ { { UVD_RDMA_WRITE_FIRST, 1034, 1024 }, { UVD_RDMA_WRITE_LAST, 0, 11 } } },
	{ { { UVD_RDMA_WRITE_FIRST, 1024, 1024 }, { UVD_RDMA_WRITE_LAST, 0, 1 } } },
	{ { { UVD_SEND_FIRST, 0, 1000 }, { UVD_SEND_LAST, 0, 1 } } },
};

START_TEST(test_uc_packets_that_contradict_each_other_are_explained_as_such)
{
	char text[64];

	bed_connect(&bed, IBV_QPT_UC);
	ck_assert_int_eq(post_recv_at(b, 1, 8192, 4000), 0);
	for (unsigned int i = 0; i < 2; i++)
		packet_comes(&contradictions[_i].packets[i], 77 + i);
	wait_until(was_explained(b, "packets"));
	transfer(a, IBV_WR_SEND, 1);
	expect(b->rcq, 1, IBV_WC_SUCCESS);
	snprintf(text, sizeof(text), "packets of QP 0x%x contradict each other", a->qp->qp_num);
	ck_assert(was_told(b, text) && times_explained(b, "packets") == 1 && !was_explained(b, "message-gap"));
}
END_TEST

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC };

/* An RC completion needs an answer, which is delayed as well. */
START_TEST(test_each_packet_takes_its_delay)
{
	const uint64_t begin = now_us();

	delay_ns = UINT64_C(1000) * DELAY_US;
	bed_connect(&bed, types[_i]);
	ck_assert_int_eq(post_recv_at(b, 1, 0, LENGTH), 0);
	transfer(a, IBV_WR_SEND, 10000);
	expect(b->rcq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_ge(now_us() - begin, DELAY_US);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	if (types[_i] == IBV_QPT_RC)
		ck_assert_uint_ge(now_us() - begin, 2 * DELAY_US);
	ck_assert(!memcmp(a->buf, b->buf, 10000));
}
END_TEST

static const bool resets[] = { true, false };

/* The network has the packets: it delivers them although their QP is gone. */
START_TEST(test_delayed_packets_arrive_without_their_qp)
{
	delay_ns = UINT64_C(1000) * DELAY_US;
	bed_connect(&bed, IBV_QPT_UC);
	ck_assert_int_eq(post_recv_at(b, 1, 0, 10000), 0);
	transfer(a, IBV_WR_SEND, 10000);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	if (resets[_i])
		ck_assert_int_eq(to_state(a, IBV_QPS_RESET), 0);
	else
		free_qp(a);
	expect(b->rcq, 1, IBV_WC_SUCCESS);
	ck_assert(!memcmp(a->buf, b->buf, 10000));
}
END_TEST

START_TEST(test_delayed_packets_are_charged_until_they_are_sent)
{
	uint64_t before;

	delay_ns = UINT64_C(1000) * DELAY_US;
	bed_connect(&bed, IBV_QPT_UC);
	before = uvd_account_used(account, UVD_RES_BYTES);
	ck_assert_int_eq(post_recv_at(b, 1, 0, 10000), 0);
	transfer(a, IBV_WR_SEND, 10000);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_uint_ge(uvd_account_used(account, UVD_RES_BYTES), before + 10000);
	expect(b->rcq, 1, IBV_WC_SUCCESS);
	wait_until(uvd_account_used(account, UVD_RES_BYTES) == before);
}
END_TEST

/* The teardown sees that nothing stays charged. */
START_TEST(test_engine_that_ends_waits_for_no_packet)
{
	delay_ns = UINT64_C(60000000000);
	bed_connect(&bed, IBV_QPT_UC);
	transfer(a, IBV_WR_SEND, 10000);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}
END_TEST

static const struct {
	uint64_t hold_ns, delay_ns;
} of_ud[] = { { UINT64_C(60000000000), 0 }, { 0, UINT64_C(1000) * DELAY_US } };

/* The first is held until the second has gone; or both are delayed. */
START_TEST(test_datagrams_are_packets)
{
	struct uvd_ah *ah = calloc(1, uvd_backend_soft.size_ah);
	const bool holds = of_ud[_i].hold_ns;

	hold_ns = of_ud[_i].hold_ns;
	delay_ns = of_ud[_i].delay_ns;
	hold_each = 1000;
	ah->pd = a->side->pd;
	ah->attr = bed_address_of(b);
	ck_assert_int_eq(uvd_backend_soft.create_ah(ah, NULL), 0);
	bed_connect(&bed, IBV_QPT_UD);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(post_recv_at(b, i, i * 1000, 1000), 0);
	for (int i = 0; i < 2; i++) {
		struct ibv_sge sge = sge_at(a, i * 5000, 100 + i);

		ck_assert_int_eq(send_wr(a, .wr_id = i, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
					 .send_flags = IBV_SEND_SIGNALED, .ah = ah, .remote_qpn = b->qp->qp_num,
					 .remote_qkey = 0x1234),
				 0);
		expect(a->scq, i, IBV_WC_SUCCESS);
	}
	for (int i = 0; i < 2; i++) {
		const int nr = holds ? !i : i;

		ck_assert_uint_eq(expect(b->rcq, i, IBV_WC_SUCCESS).byte_len, 140 + nr);
		ck_assert(!memcmp(a->buf + nr * 5000, b->buf + i * 1000 + 40, 100 + nr));
	}
	ck_assert_int_eq(uvd_backend_soft.destroy_ah(ah), 0);
	free(ah);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("network");

	setenv("BED_WIRE", "1", 1);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_payload_survives_another_order, 0, 6);
	tcase_add_test(t, test_held_packet_arrives_behind_the_next);
	tcase_add_test(t, test_held_packet_without_another_arrives_after_its_time);
	tcase_add_loop_test(t, test_dropped_uc_messages_are_explained_once_by_their_reason, 0, 5);
	tcase_add_loop_test(t, test_uc_packets_that_contradict_each_other_are_explained_as_such, 0, 5);
	tcase_add_loop_test(t, test_each_packet_takes_its_delay, 0, 2);
	tcase_add_loop_test(t, test_delayed_packets_arrive_without_their_qp, 0, 2);
	tcase_add_test(t, test_delayed_packets_are_charged_until_they_are_sent);
	tcase_add_test(t, test_engine_that_ends_waits_for_no_packet);
	tcase_add_loop_test(t, test_datagrams_are_packets, 0, 2);
	return run_suite("soft: packets that filters hold", t);
}
