# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl tree --format syzlang` is a whole and valid description: every row of the tree and every field is in it."""
import json
import os
import pathlib
import subprocess

import pytest

import syzlang

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build")).resolve()
UVERBSCTL = str(BUILD / "tools" / "uverbsctl")
# The public description has variants for the requests of one driver. A few of its names differ from the kernel's.
PUBLIC = {"openat$uverbs0": "openat$uverbs", "close$ibv_device": "close$uverbs", "fd_rdma": "fd_uverbs",
          "vcontext_handle": "uverbs_counters_handle", "ind_tbl_handle": "uverbs_rwq_ind_tbl_handle", "mr_rkey": "uverbs_rkey",
          "write$MLX5_CREATE_DV_QP": "write$uverbs_CREATE_QP", "ioctl$CREATE_COUNTERS": "ioctl$uverbs_COUNTERS_CREATE",
          "ioctl$DESTROY_COUNTERS": "ioctl$uverbs_COUNTERS_DESTROY", "ioctl$READ_COUNTERS": "ioctl$uverbs_COUNTERS_READ"}


def tree(*options):
    done = subprocess.run([UVERBSCTL, "tree", *options], stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    return done.stdout


@pytest.fixture(scope="module")
def text():
    return tree("--format", "syzlang")


@pytest.fixture(scope="module")
def description(text):
    return syzlang.Description(text)


@pytest.fixture(scope="module")
def rows():
    return json.loads(tree("--format", "json"))


@pytest.fixture(scope="module")
def fields():
    return json.loads(tree("--fields"))


def after(name, mark):
    return name.partition(mark)[2]


def attr_type(name):
    return "uverbs_" + name.removeprefix("UVERBS_").lower()


def call_of(row, method):
    name, short = after(method["name"], "_METHOD_"), after(row["name"], "_OBJECT_")
    return "ioctl$uverbs_" + (name if name.startswith(short + "_") else f"{short}_{name}")


def command_of(command):
    return "EX_" * command["extended"] + after(command["name"], "_CMD_")


# ---- what is there ----------------------------------------------------------------------------------------------------


# Only drivers create flow actions.
NOT_MADE = {"uverbs_flow_action_handle"}


def resource_of(object_):
    return f"uverbs_{after(object_, '_OBJECT_').lower()}_handle"


def test_every_object_with_handles_is_a_resource(description, rows):
    for o in rows["objects"]:
        name = resource_of(o["name"])
        kind = None if name in NOT_MADE else {"IDR": "int32", "FD": "fd", "none": None}[o["class"]]
        assert description.resources.get(name) == kind, name
    assert len(description.resources) >= 20


def test_every_method_is_a_call_with_all_its_attributes(description, rows):
    methods = [(o, m) for o in rows["objects"] for m in o["methods"]]
    assert len(methods) >= 40
    for o, m in methods:
        struct = description.structs[description.calls[call_of(o, m)].args["arg"].args[1].name]
        attrs = [kind.name.removesuffix("_or_none") for kind, _ in struct.fields.values() if kind.name.startswith("uverbs_")]
        assert attrs == [attr_type(a["name"]) for a in m["attributes"]], m["name"]
        assert description.struct_size(struct) == (24 + 16 * len(attrs), True), m["name"]
        head = {n: description.value(struct.fields[n][0].args[0]) for n in ("object_id", "method_id", "num_attrs", "driver_id")}
        assert head == {"object_id": o["id"], "method_id": m["id"], "num_attrs": len(attrs), "driver_id": rows["driver_id"]}
        for a in m["attributes"]:
            optional = struct.fields[attr_type(a["name"])[len("uverbs_"):]][0].name.endswith("_or_none")
            assert optional != a["mandatory"], a["name"]


def variants(description, name):
    """The structs of an attribute: one, or one for each element of an enumeration."""
    struct = description.structs[name]
    return [description.structs[kind.name] for kind, _ in struct.fields.values()] if struct.is_union else [struct]


def test_every_attribute_has_its_id_and_the_size_that_the_device_wants(description, rows):
    attrs = {a["name"]: a for o in rows["objects"] for m in o["methods"] for a in m["attributes"]}
    assert len(attrs) >= 150
    for name, a in attrs.items():
        structs = variants(description, attr_type(name))
        for struct, wanted in zip(structs, a.get("elements", [a]), strict=True):
            assert description.struct_size(struct) == (16, True) and description.value(struct.fields["attr_id"][0].args[0]) == a["id"]
            if a["type"] == "ENUM_IN":
                assert description.value(struct.fields["elem_id"][0].args[0]) == wanted["id"], name
            if "min_len" not in wanted or a["type"] == "IDRS_ARRAY":
                continue
            data = struct.fields["data"][0]
            size, fixed = description.size(data.args[1] if data.name == "ptr64" else data)
            least = 4 if a["type"] == "FLAGS" else wanted["min_len"]
            if fixed and wanted["len"] != 0:
                assert least <= size and (wanted["len"] is None or size <= wanted["len"]), name
            elif not fixed:
                assert wanted["len"] != wanted["min_len"], name


def test_handles_are_of_their_objects_and_made_by_what_creates_them(description, rows):
    for o in rows["objects"]:
        for a in (a for m in o["methods"] for a in m["attributes"] if a["type"] in ("IDR", "FD") and a["object"]):
            kind, direction = description.structs[attr_type(a["name"])].fields["data"]
            assert kind.name == (resource_of(a["object"]) if resource_of(a["object"]) not in NOT_MADE else "int32"), a["name"]
            assert direction == ("out" if a["access"] == "NEW" else "in"), a["name"]


def request_of(description, name):
    struct = description.structs[description.calls["write$uverbs_" + name].args["buf"].args[1].name]
    return struct, struct.fields["core"][0] if "core" in struct.fields else None


def response_of(description, struct, request):
    at = struct if "response" in struct.fields else description.structs[request.name] if request else None
    pointer = at.fields["response"][0] if at and "response" in at.fields else None
    if pointer is None or pointer.name != "ptr64":
        return None
    out = description.structs[pointer.args[1].name]
    return out.fields["core"][0] if "core" in out.fields else None


def test_every_command_is_a_write_and_an_invoke_write_with_structs_of_the_kernels_size(description, rows, fields):
    commands = [c for o in rows["objects"] for c in o["commands"]]
    assert len(commands) >= 45
    for c in commands:
        struct, request = request_of(description, command_of(c))
        command = description.value(struct.fields["command"][0].args[0])
        assert command == c["id"] | (0x80000000 if c["extended"] else 0), c["name"]
        header = description.struct_size(struct)[0] - (description.size(request)[0] if request else 0)
        assert header == (24 if c["extended"] else 8) and ("driver" in struct.fields) == c["driver_data"], c["name"]
        response = response_of(description, struct, request)
        for what, kind, size in ("request", request, c["request_size"]), ("response", response, c["response_size"]):
            bytes_ = description.size(kind)[0] if kind else 0
            assert bytes_ == (fields["commands"][c["name"]][what]["size"] or size), (c["name"], what)
            # Later kernels append to the structs of extended commands; this build's headers may be either.
            assert bytes_ == size or c["extended"] or c["name"].endswith("_GET_CONTEXT"), (c["name"], what)
            # The kernel counts words of 4 bytes, or of 8.
            assert bytes_ % (8 if c["extended"] and what == "request" else 4) == 0, (c["name"], what)
        invoke = description.structs[description.calls["ioctl$uverbs_INVOKE_" + command_of(c)].args["arg"].args[1].name]
        cmd = description.structs[invoke.fields["write_cmd"][0].name]
        assert description.value(cmd.fields["data"][0].args[0]) == command and ("core_in" in invoke.fields) == bool(request)


def test_every_field_is_at_its_place_with_its_size_and_its_words(description, rows, fields):
    def same(struct, kind):
        offsets = description.offsets(description.structs[kind.name])
        for f in struct["fields"]:
            at, field = offsets[f["name"]]
            assert (at, description.size(field)[0]) == (f["at"], f["size"] * f.get("count", 1)), (kind, f["name"])
            assert str(field).rstrip("]").endswith("be") == (f.get("big", False) and "count" not in f), (kind, f["name"])
            if field.name == "flags":
                assert set(description.flags[field.args[0].name]) == set(f["enum"]["words"].values()), (kind, f["name"])
            else:
                assert "enum" not in f, (kind, f["name"])
        if "element" in struct:
            same(struct["element"], description.structs[kind.name].fields[struct["tail"]][0].args[0])
    for c in (c for o in rows["objects"] for c in o["commands"]):
        outer, request = request_of(description, command_of(c))
        for what, kind in ("request", request), ("response", response_of(description, outer, request)):
            if kind:
                same(fields["commands"][c["name"]][what], kind)
    for name, spec in fields["specs"].items():
        kind = description.structs["uverbs_flow_spec"].fields[name.lower()][0]
        same({**spec, "fields": [f for f in spec["fields"] if f["name"] != "type"]}, kind)
        assert description.value(description.structs[kind.name].fields["type"][0].args[0]) == spec["type"]
    for name, of in fields["attributes"].items():
        data = description.structs[attr_type(name)].fields["data"][0]
        inner = data.args[1] if data.name == "ptr64" else data
        if "fields" in of:
            same(of, inner.args[0] if inner.name == "array" else inner)
        elif inner.name == "flags":
            assert set(description.flags[inner.args[0].name]) == set(of["enum"]["words"].values()), name


def test_every_command_of_rdma_cm_is_a_write_with_the_kernels_structs(description, fields):
    commands = [c for o in json.loads(tree("--json", "--device", "rdma_cm"))["objects"] for c in o["commands"]]
    assert len(commands) == 22
    for c in commands:
        of, name = fields["commands"][c["name"]], "CM_" + after(c["name"], "_CMD_")
        struct, request = request_of(description, name)
        assert description.value(struct.fields["cmd"][0].args[0]) == c["id"], name
        assert description.size(request)[0] == of["request"]["size"] and description.struct_size(struct)[0] == 8 + c["request_size"], name
        offsets = description.offsets(description.structs[request.name])
        assert all(offsets[f["name"]][0] == f["at"] for f in of["request"]["fields"]), name
        assert offsets.get("response", (None,))[0] == of.get("response_at"), name
        response = response_of(description, struct, request)
        for size in [of["response"]["size"]] if response and "other" not in of else []:
            assert description.size(response)[0] == size, name
    either = description.structs[response_of(description, *request_of(description, "CM_QUERY")).name]
    assert either.is_union and len(either.fields) == 2
    assert {"uverbs_cm_id_handle", "uverbs_cm_mcast_handle", "fd_uverbs_rdma_cm"} <= set(description.resources)


def test_each_name_of_the_public_description_has_its_counterpart(description):
    names = pathlib.Path(__file__).with_name("syzkaller_names.txt").read_text().split("\n\n", 1)[1].split()
    assert len(names) > 60
    ours = {*description.calls, *description.resources}
    for name in names:
        kind, _, verb = name.partition("$")
        verb = verb.removeprefix("MLX5_")
        verb = "EX_" + verb.removesuffix("_EX") if verb.endswith("_EX") else verb
        same = {PUBLIC.get(name), f"uverbs_{name}", f"{kind}$uverbs_{verb}", f"{kind}$uverbs_EX_{verb}"} & ours
        assert same, name


# ---- the grammar ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old, new", [
    ("uverbs_create_cq\n", "uverbs_create_cqq\n"), ("const[UVERBS_OBJECT_CQ, int16]", "const[UVERBS_OBJECT_CQQ, int16]"),
    ("const[UVERBS_OBJECT_CQ, int16]", "const[0x10000, int16]"), ("len[send_wr, int32]", "len[send_wrs, int32]"),
    ("resource uverbs_cq_handle[int32]", "resource uverbs_cq_handle[int33]"), ("} [packed]", "}"), ("ptr64[in,", "ptr[in,"),
    ("bytesize8[response:core, int16]", "bytesize8[response:cor, int16]"), ("flags[uverbs_ibv_qp_state, int8]", "flags[qp_state, int8]"),
    ("data\tuverbs_cq_handle\t(out)", "data\tuverbs_cq_handle\t(off)"),
    ("resource fd_uverbs[fd]", "resource fd_uverbs[fd]\nresource unused[fd]"),
    ("\tcomp_vector\tint32\n", "\tcomp_vector\tint32\n\tcomp_vector\tint32\n"), ("write$uverbs_ALLOC_PD(", "write$uverbs_CREATE_AH("),
    ("array[uverbs_send_wr]", "array[uverbs_send_wr"), ("buf ptr[in, uverbs_cmd_create_cq]", "buf uverbs_cmd_create_cq[in]"),
])
def test_the_grammar_refuses_what_is_wrong(text, old, new):
    assert old in text
    with pytest.raises(syzlang.Wrong):
        syzlang.Description(text.replace(old, new, 1))


