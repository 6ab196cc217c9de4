# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl tree` of this build and of a device, and client.c, which asks a device itself."""
import json
import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build")).resolve()
UVERBSCTL = str(BUILD / "tools" / "uverbsctl")
CLIENT = str(BUILD / "tests" / "tree" / "tree-client")
NODE = "/dev/infiniband/uverbs0"


def call(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)


def tree(*options, under=()):
    done = call(*under, UVERBSCTL, "tree", *options)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def device(backend, *options):
    return UVERBSCTL, "run", "--persona", "hfi1", "--backend", backend, *options, "--"


def walk(tree):
    """(kind, object, method, id, name) in the order of the rows, attributes without their elements."""
    for o in tree["objects"]:
        yield 1, o["id"], 0, o["id"], o["name"]
        for m in o["methods"]:
            yield 2, o["id"], m["id"], m["id"], m["name"]
            yield from ((3, o["id"], m["id"], a["id"], a["name"]) for a in m["attributes"])
        yield from ((5, o["id"], 0, c["id"], c["name"]) for c in o["commands"])


def without_ucaps(said):
    """The part of a tree that an open file without User Capabilities sees."""
    for rows in "objects", "methods", "attributes", "commands":
        if rows in said:
            said[rows] = [row for row in said[rows] if not row.get("ucap")]
            for row in said[rows]:
                without_ucaps(row)
    return said


@pytest.mark.parametrize("backend", ["null", "soft"])
def test_a_device_tells_the_tree_that_this_build_says_it_has(backend):
    told, said = tree("--open", NODE, under=device(backend)), tree("--backend", backend)
    assert told.split("\n", 1)[0] == f"What {NODE} accepts."
    said = [part for part in said.split("\n\n")[1:] if "wants UCAP" not in part]
    assert [part.rstrip() for part in told.split("\n\n")[1:]] == [part.rstrip() for part in said] and len(told) > 5000
    assert told == tree("--device", "hfi1_0", under=device(backend))


def test_json_of_a_device_is_that_of_the_build_without_its_backends():
    told = json.loads(tree("--json", "--open", NODE, under=device("null")))
    said = without_ucaps(json.loads(tree("--json", "--backend", "null")))
    assert told.pop("device") == NODE and said.pop("backends") == ["null"] and said.pop("persona") == "hfi1"

    def strip(rows):
        for row in rows:
            assert row.pop("backends") == ["null"]
            for inner in "methods", "attributes", "elements", "commands":
                strip(row.get(inner, ()))
    strip(said["objects"])
    assert told == said


def test_a_persona_is_shown_on_the_backends_that_support_it():
    told = json.loads(tree("--json", "--persona", "rxe"))
    assert told["persona"] == "rxe" and told["backends"] == ["soft"]
    done = call(UVERBSCTL, "tree", "--persona", "rxe", "--backend", "null")
    assert done.returncode == 1 and "no tree of backend 'null'" in done.stderr and not done.stdout


def test_json_is_the_same_every_time_and_in_the_order_of_ids():
    text = tree("--json")
    assert text == tree("--json")
    rows = list(walk(json.loads(text)))
    assert len(rows) == len(set(rows))
    for o in json.loads(text)["objects"]:
        for m in o["methods"]:
            assert [a["id"] for a in m["attributes"]] == sorted(a["id"] for a in m["attributes"])
        assert [m["id"] for m in o["methods"]] == sorted(m["id"] for m in o["methods"])
        assert o["commands"] == sorted(o["commands"], key=lambda c: (c["extended"], c["id"]))


def test_a_client_of_its_own_reads_all_rows_in_that_order():
    said = without_ucaps(json.loads(tree("--json", "--backend", "soft")))
    done = call(*device("soft"), CLIENT, NODE, str(said["driver_id"]))
    assert done.returncode == 0, done.stderr
    rows = [line.split(" ", 4) for line in done.stdout.splitlines()]
    assert [tuple(map(int, row[:4])) + (row[4],) for row in rows if row[0] != "4"] == list(walk(said))


def test_a_device_without_ioctl_cannot_be_asked_and_says_so():
    done = call(*device("soft", "--abi", "write"), UVERBSCTL, "tree", "--open", NODE)
    assert done.returncode == 1 and "does not support ioctl" in done.stderr and not done.stdout


@pytest.mark.parametrize("options, words", [
    (["--open", "/dev/null"], "does not support ioctl"), (["--open", "/nowhere"], "ENOENT"),
    (["--device", "mlx5_0", "--control", "/nowhere"], "no device 'mlx5_0'"),
])
def test_what_is_no_device_is_said(options, words):
    done = call(UVERBSCTL, "tree", *options)
    assert done.returncode == 1 and words in done.stderr and not done.stdout


@pytest.mark.parametrize("options", [
    ["--backend", "none"], ["--persona", "none"], ["more"], ["--open", NODE, "--device", "hfi1_0"],
    ["--open", NODE, "--backend", "null"], ["--no-such-option"],
])
def test_a_wrong_command_line_is_2(options):
    done = call(UVERBSCTL, "tree", *options)
    assert done.returncode == 2 and done.stderr and not done.stdout


def test_version_is_that_of_the_project():
    said = call(UVERBSCTL, "--version").stdout
    assert said.split()[0] == "uverbsctl" and said.split()[1] == call(UVERBSCTL, "run", "--version").stdout.split()[1]


def test_help_says_where_the_form_of_json_is_described():
    assert "docs/tree.md" in tree("--help")
