# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The markup of man pages (docs/man/mdoc.py), and the tables that become lists and synopses (make.py)."""
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs" / "man"))
import make  # noqa: E402
import mdoc  # noqa: E402


@pytest.mark.parametrize("text, lines", [
    ("One. Two", ["One.", "Two"]),
    (".de is no request, and 'tis text", ["\\&.de is no request, and 'tis text"]),
    ("a \\n", ["a \\en"]),
    ("see `--log-level LEVEL`, or (uverbsd(8)).", ["see", ".Fl -log-level Ar LEVEL ,", "or", ".No \\&( Ns Xr uverbsd 8 ) ."]),
    ("`a b` and `EIO`", [".Ql a b", "and", ".Er EIO"]),
    ("two `x`s", ["two", ".So x Sc Ns \\&s"]),
    ("`No` is no macro", [".Ql \\&No", "is no macro"]),
    ("/etc and `/run/x`", ["/etc and", ".Pa /run/x"]),
    ("call uvd_bad() and $TMPDIR, not $NAME", ["call", ".Fn uvd_bad", "and", ".Ev TMPDIR ,", "not $NAME"]),
    ("*not* 2 * 3 * 4", [".Em not", "2 * 3 * 4"]),
    ("[here](limits.md), [wire.md](wire.md) and docs/trace.md",
     ["here,", ".Pa /usr/share/doc/uverbsd/docs/wire.md", "and", ".Pa /usr/share/doc/uverbsd/docs/trace.md"]),
])
def test_text_becomes_mdoc(text, lines):
    assert mdoc.text_lines(text) == lines


def test_lists_of_terms_go_on_over_empty_lines_and_displays_keep_their_lines():
    text = "Words:\n\n`a`\n: One\n  line.\n\n`b`, `c`\n: Two.\n\n```\n.x -y\n```\nEnd.\n"
    assert mdoc.Reader().lines(text) == [
        "Words:", ".Bl -tag -width Ds", ".It Cm a", "One line.", ".It Cm b , Cm c", "Two.", ".El",
        ".Bd -literal -offset indent", "\\&.x \\-y", ".Ed", ".Pp", "End."]


@pytest.mark.parametrize("text, macros", [
    ("uverbsctl x list [OPTION...]", ".Cm list Oo Ar OPTION ... Oc"),
    ("uverbsctl x [--control PATH | --run NAME] FILE [KEY=VALUE...]",
     ".Oo Fl -control Ar PATH \\&| Fl -run Ar NAME Oc Ar FILE Oo Ar KEY=VALUE ... Oc"),
    ("uverbsctl x [--] PROGRAM [ARG...]", ".Oo Fl - Oc Ar PROGRAM Oo Ar ARG ... Oc"),
])
def test_synopsis_becomes_mdoc(text, macros):
    assert make.synopsis(text, "uverbsctl x") == [".Nm uverbsctl x", macros.replace("\\&|", "|")]


@pytest.mark.parametrize("help_text, preset, choices, text", [
    ("how many (default: 2)", None, [], "How many. Default: 2."),
    ("uverbsd's own", "none", [], "uverbsd's own. Default: none."),
    ("error, or debug", None, ["error", "debug"], "One of error, or debug."),
    ("what it prints", None, ["text", "json"], "What it prints: text or json."),
])
def test_help_becomes_sentences(help_text, preset, choices, text):
    assert make.explained(help_text, preset, choices) == text


def test_arguments_of_options_become_mdoc():
    assert [mdoc.argument(a) for a in (None, "FILE", "[NAME]", "[=FILE]", "FILE [KEY=VALUE...]")] == [
        "", " Ar FILE", " Oo Ar NAME Oc", " Ns Oo = Ns Ar FILE Oc", " Ar FILE Oo Ar KEY=VALUE... Oc"]


def test_text_comes_out_of_mandoc_as_it_was(tmp_path):
    text = "A `--x` of \\ and `.y`; (`z`), `a`b! Of *all* `Pp Xr`: end."
    page = [".Dd December 1, 2026", ".Dt X 1", ".Os", ".Sh NAME", ".Nm x", ".Nd x", ".Sh DESCRIPTION", *mdoc.text_lines(text)]
    (tmp_path / "x.1").write_text("\n".join(page) + "\n")
    out = subprocess.run(["mandoc", "-Tascii", "-Owidth=200", tmp_path / "x.1"], check=True, stdout=subprocess.PIPE, text=True).stdout
    plain = re.sub(".\x08", "", out)  # bold letters are printed twice
    assert "A --x of \\ and `.y'; (`z'), `a'b! Of all `Pp Xr': end." in " ".join(plain.split())
