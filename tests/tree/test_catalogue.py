# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Compares the trees of this build with the kernel's ABI (catalogue.json), and docs/abi*.md with both."""
import os
import pathlib
import re

import pytest

import catalogue as abi

BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build"))
TREE = abi.tree_of(BUILD)
KERNEL = abi.rows(abi.catalogue())
OURS = abi.rows(TREE)
UPDATE = "`ninja -C BUILD abi-table` mends this, if it was meant"
# The facts of a row that the kernel decides. One that the catalogue leaves out is unknown (KNOWN) or false (FLAGS).
KNOWN = "id", "class", "type", "mandatory", "access", "object", "min_len", "len", "request_size", "response_size"
FLAGS = "extended", "zero_trailing", "alloc_and_copy", "udata", "response_address_first", "driver_data"


def beyond(row):
    return row["id"] >= 0x1000 and row.get("namespace") == "driver"


def differences(name, kernel, ours):
    facts = [(fact, kernel[fact], ours.get(fact)) for fact in KNOWN if fact in kernel]
    facts += [(fact, kernel.get(fact, False), ours.get(fact, False)) for fact in FLAGS]
    for fact, want, got in facts:
        unnamed = fact == "object" and got is None and want not in OURS
        if want != got and not unnamed:
            yield f"{name}: {fact} is {got}, the kernel's {want}"
    theirs, elements = kernel.get("elements", []), ours.get("elements", [])
    if len(theirs) != len(elements):
        yield f"{name}: it has {len(elements)} elements, the kernel's {len(theirs)}"
    for k, o in zip(theirs, elements):
        yield from differences(f"{name}[{k['id']}]", k, o)


def test_what_is_in_the_tree_is_as_the_kernel_has_it():
    found = [d for name in OURS.keys() & KERNEL.keys() for d in differences(name, KERNEL[name], OURS[name])]
    assert not found, "\n".join(sorted(found))


def place(tree):
    """name -> the name of the row that contains it."""
    found = {}
    for o in tree["objects"]:
        found.update({c["name"]: o["name"] for c in o["commands"]})
        for m in o["methods"]:
            found[m["name"]] = o["name"]
            found.update({a["name"]: m["name"] for a in m["attributes"] if "_ATTR_UHW_" not in a["name"]})
    return found


def test_everything_is_where_the_kernel_has_it():
    ours, kernel = place(TREE), place(abi.catalogue())
    wrong = {name: ours[name] for name in ours.keys() & kernel.keys() if ours[name] != kernel[name]}
    assert not wrong


def test_nothing_is_in_the_tree_that_the_kernel_does_not_have_outside_the_namespace_of_drivers():
    inside = place(TREE)

    def is_drivers(name):
        return beyond(OURS[name]) or (name in inside and is_drivers(inside[name]))
    assert not [name for name in OURS.keys() - KERNEL.keys() if not is_drivers(name)]


def test_null_has_all_but_the_known_absences():
    missing = {name for name in KERNEL if "null" not in OURS.get(name, {}).get("backends", ())}
    absent = abi.absent()
    unknown, present, lost = map(sorted, (set(absent) - KERNEL.keys(), set(absent) - missing, missing - set(absent)))
    assert len(absent) == len(set(absent)), "a name is there twice"
    assert unknown == [], "no such thing in the kernel"
    assert present == [], f"listed in {abi.ABSENT}, but in the tree: {UPDATE}"
    assert lost == [], "not in the tree of null"


def test_other_backends_have_no_more_than_null():
    assert not [name for name, row in OURS.items() if "null" not in row["backends"]]


def test_notes_are_about_what_is_there():
    for name, (backends, _) in abi.notes().items():
        assert name in OURS and set(backends) <= set(OURS[name]["backends"])


def test_the_tables_are_current():
    for name, text in abi.tables(abi.catalogue(), TREE).items():
        assert (abi.DOCS / name).read_text() == text, UPDATE


# ---- the comparison itself: it must detect each of these faults -----------------------------------------------------


@pytest.mark.parametrize("name, fact, value", [
    ("UVERBS_ATTR_CORE_IN", "id", 9), ("UVERBS_ATTR_CORE_IN", "min_len", 8), ("UVERBS_ATTR_CORE_IN", "len", 8),
    ("UVERBS_ATTR_CORE_IN", "mandatory", True), ("UVERBS_ATTR_CORE_IN", "type", "PTR_OUT"),
    ("UVERBS_ATTR_CORE_IN", "alloc_and_copy", True), ("UVERBS_ATTR_QUERY_PORT_RESP", "zero_trailing", False),
    ("UVERBS_ATTR_DESTROY_PD_HANDLE", "access", "READ"),
    ("UVERBS_ATTR_DESTROY_PD_HANDLE", "object", "UVERBS_OBJECT_CQ"),
    ("UVERBS_OBJECT_PD", "class", "FD"), ("IB_USER_VERBS_CMD_ALLOC_PD", "request_size", 12),
    ("IB_USER_VERBS_CMD_ALLOC_PD", "response_size", 0), ("IB_USER_VERBS_CMD_ALLOC_PD", "extended", True),
    ("IB_USER_VERBS_CMD_ALLOC_PD", "driver_data", False),
    ("IB_USER_VERBS_CMD_DEALLOC_PD", "response_address_first", True),
])
def test_a_wrong_row_is_seen(name, fact, value):
    found = list(differences(name, KERNEL[name], {**OURS[name], fact: value}))
    assert len(found) == 1 and re.match(f"{name}: {fact} is {value}, ", found[0]), found
