/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Machines with and without an adapter, as folders that these tests make. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "sysfs/sysfs.h"
#include "util/util.h"
#include "../suite.h"

static char base[64], sys[80], modules[80], what[64];

/* Lines of Debian's Linux 6.1. */
static const char dep[] =
	"kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko: kernel/drivers/net/mlxfw.ko\n"
	"kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko: kernel/drivers/infiniband/core/ib_uverbs.ko kernel/drivers/infiniband/core/ib_core.ko\n"
	"updates/dkms/my-hca.ko.xz: kernel/drivers/infiniband/core/ib_core.ko.xz\n"
	"kernel/drivers/infiniband/core/ib_core.ko: kernel/net/core/nothing.ko\n";
static const char alias[] = "# Aliases extracted from modules themselves.\n"
			    "alias pci:v000015B3d00001017sv*sd*bc*sc*i* mlx5_core\n"
			    "alias auxiliary:mlx5_core.rdma mlx5_ib\n"
			    "alias rdma-client-5 mlx5_ib\n"
			    "alias pci:v00001234d*sv*sd*bc*sc*i* my_hca\n";

static void put(const char *folder, const char *path, const char *text)
{
	char full[200];

	snprintf(full, sizeof(full), "%s/%s", folder, path);
	ck_assert_int_eq(uvd_dir_put(-1, full, "%s", text), 0);
}

static void adapter_setup(void)
{
	snprintf(base, sizeof(base), "/tmp/test_adapter.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(base));
	snprintf(sys, sizeof(sys), "%s/sys", base);
	snprintf(modules, sizeof(modules), "%s/modules", base);
	put(modules, "modules.dep", dep);
	put(modules, "modules.alias", alias);
	/* A network card whose driver has an RDMA driver beside it. */
	put(sys, "bus/pci/devices/0000:01:00.0/modalias", "pci:v000015B3d00001017sv000015B3sd00000006bc02sc00i00\n");
	put(sys, "bus/virtio/devices/virtio0/modalias", "virtio:d00000001v00001AF4\n");
	*what = 0;
}

static void adapter_teardown(void)
{
	ck_assert_int_eq(uvd_dir_remove(-1, base), 0);
}

static bool has_adapter(void)
{
	return uvd_sysfs_has_adapter(sys, modules, what, sizeof(what));
}

START_TEST(test_machine_with_an_ordinary_network_card_has_none)
{
	ck_assert(!has_adapter());
	ck_assert(!uvd_sysfs_has_adapter("/nowhere", "/nowhere", what, sizeof(what)));
}
END_TEST

START_TEST(test_hardware_with_a_driver_is_one_before_the_driver_is_loaded)
{
	put(sys, "bus/auxiliary/devices/mlx5_core.rdma.0/modalias", "auxiliary:mlx5_core.rdma\n");
	ck_assert(has_adapter());
	ck_assert_str_eq(what, "hardware for the driver mlx5_ib");
}
END_TEST

START_TEST(test_driver_outside_of_the_kernels_folder_counts)
{
	put(sys, "bus/pci/devices/0000:02:00.0/modalias", "pci:v00001234d00000001sv00000000sd00000000bc02sc00i00\n");
	ck_assert(has_adapter());
	ck_assert_str_eq(what, "hardware for the driver my_hca");
}
END_TEST

START_TEST(test_device_of_the_kernel_is_one_and_ours_is_not)
{
	char link[120];

	/* As an overlay shows them. */
	put(sys, "class/infiniband/hfi1_0/node_type", "1: CA\n");
	ck_assert(!has_adapter());
	snprintf(link, sizeof(link), "%s/class/infiniband/rxe0", sys);
	ck_assert_int_eq(symlink("../../devices/virtual/infiniband/rxe0", link), 0);
	ck_assert(has_adapter());
	ck_assert_str_eq(what, "rxe0");
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("adapter");

	tcase_add_checked_fixture(t, adapter_setup, adapter_teardown);
	tcase_add_test(t, test_machine_with_an_ordinary_network_card_has_none);
	tcase_add_test(t, test_hardware_with_a_driver_is_one_before_the_driver_is_loaded);
	tcase_add_test(t, test_driver_outside_of_the_kernels_folder_counts);
	tcase_add_test(t, test_device_of_the_kernel_is_one_and_ours_is_not);
	return run_suite("adapter", t);
}
