#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""structs.py ROLES COMMANDS LATER COMPILER...: prints structs.c, the kernel's structs as tables of fields.

It reads the structs and enumerations of the headers that the compiler finds. Offsets, sizes and values are left to the compiler,
so the tables cannot differ from the headers. ROLES is roles.txt, which says what each field means. COMMANDS is
tests/tree/catalogue.json, which has the names of all commands. LATER is include/uverbsd/uapi_later.h, which has names of later
kernels.
"""
import collections
import dataclasses
import json
import os.path
import pathlib
import re
import subprocess
import sys

HEADERS = "netinet/in.h", "rdma/ib_user_verbs.h", "rdma/ib_user_ioctl_verbs.h", "infiniband/verbs.h", "rdma/rdma_user_cm.h"
SIZES = {"__u8": 1, "__u16": 2, "__be16": 2, "__u32": 4, "__s32": 4, "__be32": 4, "__u64": 8, "__be64": 8}

# Members that the tables have as bytes.
BYTES = "sockaddr_in6", "__kernel_sockaddr_storage"
# Structs whose names have a prefix of their own. All others begin with ib_uverbs_.
OTHER_STRUCTS = "rdma_ucm_", "ib_user_path_rec", "ib_path_rec_data"

# Structs that have another meaning in some commands: roles of their own, under a name that no header has.
SAME_STRUCT = {"rdma_ucm_join_resp": "rdma_ucm_create_id_resp", "rdma_ucm_leave_mcast": "rdma_ucm_destroy_id"}

# Commands whose structs have another name than the command.
STRUCTS = {"EX_CREATE_RWQ_IND_TBL": ("ex_create_rwq_ind_table", "ex_create_rwq_ind_table_resp"),
           "EX_DESTROY_RWQ_IND_TBL": ("ex_destroy_rwq_ind_table", None), "CREATE_XSRQ": ("create_xsrq", "create_srq_resp"),
           "EX_CREATE_FLOW": ("create_flow", "create_flow_resp"), "EX_DESTROY_FLOW": ("destroy_flow", None),
           "OPEN_QP": ("open_qp", "create_qp_resp")}
# The same of rdma_cm, where a struct's name is the command's, with rdma_ucm_ before it.
CM_PREFIX, CM_STRUCT = "RDMA_USER_CM_CMD_", "rdma_ucm_"
CM_STRUCTS = {"QUERY_ROUTE": ("query", "query_route_resp"), "LEAVE_MCAST": ("leave_mcast", "destroy_id_resp"),
              "JOIN_IP_MCAST": ("join_ip_mcast", "join_resp"), "JOIN_MCAST": ("join_mcast", "join_resp"),
              "GET_EVENT": ("get_event", "event_resp"), "MIGRATE_ID": ("migrate_id", "migrate_resp"),
              "QUERY": ("query", "query_addr_resp"), "INIT_QP_ATTR": ("init_qp_attr", "ib_uverbs_qp_attr")}
# The response if a field of the request has this value.
CM_OTHER = {"QUERY": ("query_path_resp", "option", "RDMA_USER_CM_QUERY_PATH")}
# Enumerations that have no name in the headers, or are macros of LATER until the headers have them: what their names begin with.
UNNAMED = {"ibv_link_layer": "IBV_LINK_LAYER_", "ib_uverbs_comp_cntr_entry": "IB_UVERBS_COMP_CNTR_ENTRY_",
           "ib_uverbs_comp_cntr_modify_op": "IB_UVERBS_COMP_CNTR_MODIFY_OP_",
           "ib_uverbs_qp_attach_comp_cntr_op": "IB_UVERBS_QP_ATTACH_COMP_CNTR_OP_", "rdma_user_cm_query": "RDMA_USER_CM_QUERY_",
           "rdma_mc_join_flags": "RDMA_MC_JOIN_FLAG_"}
# What the InfiniBand specification and the kernel name, and no header for programs: PortInfo's LinkWidthActive, LinkSpeedActive and
# PortPhysicalState; the flags of completions; the events of rdma_cm.h; and the flags of open(2) that an XRC domain takes.
NO_HEADER = {
    "ib_port_width": {"IB_WIDTH_1X": 1, "IB_WIDTH_4X": 2, "IB_WIDTH_8X": 4, "IB_WIDTH_12X": 8, "IB_WIDTH_2X": 16},
    "ib_port_speed": {"IB_SPEED_SDR": 1, "IB_SPEED_DDR": 2, "IB_SPEED_QDR": 4, "IB_SPEED_FDR10": 8, "IB_SPEED_FDR": 16,
                      "IB_SPEED_EDR": 32, "IB_SPEED_HDR": 64, "IB_SPEED_NDR": 128},
    "ib_port_phys_state": {"IB_PORT_PHYS_STATE_SLEEP": 1, "IB_PORT_PHYS_STATE_POLLING": 2, "IB_PORT_PHYS_STATE_DISABLED": 3,
                           "IB_PORT_PHYS_STATE_PORT_CONFIGURATION_TRAINING": 4, "IB_PORT_PHYS_STATE_LINK_UP": 5,
                           "IB_PORT_PHYS_STATE_LINK_ERROR_RECOVERY": 6, "IB_PORT_PHYS_STATE_PHY_TEST": 7},
    "ib_wc_flags": {f"IB_WC_{n}": f"UVD_WC_{n}" for n in ("GRH", "WITH_IMM", "WITH_INVALIDATE", "IP_CSUM_OK")},
    "rdma_cm_event_type": {f"RDMA_CM_EVENT_{n}": i for i, n in enumerate((
        "ADDR_RESOLVED", "ADDR_ERROR", "ROUTE_RESOLVED", "ROUTE_ERROR", "CONNECT_REQUEST", "CONNECT_RESPONSE", "CONNECT_ERROR",
        "UNREACHABLE", "REJECTED", "ESTABLISHED", "DISCONNECTED", "DEVICE_REMOVAL", "MULTICAST_JOIN", "MULTICAST_ERROR", "ADDR_CHANGE",
        "TIMEWAIT_EXIT"))},
    "open_flags": {"O_CREAT": "O_CREAT", "O_EXCL": "O_EXCL"},
}
# Sets whose bit N stands for the member N of an enumeration. 32 bits have none for IB_UVERBS_QPT_DRIVER, 255.
SETS = {"ib_uverbs_qp_types": ("ib_uverbs_qp_type", "IB_UVERBS_QPT_")}
# What the names of an enumeration begin with where there is only one.
PREFIXES = {"ib_uverbs_core_support": "IB_UVERBS_CORE_SUPPORT_", "ib_uverbs_create_qp_mask": "IB_UVERBS_CREATE_QP_MASK_",
            "ib_uverbs_query_port_flags": "IB_UVERBS_QPF_", "ib_uverbs_read_counters_flags": "IB_UVERBS_READ_COUNTERS_"}
# The specs of a flow: their names in enum ibv_flow_spec_type, and their structs.
SPECS = {"ETH": "eth", "IPV4": "ipv4", "IPV6": "ipv6", "TCP": "tcp_udp", "UDP": "tcp_udp", "VXLAN_TUNNEL": "tunnel", "GRE": "gre",
         "MPLS": "mpls", "ESP": "esp", "ACTION_TAG": "action_tag", "ACTION_DROP": "action_drop", "ACTION_HANDLE": "action_handle",
         "ACTION_COUNT": "action_count"}
# Fields with these roles are no values of a call, and the tables leave them out. Those that are reserved have a list of their own.
HIDDEN = "response", "driver", "same"
FLAT = "base", "legacy_resp"  # the older struct at the beginning of a newer one


def preprocessed(compiler):
    text = "".join(f"#include <{h}>\n" for h in HEADERS)
    return subprocess.run([*compiler, "-E", "-P", "-x", "c", "-"], input=text, stdout=subprocess.PIPE, text=True, check=True).stdout


def tokens_of(text):
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|\b__extension__\b", " ", text)
    return re.findall(r"\w+|[{}\[\];,]|[^\s\w]", text)


def members(tokens, i):
    """The members of the struct whose body begins after tokens[i], "{": (type or members, name, dimension or None)."""
    found = []
    i += 1
    while tokens[i] != "}":
        if tokens[i] in ("struct", "union") and tokens[i + 1] == "{":
            kind, i = members(tokens, i + 1)
        elif tokens[i] == "struct":
            kind, i = tokens[i + 1], i + 2
        else:
            kind, i = tokens[i], i + 1
        name, dimension = None, None
        while tokens[i] != ";":
            if tokens[i] == "[":
                end = tokens.index("]", i)
                dimension, i = " ".join(tokens[i + 1:end]), end
            else:
                name = tokens[i]
            i += 1
        found.append((kind, name, dimension))
        i += 1
    return found, i + 1


def short_name(struct):
    """The name in roles.txt and in the tables."""
    return struct.removeprefix("ib_uverbs_")


def c_name(struct):
    struct = SAME_STRUCT.get(struct, struct)
    return f'struct {"" if struct.startswith(OTHER_STRUCTS) else "ib_uverbs_"}{struct}'


class Headers:
    def __init__(self, later, compiler):
        """enums: the names of each enumeration, with their values as the compiler reads them."""
        text = preprocessed(compiler)
        self.structs, self.enums = {}, {}
        for m in re.finditer(r"\bstruct\s+(\w+)\s*\{", text):
            if m[1].startswith(("ib_uverbs_", *OTHER_STRUCTS)):
                self.structs[short_name(m[1])] = members(tokens_of(text[m.end() - 1:m.end() + 20000]), 0)[0]
        self.structs.update((name, self.structs[same]) for name, same in SAME_STRUCT.items())
        self.cm_commands = list(dict.fromkeys(re.findall(rf"\b{CM_PREFIX}\w+", text)))
        for m in re.finditer(r"\benum\s+(\w+)\s*\{([^}]*)\}", text):
            names = re.findall(r"(?:^|,)\s*([A-Z]\w+)", m[2])
            self.enums[m[1]] = {n: n for n in names if not n.endswith("_OPTIONAL_RANGE") and "RESERVED" not in n}
        for enum, prefix in UNNAMED.items():
            names = re.findall(rf"\b{prefix}\w+", text) or re.findall(rf"#define ({prefix}\w+)", later)
            self.enums.setdefault(enum, {n: n for n in names})
        for enum, (of, prefix) in SETS.items():
            self.enums[enum] = {n.replace(prefix, prefix + "BIT_"): f"1 << {n}" for n in self.enums[of] if not n.endswith("_DRIVER")}
        self.enums.update(NO_HEADER)


def words_of(enum, names):
    """The words that all enumerators begin with, and (word, enumerator) without them; no word begins with a digit."""
    prefix = PREFIXES.get(enum, os.path.commonprefix(names))
    prefix = prefix[:prefix.rfind("_") + 1]
    if any(n[len(prefix):len(prefix) + 1].isdigit() for n in names):
        prefix = prefix[:prefix.rstrip("_").rfind("_") + 1]
    return prefix, [(n[len(prefix):], n) for n in names]


def object_id(name):
    return f'UVERBS{"D" if name.startswith("CM_") else ""}_OBJECT_{name}'


class Role:
    """What roles.txt says of one field: its role, and when the kernel reads it."""
    def __init__(self, text):
        text, _, when = text.partition(" if ")
        self.kind, *self.args = text.split()
        self.of = self.args[0] if self.args else None
        self.selector, self.flags, self.values = None, "0", []
        if when:
            self.selector, op, value = re.fullmatch(r"(\w+)(?: (&|=) (.+))?", when).groups()
            self.flags = "0" if op == "=" else value or "UINT64_MAX"
            self.values = value.split(", ") if op == "=" else []

    def initializers(self):
        """The members of struct uvd_field that follow from the role alone."""
        yield f".role = UVD_ROLE_{self.kind.upper()}"
        if self.kind in ("handle", "fd"):
            ids = [object_id(name) for name in self.of.split("|") if name != "FILE"]
            yield f".object = {ids[0] if ids else 'UVD_NO_OBJECT'}, .or_object = {ids[1] if len(ids) > 1 else 'UVD_NO_OBJECT'}"
            yield from (f".{word} = true" for word in ("makes", "ends", "renews", "optional") if word in self.args)
        if self.kind in ("count", "log", "size", "bytes_of"):
            yield f'.array = "{self.of}"'


class Roles:
    def __init__(self, text):
        self.rows, block = collections.defaultdict(dict), None
        for line in text.splitlines():
            if not line or line.startswith("#"):
                continue
            name, *role = line.split(None, 1)
            if not role:
                block = self.rows[name]
            elif name in block:
                sys.exit(f"roles.txt: two rows of one block are named {name}")
            else:
                block[name] = Role(role[0])

    def of(self, struct, field):
        """A header that is newer than roles.txt has fields that it does not know: numbers, until a row says more."""
        return self.rows[struct].get(field, Role("unknown"))


@dataclasses.dataclass
class Leaf:
    """A number or an array of numbers in a struct: its name and its place; the names that the role means by a name."""
    label: str
    path: str
    kind: str
    dimension: str
    role: Role
    near: str  # what begins the names of the members beside it
    begins: str  # what begins the names of its struct's members
    selector: tuple  # of the struct that it is in: (what begins the selector's name, Role), or None


class Tables:
    def __init__(self, headers, roles):
        self.headers, self.roles, self.enums, self.done, self.out = headers, roles, {}, {}, []

    def words(self, role):
        if role.kind in ("words", "flags") and role.of in self.headers.enums:
            return "&" + self.make_enum(role.of, role.kind == "flags")
        return "NULL"

    def make_enum(self, enum, flags):
        symbol = f"words_{enum}"
        if symbol not in self.enums:
            values = self.headers.enums[enum]
            prefix, words = words_of(enum, list(values))
            lines = "".join(f'\t{{ "{w}", {values[n]} }},\n' for w, n in words)
            head = f'"{enum}", "{prefix}", {"true" if flags else "false"}'
            self.enums[symbol] = f"static const struct uvd_words {symbol} = {{ {head}, (const struct uvd_word[]){{\n{lines}\t{{}} }} }};"
            self.out.append(self.enums[symbol])
        return symbol

    def tail(self, name, kind, role):
        """The initializers of struct uvd_struct for a flexible array."""
        if role.of == "specs":
            return '"specs", NULL, .tail_role = UVD_ROLE_SPECS'
        if kind not in SIZES:
            return f'"{name}", &{self.struct(short_name(kind))}, .tail_role = UVD_ROLE_STRUCT'
        number = Role(" ".join(role.args) or "unknown")
        return f'"{name}", NULL, .tail_role = UVD_ROLE_{number.kind.upper()}, .tail_object = {object_id(number.of)}'

    def leaves(self, kinds, of, own, label, path, begins, selector):
        """The leaves of a struct, those of the structs in it, and its flexible array. own: the name in `of`, label: in all."""
        found, tail = [], None
        for kind, name, dimension in kinds:
            role = self.roles.of(of, own + name) if name else None
            if role and role.kind in HIDDEN:
                continue
            if dimension == "":
                tail = self.tail(name, kind, role)
            elif not isinstance(kind, list) and kind in SIZES:
                found.append(Leaf(label + name, path + name, kind, dimension, role, label, begins, selector))
            elif not isinstance(kind, list) and kind in BYTES:
                found.append(Leaf(label + name, path + name, "__u8", f"sizeof(struct {kind})", role, label, begins, selector))
            elif dimension:
                for i in range(int(dimension)):
                    struct = short_name(kind)
                    found += self.leaves(self.headers.structs[struct], struct, "", f"{label}{name}.{i}.", f"{path}{name}[{i}].",
                                         f"{label}{name}.{i}.", selector)[0]
            else:
                inner = (begins, role) if role and role.selector else selector
                dot = f"{name}." if name else ""
                shown = label + ("" if name in FLAT else dot)
                struct = None if isinstance(kind, list) else short_name(kind)
                args = (self.headers.structs[struct], struct, "") if struct else (kind, of, own + dot)
                more = self.leaves(*args, shown, path + dot, shown if struct else begins, inner)
                found += more[0]
                tail = tail or more[1]
        return found, tail

    def place(self, leaves, what, *names):
        """The place of the first of these names among the leaves, from 1."""
        for name in names:
            for i, leaf in enumerate(leaves):
                if leaf.label == name:
                    return i + 1
        return sys.exit(f"roles.txt: {what} names {names[0]}, which is no field")

    def selection(self, leaves, leaf):
        """When is the field read? By its own row, or by that of the struct that it is in."""
        begins, role = (leaf.begins, leaf.role) if leaf.role.selector else leaf.selector or (None, None)
        if role:
            values = " | ".join(f"UINT64_C(1) << {v}" for v in role.values) or "0"
            yield (f".selector = {self.place(leaves, leaf.label, begins + role.selector)}, .select_flags = {role.flags}, "
                   f".select_values = {values}")

    @staticmethod
    def place_of(struct, leaf):
        """The beginning of a field's initializer: its name and its place in the struct."""
        count = f".count = {leaf.dimension}, " if leaf.dimension else ""
        return f'\t{{ "{leaf.label}", offsetof({c_name(struct)}, {leaf.path}), {SIZES[leaf.kind]}, {count}'

    def initializer(self, struct, leaves, leaf):
        more = [".big = true"] * leaf.kind.startswith("__be")
        more += leaf.role.initializers()
        if leaf.role.kind in ("address", "at") or (leaf.role.kind == "sockaddr" and leaf.role.of):
            more.append(f".beside = {self.place(leaves, leaf.label, leaf.near + leaf.role.of, leaf.begins + leaf.role.of)}")
        more += self.selection(leaves, leaf)
        more += [f".words = {self.words(leaf.role)}"] * (self.words(leaf.role) != "NULL")
        return f'{self.place_of(struct, leaf)}{", ".join(more)} }},\n'

    def struct(self, name):
        symbol = "struct_" + name
        if symbol in self.done:
            return symbol
        all_leaves, tail = self.leaves(self.headers.structs[name], name, "", "", "", "", None)
        leaves = [leaf for leaf in all_leaves if leaf.role.kind != "reserved"]
        lines = "".join(self.initializer(name, leaves, leaf) for leaf in leaves)
        reserved = "".join(self.place_of(name, leaf) + ".role = UVD_ROLE_RESERVED },\n"
                           for leaf in all_leaves if leaf.role.kind == "reserved")
        self.out.append(f'static const struct uvd_struct {symbol} = {{ "{name}", sizeof({c_name(name)}), '
                        f"(const struct uvd_field[]){{\n{lines}\t{{}} }}, {tail or 'NULL'}, "
                        f".reserved = (const struct uvd_field[]){{\n{reserved}\t{{}} }} }};")
        self.done[symbol] = True
        return symbol

    def pointer(self, name):
        return "&" + self.struct(name) if name in self.headers.structs else "&no_fields"

    def command(self, name):
        short = re.sub("IB_USER_VERBS_(EX_)?CMD_", r"\1", name)
        request, response = STRUCTS.get(short, (short.lower(), short.lower() + "_resp"))
        return f'\t{{ "{name}", {self.pointer(request)}, {self.pointer(response)} }},\n'

    def cm_structs(self, name):
        """The names of a command's structs; of a command that has none, "none"."""
        short = name.removeprefix(CM_PREFIX)
        pair = CM_STRUCTS.get(short, (short.lower(), short.lower() + "_resp"))
        return [short_name(p) if p.startswith("ib_uverbs_") else CM_STRUCT + p for p in pair]

    def cm_command(self, name):
        request, response = self.cm_structs(name)
        return f'\t{{ "{name}", {self.pointer(request)}, {self.pointer(response)} }},\n'

    def cm_more(self, name):
        """The entry of a command in uvd_cm_commands."""
        request, response = self.cm_structs(name)
        at, other = "UVD_NO_RESPONSE", ""
        if response in self.headers.structs:
            at = f"offsetof({c_name(request)}, response)"
        if name.removeprefix(CM_PREFIX) in CM_OTHER:
            struct, field, value = CM_OTHER[name.removeprefix(CM_PREFIX)]
            leaves = [leaf for leaf in self.leaves(self.headers.structs[request], request, "", "", "", "", None)[0]
                      if leaf.role.kind != "reserved"]
            other = f", {self.pointer(CM_STRUCT + struct)}, {self.place(leaves, name, field)}, {value}"
        return f'\t{{ "{name}", {at}{other} }},\n'

    def attribute(self, name, role):
        of = self.pointer(role.of) if role.kind == "struct" else "NULL"
        more = [x for x in role.initializers() if not x.startswith(".role")]
        more += [f'.beside = "UVERBS_ATTR_{role.of}"'] * (role.kind == "address")
        return f'\t{{ "UVERBS_ATTR_{name}", {", ".join([f"UVD_ROLE_{role.kind.upper()}", of, self.words(role), *more])} }},\n'


