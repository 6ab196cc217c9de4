#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Writes the man pages, docs/man/*.[13578], and meson.build, which installs them. They are made of the prose in docs/man/*.in, the tables
of the programs, the headers for plug-ins and the pages about the ABI.

  make.py BUILD             writes all pages; `ninja -C BUILD man-pages` runs it
  make.py --tables FILE     the same with the output of `uverbsctl internal-tables` in FILE
  make.py --check ...       writes nothing; ends with 1, and the names of stale pages, if there are any

A prose file begins with the line `NAME(SECTION): what it is`, and has sections, `## TITLE`, in the markup of mdoc.py. A page of a command
of uverbsctl has its name, synopsis, description, options, exit status and examples from the table: its file only adds to them.
A line @NAME stands for generated text (class Page, `make_NAME`).
"""
import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys

import mdoc
import sources

HERE = pathlib.Path(__file__).resolve().parent
ORDER = ["NAME", "SYNOPSIS", "DESCRIPTION", "VERBS", "COMMANDS", "OPTIONS", "FILTERS AND RULES", "ENVIRONMENT", "FILES", "EXIT STATUS",
         "EXAMPLES", "DIAGNOSTICS", "ERRORS", "DIFFERENCES", "SEE ALSO", "STANDARDS", "HISTORY", "CAVEATS", "BUGS",
         "SECURITY CONSIDERATIONS"]
FIRST_DATE = "2026-12-01"  # of the pages before the first release


def sentence(text):
    """A help text, which is the rest of a line, as a sentence."""
    text = text.strip()
    if re.match(r"[a-z]+('s)?([ ,.;:]|$)", text) and not re.match(r"(uverbsd|uverbsctl|libibverbs|rxe|rdmavt)\b", text):
        text = text[0].upper() + text[1:]
    return text if text[-1:] in ".!?:;" else text + "."


def date():
    """The date of all pages: of the latest release in CHANGELOG.md, so that pages do not become stale by themselves."""
    found = re.search(r"^## .*\b(\d{4}-\d\d-\d\d)\b", (sources.ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    day = datetime.date.fromisoformat(found[1] if found else FIRST_DATE)
    return f"{day:%B} {day.day}, {day.year}"


class Tables:
    """The output of `uverbsctl internal-tables`."""

    def __init__(self, data):
        self.version, self.options, self.groups = data["version"], data["options"], data["groups"]
        self.old, self.filters = data["old"], data["filters"]
        self.commands = {c["name"]: c for c in data["commands"] if not c.get("hidden")}
        # The folder of plug-ins depends on how the build was configured, and man pages do not.
        built = next((o["preset"] for o in self.options if o["name"] == "plugin-dir"), None)
        self.replace = {built: "`pkg-config --variable=plugindir uverbsd`"} if built else {}

    def text(self, text):
        for old, new in self.replace.items():
            text = text.replace(old, new)
        return text

    def rows(self, program, scope):
        return [o for o in self.options if (program is None or program in o["programs"]) and o["scope"] == scope]


# ---- options ---------------------------------------------------------------------------------------------------------


def explained(help_text, preset, choices):
    """The paragraph of an option: what it is, the words that it takes, its default, which the help text can have at its end, too."""
    text = help_text
    if found := re.fullmatch(r"(.*) \(default: (.*)\)", text):
        text, preset = found.groups()
    if choices and not re.search(rf"\b{re.escape(choices[0])}\b", text):
        text += f": {', '.join(choices[:-1])} or {choices[-1]}"
    elif choices and re.match(re.escape(choices[0]) + r"\b", text):
        text = "one of " + text
    text = sentence(text)
    return f"{text} Default: {preset}." if preset else text


def row_head(row):
    arg = (row["arg"] or "").strip("[]=") if row["omittable"] else row["arg"]
    return f"Fl -{row['name']}" + mdoc.argument(f"[{'=' * row['glued']}{arg}]" if row["omittable"] else arg)


def key_head(row):
    arg = (row["arg"] or "yes|no").strip("[]=") if row["omittable"] else row["arg"] or "yes|no"
    return f"Cm {mdoc.word(row['name'].removeprefix('limit-'))} = Ar {mdoc.words(arg)}"


def option_item(option, only=""):
    """Of a command's option. only: says of which verbs it is."""
    names = [f"-{option['short']}"] * bool(option["short"]) + [f"--{option['long']}"] * bool(option["long"])
    values = option["values"] if isinstance(option["values"], list) else []
    text = explained(re.sub(r"^\w+: ", "", option["help"]) if only else option["help"], None, values)
    return " , ".join(f"Fl {n[1:]}{mdoc.argument(option['arg'])}" for n in names), [f"{text} {only}".strip()]


