# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Writes mdoc(7) from the light markup of docs/man/*.in, which is also that of uverbsctl's help texts and of the tables in docs.

Paragraphs are separated by empty lines. In a line `literal`, *emphasis*, page(8), --option, docs/trace.md and $VARIABLE have their
macros. `### Title` begins a subsection, ``` a display, and `- ` an item. A line `: text` is what the line before it, a term, means.
"""
import re

# What is more than text, with the groups that decide which macro it gets.
SPECIAL = re.compile(r"""
    `(?P<code>[^`]+)`
  | (?<![\w*\\])\*(?P<emphasis>[^\s*](?:[^*]*[^\s*])?)\*(?!\w)
  | \[(?P<link>[^\]]+)\]\((?:\.\./)?(?P<target>[^)\s]+)\)
  | (?<![\w/.-])(?P<page>[A-Za-z_][\w.+-]*)\((?P<section>[1-9])\)
  | (?<![\w/.-])(?P<function>[A-Za-z_]\w*)\(\)
  | (?<![\w-])(?P<option>--[a-z][\w-]*)
  | (?<![\w/])docs/(?P<doc>[\w-]+\.md)(?:\#[\w-]+)?
  | (?<!\w)\$(?P<variable>[A-Z_]{4,})
""", re.VERBOSE)
CLOSERS = ".,;:)]?!"
VARIABLES = {"NOTIFY_SOCKET", "PKG_CONFIG_PATH", "SHELL", "SYSFS_PATH", "TMPDIR", "UVERBSD_CONTROL", "XDG_RUNTIME_DIR"}
DOCS = "/usr/share/doc/uverbsd/docs"


def escape(text, literal=False):
    text = text.replace("\\", "\\e")
    return text.replace("-", "\\-") if literal else text


def word(text, literal=False):
    """One argument of a macro, which is neither a macro nor a delimiter."""
    text = escape(text, literal).replace('"', "\\(dq")
    return "\\&" + text if re.fullmatch(r"%?[A-Z][a-z0-9]?|Br[coq]|[^\w\\]", text) else text


def words(text, literal=False):
    return " ".join(word(w, literal) for w in text.split())


def argument(arg):
    """The macros of an option's argument: [NAME] is optional, and [=FILE] is, too, behind the option itself."""
    if not arg:
        return ""
    if inner := re.fullmatch(r"\[=(\w+)\]", arg):
        return f" Ns Oo = Ns Ar {word(inner[1])} Oc"
    if inner := re.fullmatch(r"\[(\w+)\]", arg):
        return f" Oo Ar {word(inner[1])} Oc"
    if inner := re.fullmatch(r"(\w+) \[(.+)\]", arg):
        return f" Ar {word(inner[1])} Oo Ar {words(inner[2])} Oc"
    return f" Ar {words(arg)}"


def option(text):
    """`--name`, `--name ARG` or `-n ARG`, as the macros of a line without its dot."""
    name, _, arg = text.partition(" ")
    name, equals, value = name.partition("=")
    text = f"Fl {word(name[1:])}"
    if equals:
        text += f" Ns = Ns Ar {word(value)}" if value else " Ns ="
    return text + argument(arg)


def code(text):
    if re.fullmatch(r"--?[a-z][\w-]*(=[\w.,:/-]*)?( \[?=?[A-Z][^a-z ]*)?", text):
        return option(text)
    if re.fullmatch(r"(/|\./|~/)[\w./<>@*-]+", text):
        return f"Pa {word(text)}"
    if text.removeprefix("$") in VARIABLES:
        return f"Ev {text.removeprefix('$')}"
    if re.fullmatch(r"E[A-Z][A-Z0-9]+", text):
        return f"Er {text}"
    if found := re.fullmatch(r"docs/([\w-]+\.md)", text):
        return f"Pa {DOCS}/{found[1]}"
    return f"Ql {words(text, literal=True)}" + "\\&" * (text[-1] in CLOSERS)


def macro(found, names):
    if found["code"]:
        return f"Ar {word(found['code'])}" if found["code"] in names else code(found["code"])
    if found["emphasis"]:
        return f"Em {words(found['emphasis'])}"
    if found["link"]:
        return f"Pa {DOCS}/{found['link']}" if found["target"].startswith(found["link"]) else None
    if found["page"]:
        return f"Xr {found['page']} {found['section']}"
    if found["function"]:
        return f"Fn {found['function']}"
    if found["option"]:
        return option(found["option"])
    if found["doc"]:
        return f"Pa {DOCS}/{found['doc']}"
    return f"Ev {found['variable']}" if found["variable"] in VARIABLES else None


def pieces(text, names):
    """Yields (is it a macro?, text) in the order of the text, the markup of links left out."""
    at = 0
    for found in SPECIAL.finditer(text):
        if found.start() > at:
            yield False, text[at:found.start()]
        made = macro(found, names)
        yield (True, made) if made else (False, found["link"] or found[0])
        at = found.end()
    if at < len(text):
        yield False, text[at:]


def joined(text, names):
    """A list of lists of pieces that no blank separates."""
    groups = [[]]
    for is_macro, piece in pieces(text, names):
        if is_macro:
            groups[-1].append((True, piece))
            continue
        for i, part in enumerate(re.split(r"\s+", piece)):
            if i:
                groups.append([])
            if part:
                groups[-1].append((False, part))
    return [g for g in groups if g]


def closed(piece):
    """A literal before more text of its line: Ql would quote all of that, too."""
    return f"So {piece[3:]} Sc" if piece.startswith("Ql ") else piece


def macro_line(group, is_last=True):
    """One line of macros from pieces that belong together."""
    out = ""
    for i, (is_macro, piece) in enumerate(group):
        if is_macro and (not is_last or any(m or not set(p) <= set(CLOSERS) for m, p in group[i + 1:])):
            piece = closed(piece)
        if is_macro:
            out += (" Ns " if i else "") + piece
        elif not i:
            out += "No \\&" + word(piece).removeprefix("\\&")
        elif all(c in CLOSERS for c in piece) and i == len(group) - 1:
            out += "".join(f" {c}" for c in piece)
        else:
            out += " Ns \\&" + word(piece).removeprefix("\\&")
    return "." + out


def ends_sentence(text):
    return re.search(r"[\w)\"'][.!?][)\"']*$", text) and not re.search(r"\b(e\.g|i\.e|vs|[A-Z])\.$", text)


def text_lines(text, names=frozenset()):
    """The lines of one paragraph: a new one for each macro and each sentence."""
    lines, current = [], ""

    def flush():
        nonlocal current
        if current:
            lines.append("\\&" + current if current[0] in ".'" else current)
        current = ""

    for group in joined(" ".join(text.split()), names):
        if any(is_macro for is_macro, _ in group):
            flush()
            lines.append(macro_line(group))
            continue
        plain = escape("".join(piece for _, piece in group))
        if current and len(current) + len(plain) >= 79:
            flush()
        current = f"{current} {plain}" if current else plain
        if ends_sentence(plain):
            flush()
    flush()
    return lines


def display(lines):
    return [".Bd -literal -offset indent",
            *("\\&" + t if t[:1] in (".", "'") else t for t in (escape(line, literal=True) for line in lines)), ".Ed"]


def term(text, names=frozenset()):
    """The head of an item: macros and text on one line."""
    out, in_text, groups = "", False, joined(text, names)
    for n, group in enumerate(groups):
        is_macro = any(m for m, _ in group)
        if is_macro:
            part = macro_line(group, n == len(groups) - 1)[1:]
        else:
            plain = "".join(p for _, p in group)
            bare = plain.rstrip(CLOSERS)
            part = ("" if in_text else "No ") + (word(bare) if bare else "") + "".join(f" {c}" for c in plain[len(bare):])
        out, in_text = f"{out} {part}" if out else part, not is_macro
    return out


def tagged(items, names=frozenset()):
    """items: (the head's macros, the paragraphs below it)."""
    lines = [".Bl -tag -width Ds"]
    for head, paragraphs in items:
        lines.append(f".It {head}")
        for i, paragraph in enumerate(paragraphs):
            lines += [".Pp"] * bool(i) + text_lines(paragraph, names)
    return lines + [".El"]


class Reader:
    """Turns a block of the light markup into lines of mdoc."""

    def __init__(self, names=frozenset(), directives=None):
        self.names, self.directives = names, directives or {}
        self.literal = "Cm"  # the macro of literals in terms

    def blocks(self, text):
        block, fence = [], None
        for line in text.splitlines():
            if line.startswith("```"):
                if fence is None:
                    if block:
                        yield block
                    block, fence = [], []
                else:
                    yield ["```", *fence]
                    fence = None
            elif fence is not None:
                fence.append(line)
            elif line.strip():
                block.append(line)
            elif block:
                yield block
                block = []
        if block:
            yield block

    def items(self, block):
        """(term, text) of a block of definitions."""
        items = []
        for line in block:
            if line.startswith(": "):
                items[-1][1].append(line[2:])
            elif line.startswith("  ") and items and items[-1][1]:
                items[-1][1][-1] += " " + line.strip()
            else:
                items.append((line.strip(), []))
        return items

    def head(self, text):
        return re.sub(r"\b(Ql|Pa) ", self.literal + " ", term(text, self.names)).replace("So ", self.literal + " ").replace(" Sc", "")

    def block(self, block):
        head = block[0]
        if head == "```":
            return display(block[1:])
        if head.startswith("@"):
            name, *args = head[1:].split()
            return self.directives[name](*args)
        if head.startswith("### "):
            return [f".Ss {escape(head[4:])}", *(self.block(block[1:]) if block[1:] else [])]
        if head.startswith("- "):
            items = re.split(r"^- ", "\n".join(block), flags=re.MULTILINE)[1:]
            lines = [".Bl -bullet"]
            for item in items:
                lines += [".It", *text_lines(item, self.names)]
            return [*lines, ".El"]
        if len(block) > 1 and block[1].startswith(": "):
            return tagged([(self.head(t), p) for t, p in self.items(block)], self.names)
        return text_lines(" ".join(block), self.names)

    def lines(self, text):
        """Separates paragraphs; subsections, lists and displays separate themselves."""
        out, in_terms = [], False
        for block in self.blocks(text):
            made, was_in_terms = self.block(block), in_terms
            in_terms = len(block) > 1 and block[1].startswith(": ")
            if was_in_terms and in_terms:
                out[-1:] = made[1:]
                continue
            if out and made and not made[0].startswith((".Ss", ".Bl", ".Bd")) and not out[-1].startswith(".Ss"):
                out.append(".Pp")
            out += made
        return out
