# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each block of code of a page is run by a test, or a comment before it says which test runs it, or why none does.

A block is marked `sh`, and one marked `text` behind it has what it must print. The pages of OWN have a test of their own; all other pages
with such blocks are those of tests/run/test_docs_run.py. The comments are `<!-- run by TEST -->` and `<!-- not run: WHY -->`.
"""
import re

import pytest

from test_docs import ROOT, pages

BLOCK = re.compile(r"(?ms)^(?:<!-- ([^\n]*) -->\n)?```([a-z]*)\n(.*?)^```$")
RUNNER = "tests/run/test_docs_run.py"
# Pages whose blocks of these languages are all run by this test.
OWN = {
    "README.md": ("tests/run/test_readme.py", "sh"),
    "docs/zh/README.md": ("tests/scripts/test_docs.py", "sh"),  # the same as those of README.md
    "docs/access-control.md": ("tests/run/test_allow.py", "sh text"),
    "docs/limits.md": ("tests/run/test_quota.py", "sh text"),
    "docs/testing-your-program.md": ("tests/run/test_testing_page.py", "sh text yaml"),
    "docs/testing-calls.md": ("tests/run/test_testing_page.py", "sh text"),
    "docs/testing-links.md": ("tests/run/test_testing_page.py", "sh text"),
    "docs/tutorial-new-verb.md": ("tests/plugin/examples/test_tutorial.py", "sh text"),
    "docs/call.md": ("tests/tree/test_call.py", "sh text"),
    "docs/python.md": ("tests/tree/test_python.py", "python"),
    "plugins/README.md": ("tests/plugin/examples/test_outside.py", "sh"),
    "plugins/skeleton/README.md": ("tests/plugin/examples/test_outside.py", "sh"),
}


def blocks(page):
    """(comment or None, language, text) of each block."""
    return [m.groups() for m in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))]


def unknown(page, runner):
    """The blocks of which nobody says what becomes of them."""
    for comment, language, text in blocks(page):
        said = re.match(r"(not run[a-z ]*|worked examples[^:]*): \S+|run by (\S+)", comment or "")
        if said and said[2] and not (ROOT / said[2]).is_file():
            yield f"{page}: {said[2]} does not exist"
        elif not said and language not in OWN.get(page, ("", runner))[1].split():
            yield f"{page}: a block is neither run nor says why: {text[:60]!r}"


@pytest.mark.parametrize("page", pages())
def test_each_block_is_run_or_says_why_not(page):
    languages = "sh text" if f'"{page}"' in (ROOT / RUNNER).read_text() else ""
    assert not list(unknown(page, languages))


def test_the_tests_of_pages_exist_and_name_them():
    for page, (test, _) in OWN.items():
        name = re.search(r"[\w-]+(?=\.md$)", page)[0] if "plugins" not in page else "skeleton"
        text = (ROOT / test).read_text()
        assert name in text or name.rpartition("-")[2] in text, (page, test)


def test_the_tests_that_comments_name_exist():
    named = {t for p in pages() for c, _, _ in blocks(p) for t in re.findall(r"tests/[\w/]+\.py", c or "")}
    assert len(named) > 8 and not [t for t in named if not (ROOT / t).is_file()]