# ---- synopses --------------------------------------------------------------------------------------------------------


def synopsis_words(text):
    """Splits at blanks, and brackets that enclose more than a word off their words."""
    for w in text.split():
        while w.startswith("[") and w.count("[") > w.count("]") or re.fullmatch(r"\[[^\]]*\](\.\.\.)?", w):
            yield "["
            closes = re.fullmatch(r"\[([^\]]*)\](\.\.\.)?", w)
            if closes:
                yield closes[1]
                yield "]" + (closes[2] or "")
                w = ""
                break
            w = w[1:]
        tail = []
        while w.endswith("]") and w.count("]") > w.count("["):
            tail.append("]")
            w = w[:-1]
        if w:
            yield w
        yield from tail


def synopsis_word(w):
    dots = " ..." if w.endswith("...") and len(w) > 3 else ""
    w = w[:-3] if dots else w
    if w == "[":
        return "Oo"
    if w == "]":
        return "Oc" + (" Ns ..." if dots else "")
    if w in ("|", "...", "(", ")"):
        return w if w in ("|", "...") else f"No {mdoc.word(w)}"
    if w == "--":
        return "Fl -"
    if w.startswith("-"):
        return mdoc.option(w) + dots
    if re.search(r"[A-Z]", w):
        return f"Ar {mdoc.word(w)}{dots}"
    return f"Cm {mdoc.word(w)}{dots}"


def synopsis(text, name):
    """The lines of one synopsis: `name` is the page's program with its command."""
    before, found, after = text.partition(name)
    if not found or before.strip():
        return [f".Ql {mdoc.words(text, literal=True)}"] if not found else [".Li " + mdoc.words(text, literal=True)]
    macros = " ".join(synopsis_word(w) for w in synopsis_words(after))
    return [f".Nm {name}", *([f".{macros}"] if macros else [])]


# ---- pages -----------------------------------------------------------------------------------------------------------


