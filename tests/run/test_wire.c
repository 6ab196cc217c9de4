/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The active MTU of ports on the wire. */
#include <check.h>

#include <uverbsd/schema.h>

#include "fleet/wire.h"
#include "../suite.h"

/* A socket has 212,992 bytes on Debian if net.core.rmem_max is not raised: the kernel doubles what is asked for. */
static const struct {
	uint32_t link_mtu, rcvbuf;
	bool is_ipv4;
	enum ibv_mtu mtu;
} cases[] = {
	{ 1500, 425984, true, IBV_MTU_1024 },	  { 1500, 16 << 20, true, IBV_MTU_1024 },
	{ 1500, 16 << 20, false, IBV_MTU_1024 },  { 9000, 425984, true, IBV_MTU_1024 },
	{ 9000, 128 * 8448, true, IBV_MTU_4096 }, { 9000, 128 * 8448 - 1, true, IBV_MTU_2048 },
	{ 4200, 8 << 20, true, IBV_MTU_4096 },	  { 4096, 8 << 20, true, IBV_MTU_2048 },
	{ 1500, 2048, true, IBV_MTU_1024 }, /* smaller packets are not fewer */
	{ 700, 8 << 20, true, IBV_MTU_512 },	  { 100, 8 << 20, true, IBV_MTU_256 },
};

START_TEST(test_mtu_above_1024_needs_room_for_the_window_of_rxe)
{
	ck_assert_uint_eq(uvd_fleet_wire_mtu(cases[_i].link_mtu, cases[_i].rcvbuf, cases[_i].is_ipv4), cases[_i].mtu);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("mtu");

	tcase_add_loop_test(t, test_mtu_above_1024_needs_room_for_the_window_of_rxe, 0, UVD_COUNT(cases));
	return run_suite("wire", t);
}
