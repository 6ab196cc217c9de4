# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Posts that fail, receives that are posted in ERR, and the memory of queues, by the distribution's providers."""
import errno
import shutil

import pytest

from conftest import BIN, BUILD

PAGES = shutil.copy(BUILD / "tests/run/run_pages", BIN / "run_pages").as_posix()
POSTS = shutil.copy(BUILD / "tests/run/run_posts", BIN / "run_posts").as_posix()


# "rxe" has mapped queues, "hfi1" rings of the engine's own.
@pytest.mark.parametrize("persona", ("rxe", "hfi1"))
@pytest.mark.parametrize("case, options", (
    ("refused", ()), ("refused", ("--doorbells", "calls")), ("filtered", ("--filter", "error:post_send=ENOMEM@1")), ("drain", ()),
    ("srq", ())))
def test_posts(run, persona, case, options):
    # A doorbell that nobody answers cannot be refused: the provider finds the queue full.
    refusal = errno.ENOMEM if persona == "rxe" and not options else errno.EINVAL
    r = run(POSTS, case, str(refusal), options=["--persona", persona, *options])
    assert r.returncode == 0, r.stderr


def test_destroyed_queues_give_their_pages_back_and_their_mappings_read_zeros(run):
    r = run(PAGES, options=["--persona", "rxe"])
    assert r.returncode == 0, r.stderr