def test_a_set_of_names_follows_the_persona_and_the_backend():
    soft = syzlang.Description(tree("--format", "syzlang", "--persona", "rxe"))
    assert soft.defines["UVERBS_DRIVER_ID"] == json.loads(tree("--json", "--persona", "rxe"))["driver_id"]


def test_the_command_of_the_page_runs(tmp_path):
    command, = (line[2:] for line in (ROOT / "docs" / "syzkaller.md").read_text().splitlines() if line.startswith("$ "))
    env = {**os.environ, "PATH": f"{BUILD / 'tools'}:{os.environ['PATH']}"}
    subprocess.run(command, shell=True, cwd=tmp_path, env=env, check=True, timeout=300)
    written, = tmp_path.iterdir()
    description = syzlang.Description(written.read_text())
    for name in "write$uverbs_EX_CREATE_CQ", "ioctl$uverbs_INVOKE_CREATE_CQ", "ioctl$uverbs_CQ_CREATE":
        assert name in description.calls


def test_the_description_of_a_device_has_the_methods_of_that_device():
    done = subprocess.run([UVERBSCTL, "run", "--persona", "hfi1", "--", UVERBSCTL, "tree", "--format", "syzlang", "--open",
                           "/dev/infiniband/uverbs0"], capture_output=True, text=True, check=True, timeout=300)
    assert "ioctl$uverbs_TREE_QUERY" in syzlang.Description(done.stdout).calls


def test_an_unknown_format_is_refused():
    done = subprocess.run([UVERBSCTL, "tree", "--format", "xml"], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2 and "unknown value `xml`" in done.stderr
