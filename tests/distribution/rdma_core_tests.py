# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""rdma-core's own tests, which Debian's package rdma-core has among its documentation."""
import gzip
import pathlib

TESTS = pathlib.Path("/usr/share/doc/rdma-core/tests")


def unpack(place):
    """Puts them into the folder place/tests, unless it is there."""
    assert (TESTS / "__init__.py").exists(), "reinstall rdma-core with dpkg --path-include='/usr/share/doc/rdma-core/*'"
    if (place / "tests").exists():
        return
    (place / "tests").mkdir()
    for f in TESTS.iterdir():
        opener = gzip.open if f.suffix == ".gz" else open
        with opener(f, "rb") as packed:
            (place / "tests" / f.name.removesuffix(".gz")).write_bytes(packed.read())
