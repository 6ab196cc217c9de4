#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""seeds.py FOLDER NAME TRACE: makes seeds of the fuzz targets from the calls of real programs.

`uverbsctl run --trace TRACE` records the programs; scripts/fuzz TARGET --record does both. FOLDER/calls/NAME is the program of up to two
open files of the trace. FOLDER/ioctl and FOLDER/write get one call of each method or command, on the objects that these targets have.

Addresses become those of the targets' client: a registered region gets its own place at FUZZ_BUFFER, each response one at FUZZ_OUT. Keys
and QP numbers are copied from the responses (OP_COPY of fuzz_calls.c). Handles need no change: each file counts its own from 0.
"""
import collections
import json
import pathlib
import struct
import sys

# fuzz/client.h
MEMORY = 0x100000
DATA, OUT, BUFFER, BUFFER_END = MEMORY + 0x4000, MEMORY + 0x8000, MEMORY + 0x10000, MEMORY + 0x20000
FIRST_FD, MOST_FDS = 10, 16
# fuzz/fuzz_calls.c
OP_WRITE, OP_IOCTL, OP_CLOSE, OP_COPY = 0, 1, 2, 5
BOTH_SOFT, FILES, MOST_RECORDS, MOST_COPIES = 3, 2, 128, 8
MOST_OF_A_QUERY = 4  # calls that only ask, of one method
# src/trace/format.h, include/uverbsd/abi.h, src/core/observer.h
TREE, FILE, CALL, CLOSE = 1, 2, 3, 4
KIND_ATTR, TYPE_PTR_OUT, TYPE_IDR, TYPE_FD, ACCESS_NEW = 3, 2, 5, 6, 2
READ, WRITTEN, COMMAND = 1, 2, 3
# rdma/ib_user_verbs.h, rdma/ib_user_ioctl_cmds.h
POLL_CQ, MODIFY_QP, POST_SEND, POST_RECV, POST_SRQ_RECV = 21, 26, 28, 29, 36
EXTENDED = 0x80000000
CORE_IN, CORE_OUT, WRITE_CMD = 0, 1, 2
# fuzz/device.h: the handles that the targets of one call have, by the kernel's ids of the objects
FILLED = {1: 0, 3: 1, 4: 2, 11: 3, 7: 4, 5: 5, 6: 6, 8: 7, 13: 9}
# Numbers that a device chooses for its objects: what a response has of them goes into later requests.
NUMBERS = "lkey", "rkey", "qpn", "srqn", "wqn"

Call = collections.namedtuple("Call", "file ioctl result pieces")
Piece = collections.namedtuple("Piece", "addr kind data")


def is_address(value):
    """Can this be an address of a program of x86-64? As fuzz/record.c."""
    return 0x550000000000 <= value < 0x800000000000


def number(data, at, size=4):
    return int.from_bytes(data[at:at + size], "little")


# ---- the trace --------------------------------------------------------------------------------------------------------------------------

class Trace:
    """The events of a trace: its calls, and the closes of its files; and the attributes of its parse trees by number."""

    def __init__(self, data):
        magic, order, version, self.row_size, _ = struct.unpack_from("<8sIIII", data)
        if magic != b"uvtrace\n" or order != 0x01020304 or version != 1:
            raise SystemExit("seeds.py: it is not a trace of this version of uverbsd")
        self.attrs, self.events = {}, []
        at = 24
        while at + 8 <= len(data):
            length, kind = struct.unpack_from("<II", data, at)
            self.add(kind, data[at:at + length])
            at += length

    def add(self, kind, record):
        if kind == TREE:
            for at in range(32, len(record), self.row_size):
                row = record[at:at + self.row_size]
                if row[0] == KIND_ATTR:
                    obj, method, attr = struct.unpack_from("<HHH", row, 4)
                    self.attrs[obj, method, attr] = (row[1], row[2], number(row, 12, 2), row[24:88].split(b"\0")[0].decode())
        elif kind == CALL:
            file, _, _, result, _, _, flags, _ = struct.unpack_from("<QQQqIIII", record, 8)
            self.events.append(Call(file, flags & 1, result, list(pieces_of(record[56:]))))
        elif kind == CLOSE:
            self.events.append(number(record, 8, 8))


def pieces_of(data):
    at = 0
    while at < len(data):
        addr, _, kept, kind, failed = struct.unpack_from("<QIIII", data, at)
        if not failed:
            yield Piece(addr, kind, data[at + 24:at + 24 + kept])
        at += 24 + (kept + 7) // 8 * 8


def bytes_at(call, kind, addr, most):
    """The bytes from addr on that the call has read or written, up to the first one that the trace does not have."""
    got = {}
    for piece in call.pieces:
        if piece.kind == kind and piece.addr < addr + most and addr < piece.addr + len(piece.data):
            got.update((piece.addr + i, b) for i, b in enumerate(piece.data))
    end = addr
    while end in got and end < addr + most:
        end += 1
    return bytes(got[a] for a in range(addr, end))


def memory(call, kind, addr, length):
    """The bytes at addr; b"" if the trace does not have all of them."""
    got = bytes_at(call, kind, addr, length)
    return got if len(got) == length else b""


# ---- the client's addresses and numbers -------------------------------------------------------------------------------------------------

class Client:
    """What the programs' addresses, descriptors and numbers are in the target."""

    def __init__(self):
        self.regions, self.buffer = [], BUFFER  # of (file, start, length, place)
        self.out = OUT
        self.fds, self.num_fds = {}, 0
        self.numbers = {}  # where the last response with a number is, by its kind and its value
        self.filled = False  # the target has a file with objects

    def fd(self, file, fd):
        """The file with objects has no descriptors: -1 stands for none."""
        return 0xffffffff if self.filled else self.fds.get((file, fd), fd)

    def add_fd(self, file, fd):
        self.fds[file, fd] = FIRST_FD + min(self.num_fds, MOST_FDS - 1)
        self.num_fds += 1

    def add_region(self, file, start, length):
        place = self.buffer + (start & 0xfff)
        if place + length > BUFFER_END:
            place = BUFFER + (start & 0xfff)
        self.buffer = (place + length + 0xfff) & ~0xfff
        self.regions.append((file, start, length, place))

    def room(self, length):
        """A place for a response."""
        at = self.out
        if at + length > BUFFER:
            at = OUT
        self.out = at + (length + 7) // 8 * 8
        return at

    def address(self, file, value):
        """What is an address in a registered region becomes there. Other values can be of any kind: they stay."""
        for owner, start, length, place in reversed(self.regions):
            if owner == file and start <= value < start + length:
                return place + value - start
        return value

    def words(self, file, data, addresses=()):
        """Replaces the words that are in registered regions, and those at these offsets."""
        for at in range(0, len(data) - 7, 8):
            struct.pack_into("<Q", data, at, self.address(file, number(data, at, 8)))
        for at in addresses:
            if at + 8 <= len(data) and is_address(number(data, at, 8)):
                struct.pack_into("<Q", data, at, BUFFER + (number(data, at, 8) & 0x7fff))


