#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""catalogue.py BUILD: updates the files that depend on what devices accept.

It writes docs/abi.md, abi-objects.md and abi-objects-more.md from the tree of BUILD (`uverbsctl tree --json`) and from
catalogue.json, the kernel's ABI. It removes rows that the tree now has from absent.txt. `ninja -C BUILD abi-table` runs it.
The tests in this folder import it.
"""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CATALOGUE, ABSENT, NOTES = HERE / "catalogue.json", HERE / "absent.txt", HERE / "notes.txt"
DOCS = HERE.parent.parent / "docs"


def tree_of(build, *options):
    out = subprocess.run([pathlib.Path(build) / "tools" / "uverbsctl", "tree", "--json", *options], check=True,
                         stdout=subprocess.PIPE, timeout=300).stdout
    return json.loads(out)


def catalogue():
    return json.loads(CATALOGUE.read_text())


def rows(tree):
    """name -> row, of all objects, methods, attributes and commands. An attribute that several methods share is METHOD:NAME."""
    found = {}
    for o in tree["objects"]:
        found[o["name"]] = o
        for m in o["methods"]:
            found[m["name"]] = m
            for a in m["attributes"]:
                found[f"{m['name']}:{a['name']}" if a["name"].startswith("UVERBS_ATTR_UHW_") else a["name"]] = a
        for c in o["commands"]:
            found[c["name"]] = c
    return found


def lines(path):
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


def absent():
    return lines(ABSENT)


def notes():
    """name -> (backends, the note on it for them)"""
    found = {}
    for line in lines(NOTES):
        head, text = line.split(": ", 1)
        name, *backends = head.replace(",", "").split()
        found[name] = backends, text
    return found


# ---- docs/abi*.md ----------------------------------------------------------------------------------------------------


def size(a):
    what = {"IDRS_ARRAY": "handles"}.get(a["type"], "bytes")
    if a["type"] == "FLAGS":
        text = "4 or 8 bytes"
    elif a["len"] is None:
        text = f"{a['min_len']} {what} or more" if a["min_len"] else "any size"
    else:
        text = f"{a['len']} {what}" if a["len"] == a["min_len"] else f"{a['min_len']} to {a['len']} {what}"
    if a.get("zero_trailing"):
        text += ", more is zeroed" if a["type"] == "PTR_OUT" else ", more must be zero"
    return text


def rule(a):
    if "access" in a:
        text = f"{a['type']} {a['access']} {(a['object'] or 'any object').replace('UVERBS_OBJECT_', '')}"
    elif "elements" in a:
        text = "ENUM_IN " + ", ".join(f"{e['name']} {size(e)}" for e in a["elements"])
    else:
        text = f"{a['type']} {size(a)}" if "len" in a else a["type"]
    return text + ", mandatory" * a.get("mandatory", False)


class Table:
    def __init__(self, kernel, tree):
        self.backends, self.tree, self.kernel = tree["backends"], rows(tree), rows(kernel)
        self.notes = notes()
        self.out, self.objects = [], (kernel["objects"], [o for o in tree["objects"] if o["name"] not in self.kernel])

    def page(self):
        """The text since the last page."""
        text, self.out = "\n".join(self.out) + "\n", []
        return text

    def say(self, *text):
        self.out += text

    def head(self, *columns):
        columns += "since", *self.backends
        self.say("", "| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns))

    def served(self, name):
        return [b in self.tree.get(name, {}).get("backends", ()) for b in self.backends]

    def mark(self, name, backend):
        return f" ({list(self.notes).index(name) + 1})" if backend in self.notes.get(name, ((),))[0] else ""

    def line(self, row, name, *cells):
        """name: the key in rows()."""
        cells += row.get("since", ""), *("yes" + self.mark(name, b) if s else "-"
                                         for b, s in zip(self.backends, self.served(name)))
        self.say("| " + " | ".join(map(str, cells)) + " |")

    def object(self, o, level="##"):
        self.say("", f"{level} {o['name']}")
        self.head("", "id", "")
        kind = {"IDR": "handles", "FD": "file descriptors", "none": "no objects: a place for methods"}[o["class"]]
        kind += f"; wants the User Capability {o['ucap']}" if o.get("ucap") else ""
        self.line(o, o["name"], f"**{o['name']}**", number(o), kind)
        for m in o["methods"]:
            self.line(m, m["name"], m["name"], number(m), "method")
            for a in m["attributes"]:
                name = a["name"] if a["name"] in self.kernel or a["name"] in self.tree else f"{m['name']}:{a['name']}"
                self.line(a, name, f"&emsp;{a['name']}", number(a), rule(a))


def number(row):
    return row["id"] if row["id"] < 0x1000 else f"0x{row['id']:04x}"


def totals(t):
    kinds = {"write() commands": [], "objects": [], "methods": [], "attributes": []}
    for o in t.objects[0]:
        kinds["objects"].append(o["name"])
        kinds["write() commands"] += [c["name"] for c in o["commands"]]
        kinds["methods"] += [m["name"] for m in o["methods"]]
        kinds["attributes"] += [a["name"] if a["name"] in t.kernel else f"{m['name']}:{a['name']}" for m in o["methods"]
                                for a in m["attributes"]]
    t.say("", "| | in the kernel | " + " | ".join(t.backends) + " |", "|" + " --- |" * (2 + len(t.backends)))
    for kind, names in kinds.items():
        has = [sum(column) for column in zip(*map(t.served, names))]
        t.say(f"| {kind} | {len(names)} | " + " | ".join(map(str, has)) + " |")


MADE = "<!-- Made by `ninja -C BUILD abi-table`: do not edit. -->"

PRELUDE = """# The ABI, and who answers it