def main():
    roles = Roles(pathlib.Path(sys.argv[1]).read_text())
    catalogue = json.loads(pathlib.Path(sys.argv[2]).read_text())
    names = [c["name"] for o in catalogue["objects"] for c in o["commands"]]
    t = Tables(Headers(pathlib.Path(sys.argv[3]).read_text(), sys.argv[4:]), roles)
    commands = "".join(t.command(n) for n in names) + "".join(t.cm_command(n) for n in t.headers.cm_commands)
    cm = "".join(t.cm_more(n) for n in t.headers.cm_commands)
    attrs = "".join(t.attribute(name, role) for name, role in roles.rows["attributes"].items())
    specs = "".join(f'\t{{ "{s}", IBV_FLOW_SPEC_{s}, {t.pointer("flow_spec_" + of)} }},\n' for s, of in SPECS.items())
    print("/* Generated by src/call/structs.py. */")
    print("".join(f"#include <{h}>\n" for h in HEADERS), "#include <fcntl.h>\n#include <stddef.h>\n\n",
          '#include "call/call.h"\n#include "uverbsd/abi.h"\n#include "uverbsd/uapi_later.h"\n', sep="")
    print('static const struct uvd_field no_field[] = { {} };')
    print('static const struct uvd_struct no_fields = { .name = "", .fields = no_field, .reserved = no_field };')
    print("\n".join(t.out))
    print(f"const struct uvd_command_fields uvd_commands_fields[] = {{\n{commands}\t{{}} }};")
    print(f"const struct uvd_cm_command uvd_cm_commands[] = {{\n{cm}\t{{}} }};")
    print(f"const struct uvd_attr_fields uvd_attrs_fields[] = {{\n{attrs}\t{{}} }};")
    print(f"const struct uvd_flow_kind uvd_flow_kinds[] = {{\n{specs}\t{{}} }};")


main()