class Schema:
    """The structs of commands, and what their fields mean (src/call/roles.txt), as contrib/python/stored.py keeps them."""

    def __init__(self, path):
        stored = json.loads(path.read_text())
        self.attributes, commands = stored["fields"]["attributes"], stored["fields"]["commands"]
        self.sge = self.attributes["UVERBS_ATTR_ADVISE_MR_SGE_LIST"]
        rows = [c for tree in stored["trees"].values() for o in tree for c in o["commands"]]
        self.commands = {c["id"] | EXTENDED * c.get("extended", False): commands[c["name"]] for c in rows}

    def command(self, number):
        none = {"size": 0, "fields": []}
        return self.commands.get(number, {"request": none, "response": none})


SCHEMA = Schema(pathlib.Path(__file__).resolve().parents[1] / "contrib/python/uverbs.json")


def value_of(field, data):
    return number(data, field["at"], field["size"])


def is_read(of, field, data):
    """Does the kernel read the field of this struct?"""
    while "if" in field:
        when, field = field["if"], next(f for f in of["fields"] if f["name"] == field["if"]["field"])
        if not value_of(field, data) & when["flags"] and value_of(field, data) not in when["values"]:
            return False
    return True


def fields_of(of, data, at=0):
    """The fields of a struct that begins in the data at an offset, if the data have them and the kernel reads them: (offset, field)."""
    data = data[at:]
    for f in of["fields"]:
        if f["at"] + f["size"] * f.get("count", 1) <= len(data) and is_read(of, f, data):
            yield at + f["at"], f


