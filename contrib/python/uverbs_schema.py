# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The parts of the module uverbs that need no device: values, structs by field, and the rows of a parse tree."""
import ctypes
import json
import pathlib
import socket
import struct

ROW = struct.Struct("=BBBBHHHHHHH6x64s32s32s")  # struct uverbsd_tree_row
ROLE = struct.Struct("=BBBBHHHHHHHHHHBB6xQQ64s64s")  # struct uverbsd_tree_role
_KINDS = "", "object", "method", "attribute", "element", "command"
_CLASSES = "none", "IDR", "FD"
_TYPES = "", "PTR_IN", "PTR_OUT", "CONST", "FLAGS", "IDR", "FD", "IDRS_ARRAY", "ENUM_IN", "RAW_FD"
_ACCESS = "READ", "WRITE", "NEW", "DESTROY"
ANY = 0xffff
AF_IB = 27
_HERE = pathlib.Path(__file__).resolve()
# In a folder of Python's own, such as PREFIX/lib/python3/dist-packages, data has no place.
_PLACES = [_HERE.with_name("uverbs.json"), *(up / "share/uverbsd/python/uverbs.json" for up in _HERE.parents)]
_STORED = next((p for p in _PLACES if p.exists()), _PLACES[0])
_stored = {}


def store():
    """uverbs.json: the structs and enumerations of the kernel's headers, and the trees of the kernel's devices."""
    if not _stored:
        _stored.update(json.loads(_STORED.read_text()))
    return _stored


# ---- values ----------------------------------------------------------------------------------------------------------


class Value(int):
    """A number of an enumeration or a set of flags. It equals the number and its word: 3, "RTS", "LOCAL_WRITE|REMOTE_READ"."""

    def __new__(cls, number, enum):
        self = super().__new__(cls, number)
        self.enum = enum
        return self

    def __str__(self):
        words, rest = [], int(self)
        for word, value in self.enum["words"].items():
            if not self.enum["flags"]:
                if value == self:
                    return word
            elif value and rest & value == value:
                words.append(word)
                rest &= ~value
        return "|".join(words) if words and not rest else int.__repr__(self)

    __repr__ = __str__

    def __eq__(self, other):
        return set(str(self).split("|")) == set(other.upper().split("|")) if isinstance(other, str) else int(self) == other

    def __ne__(self, other):
        return not self == other

    __hash__ = int.__hash__


