# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The kernel's rxe at one end of a link, and a namespace for our engines at the other."""
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.append(pathlib.Path(__file__).resolve().parents[1].as_posix())
from wirenet import ADDRESSES, NOBODY, Net  # noqa: E402 pylint: disable=wrong-import-position

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build")).resolve()
LONG = "UVERBSD_LONG" in os.environ


@pytest.fixture(name="net", scope="session")
def fixture_net():
    net = Net(first_is_ours=True)
    subprocess.run(["rdma", "link", "add", "wire_rxe", "type", "rxe", "netdev", "wire0"], check=True)
    yield net
    subprocess.run(["rdma", "link", "delete", "wire_rxe"], check=False)
    net.close()


def gid_of_rxe(version):
    text = {4: "0000:0000:0000:0000:0000:ffff:0a62:0001", 6: "fd98:0000:0000:0000:0000:0000:0000:0001"}[version]
    for entry in pathlib.Path("/sys/class/infiniband/wire_rxe/ports/1/gids").iterdir():
        if entry.read_text().strip() == text:
            return entry.name
    raise LookupError(text)


def run_at(end_number, persona="rxe", options=()):
    """The command that runs programs on a device of ours at this end of a link."""
    return [*NOBODY, BUILD / "tools/uverbsctl", "run", "--persona", persona, "--wire", ",".join(ADDRESSES[end_number]), *options, "--"]


def end(prefix, options):
    """Puts the options of one end before the program's."""
    return [*prefix, "sh", "-c", f'program=$1; shift; exec "$program" {options} "$@"', "sh"]