def counted(of, role, array, data):
    """The value of the field with this role that counts the array; 0 if there is none."""
    return next((value_of(f, data) for f in of["fields"] if f.get("role") == role and f["array"] == array), 0)


def request_fields(of, data):
    """The fields of a request, of the elements of its flexible array and of their scatter/gather elements: (offset, field)."""
    yield from fields_of(of, data)
    if "element" not in of or len(data) < of["size"]:
        return
    at, size = of["size"], counted(of, "size", of["tail"], data)
    for _ in range(min(counted(of, "count", of["tail"], data), len(data))):
        yield from fields_of(of["element"], data, at)
        at += size
    for _ in range(min(counted(of, "count", "sge", data), len(data))):
        yield from fields_of(SCHEMA.sge, data, at)
        at += SCHEMA.sge["size"]


class Request:
    """A command's request, within the bytes of its call at an offset."""

    def __init__(self, client, call, command, body):
        self.command, self.copies, of = command, [], SCHEMA.command(command)["request"]
        fields = [(at, f, f.get("role")) for at, f in request_fields(of, body)]
        for at, f, role in fields:
            value = number(body, at, f["size"])
            if role == "address":
                client.add_region(call.file, value, number(body, *self.beside(of, f)))
            elif role in NUMBERS and (role, value) in client.numbers:
                self.copies.append((client.numbers[role, value], at))
            elif role == "fd" and "object" in f and value != 0xffffffff:
                struct.pack_into("<I", body, at, client.fd(call.file, value))
        client.words(call.file, body, [at for at, _, role in fields if role == "at"])
        for at, f, role in fields:
            if role == "handle" and client.filled and f["object"] in FILLED:
                struct.pack_into("<I", body, at, FILLED[f["object"]])

    @staticmethod
    def beside(of, field):
        """The place and the size of the field that has an address's length."""
        return next((f["at"], f["size"]) for f in of["fields"] if f["name"] == field["beside"])

    def learn(self, client, call, response, place):
        """Remembers the numbers and the descriptor in the response."""
        for at, f in fields_of(SCHEMA.command(self.command)["response"], response):
            value = number(response, at, f["size"])
            if f.get("role") in NUMBERS:
                client.numbers[f["role"], value] = place + at - OUT
            elif f.get("role") == "fd" and value < 1 << 31:
                client.add_fd(call.file, value)


# ---- calls ------------------------------------------------------------------------------------------------------------------------------

def convert_write(client, call):
    """Returns a name of what the call does, its bytes, and what is to be copied into them; None: the trace has only a part of it."""
    data = bytearray(next((p.data for p in call.pieces if p.kind in (COMMAND, READ)), b""))
    if len(data) < 8:
        return None
    command, in_words, out_words = struct.unpack_from("<IHH", data)
    extended = bool(command & EXTENDED)
    if in_words * (8 if extended else 4) > len(data):
        return None
    start, pointer = (24, 8) if extended else (8, 8)
    length = (out_words + number(data, 18, 2)) * 8 if extended else out_words * 4
    was, place = number(data, pointer, 8) if len(data) >= pointer + 8 else 0, 0
    has_response = length and is_address(was)
    if has_response:
        place = client.room(length)
    body = data[start:]
    request = Request(client, call, command, body)
    data[start:] = body
    if has_response:
        struct.pack_into("<Q", data, pointer, place)
        request.learn(client, call, bytes_at(call, WRITTEN, was, length), place)
    return f"write-{command & 0xffff}{'-ex' if extended else ''}", bytes(data), [(a, b + start) for a, b in request.copies]


