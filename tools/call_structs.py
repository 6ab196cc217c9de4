#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""call_structs.py COMMANDS LATER COMPILER...: prints call_structs.c, the kernel's structs as tables of fields.

It reads the structs and enumerations of the headers that the compiler finds. Offsets, sizes and values are left to the compiler,
so the tables cannot differ from the headers. COMMANDS is tests/tree/catalogue.json, which has the names of all commands. LATER is
include/uverbsd/uapi_later.h, which has names of later kernels.
"""
import json
import os.path
import pathlib
import re
import subprocess
import sys

HEADERS = "rdma/ib_user_verbs.h", "rdma/ib_user_ioctl_verbs.h", "infiniband/verbs.h"
SIZES = {"__u8": 1, "__u16": 2, "__be16": 2, "__u32": 4, "__s32": 4, "__be32": 4, "__u64": 8, "__be64": 8}

# Commands whose structs have another name than the command.
STRUCTS = {"EX_CREATE_RWQ_IND_TBL": ("ex_create_rwq_ind_table", "ex_create_rwq_ind_table_resp"),
           "EX_DESTROY_RWQ_IND_TBL": ("ex_destroy_rwq_ind_table", None), "CREATE_XSRQ": ("create_xsrq", "create_srq_resp"),
           "EX_CREATE_FLOW": ("create_flow", "create_flow_resp"), "EX_DESTROY_FLOW": ("destroy_flow", None),
           "OPEN_QP": ("open_qp", "create_qp_resp")}
# Methods' attributes that are structs.
ATTR_STRUCTS = {"CREATE_QP_CAP": "qp_cap", "CREATE_QP_RESP_CAP": "qp_cap", "QUERY_PORT_RESP": "query_port_resp_ex",
                "QUERY_GID_ENTRY_RESP_ENTRY": "gid_entry", "ADVISE_MR_SGE_LIST": "sge"}
# The enumeration of a field, as STRUCT.FIELD or FIELD, or of an attribute; "|": a set of flags.
ENUMS = {
    "qp_state": "ibv_qp_state", "cur_qp_state": "ibv_qp_state", "path_mtu": "ibv_mtu", "path_mig_state": "ibv_mig_state",
    "max_mtu": "ibv_mtu", "active_mtu": "ibv_mtu", "query_port_resp.state": "ibv_port_state", "atomic_cap": "ibv_atomic_cap",
    "qp_access_flags": "|ib_uverbs_access_flags", "access_flags": "|ib_uverbs_access_flags", "qp_type": "ib_uverbs_qp_type",
    "port_cap_flags": "|ib_uverbs_query_port_cap_flags", "modify_qp.attr_mask": "|ibv_qp_attr_mask",
    "query_qp.attr_mask": "|ibv_qp_attr_mask", "modify_srq.attr_mask": "|ibv_srq_attr_mask",
    "ex_modify_wq.attr_mask": "|ibv_wq_attr_mask", "ex_modify_cq.attr_mask": "|ibv_cq_attr_mask", "wq_state": "ibv_wq_state",
    "curr_wq_state": "ibv_wq_state", "wq_type": "ib_uverbs_wq_type", "srq_type": "ib_uverbs_srq_type", "mw_type": "ibv_mw_type",
    "send_wr.opcode": "ib_uverbs_wr_opcode", "send_flags": "|ibv_send_flags", "wc.opcode": "ibv_wc_opcode",
    "wc.status": "ibv_wc_status", "wc_flags": "|ibv_wc_flags", "rereg_mr.flags": "|ibv_rereg_mr_flags",
    "ex_create_cq.flags": "|ib_uverbs_ex_create_cq_flags", "ex_create_wq.create_flags": "|ib_uverbs_wq_flags",
    "ex_create_qp.create_flags": "|ib_uverbs_qp_create_flags", "flow_attr.type": "ibv_flow_attr_type",
    "flow_attr.flags": "|ibv_flow_flags", "gid_entry.gid_type": "ib_uverbs_gid_type",
    "CREATE_QP_TYPE": "ib_uverbs_qp_type", "CREATE_QP_FLAGS": "|ib_uverbs_qp_create_flags",
    "CREATE_CQ_FLAGS": "|ib_uverbs_ex_create_cq_flags", "REG_MR_ACCESS_FLAGS": "|ib_uverbs_access_flags",
    "REG_DM_MR_ACCESS_FLAGS": "|ib_uverbs_access_flags", "REG_DMABUF_MR_ACCESS_FLAGS": "|ib_uverbs_access_flags",
    "CREATE_SRQ_TYPE": "ib_uverbs_srq_type", "CREATE_WQ_TYPE": "ib_uverbs_wq_type", "CREATE_WQ_FLAGS": "|ib_uverbs_wq_flags",
    "ADVISE_MR_ADVICE": "ib_uverbs_advise_mr_advice", "ADVISE_MR_FLAGS": "|ib_uverbs_advise_mr_flag",
    "READ_COUNTERS_FLAGS": "|ib_uverbs_read_counters_flags",
    "device_cap_flags": "|ibv_device_cap_flags", "device_cap_flags_ex": "|ib_uverbs_device_cap_flags",
    "general_caps": "|ibv_odp_general_caps", "rc_odp_caps": "|ibv_odp_transport_cap_bits",
    "uc_odp_caps": "|ibv_odp_transport_cap_bits", "ud_odp_caps": "|ibv_odp_transport_cap_bits",
    "xrc_odp_caps": "|ibv_odp_transport_cap_bits", "supported_qpts": "|ib_uverbs_qp_types",
    "raw_packet_caps": "|ib_uverbs_raw_packet_caps", "tm_caps.flags": "|ibv_tm_cap_flags",
    "query_port_resp.flags": "|ib_uverbs_query_port_flags", "port_cap_flags2": "|ibv_port_cap_flags2",
    "active_width": "ib_port_width", "active_speed": "ib_port_speed", "phys_state": "ib_port_phys_state",
    "link_layer": "ibv_link_layer", "oflags": "|open_flags", "ex_create_qp.comp_mask": "|ib_uverbs_create_qp_mask",
    "ex_modify_wq.flags": "|ib_uverbs_wq_flags", "flags_mask": "|ib_uverbs_wq_flags", "type": "ibv_flow_spec_type",
    "GET_CONTEXT_CORE_SUPPORT": "|ib_uverbs_core_support", "QUERY_CONTEXT_CORE_SUPPORT": "|ib_uverbs_core_support",
    "QP_ATTACH_COMP_CNTR_OP_MASK": "|ib_uverbs_qp_attach_comp_cntr_op",
    "QUERY_COMP_CNTR_CAPS_SUPPORTED_QP_ATTACH_OPS": "|ib_uverbs_qp_attach_comp_cntr_op",
    "MODIFY_COMP_CNTR_ENTRY": "ib_uverbs_comp_cntr_entry", "MODIFY_COMP_CNTR_OP": "ib_uverbs_comp_cntr_modify_op",
    "READ_COMP_CNTR_ENTRY": "ib_uverbs_comp_cntr_entry",
}
# Enumerations that have no name in the headers, or are macros of LATER until the headers have them: what their names begin with.
UNNAMED = {"ibv_link_layer": "IBV_LINK_LAYER_", "ib_uverbs_comp_cntr_entry": "IB_UVERBS_COMP_CNTR_ENTRY_",
           "ib_uverbs_comp_cntr_modify_op": "IB_UVERBS_COMP_CNTR_MODIFY_OP_",
           "ib_uverbs_qp_attach_comp_cntr_op": "IB_UVERBS_QP_ATTACH_COMP_CNTR_OP_"}
# What the InfiniBand specification and the kernel name, and no header for programs: PortInfo's LinkWidthActive, LinkSpeedActive and
# PortPhysicalState; and the flags of open(2) that an XRC domain takes.
NO_HEADER = {
    "ib_port_width": {"IB_WIDTH_1X": 1, "IB_WIDTH_4X": 2, "IB_WIDTH_8X": 4, "IB_WIDTH_12X": 8, "IB_WIDTH_2X": 16},
    "ib_port_speed": {"IB_SPEED_SDR": 1, "IB_SPEED_DDR": 2, "IB_SPEED_QDR": 4, "IB_SPEED_FDR10": 8, "IB_SPEED_FDR": 16,
                      "IB_SPEED_EDR": 32, "IB_SPEED_HDR": 64, "IB_SPEED_NDR": 128},
    "ib_port_phys_state": {"IB_PORT_PHYS_STATE_SLEEP": 1, "IB_PORT_PHYS_STATE_POLLING": 2, "IB_PORT_PHYS_STATE_DISABLED": 3,
                           "IB_PORT_PHYS_STATE_PORT_CONFIGURATION_TRAINING": 4, "IB_PORT_PHYS_STATE_LINK_UP": 5,
                           "IB_PORT_PHYS_STATE_LINK_ERROR_RECOVERY": 6, "IB_PORT_PHYS_STATE_PHY_TEST": 7},
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
HIDDEN = re.compile(r"reserved\d*|response|driver_data|flow_spec_data|hdr|rsvd\d*")
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


class Headers:
    def __init__(self, later, compiler):
        """enums: the names of each enumeration, with their values as the compiler reads them."""
        text = preprocessed(compiler)
        self.structs, self.enums = {}, {}
        for m in re.finditer(r"\bstruct\s+ib_uverbs_(\w+)\s*\{", text):
            self.structs[m[1]] = members(tokens_of(text[m.end() - 1:m.end() + 20000]), 0)[0]
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


class Tables:
    def __init__(self, headers):
        self.headers, self.enums, self.done, self.out = headers, {}, {}, []

    def enum(self, *keys):
        for key in keys:
            if key in ENUMS and ENUMS[key].lstrip("|") in self.headers.enums:
                return self.make_enum(ENUMS[key])
        return "NULL"

    def make_enum(self, enum):
        symbol = "words_" + enum.lstrip("|")
        if symbol not in self.enums:
            values = self.headers.enums[enum.lstrip("|")]
            prefix, words = words_of(enum.lstrip("|"), list(values))
            lines = "".join(f'\t{{ "{w}", {values[n]} }},\n' for w, n in words)
            head = f'"{enum.lstrip("|")}", "{prefix}", {"true" if enum[0] == "|" else "false"}'
            self.enums[symbol] = f"static const struct uvd_words {symbol} = {{ {head}, (const struct uvd_word[]){{\n{lines}\t{{}} }} }};"
            self.out.append(self.enums[symbol])
        return "&" + symbol

    def leaves(self, kinds, of, label, path):
        """The fields of a struct, those of the structs in it, and its flexible array: a line each."""
        fields, tail = [], None
        for kind, name, dimension in kinds:
            if name and HIDDEN.fullmatch(name):
                continue
            if dimension == "" and name == "flow_specs":
                tail = "specs", "NULL"
            elif dimension == "":
                tail = name, "NULL" if kind in SIZES else "&" + self.struct(kind.replace("ib_uverbs_", ""))
            elif not isinstance(kind, list) and kind in SIZES:
                fields.append((label + name, path + name, kind, dimension, of))
            else:
                inner = kind if isinstance(kind, list) else self.headers.structs[kind.replace("ib_uverbs_", "")]
                inner_of = of if isinstance(kind, list) else kind.replace("ib_uverbs_", "")
                more = self.leaves(inner, inner_of, label + (f"{name}." if name and name not in FLAT else ""),
                                   path + (f"{name}." if name else ""))
                fields += more[0]
                tail = tail or more[1]
        return fields, tail

    def struct(self, name):
        symbol = "struct_" + name
        if symbol in self.done:
            return symbol
        fields, tail = self.leaves(self.headers.structs[name], name, "", "")
        lines = ""
        for label, path, kind, dimension, of in fields:
            last = label.split(".")[-1]
            extra = [f".count = {dimension}"] if dimension else []
            extra += [".big = true"] * kind.startswith("__be")
            extra += [".none = true"] * (last in ("comp_channel", "fd") and not name.endswith("_resp"))
            is_handle = last.endswith("_handle") and last != "user_handle" or last == "fd"
            extra += [".created = true"] * (is_handle and name.endswith("_resp"))
            enum = self.enum(f"{of}.{last}", last)
            extra += [f".words = {enum}"] * (enum != "NULL")
            lines += f'\t{{ "{label}", offsetof(struct ib_uverbs_{name}, {path}), {SIZES[kind]}{"".join(", " + e for e in extra)} }},\n'
        named, of = tail or (None, "NULL")
        tail_text = f'"{named}", {of}' if named else "NULL, NULL"
        self.out.append(f'static const struct uvd_struct {symbol} = {{ "{name}", sizeof(struct ib_uverbs_{name}), {tail_text}, '
                        f"(const struct uvd_field[]){{\n{lines}\t{{}} }} }};")
        self.done[symbol] = True
        return symbol

    def pointer(self, name):
        return "&" + self.struct(name) if name in self.headers.structs else "&no_fields"

    def command(self, name):
        short = re.sub("IB_USER_VERBS_(EX_)?CMD_", r"\1", name)
        request, response = STRUCTS.get(short, (short.lower(), short.lower() + "_resp"))
        return f'\t{{ "{name}", {self.pointer(request)}, {self.pointer(response)} }},\n'


def main():
    catalogue = json.loads(pathlib.Path(sys.argv[1]).read_text())
    names = [c["name"] for o in catalogue["objects"] for c in o["commands"]]
    t = Tables(Headers(pathlib.Path(sys.argv[2]).read_text(), sys.argv[3:]))
    commands = "".join(t.command(n) for n in names)
    attrs = "".join(f'\t{{ "UVERBS_ATTR_{a}", {"&" + t.struct(ATTR_STRUCTS[a]) if a in ATTR_STRUCTS else "NULL"}, {t.enum(a)} }},\n'
                    for a in [*ATTR_STRUCTS, *(k for k in ENUMS if k.isupper())])
    specs = "".join(f'\t{{ "{s}", IBV_FLOW_SPEC_{s}, {t.pointer("flow_spec_" + of)} }},\n' for s, of in SPECS.items())
    print("/* Generated by tools/call_structs.py. */")
    print("".join(f"#include <{h}>\n" for h in HEADERS), '#include <fcntl.h>\n#include <stddef.h>\n\n',
          '#include "call.h"\n#include "uverbsd/uapi_later.h"\n', sep="")
    print('static const struct uvd_struct no_fields = { "", 0, NULL, NULL, (const struct uvd_field[]){ {} } };')
    print("\n".join(t.out))
    print(f"const struct uvd_command_fields uvd_commands_fields[] = {{\n{commands}\t{{}} }};")
    print(f"const struct uvd_attr_fields uvd_attrs_fields[] = {{\n{attrs}\t{{}} }};")
    print(f"const struct uvd_flow_kind uvd_flow_kinds[] = {{\n{specs}\t{{}} }};")


main()
