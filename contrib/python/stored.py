#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""stored.py [--write] UVERBSCTL: prints uverbs.json, or writes it. `ninja -C BUILD python-table` runs it.

The file has the structs and enumerations of the kernel's headers, the trees of devices that do not tell theirs, and the commands
of rdma_cm.
"""
import json
import pathlib
import subprocess
import sys

KEPT = {"object": ("name", "id", "class"), "method": ("name", "id"),
        "attribute": ("name", "id", "type", "access", "object_id", "mandatory", "udata", "min_len", "len"),
        "command": ("name", "id", "extended", "driver_data", "request_size", "response_size")}


def asked(*argv):
    return json.loads(subprocess.run([sys.argv[-1], "tree", *argv], check=True, stdout=subprocess.PIPE).stdout)


def row(kind, o):
    return {k: o[k] for k in KEPT[kind] if k in o and o[k] is not False}


def slim(o):
    """An object without what the module does not read."""
    methods = [{**row("method", m), "attributes": [
        {**row("attribute", a), **({"elements": [row("attribute", e) for e in a["elements"]]} if "elements" in a else {})}
        for a in m["attributes"]]} for m in o["methods"]]
    return {**row("object", o), "methods": methods, "commands": [row("command", c) for c in o["commands"]]}


def lines(o):
    return ",\n".join(json.dumps(k) + ":" + json.dumps(v, separators=(",", ":")) for k, v in o.items())


def objects(tree):
    return ",\n".join(json.dumps(o, separators=(",", ":")) for o in tree)


def main():
    trees = [asked("--json", "--persona", p) for p in ("hfi1", "rxe")]
    trees = {str(t["driver_id"]): [slim(o) for o in t["objects"] if o["id"] < 0x1000] for t in trees}
    fields = asked("--fields")
    cm = [slim(o) for o in asked("--json", "--device", "rdma_cm")["objects"]]
    text = '{"fields":{\n' + ",\n".join(f'"{k}":{{\n{lines(v)}}}' for k, v in fields.items()) + '},\n"trees":{\n' + ",\n".join(
        f'"{k}":[\n' + objects(t) + "]" for k, t in trees.items()) + '},\n"rdma_cm":[\n' + objects(cm) + "]}\n"
    if "--write" in sys.argv:
        pathlib.Path(__file__).with_name("uverbs.json").write_text(text)
    else:
        print(text, end="")


main()