class Tree:
    """An ioctl tree: its header and attributes, and behind them what they point to."""

    def __init__(self, client, call, head, trace):
        self.client, self.call, self.trace = client, call, trace
        self.head, self.data, self.copies, self.outs = bytearray(head), bytearray(), [], {}
        self.dropped = []  # attributes
        self.object, self.method = struct.unpack_from("<HH", head, 2)
        self.request = None
        self.addr = next(p.addr for p in call.pieces if p.kind == READ)
        for outputs in (True, False):  # a request has the address of its response
            for at in range(24, len(head), 16):
                self.attr(at, outputs)

    def attr(self, at, outputs):
        ident, length = struct.unpack_from("<HH", self.head, at)
        data = number(self.head, at + 8, 8)
        kind, access, target, name = self.trace.attrs.get((self.object, self.method, ident), (0, 0, 0, ""))
        is_output = kind == TYPE_PTR_OUT
        read = memory(self.call, READ, data, length) if length > 8 and not is_output else b""
        if is_output != outputs:
            return
        if is_output:
            self.output(at, length, data, name)
        elif read:
            struct.pack_into("<Q", self.head, at + 8, DATA + len(self.data))
            self.data += self.input(ident, read, len(self.head) + len(self.data))
            self.data += bytes(-len(self.data) % 8)
        elif kind == TYPE_FD:
            self.descriptor(at, data, access)
        elif kind == TYPE_IDR and self.client.filled and access != ACCESS_NEW:
            struct.pack_into("<Q", self.head, at + 8, FILLED.get(target, data))
        else:
            value = self.input(ident, self.head[at + 8:at + 8 + min(length, 8)], at + 8)
            self.head[at + 8:at + 8 + len(value)] = value

    def output(self, at, length, data, name):
        place = self.client.room(length)
        self.outs[data] = place
        struct.pack_into("<Q", self.head, at + 8, place)
        written = memory(self.call, WRITTEN, data, 4)
        role = SCHEMA.attributes.get(name, {}).get("role")
        if role in NUMBERS and written:
            self.client.numbers[role, number(written, 0)] = place - OUT

    def input(self, ident, body, at):
        body = bytearray(body)
        if (self.object, self.method, ident) == (0, 0, CORE_IN):
            command = next((number(self.head, i + 8, 8) for i in range(24, len(self.head), 16) if number(self.head, i, 2) == WRITE_CMD), 0)
            self.request = Request(self.client, self.call, command, body)
            self.copies += [(source, at + to) for source, to in self.request.copies]
        for i in range(0, len(body) - 7, 8):
            if number(body, i, 8) in self.outs:
                struct.pack_into("<Q", body, i, self.outs[number(body, i, 8)])
        self.client.words(self.call.file, body)
        return body

    def descriptor(self, at, data, access):
        if access != ACCESS_NEW and self.client.filled:
            self.dropped.append(at)
        elif access != ACCESS_NEW:
            struct.pack_into("<Q", self.head, at + 8, self.client.fd(self.call.file, data & 0xffffffff))
        written = memory(self.call, WRITTEN, self.addr + at + 8, 4)
        if access == ACCESS_NEW and written:
            self.client.add_fd(self.call.file, number(written, 0))

    def finish(self):
        """Takes out what the target cannot have. Remembers what the response of a command in the tree has."""
        for at in reversed(self.dropped):
            del self.head[at:at + 16]
        struct.pack_into("<H", self.head, 0, len(self.head))
        struct.pack_into("<H", self.head, 6, (len(self.head) - 24) // 16)
        for was, place in self.outs.items():
            if self.request:
                self.request.learn(self.client, self.call, bytes_at(self.call, WRITTEN, was, 64), place)


def convert_ioctl(client, call, trace):
    addr = next((p.addr for p in call.pieces if p.kind == READ), 0)
    head = memory(call, READ, addr, 24)
    head = head and memory(call, READ, addr, number(head, 0, 2))
    if not head or len(head) != 24 + number(head, 6, 2) * 16:
        return None
    tree = Tree(client, call, head, trace)
    tree.finish()
    name = f"ioctl-{tree.object}-{tree.method}" + (f"-{tree.request.command & 0xffff}" if tree.request else "")
    return name, bytes(tree.head + tree.data), tree.copies


def convert(client, call, trace):
    return convert_ioctl(client, call, trace) if call.ioctl else convert_write(client, call)


# ---- seeds ------------------------------------------------------------------------------------------------------------------------------

class Program:
    """A program of fuzz_calls.c."""

    def __init__(self, trace):
        self.trace, self.client = trace, Client()
        self.files, self.names = {}, collections.Counter()
        self.bytes, self.records, self.calls, self.succeeded = bytearray([BOTH_SOFT]), 0, 0, 0
        for event in trace.events:
            if isinstance(event, Call):
                self.add(event)
            elif event in self.files:
                self.record(OP_CLOSE, self.files.pop(event), b"", 0)

    def record(self, operation, file, data, length=None):
        self.bytes += struct.pack("<BBH", operation, file, len(data) if length is None else length) + data
        self.records += 1

    def file_of(self, call):
        free = [i for i in range(FILES) if i not in self.files.values()]
        if call.file not in self.files and free:
            self.files[call.file] = free[0]
        return self.files.get(call.file)

    def add(self, call):
        file = self.file_of(call)
        made = None if file is None else convert(self.client, call, self.trace)
        if not made or self.is_enough(call, *made[:2]):
            return
        _, data, copies = made
        copies = copies[:MOST_COPIES]
        if self.records + 1 + len(copies) > MOST_RECORDS:
            return
        for source, to in copies:
            self.record(OP_COPY, file, struct.pack("<HH", source, to))
        self.record(OP_IOCTL if call.ioctl else OP_WRITE, file, data)
        self.calls += 1
        self.succeeded += call.result >= 0

    def is_enough(self, call, name, data):
        """A poll that finds nothing says so again and again, and a query is asked for each entry of a table."""
        if name.rpartition("-")[2] == str(POLL_CQ) and any(p.kind == WRITTEN and len(p.data) >= 4 and not number(p.data, 0)
                                                           for p in call.pieces):
            name += " nothing"
        elif name.rpartition("-")[2] in map(str, (POST_SEND, POST_RECV, POST_SRQ_RECV, MODIFY_QP, POLL_CQ)):
            return False
        self.names[call.file, name] += 1
        return self.names[call.file, name] > (1 if name.endswith(" nothing") else MOST_OF_A_QUERY) or len(data) > 4096


def single_calls(trace):
    """The first successful call of each method and command, for the targets that have one file with objects."""
    made = {}
    for call in trace.events:
        if isinstance(call, Call) and call.result >= 0:
            client = Client()
            client.filled = True
            done = convert(client, call, trace)
            if done and done[0] not in made:
                made[done[0]] = done[1]
    return made


def store(folder, target, name, data):
    (folder / target).mkdir(parents=True, exist_ok=True)
    (folder / target / name).write_bytes(data)


def main(folder, name, path):
    folder, trace = pathlib.Path(folder), Trace(pathlib.Path(path).read_bytes())
    program = Program(trace)
    store(folder, "calls", name, program.bytes)
    for call, data in single_calls(trace).items():
        store(folder, call.partition("-")[0], f"{name}-{call.partition('-')[2]}", data)
    print(f"{name}: {program.succeeded} of {program.calls} calls succeeded in the program")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
