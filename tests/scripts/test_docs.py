# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The pages of docs/: their links, their length, whom they are for, and the index."""
import functools
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST = 300  # lines of a page
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)|<img [^>]*src=\"([^\"]+)\"")


def pages():
    """All Markdown files that belong to the project, relative to its root."""
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return [p for p in out.stdout.split() if (ROOT / p).is_file()]


DOCS = [p for p in pages() if p.startswith("docs/")]


def prose(text):
    """The text without blocks of code."""
    return re.sub(r"(?ms)^( *)(```|~~~).*?^\1\2$", "", text)


def slug(heading):
    """The anchor that GitHub and GitLab give a heading."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@functools.lru_cache(None)
def anchors(path):
    headings = re.findall(r"(?m)^#+ +(.*)$", prose(path.read_text(encoding="utf-8")))
    return {slug(h) for h in headings}


def broken(page):
    """The links of a page, of a path relative to the root, that lead nowhere."""
    path = ROOT / page
    text = prose(path.read_text(encoding="utf-8"))
    for target in LINK.findall(text) + [a or b for a, b in IMAGE.findall(text)]:
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        to = (path.parent / name).resolve() if name else path
        if not to.exists():
            yield f"{page}: {target}: no such file"
        elif anchor and (to.suffix != ".md" or anchor not in anchors(to)):
            yield f"{page}: {target}: no such heading"


@pytest.mark.parametrize("page", pages())
def test_links_lead_to_files_and_headings(page):
    assert not list(broken(page))


def test_paths_of_pages_in_code_and_messages_exist():
    out = subprocess.run(["git", "grep", "-IonE", r"\bdocs/([a-z]+/)*[a-zA-Z-]+\.(md|svg)\b", "--", ":!tests/long.txt"], cwd=ROOT,
                         stdout=subprocess.PIPE, text=True, check=True)
    found = [line.split(":") for line in out.stdout.splitlines()]
    assert len(found) > 50
    gone = [line for line in found if not (ROOT / line[2]).is_file() and not line[0].startswith("fuzz/afl")]
    assert not gone


@pytest.mark.parametrize("page", DOCS)
def test_a_page_is_short(page):
    lines = len((ROOT / page).read_text(encoding="utf-8").splitlines())
    assert lines <= MOST, f"{page} has {lines} lines: cut it, or split it and mend the links to it"


@pytest.mark.parametrize("page", [p for p in DOCS if not p.endswith("README.md")])
def test_a_page_says_first_whom_it_is_for(page):
    text = re.sub(r"^<!--.*-->\n", "", (ROOT / page).read_text(encoding="utf-8"))
    assert re.match(r"# .+\n\nFor ", text), f"{page} does not begin with `For WHOM`, and what they can do after it"


def test_the_index_has_every_page():
    listed = set(LINK.findall((ROOT / "docs/README.md").read_text(encoding="utf-8")))
    missing = [p for p in DOCS if p != "docs/README.md" and p.removeprefix("docs/") not in listed]
    assert not missing, "docs/README.md lists pages by reader"


def test_the_chinese_page_has_the_commands_of_the_readme_and_says_which_commit_it_follows():
    readme, chinese = ((ROOT / p).read_text(encoding="utf-8") for p in ("README.md", "docs/zh/README.md"))
    block = re.compile(r"(?ms)^```sh\n(.*?)^```")
    assert block.findall(readme) == block.findall(chinese)
    commit = re.search(r"提交 `([0-9a-f]{8,})`（\d{4}-\d\d-\d\d）", chinese)[1]
    history, shallow = (subprocess.run(["git", *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
                        for command in (["log", "--format=%H", "--", "README.md"], ["rev-parse", "--is-shallow-repository"]))
    assert shallow == ["true"] or any(h.startswith(commit) for h in history), f"{commit} is no commit of README.md"


COMMIT = re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,8}\b")
FIGURES = [p for p in DOCS if p.startswith("docs/performance")]


@pytest.mark.parametrize("page", FIGURES)
def test_each_section_with_figures_names_the_commit_that_was_measured(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for section in re.split(r"(?m)^(?=##+ )", text):
        assert "\n| " not in section or COMMIT.search(section), section[:60]


def test_commits_of_figures_are_of_this_history():
    named = {c for p in FIGURES for c in COMMIT.findall((ROOT / p).read_text(encoding="utf-8"))}
    shallow = subprocess.run(["git", "rev-parse", "--is-shallow-repository"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                             check=True).stdout
    said = subprocess.run(["git", "cat-file", "--batch-check=%(objecttype)"], cwd=ROOT, input="\n".join(sorted(named)), text=True,
                          stdout=subprocess.PIPE, check=True).stdout.split("\n")[:-1]
    wrong = [name for name, kind in zip(sorted(named), said) if kind != "commit"]
    assert len(named) > 15 and (shallow.strip() == "true" or not wrong)


def test_each_fault_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "a.md").write_text("# A\n\n[x](b.md) [y](#b) [z](a.md#a) ![p](c.svg) [q](https://example.org)\n\n```\n[no](link)\n```\n")
    assert [line.split(": ")[1] for line in broken("a.md")] == ["b.md", "#b", "c.svg"]
    assert slug("Completions with an error: `error:wc`") == "completions-with-an-error-errorwc"