class Page:
    def __init__(self, path, tables):
        # A command whose table says all has no file.
        text = path.read_text() if path.exists() else f"{path.name.removesuffix('.1.in')}(1)\n"
        head, _, body = text.partition("\n")
        found = re.fullmatch(r"([\w.-]+)\((\d)\)(?:: (.+))?", head)
        if not found:
            raise SystemExit(f"{path}: the first line must be `NAME(SECTION): what it is`")
        self.tables, self.name, self.section, self.purpose = tables, found[1], found[2], found[3]
        self.command = tables.commands.get(self.name.removeprefix("uverbsctl-")) if self.name.startswith("uverbsctl-") else None
        if self.name.startswith("uverbsctl-") and not self.command:
            raise SystemExit(f"{path}: uverbsctl has no command {self.name.removeprefix('uverbsctl-')}")
        self.sections = {}
        for part in re.split(r"^## ", body, flags=re.MULTILINE)[1:]:
            title, _, text = part.partition("\n")
            if title not in ORDER:
                raise SystemExit(f"{path}: `{title}` is no section of a man page; they are {', '.join(ORDER)}")
            self.sections[title] = text
        makers = {m[5:].replace("_", "-"): getattr(self, m) for m in dir(self) if m.startswith("make_")}
        self.reader = mdoc.Reader(self.names(), makers)

    def names(self):
        """The words in the text of a command that stand for its arguments."""
        if not self.command:
            return frozenset()
        words = " ".join([*self.command["synopses"], *(o["arg"] or "" for o in self.command["options"]),
                          *(v["words"] for v in self.command["verbs"])])
        return frozenset(re.findall(r"\b[A-Z][A-Z_-]+\b", words))

    def markup(self, text):
        return self.reader.lines(self.tables.text(text))

    # -- generated text, for lines @NAME ARGUMENT...

    def make_rows(self, program, scope):
        """The options of a program: uverbsd or run."""
        found = self.tables.rows(program, scope)
        return mdoc.tagged([(row_head(r), [self.tables.text(explained(r["help"], r.get("preset"), r.get("choices")))]) for r in found])

    def make_keys(self, scope):
        """The keys of the configuration file."""
        found = [r for r in self.tables.rows(None, scope) if r["file"] and r["name"] != "plugin"]  # which has sections of its own
        items = []
        for r in found:
            text = explained(r["help"], r.get("preset"), r.get("choices"))
            if scope == "program" and len(r["programs"]) == 1:
                text += " For " + ("uverbsd(8)" if "uverbsd" in r["programs"] else "uverbsctl-run(1)") + " only."
            items.append((key_head(r), [self.tables.text(text)]))
        return mdoc.tagged(items)

    def make_commands(self):
        """All commands of uverbsctl, by group."""
        lines = []
        for group in self.tables.groups:
            members = [self.tables.commands[n] for n in group["commands"] if n in self.tables.commands]
            items = [(f"Xr uverbsctl-{c['name']} 1", [sentence(c["purpose"])]) for c in members]
            lines += [f".Ss {mdoc.escape(group['title'])}", *mdoc.tagged(items)] if items else []
        return lines

    def make_filters(self):
        """The filters that uverbsd has, with their options. Options that differ in their names alone are one item."""
        lines = []
        for f in self.tables.filters:
            groups = {}
            for o in f["options"]:
                groups.setdefault((o["arg"], o["help"], o["preset"]), []).append(o["name"])
            items = [self.filter_options(names, *alike) for alike, names in groups.items()]
            lines += [f".Ss Filter {f['name']}", *mdoc.text_lines(sentence(f["description"])), *mdoc.tagged(items)]
        return lines

    @staticmethod
    def filter_options(names, arg, help_text, preset):
        many = len(names) > 4
        head = " , ".join(f"Cm {mdoc.word(n)}" for n in (["OPERATION"] if many else names))
        said = [explained(help_text, preset, [])] + [f"OPERATION is one of {', '.join(names[:-1])} and {names[-1]}."] * many
        return f"{head} Ns = Ns Ar {mdoc.words(arg or 'VALUE')}", said

    def make_old_forms(self):
        """Forms of commands of earlier releases."""
        return mdoc.tagged([(f"Ic {mdoc.words('uverbsctl ' + o['old'])}", [f"Now `uverbsctl {o['now']}`."]) for o in self.tables.old])

    def make_differences(self):
        lines, rows = [], []

        def flush():
            nonlocal lines, rows
            lines += mdoc.tagged(rows) if rows else []
            rows = []

        for kind, value in sources.differences():
            if kind == "row":
                rows.append(self.difference(value))
                continue
            flush()
            if kind == "title":
                lines.append(f".Ss {mdoc.escape(value)}")
            else:
                lines += [".Pp"] * (not lines[-1:] or not lines[-1].startswith(".Ss")) + mdoc.text_lines(value)
        flush()
        return lines[1:] if lines[0] == ".Pp" else lines

    @staticmethod
    def difference(row):
        columns = list(row)
        where = row.get("where", "")
        where = "" if where in ("", "both") else f" ({where})"
        head = mdoc.term(row[columns[0]]) + (mdoc.term(where) and " " + mdoc.term(where))
        return head, [sentence(f"{name}:").removesuffix(":") + f": {row[name]}." for name in columns[1:] if name != "where" and row[name]]

    def make_abi_commands(self, backend):
        commands, _ = sources.abi()
        has = [self.short(n) for n, (_, backends) in commands.items() if backend in backends]
        return [*mdoc.text_lines(", ".join(has) + ".")]

    def make_abi_methods(self, backend):
        _, objects = sources.abi()
        items = []
        for name, methods in objects.items():
            has = [m for m, (_, backends) in methods.items() if backend in backends]
            if has:
                items.append((f"Cm {name}", [", ".join(self.short(m) for m in has) + "."]))
        return mdoc.tagged(items)

    @staticmethod
    def short(name):
        return re.sub(r"^(IB_USER_VERBS_(EX_)?CMD_|UVERBSD?_METHOD_)", lambda m: "EX_" if m[2] else "", name)

    def make_functions(self, *headers):
        """The functions that headers mark UVD_API, with their comments."""
        lines = []
        for header in headers:
            items = []
            for comment, group in sources.functions(header):
                heads = [self.prototype(*function) for function in group]
                items += [(h, []) for h in heads[:-1]] + [(heads[-1], [sentence(comment)])]
            lines += [f".Ss uverbsd/{header}", *mdoc.tagged(items)]
        return lines

    @staticmethod
    def prototype(returned, name, params):
        # A parenthesis at the end would be taken for a delimiter.
        params = " ".join(f'"{p}"' + "\\&" * p.endswith(")") for p in params)
        return f'Ft "{returned}" ' + "Ns " * returned.endswith("*") + f"Fn {name} {params}"

    # -- sections

    def see_also(self, text):
        """`page(8), page(1)` in the order that mdoc wants, and paragraphs behind them."""
        first, _, rest = text.strip().partition("\n\n")
        named = set(re.findall(r"([\w.+-]+)\((\d)\)", first)) | ({("uverbsctl", "1")} if self.command else set())
        pages = sorted(named - {(self.name, self.section)}, key=lambda page: (page[1], page[0]))
        lines = [f".Xr {name} {section}" + " ," * (i < len(pages) - 1) for i, (name, section) in enumerate(pages)]
        return lines + ([".Pp", *self.markup(rest)] if rest.strip() else [])

    def from_table(self, title):
        c, t = self.command, self.tables
        if not c:
            return []
        if title == "SYNOPSIS":
            return [line for s in c["synopses"] for line in synopsis(s, f"uverbsctl {c['name']}")]
        if title == "DESCRIPTION":
            return self.markup("\n\n".join(c["text"]))
        if title == "VERBS" and c["verbs"]:
            return mdoc.tagged([(self.verb_head(v), [t.text(sentence(v["purpose"]))]) for v in c["verbs"]], self.reader.names)
        if title == "OPTIONS" and self.command_options():
            return mdoc.tagged([(head, [t.text(p) for p in text]) for head, text in self.command_options()], self.reader.names)
        if title == "EXIT STATUS" and c["exit"]:
            return mdoc.tagged([(mdoc.term(e["status"]), [t.text(sentence(e["when"]))]) for e in c["exit"]], self.reader.names)
        if title == "EXAMPLES" and c["examples"]:
            made = [line for e in c["examples"] for line in self.example(e)]
            return made[made[0] == ".Pp":]
        return []

    @staticmethod
    def verb_head(verb):
        words = " ".join(synopsis_word(w) for w in synopsis_words(verb["words"]))
        return f"Cm {verb['name']} {words}".rstrip()

    def command_options(self):
        """Those of the command, then those of single verbs, which several verbs can have alike."""
        items, verbs = [option_item(o) for o in self.command["options"]], {}
        for verb in self.command["verbs"]:
            for o in verb["options"]:
                verbs.setdefault(json.dumps(o), []).append(verb["name"])
        for o, names in verbs.items():
            names = [f"`{n}`" for n in names]
            only = f"Only for {', '.join(names[:-1]) + ' and ' * (len(names) > 1)}{names[-1]}."
            items.append(option_item(json.loads(o), only))
        return items

    def example(self, e):
        what = (sentence(e["what"])[:-1] + ":") if e.get("what") else None
        said = mdoc.text_lines(self.tables.text(what), self.reader.names) if what else []
        return ([".Pp", *said] if said else []) + mdoc.display([e["command"]])

    def lines(self):
        purpose = self.command["purpose"] if self.command else self.purpose
        program = f"uverbsctl {self.command['name']}" if self.command else self.name
        yield f".\\\" Made by `ninja -C BUILD man-pages` from {self.name}.{self.section}.in: do not edit."
        yield f".Dd {date()}"
        yield f".Dt {self.name.upper()} {self.section}"
        # For groff, whose default is BSD. An argument of .Os is against the conventions that `mandoc -T lint` knows.
        yield f".ds doc-default-operating-system uverbsd {self.tables.version}"
        yield ".Os"
        yield from (".Sh NAME", f".Nm {self.name}", f".Nd {mdoc.escape(purpose)}")
        for title in ORDER[1:]:
            own = self.sections.get(title, "")
            if title == "SYNOPSIS":
                made = self.from_table(title)
                made += self.markup(own) if "```" in own else [line for s in own.strip().splitlines() for line in synopsis(s, program)]
            elif title == "SEE ALSO":
                made = self.see_also(own)
            else:
                made = self.from_table(title)
                self.reader.literal = {"FILES": "Pa", "ENVIRONMENT": "Ev"}.get(title, "Cm")
                added = self.markup(own)
                made += [".Pp"] * bool(made and added and not added[0].startswith((".Ss", ".Bl", ".Bd"))) + added
            if made:
                yield from (f".Sh {title}", *made)

    def text(self):
        return "\n".join(self.lines()) + "\n"