class Struct(dict):
    """The fields of a struct; s["dest.dlid"] is s.dest.dlid, too."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        inner = Struct((k[len(name) + 1:], v) for k, v in self.items() if k.startswith(name + "."))
        if not inner:
            raise AttributeError(f"no field {name}: there are {', '.join(self)}")
        return inner


def address(buffer):
    """The address of a bytearray, a ctypes object or an mmap, which must live as long as the device uses it."""
    if isinstance(buffer, (ctypes.Array, ctypes.Structure, ctypes._SimpleCData)):
        return ctypes.addressof(buffer)
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def is_memory(value):
    return not isinstance(value, (bytes, str)) and (isinstance(value, ctypes.Array) or _is_buffer(value))


def _is_buffer(value):
    try:
        return not memoryview(value).readonly
    except TypeError:
        return False


def number_of(what, value, size, enum=None):
    """An int of an int, a handle, a word of the enumeration, or the address of a buffer."""
    if isinstance(value, str) and enum:
        words = {w.upper(): v for w, v in enum["words"].items()}
        parts = value.upper().split("|") if enum["flags"] else [value.upper()]
        for part in parts:
            if part not in words:
                raise ValueError(f"{what}: there is no {part!r}: it is one of {', '.join(words)}")
        value = sum({words[p] for p in parts})
    elif size == 8 and is_memory(value):
        value = address(value)
    try:
        number = value.__index__()
    except AttributeError:
        raise TypeError(f"{what}: a number is wanted, not {type(value).__name__}") from None
    if not -(1 << size * 8 - 1) <= number < 1 << size * 8:
        raise ValueError(f"{what}: {number} does not fit into {size} bytes")
    return number & (1 << size * 8) - 1


def bytes_of(what, value):
    if isinstance(value, (list, tuple)):
        return b"".join(struct.pack("=I", number_of(what, v, 4)) for v in value)
    try:
        return bytes(memoryview(value).cast("B") if not isinstance(value, (bytes, bytearray)) else value)
    except TypeError:
        raise TypeError(f"{what}: bytes are wanted, not {type(value).__name__}") from None


# ---- structs by field ------------------------------------------------------------------------------------------------


def sockaddr(text):
    """The bytes of a socket address: 192.0.2.1:7174, [2001:db8::1]:7174, ib:GID/SID or ib:GID/SID/MASK; a port of 0 can be left out."""
    if text.startswith("ib:"):
        parts = text[3:].split("/")
        gid, sid, mask = parts + ["0", hex(2**64 - 1)][len(parts) - 1:]
        raw = socket.inet_pton(socket.AF_INET6, gid)
        return struct.pack("=H", AF_IB) + struct.pack(">HI16sQQQ", 0, 0, raw, int(sid, 0), int(mask, 0), 0)
    if text.startswith("[") or text.count(":") > 1:
        host, _, port = text.lstrip("[").partition("]:" if "]" in text else "]")
        return struct.pack("=H", socket.AF_INET6) + struct.pack(">HI16sI", int(port or 0), 0, socket.inet_pton(socket.AF_INET6, host), 0)
    host, _, port = text.partition(":")
    return struct.pack("=H", socket.AF_INET) + struct.pack(">H4s8x", int(port or 0), socket.inet_aton(host))


def sockaddr_text(raw):
    """The reverse; bytes of another family stay as they are."""
    family, port = struct.unpack_from("=H", raw)[0], struct.unpack_from(">H", raw, 2)[0]
    if family == socket.AF_INET:
        return f"{socket.inet_ntop(family, raw[4:8])}:{port}"
    if family == socket.AF_INET6:
        return f"[{socket.inet_ntop(family, raw[8:24])}]:{port}"
    if family == AF_IB and len(raw) >= 48:
        sid, mask = struct.unpack_from(">QQ", raw, 24)
        return f"ib:{socket.inet_ntop(socket.AF_INET6, raw[8:24])}/{sid:#x}/{mask:#x}"
    return raw


def flatten(values, prefix=""):
    for name, value in values.items():
        name = prefix + name.replace("__", ".")
        if isinstance(value, dict) and not hasattr(value, "__index__"):
            yield from flatten(value, name + ".")
        else:
            yield name, value


def find_field(what, of, name):
    found = [f for f in of["fields"] if f["name"] == name] or [f for f in of["fields"] if f["name"].endswith("." + name)]
    if len(found) != 1:
        raise TypeError(f"{what} has {'several fields' if found else 'no field'} {name}: there are "
                        f"{', '.join(f['name'] for f in found or of['fields'])}")
    return found[0]


def pack_field(what, field, value, data):
    what = f"{what}.{field['name']}"
    if "count" in field:
        length = field["size"] * field["count"]
        if isinstance(value, str) and field.get("role") == "sockaddr":
            value = sockaddr(value)
        elif isinstance(value, str):
            value = socket.inet_pton(socket.AF_INET6, value) if ":" in value else bytes.fromhex(value)
        raw = bytes_of(what, value)
        if len(raw) > length:
            raise ValueError(f"{what}: {len(raw)} bytes are given, and it has {length}")
    else:
        number = number_of(what, value, field["size"], field.get("enum"))
        raw = number.to_bytes(field["size"], "big" if "big" in field else ENDIAN)
    data[field["at"]:field["at"] + len(raw)] = raw


ENDIAN = "little" if struct.pack("=H", 1)[0] else "big"


def pack(what, of, values):
    """The bytes of a struct from a dict of its fields."""
    data = bytearray(of["size"])
    for name, value in flatten(values):
        pack_field(what, find_field(what, of, name), value, data)
    return data


def unpack(of, data):
    """The fields of a struct in these bytes; a device with older structs has not all."""
    out = Struct()
    for f in of["fields"]:
        raw = bytes(data[f["at"]:f["at"] + f["size"] * f.get("count", 1)])
        if len(raw) < f["size"] * f.get("count", 1):
            continue
        if "count" in f:
            out[f["name"]] = sockaddr_text(raw) if f.get("role") == "sockaddr" else raw
        else:
            number = int.from_bytes(raw, "big" if "big" in f else ENDIAN)
            out[f["name"]] = Value(number, f["enum"]) if "enum" in f else number
    return out


# ---- the tree --------------------------------------------------------------------------------------------------------


class Row:
    """A row of the tree: an object, a method, an attribute, an element or a command."""

    def __init__(self, **fields):
        self.method = self.attr = 0
        self.told = None  # what the device tells of its fields; else uverbs.json has the kernel's
        self.__dict__.update(fields)
        self.children = []

    @classmethod
    def of_device(cls, raw):
        kind, type_, access, flags, obj, method, id_, attr, target, min_len, length, name, *_ = ROW.unpack(raw)
        return cls(kind=_KINDS[kind], type=_TYPES[type_] if kind in (3, 4) else _CLASSES[type_] if kind == 1 else "",
                   access=_ACCESS[access], mandatory=bool(flags & 1), udata=bool(flags & (8 if kind == 3 else 4)),
                   extended=bool(flags & 1), object=obj, method=method, id=id_, attr=attr, target=target, min_len=min_len, len=length,
                   name=name.split(b"\0")[0].decode())

    def key(self):
        """Which row it is, as rows of roles name it."""
        return _KINDS.index(self.kind), self.object, self.method, self.id, self.attr, self.kind == "command" and self.extended

    def known(self):
        """What is known of a command's structs, or of an attribute's value."""
        none = {"size": 0, "fields": []}
        if self.kind == "command":
            return self.told or store()["fields"]["commands"].get(self.name, {"request": none, "response": none})
        return self.told or store()["fields"]["attributes"].get(self.name, {})

    @classmethod
    def of_json(cls, kind, o, obj):
        length = o.get("len", ANY)
        return cls(kind=kind, type=o.get("type", o.get("class", "")), access=o.get("access", "READ"), object=obj, id=o["id"],
                   mandatory=o.get("mandatory", False), udata=o.get("udata", o.get("driver_data", False)), name=o["name"],
                   extended=o.get("extended", False), target=o.get("object_id", 0), min_len=o.get("min_len", o.get("request_size", 0)),
                   len=o["response_size"] if kind == "command" else ANY if length is None else length)


def rows_of_json(objects):
    for o in objects:
        yield Row.of_json("object", o, o["id"])
        for m in o["methods"]:
            yield Row.of_json("method", m, o["id"])
            for a in m["attributes"]:
                yield Row.of_json("attribute", a, o["id"])
                for e in a.get("elements", ()):
                    yield Row.of_json("element", e, o["id"])
        for c in o["commands"]:
            yield Row.of_json("command", c, o["id"])


def _told_field(role, flags, at, size, count, target, name, text):
    """A field as uverbs.json has it."""
    field = {"name": name, "at": at, "size": size, "role": role, "object": target}
    if count:
        field["count"] = count
    field.update((word, True) for bit, word in ((1, "big"), (2, "created"), (8, "none")) if flags & bit)
    return {**field, "array": text} if text else field


def told(rows):
    """What a device tells of rows of its tree, by Row.key(), in the form of uverbs.json."""
    all_, roles = {}, {number: word for word, number in store()["fields"]["roles"].items()}
    of = value = None
    for row in rows:
        (kind, role, flags, row_kind, obj, method, id_, attr, row_flags, at, size, count, target, _, _, _, _, number, name,
         text) = ROLE.unpack(row)
        name, text = (t.split(b"\0")[0].decode() for t in (name, text))
        role = roles.get(role, "unknown")
        key = row_kind, obj, method, id_, attr, row_kind == 5 and bool(row_flags & 1)
        if kind in (1, 2, 4):  # a request, a response, or the struct of a value
            of = {"size": size, "fields": [], **({"tail": text, "tail_role": role} if text else {})}
            if kind == 4:
                all_[key].update(of)
                of = all_[key]
            else:
                none = {"size": 0, "fields": []}
                all_.setdefault(key, {"request": none, "response": none})["request" if kind == 1 else "response"] = of
        elif kind == 3:
            value = all_[key] = {}
        elif kind == 5 and role != "reserved":
            value = _told_field(role, flags, at, size, count, target, name, text)
            of["fields"].append(value)
        elif kind == 6:
            value["enum"] = {"flags": bool(size), "words": {}}
        elif kind == 7:
            value["enum"]["words"][name] = number
    return all_


def name_after(name, *prefixes):
    for p in prefixes:
        if name.startswith(p) and name != p:
            return name[len(p):]
    return name


def short_object(name):
    return name_after(name, "UVERBS_OBJECT_", "UVERBSD_OBJECT_")


def plain_method(row):
    """CQ_CREATE; EX_CREATE_CQ of an extended command."""
    if row.name.startswith("IB_USER_VERBS_EX_CMD_"):
        return "EX_" + row.name[21:]
    return name_after(row.name, "UVERBS_METHOD_", "UVERBSD_METHOD_", "IB_USER_VERBS_CMD_", "RDMA_USER_CM_CMD_")


def _short_method(row, obj):
    name = plain_method(row)
    if len(name) <= len(obj) + 1:
        return name
    if name.startswith(obj + "_"):
        return name[len(obj) + 1:]
    return name[:-len(obj) - 1] if name.endswith("_" + obj) else name


def _short_attr(row, method):
    """The end of an attribute's name that its method does not say: cqe of UVERBS_ATTR_CREATE_CQ_CQE."""
    words, said = name_after(row.name, "UVERBS_ATTR_", "UVERBSD_ATTR_").split("_"), plain_method(method).split("_")
    while len(words) > 1 and words[0] in said:
        said.remove(words.pop(0))
    return "_".join(words).lower()


def build(rows):
    """Objects by short name, with their methods and commands; attributes and elements are children."""
    objects, parents = {}, {}
    for row in rows:
        parents[row.kind] = row
        if row.kind == "object":
            row.short = short_object(row.name)
            objects[row.short] = row
        elif row.kind in ("method", "command"):
            row.short = _short_method(row, parents["object"].short)
            parents["object"].children.append(row)
        elif row.kind == "attribute":
            row.short = _short_attr(row, parents["method"])
            parents["method"].children.append(row)
        else:
            row.short = row.name
            parents["attribute"].children.append(row)
    return objects
