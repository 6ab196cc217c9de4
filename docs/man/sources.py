# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads what man pages take from the rest of the tree: the headers for plug-ins, and the pages of docs about the ABI."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include" / "uverbsd"


# ---- headers ---------------------------------------------------------------------------------------------------------


def comment_text(comment):
    """The text of a C comment as one paragraph."""
    text = re.sub(r"^\s*(/\*+|\*/|\*)", "", comment, flags=re.MULTILINE)
    return " ".join(text.replace("*/", "").split())


def functions(header):
    """
    Yields (comment, [(type, name, parameters)]) of the functions that a header marks UVD_API, in its order. Functions that follow one
    another have the comment of the first one.
    """
    text = (HEADERS / header).read_text()
    pattern = re.compile(r"(?P<comment>/\*(?:(?!\*/).)*?\*/)|UVD_API\s+(?P<ret>[\w\s]+?[\s*]+)(?P<name>\w+)\((?P<params>[^;{]*?)\)"
                         r"(?:\s*__attribute__\(\(.*?\)\))?;|(?P<other>^[^\n]*\n)", re.DOTALL | re.MULTILINE)
    comment, group, entries = "", [], []
    at = 0
    while found := pattern.search(text, at):
        at = found.end()
        if found["comment"]:
            if "----" in found["comment"]:
                continue
            comment, group = comment_text(found["comment"]), []
        elif found["name"]:
            if not group:
                entries.append((comment, group))
            params = [" ".join(p.split()) for p in re.split(r",(?![^(]*\))", found["params"])]
            group.append((" ".join(found["ret"].split()), found["name"], params))
    return entries


# ---- differences from the kernel -------------------------------------------------------------------------------------


def plain(text):
    return text.replace("\\*", "*").replace("\\|", "|")


def cells(line):
    return [plain(c.strip()) for c in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def blocks(text):
    """Yields ("title", text), ("text", paragraph) and ("row", {column: cell}) of a page of docs."""
    columns, paragraph = None, []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            if columns is None:
                columns = cells(line)
            elif not re.fullmatch(r"[|\s-]+", line):
                yield "row", dict(zip(columns, cells(line)))
            continue
        columns = None
        if line.strip() and not line.startswith("#"):
            paragraph.append(plain(line.strip()))
            continue
        if paragraph:
            yield "text", " ".join(paragraph)
            paragraph = []
        if line.startswith("## "):
            yield "title", line[3:]


def differences():
    """The blocks of all differences from the kernel, but for the table of single calls."""
    page = (ROOT / "docs" / "abi-differences.md").read_text()
    yield from blocks("## " + page.split("\n## Call by call")[0].split("\n## ", 1)[1])
    cm = (ROOT / "docs" / "rdma-cm.md").read_text().split("\n## Where it differs\n")[1].split("\n## ")[0]
    yield "title", "Connection management"
    yield from (block for block in blocks(cm) if block[0] == "row")


# ---- the ABI ---------------------------------------------------------------------------------------------------------


def abi():
    """(commands, objects): name -> (since, backends that have it); an object's methods are the second, by the object's name."""
    pages = [ROOT / "docs" / "abi.md", *sorted((ROOT / "docs").glob("abi-objects*.md"))]
    text = "\n".join(page.read_text() for page in pages)
    commands, objects, columns, current = {}, {}, None, None
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = None
            if found := re.fullmatch(r"##+ (UVERBSD?_OBJECT_\w+)", line):
                current = objects.setdefault(found[1], {})
            continue
        row = cells(line)
        if columns is None:
            columns = row
            continue
        if "since" not in columns or row[0].startswith("---") or "&emsp;" in row[0]:
            continue
        at = columns.index("since")
        has = [b for b, mark in zip(columns[at + 1:], row[at + 1:]) if mark.startswith("yes")]
        if "command" in columns:
            commands[row[columns.index("command")]] = row[at], has
        elif not row[0].startswith("**"):
            current[row[0]] = row[at], has
    return commands, objects