For a developer of a provider, of rdma-core, of the kernel's ABI or of uverbsd: whether a backend has a call, and since when the kernel has
it. This page has the commands; [abi-objects.md](abi-objects.md) has the objects that most programs use, with their methods and
attributes, and [abi-objects-more.md](abi-objects-more.md) the other ones.

The three pages have all of the kernel's uverbs ABI, and what devices of uverbsd have on each backend. `since`: the kernel that has it
first, empty where 6.1 has it; *post-X*: seen in patches after X. [tree.md](tree.md) says how to ask a device.

What a backend lacks (`-`) is absent from its devices, which answer as the kernel does for a driver that lacks it:

- a command: EOPNOTSUPP, by write() and by `UVERBS_METHOD_INVOKE_WRITE`; write() looks first, up to the highest number
  that there is, whether the length is that of the header (EINVAL),
- a method, or any method of an object: EPROTONOSUPPORT,
- an attribute: EPROTONOSUPPORT where the client marks it mandatory; otherwise it is not looked at."""


OBJECTS = """# The ABI: objects, methods and attributes

For a developer of a provider, of rdma-core, of the kernel's ABI or of uverbsd: the objects that most programs use.
[abi-objects-more.md](abi-objects-more.md) has the other ones. [abi.md](abi.md) says what the columns mean, and has the notes."""

MORE = """# The ABI: further objects

For a developer of a provider, of rdma-core, of the kernel's ABI or of uverbsd: the objects that few programs use, and uverbsd's own.
[abi.md](abi.md) says what the columns mean, and has the notes."""

# The last object of abi-objects.md.
LAST = "UVERBS_OBJECT_MW"


def tables(kernel, tree):
    """name of a page -> its text"""
    t, pages = Table(kernel, tree), {}
    t.say(MADE, PRELUDE)
    totals(t)
    if t.notes:
        t.say("", "Notes:", "", *(f"{i}. {name}: {text}" for i, (name, (_, text)) in enumerate(t.notes.items(), 1)))
    t.say("", "## write() commands", "",
          "Each can also be called by `UVERBS_METHOD_INVOKE_WRITE`. Sizes are those of the structs, without headers.")
    t.head("number", "command", "object", "request", "response", "driver data")
    commands = [(c, o) for o in t.objects[0] for c in o["commands"]]
    for c, o in sorted(commands, key=lambda x: (x[0].get("extended", False), x[0]["id"])):
        t.line(c, c["name"], c["id"], c["name"], o["name"].replace("UVERBS_OBJECT_", ""), c["request_size"],
               c["response_size"], "yes" if c.get("driver_data") else "")
    pages["abi.md"] = t.page()
    t.say(MADE, OBJECTS)
    for o in t.objects[0]:
        t.object(o)
        if o["name"] == LAST:
            pages["abi-objects.md"] = t.page()
            t.say(MADE, MORE)
    t.say("", "## Beyond the kernel", "",
          "In the namespace of drivers; [abi.h](../include/uverbsd/abi.h) documents it.")
    for o in t.objects[1]:
        t.object(o, "###")
    pages["abi-objects-more.md"] = t.page()
    return pages


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    tree = tree_of(sys.argv[1])
    has = {name for name, row in rows(tree).items() if "null" in row["backends"]}
    kept = [line for line in ABSENT.read_text().splitlines() if line not in has]
    ABSENT.write_text("\n".join(kept) + "\n")
    for name, text in tables(catalogue(), tree).items():
        (DOCS / name).write_text(text)


if __name__ == "__main__":
    main()
