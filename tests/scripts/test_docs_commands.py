# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each command and option that a page names exists: those of uverbsctl and uverbsd are compared with what this build says."""
import json
import os
import pathlib
import re
import subprocess

import pytest

from test_docs import ROOT, pages, prose

BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", ROOT / "build")).resolve()
UVERBSCTL, UVERBSD = BUILD / "tools" / "uverbsctl", BUILD / "src" / "uverbsd"
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
# Options of programs that are not ours, which pages name alone.
FOREIGN = {"--oversubscribe": "mpirun", "--verb": "fio"}
# Folders whose programs have options that are in no help of uverbsd and uverbsctl. It is enough that a file there has the option.
OTHERS = "scripts", "bench", "fuzz", "tests/conftest.py", "tests/vm", "tests/differential", "tests/broker", "src/daemon"
# What is written by hand of the man pages is in the same markup.
MAN_PAGES = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs" / "man").glob("*.in"))
# The arguments of `uverbsctl call` are attributes of calls, which the device tells.
ATTRIBUTES = "docs/call.md", "docs/man/uverbsctl-call.1.in"


def said(*program):
    done = subprocess.run([str(a) for a in program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    return done.stdout


class Grammar:
    """command -> its options; noun -> its verbs. By the programs' tables if they print them, else by their help."""

    def __init__(self):
        self.verbs, self.options = {}, {}
        try:
            tables = json.loads(said(UVERBSCTL, "internal-tables"))
        except ValueError:
            tables = None
        names = ([c["name"] for c in tables["commands"]] if tables else
                 re.findall(r"(?m)^  ([a-z-]+)  +\S", said(UVERBSCTL, "--help").partition("Commands:")[2]))
        for name in names:
            self.options[name] = set(OPTION.findall(said(UVERBSCTL, name, "--help"))) | {"--help"}
        self.uverbsd = set(OPTION.findall(said(UVERBSD, "--help")))
        if tables:
            self.options["help"] = set()
            self.verbs = {c["name"]: {v["name"] for v in c["verbs"]} for c in tables["commands"] if c["verbs"]}
            for c in tables["commands"]:
                self.options[c["name"]] |= {f"--{o['long']}" for v in [c, *c["verbs"]] for o in v["options"]}
            self.options["run"] |= {f"--{o['name']}" for o in tables["options"] if "run" in o["programs"]}
            self.uverbsd |= {f"--{o['name']}" for o in tables["options"] if "uverbsd" in o["programs"]}
        self.options["device"] |= self.uverbsd  # of `device add`
        self.all = self.uverbsd.union(*self.options.values())


@pytest.fixture(scope="module", name="grammar")
def fixture_grammar():
    grammar = Grammar()
    assert len(grammar.options) > 10 and len(grammar.uverbsd) > 50 and len(grammar.options["run"]) > 50
    return grammar


@pytest.fixture(scope="module", name="others")
def fixture_others():
    found = set()
    for place in OTHERS:
        path = ROOT / place
        for file in [path] if path.is_file() else path.rglob("*"):
            if file.is_file():
                found |= set(OPTION.findall(file.read_text(errors="replace")))
    return found


def code(text):
    """Spans and lines of code of a page. Lines that end with a backslash go on."""
    for language, block in re.findall(r"(?ms)^```([a-z]*)\n(.*?)^```$", text):
        yield from block.replace("\\\n", " ").splitlines() if language != "text" else ()
    for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", prose(text)):
        yield " ".join(span.split())


def own(rest):
    """What belongs to a command, of the text behind its name: up to PROGRAM, to the next command, to a comment."""
    return re.split(r" -- | --$| [|&;#>]|[;)'\"]", f" {rest} ", maxsplit=1)[0]


def faults(line, grammar):
    """What is wrong with the commands in a line of code."""
    line = re.sub(r"(^|\s)# .*", "", line)
    for name, rest in re.findall(r"\buverbsctl ([a-z][a-z-]*)(?![\w:.*/-])(.*?)(?=$|\buverbsctl )", line):
        if name not in grammar.options:
            yield f"there is no `uverbsctl {name}`"
            continue
        rest = own(rest)
        word = re.match(r" +([a-z][^ ]*)", rest)
        if word and name in grammar.verbs and word[1] not in grammar.verbs[name]:
            yield f"there is no `uverbsctl {name} {word[1]}`"
        if name != "call":
            yield from (f"`uverbsctl {name}` has no {o}" for o in OPTION.findall(rest) if o not in grammar.options[name])
    for rest in re.findall(r"(?<![\w/.-])(?:build/src/)?uverbsd( .*)", line):
        yield from (f"uverbsd has no {o}" for o in OPTION.findall(own(rest)) if o not in grammar.uverbsd)


@pytest.mark.parametrize("page", pages() + MAN_PAGES)
def test_commands_and_options_of_a_page_exist(page, grammar, others):
    text = (ROOT / page).read_text(encoding="utf-8")
    found = [f"{page}: `{line}`: {fault}" for line in code(text) for fault in faults(line, grammar)]
    for span in re.findall(r"(?<!`)`(--?[a-z][^`]*)`", prose(text)) if page not in ATTRIBUTES else ():
        found += [f"{page}: no program has {o}" for o in OPTION.findall(span)
                  if o not in grammar.all | others | FOREIGN.keys() and not o.endswith("-")]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("line, fault", [
    ("uverbsctl stat --json", "there is no `uverbsctl stat`"),
    ("x; uverbsctl status --jsn | cat", "`uverbsctl status` has no --jsn"),
    ("uverbsctl run --filtre x -- sh -c 'uverbsctl status --jsn'", "`uverbsctl run` has no --filtre"),
    ("uverbsctl run -- sh -c 'uverbsctl status --jsn'", "`uverbsctl status` has no --jsn"),
    ("uverbsctl port rxe0 1 down", "there is no `uverbsctl port rxe0`"),
    ("build/src/uverbsd --persone hfi1 &", "uverbsd has no --persone"),
])
def test_a_wrong_command_is_found(line, fault, grammar):
    assert fault in list(faults(line, grammar))


@pytest.mark.parametrize("line", [
    "uverbsctl run -- ib_send_bw --all", "uverbsctl run: warning: x --nothing", "uverbsctl call PD ALLOC --x 1",
    "uverbsctl status --json  # not --jsn", "scripts/uverbsd.service --x",
])
def test_a_right_command_is_no_fault(line, grammar):
    assert not list(faults(line, grammar))
