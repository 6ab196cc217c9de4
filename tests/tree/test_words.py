# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Flags, masks, capabilities, states and types have words, which `uverbsctl call` and `trace` print and syzlang is made of."""
import json
import os
import pathlib
import re
import subprocess

UVERBSCTL = str(pathlib.Path(os.environ.get("UVERBSD_BUILD", "build")).resolve() / "tools" / "uverbsctl")
# A part of a field's name, "port_cap_flags2", or the end of an attribute's: what it is.
KINDS = {"advice", "cap", "caps", "entry", "flags", "layer", "mask", "mtu", "oflags", "op", "opcode", "ops", "qpts", "speed", "state",
         "status", "support", "type", "width"}
# A field as STRUCT.FIELD, an attribute without UVERBS_ATTR_: what has no words, and why.
NO_WORDS = {
    r".*\.max_\w+": "a limit, which is a number",
    r"(?!EX_CREATE_QP request).*comp_mask": "the ABI defines no bit",
    r".*QUERY_DEVICE response\.page_size_cap": "a bit for each page size",
    r".*QUERY_DEVICE response\.timestamp_mask": "the bits that a time stamp has",
    r"QUERY_PORT(_RESP)?( response)?\.init_type_reply": "the subnet manager's, without names in headers",
    r"spec ETH\.(val|mask)\.ether_type": "a header's field of a packet",
    r"spec IPV4\.(val|mask)\.flags": "a header's field of a packet",
    r".*GET_EVENT response\.status": "an errno, or the reason of a REJ, by the event",
    r".*\.ib_route\.\d\.mtu_selector": "the subnet administrator's: which of exactly, more, less",
    r"QUERY_GID_(ENTRY|TABLE)_FLAGS": "the ABI defines no flag",
}


def asked(*options):
    return json.loads(subprocess.run([UVERBSCTL, "tree", *options], stdout=subprocess.PIPE, check=True, timeout=300).stdout)


def is_of_a_kind(name):
    return any(part.rstrip("0123456789") in KINDS for part in re.split(r"[._]", name.rsplit(".", 1)[-1].lower()))


def fields_of(what, struct):
    """Yields the name and the words of each field of a struct, and of the elements of its array."""
    for f in struct.get("fields", []):
        if "count" not in f:
            yield f"{what}.{f['name']}", f.get("enum"), is_of_a_kind(f["name"])
    if "element" in struct:
        yield from fields_of(f"{what}.{struct['tail']}", struct["element"])


def values(persona):
    """Yields the name, the words, and whether it needs some, of each field and attribute of a device."""
    fields, tree = asked("--fields"), asked("--json", "--persona", persona)
    for name, command in fields["commands"].items():
        short = re.sub("IB_USER_VERBS_(EX_)?CMD_", r"\1", name)
        for way in "request", "response":
            yield from fields_of(f"{short} {way}", command[way])
    for name, spec in fields["specs"].items():
        yield from fields_of(f"spec {name}", spec)
    for attr in (a for o in tree["objects"] for m in o["methods"] for a in m["attributes"]):
        known, short = fields["attributes"].get(attr["name"], {}), re.sub("UVERBS(D)?_ATTR_", "", attr["name"])
        if attr["type"] in ("PTR_IN", "PTR_OUT", "CONST", "FLAGS") and "fields" not in known:
            yield short, known.get("enum"), attr["type"] == "FLAGS" or is_of_a_kind(short.rsplit("_", 1)[-1])
        yield from fields_of(short, known)


def test_each_flag_mask_state_and_type_has_words_or_a_reason():
    seen = {(n, bool(w)) for p in ("hfi1", "rxe") for n, w, needs in values(p) if needs}
    assert len(seen) > 130
    without = {n for n, has_words in seen if not has_words}
    assert not [n for n in without if not any(re.fullmatch(r, n) for r in NO_WORDS)]
    # A reason that no value needs is out of date.
    assert not [r for r in NO_WORDS if not any(re.fullmatch(r, n) for n in without)]


def test_words_are_unique_and_cannot_be_read_as_numbers():
    sets = {json.dumps(w) for p in ("hfi1", "rxe") for _, w, _ in values(p) if w}
    assert len(sets) > 30
    for words in map(json.loads, sets):
        assert all(re.fullmatch(r"[A-Z]\w*", w) for w in words["words"]), words
        assert len({w.upper() for w in words["words"]}) == len({*words["words"].values()}), words
