# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Posts that fail, and receives that are posted in ERR, by the distribution's providers: mapped queues, and own rings."""
import shutil

import pytest

from conftest import BIN, BUILD

POSTS = shutil.copy(BUILD / "tests/run/run_posts", BIN / "run_posts").as_posix()


@pytest.mark.parametrize("persona", ("rxe", "hfi1"))
@pytest.mark.parametrize("case, options", (("refused", ()), ("filtered", ("--filter", "error:post_send=ENOMEM@1")), ("drain", ()),
                                           ("srq", ())))
def test_posts(run, persona, case, options):
    r = run(POSTS, case, options=["--persona", persona, *options])
    assert r.returncode == 0, r.stderr
