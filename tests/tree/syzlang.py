# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A strict parser of the part of syzlang that `uverbsctl tree --format syzlang` writes. It raises Wrong for anything else.

Every name must be defined once, every reference must resolve, and every type, set and resource must be used.
"""
import re

NAME = r"[a-zA-Z_]\w*"
NUMBER = r"0x[0-9a-f]+|\d+"
DIRECTIONS = "in", "out", "inout"
# Constants that come from the header that the description includes.
INCLUDED = {"AT_FDCWD", "O_RDWR"}


class Wrong(Exception):
    pass


def wrong_unless(condition, *what):
    if not condition:
        raise Wrong(*what)


# ---- types ------------------------------------------------------------------------------------------------------------


class Type:
    """name[args]; an argument is a Type, or a str: a number, a range, a text, or a path."""

    def __init__(self, name, args):
        self.name, self.args = name, args

    def __repr__(self):
        return f"{self.name}[{', '.join(map(str, self.args))}]" if self.args else self.name


def parse_type(text):
    kind, rest = _type(text.strip())
    wrong_unless(not rest, "more than a type", text)
    return kind


def _type(text):
    m = re.match(NAME, text)
    wrong_unless(m, "no type", text)
    name, text, args = m[0], text[m.end():], []
    if text.startswith("["):
        text = "," + text[1:]
        while text.startswith(","):
            arg, text = _argument(text[1:].lstrip())
            args.append(arg)
            text = text.lstrip()
        wrong_unless(text.startswith("]"), "no ]", text)
        text = text[1:]
    return Type(name, args), text


def _argument(text):
    m = re.match(rf'"[^"\\\n]*"|(?:{NUMBER})(?::(?:{NUMBER}))?|{NAME}(?::{NAME})+', text)
    if m:
        return m[0], text[m.end():]
    return _type(text)


class Struct:
    def __init__(self, name, is_union):
        self.name, self.is_union, self.fields, self.align, self.varlen = name, is_union, {}, 1, False

    def field(self, name):
        wrong_unless(name in self.fields, "no such field", self.name, name)
        return self.fields[name]


class Call:
    def __init__(self, name, args, returns):
        self.name, self.args, self.returns = name, args, returns


# ---- a description ----------------------------------------------------------------------------------------------------

INTS = {f"int{bits}{be}": bits // 8 for bits in (8, 16, 32, 64) for be in ("", "be") if bits > 8 or not be}


class Description:
    def __init__(self, text):
        self.defines, self.resources, self.flags, self.structs, self.calls = {}, {}, {}, {}, {}
        self.used, self.made, self.wanted = set(), set(), set()
        self._parse(text)
        self._check()

    # -- lines --

    def _add(self, table, name, value):
        everything = self.resources, self.flags, self.structs
        wrong_unless(name not in table and not (table in everything and any(name in t for t in everything)), "defined twice", name)
        wrong_unless(name not in INTS and name not in TYPES, "a name of the language", name)
        table[name] = value

    def _parse(self, text):
        lines = iter(text.split("\n"))
        for line in lines:
            if not line or line.startswith("#"):
                continue
            if m := re.fullmatch(r"include <[\w/.]+>", line):
                continue
            if m := re.fullmatch(rf"define ({NAME})\t({NUMBER})", line):
                self._add(self.defines, m[1], int(m[2], 0))
            elif m := re.fullmatch(rf"resource ({NAME})\[(int32|int64|fd)\](?:: ({NUMBER}))?", line):
                self._add(self.resources, m[1], m[2])
            elif m := re.fullmatch(rf"({NAME}) = ((?:{NAME}|{NUMBER})(?:, (?:{NAME}|{NUMBER}))*)", line):
                self._add(self.flags, m[1], [self.value(v) for v in m[2].split(", ")])
            elif m := re.fullmatch(rf"({NAME}) ([{{[])", line):
                self._add(self.structs, m[1], self._struct(Struct(m[1], m[2] == "["), lines))
            elif m := re.fullmatch(rf"([a-z]\w*\${NAME})\((.*)\)(?: ({NAME}))?", line):
                self._add(self.calls, m[1], Call(m[1], self._arguments(m[2]), m[3]))
            else:
                raise Wrong("no statement", line)

    def _struct(self, struct, lines):
        for line in lines:
            if m := re.fullmatch(r"([}\]])(?: \[(.*)\])?", line):
                wrong_unless((m[1] == "]") == struct.is_union and struct.fields, "end of a struct", struct.name)
                attributes = (m[2] or "").split(", ") if m[2] else []
                struct.varlen = "varlen" in attributes
                struct.align = max([8 for a in attributes if a == "align[8]"], default=1)
                wrong_unless(set(attributes) <= ({"varlen"} if struct.is_union else {"packed", "align[8]"}), "attribute", struct.name)
                wrong_unless(struct.is_union or "packed" in attributes, "padding is not known", struct.name)
                return struct
            m = re.fullmatch(rf"\t({NAME})\t([^\t]+?)(?:\t\((in|out|inout)\))?", line)
            wrong_unless(m, "no field", struct.name, line)
            wrong_unless(m[1] not in struct.fields and m[1] not in ("parent", "syscall"), "name of a field", struct.name, m[1])
            struct.fields[m[1]] = parse_type(m[2]), m[3]
        raise Wrong("no end", struct.name)

    @staticmethod
    def _arguments(text):
        args, rest = {}, text
        while rest:
            m = re.match(rf"({NAME}) ", rest)
            wrong_unless(m and m[1] not in args, "no argument", text)
            args[m[1]], rest = _type(rest[m.end():])
            wrong_unless(not rest or rest.startswith(", ") and rest[2:], "no comma", text)
            rest = rest[2:]
        return args

    def value(self, text):
        text = text.name if isinstance(text, Type) and not text.args else text
        if re.fullmatch(NUMBER, str(text)):
            return int(text, 0)
        wrong_unless(text in self.defines or text in INCLUDED, "no such constant", text)
        self.used.add(text)
        return self.defines.get(text)

    # -- references --

    def _check(self):
        for call in self.calls.values():
            if call.returns:
                wrong_unless(call.returns in self.resources, "no such resource", call.name)
                self.made.add(call.returns)
            for kind in call.args.values():
                self._check_type(kind, None, "in", call, set())
        for what in self.resources:
            wrong_unless(what in self.wanted, "no call wants the resource", what)
            wrong_unless(what in self.made, "no call makes the resource", what)
        for what in [*self.structs, *self.flags]:
            wrong_unless(what in self.used, "not used", what)

    def _check_type(self, kind, struct, direction, call, seen):
        """Checks a type where it is used: direction is that of its data."""
        wrong_unless(isinstance(kind, Type), "a type is wanted", call.name, kind)
        if kind.name in self.structs:
            wrong_unless(not kind.args, "arguments of a struct", kind)
            self.used.add(kind.name)
            if (kind.name, direction) not in seen:
                seen.add((kind.name, direction))
                for field, own in self.structs[kind.name].fields.values():
                    self._check_type(field, self.structs[kind.name], own or direction, call, seen)
        elif kind.name in self.resources:
            wrong_unless(not kind.args, "arguments of a resource", kind)
            if direction in ("in", "inout"):
                self.wanted.add(kind.name)
            if direction in ("out", "inout"):
                self.made.add(kind.name)
        elif kind.name in INTS:
            wrong_unless(len(kind.args) <= 1, "arguments of a number", kind)
            wrong_unless(all(re.fullmatch(rf"(?:{NUMBER}):(?:{NUMBER})", str(a)) for a in kind.args), "no range", kind)
        else:
            wrong_unless(kind.name in TYPES, "no such type", kind)
            TYPES[kind.name](self, kind, struct, direction, call, seen)

    def _sized(self, kind, struct, number_of_args=2):
        """const, flags and the lengths have the size of a number within a struct, and that of the register as an argument."""
        wrong_unless(len(kind.args) == (number_of_args if struct else number_of_args - 1), "number of arguments", kind)
        wrong_unless(not struct or kind.args[-1].name in INTS and not kind.args[-1].args, "no size", kind)

    def _const(self, kind, struct, *_):
        self._sized(kind, struct)
        value = self.value(kind.args[0])
        wrong_unless(not struct or value is not None and value < 1 << 8 * INTS[kind.args[1].name], "does not fit", kind)

    def _flags(self, kind, struct, *_):
        self._sized(kind, struct)
        name = kind.args[0].name
        wrong_unless(name in self.flags, "no such set", kind)
        self.used.add(name)
        bits = 8 * INTS[kind.args[1].name]
        wrong_unless(all(v < 1 << bits for v in self.flags[name]), "does not fit", kind)

    def _length(self, kind, struct, _direction, call, _seen):
        self._sized(kind, struct)
        path = kind.args[0].name if isinstance(kind.args[0], Type) else kind.args[0]
        if struct:
            self.target(struct, path)
        else:
            wrong_unless(path in call.args, "no such argument", kind)

    def target(self, struct, path):
        """The type that a path of a length leads to: it begins at a sibling, or with the name of a struct around it."""
        words = path.split(":")
        if words == ["parent"]:
            return Type(struct.name, [])
        if words[0] in self.structs and words[0] not in struct.fields:
            struct, words = self.structs[words[0]], words[1:]
        for i, word in enumerate(words):
            kind = struct.field(word)[0]
            if i + 1 < len(words):
                inner = kind.args[1] if kind.name == "ptr64" else kind
                wrong_unless(inner.name in self.structs, "a path through no struct", struct.name, path)
                struct = self.structs[inner.name]
        return kind

    def _pointer(self, kind, struct, _direction, call, seen):
        wrong_unless(len(kind.args) == 2 and kind.args[0].name in DIRECTIONS, "no pointer", kind)
        wrong_unless((kind.name == "ptr64") == (struct is not None), "a pointer within a struct has 64 bits on each machine", kind)
        self._check_type(kind.args[1], struct or Struct("", False), kind.args[0].name, call, seen)

    def _array(self, kind, struct, direction, call, seen):
        wrong_unless(struct and len(kind.args) in (1, 2), "no array", kind)
        wrong_unless(len(kind.args) == 1 or re.fullmatch(rf"(?:{NUMBER})(?::(?:{NUMBER}))?", str(kind.args[1])), "no range", kind)
        self._check_type(kind.args[0], struct, direction, call, seen)

    def _plain(self, kind, struct, direction, *_):
        wrong_unless(not kind.args or kind.name in ("string", "buffer"), "arguments", kind)
        wrong_unless(kind.name != "buffer" or [str(a) for a in kind.args] in (["in"], ["out"]), "no direction", kind)
        wrong_unless((kind.name == "vma") <= (struct is None), "vma64 within a struct", kind)
        wrong_unless(kind.name != "fd" or direction == "in", "which descriptor is it?", kind)

    # -- sizes --

    def size(self, kind):
        """(bytes, is it all?): of an array of any length, those of no element."""
        if kind.name in self.structs:
            return self.struct_size(self.structs[kind.name])
        if kind.name in self.resources:
            return (8 if self.resources[kind.name] == "int64" else 4), True
        if kind.name in INTS:
            return INTS[kind.name], True
        if kind.name == "array":
            bytes_, fixed = self.size(kind.args[0])
            least, _, most = str(kind.args[1] if len(kind.args) > 1 else "0:").partition(":")
            return bytes_ * int(least, 0), fixed and not most and len(kind.args) > 1 and ":" not in str(kind.args[1])
        return {"ptr64": 8, "vma64": 8, "fd": 4}.get(kind.name) or INTS[kind.args[-1].name], True

    def struct_size(self, struct):
        sizes = [self.size(kind) for kind, _ in struct.fields.values()]
        if struct.is_union:
            return (min(s for s, _ in sizes), False) if struct.varlen else (max(s for s, _ in sizes), True)
        size = sum(s for s, _ in sizes)
        return (size + struct.align - 1) // struct.align * struct.align, all(f for _, f in sizes)

    def offsets(self, struct, at=0, prefix=""):
        """{"dest.dlid": (offset, type)}: the fields of a struct and of the structs in it."""
        found = {}
        for name, (kind, _) in struct.fields.items():
            if kind.name in self.structs:
                found.update(self.offsets(self.structs[kind.name], at, prefix + name + "."))
            else:
                found[prefix + name] = at, kind
            at += 0 if struct.is_union else self.size(kind)[0]
        return found


TYPES = {"const": Description._const, "flags": Description._flags, "ptr": Description._pointer, "ptr64": Description._pointer,
         "array": Description._array,
         **{n: Description._length for n in ("len", "bytesize", "bytesize4", "bytesize8")},
         **{n: Description._plain for n in ("string", "buffer", "vma", "vma64", "fd")}}