def meson(made):
    names = ",\n  ".join(f"'{path.name}'" for path in sorted(made))
    return f"""# Made by `ninja -C BUILD man-pages`: do not edit.
install_man(
  {names})
run_target('man-pages', command: [find_program('/usr/bin/python3'), files('make.py'), meson.project_build_root()], depends: [uverbsctl])
"""


def pages(tables):
    """The path of each file that this program writes -> its text."""
    made = {}
    for path in sorted({*HERE.glob("*.in"), *(HERE / f"uverbsctl-{name}.1.in" for name in tables.commands)}):
        page = Page(path, tables)
        if path.name != f"{page.name}.{page.section}.in":
            raise SystemExit(f"{path}: its first line names {page.name}({page.section})")
        made[path.with_suffix("")] = page.text()
    made[HERE / "meson.build"] = meson(made)
    return made


def read_tables(build):
    uverbsctl = pathlib.Path(build) / "tools" / "uverbsctl"
    return Tables(json.loads(subprocess.run([uverbsctl, "internal-tables"], check=True, stdout=subprocess.PIPE, timeout=60).stdout))


def stale(made):
    """The names of pages that differ from what is written, and of those that have no prose file any more."""
    written = {p: p.read_text() for p in HERE.iterdir() if re.fullmatch(r"\.[1-8]|\.build", p.suffix)}
    return sorted(p.name for p in made.keys() | written.keys() if made.get(p) != written.get(p))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("build", nargs="?")
    parser.add_argument("--tables", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if not args.tables and not args.build:
        parser.error("name the build folder")
    made = pages(Tables(json.loads(args.tables.read_text())) if args.tables else read_tables(args.build))
    old = stale(made)
    if args.check:
        print("\n".join(old))
        return bool(old)
    for name in old:
        if HERE / name in made:
            (HERE / name).write_text(made[HERE / name])
        else:
            (HERE / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
