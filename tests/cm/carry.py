#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""carry.py [--node PATH] [--barrier ADDRESS] [--apart] [--cuse]: carries out programs of commands on /dev/infiniband/rdma_cm, or
the node that is its own. Reads a program a line, JSON, from stdin, and writes its trace, a line of JSON, to stdout.

A program is {"ops": [[process, file, command, arguments], ...]}, and its trace has for each op what it answered, and the events that were
read, each with the uid of its identifier. Numbers that the other end of the device chooses freely are replaced by names.

The kernel makes events in threads of its own. With --barrier the address is one of the device: after each command a connection is tried
that goes the way of all the messages before it, and is refused. "expect" of a program says how many events each op should read: there
carry.py waits for so many.

An identifier whose REQ or REP is unanswered is neither accepted nor rejected, unless --apart is given: Linux would hold up its end
for minutes. With --cuse what cannot be the same over CUSE is left out or has one name (docs/rdma-cm.md).
"""
import argparse
import ctypes
import itertools
import json
import multiprocessing.connection
import os
import re
import select
import signal
import socket
import struct
import sys
import time

import ucm

UNTOUCHED = b"\xa5"
LATE = 3  # seconds: until an event that should come is missing
EPHEMERAL = range(32768, 61000)
PORTS = (700, 7001, 7002, 7003)  # that programs choose
FLOWS = {31 * source + destination for source in PORTS for destination in (0, *PORTS)}
with open("/sys/class/net/dummy0/address", encoding="ascii") as address_file:
    MAC = bytes.fromhex(address_file.read().replace(":", ""))
IP4_PREFIX = bytes(10) + b"\xff\xff"
OWN = ("10.99.0.1", "fd99::1", "link", "0.0.0.0", "::")
with open(os.path.join(os.path.dirname(__file__), "differences.json"), encoding="ascii") as differences_file:
    DIFFERENCES = {(row["command"], row["destination"]) for row in json.load(differences_file)}
ADDRESSES = ("address", "destination", "source")


def link_address(interface):
    """The IPv6 address of the interface on its link."""
    with open("/proc/net/if_inet6", encoding="ascii") as file:
        rows = [line.split() for line in file]
    return next(socket.inet_ntop(socket.AF_INET6, bytes.fromhex(r[0])) for r in rows if r[5] == interface and r[0].startswith("fe80"))


def sockaddr(what):
    """An address of a program: ["4", ADDRESS, PORT], ["6", ADDRESS, PORT, INTERFACE], ["ib", GID, SID, MASK], or bytes."""
    if not what:
        return b""
    if what[0] == "raw":
        return bytes.fromhex(what[1])
    if what[0] == "ib":
        return ucm.sockaddr_ib(bytes.fromhex(what[1]), *what[2:])
    if what[0] == "4":
        return ucm.in4(*what[1:])
    _, address, port, *interface = what
    scope = socket.if_nametoindex(interface[0]) if interface else 0
    return ucm.in6(link_address("dummy0") if address == "link" else address, port, scope)


def mac_of(gid):
    """The address by Ethernet: a group's, or the machine's."""
    if gid[0] == 0xff:
        return b"\x33\x33" + gid[12:]
    if gid[:12] == IP4_PREFIX and gid[12] >> 4 == 0xe:
        return b"\x01\x00\x5e" + bytes([gid[13] & 0x7f]) + gid[14:]
    return MAC


def kind_of(destination):
    """As differences.json has it."""
    if destination[0] not in "46":
        return "own"
    address = destination[1]
    if address.startswith("ff") or destination[0] == "4" and 224 <= int(address.split(".", maxsplit=1)[0]) < 240:
        return "group"
    return "own" if address in OWN else "elsewhere"


# ---- a process of a program -------------------------------------------------------------------------------------------

class File(ucm.File):
    """An open of the node whose next command may say something wrong of its sizes."""
    twist = {}

    def command(self, number, request=b"", out=0, size=None):
        twist = self.twist
        size = twist.get("in", len(request) if size is None else size)
        data = struct.pack("<IHH", twist.get("number", number), size, twist.get("out", out))
        return self.write(data + request, twist.get("length"))


class Process:
    """Has files open, and carries out commands on them."""

    def __init__(self):
        self.files = {}

    def open(self, file):
        self.close(file)
        self.files[file] = File()
        return "0", b""

    def close(self, file):
        if file in self.files:
            self.files.pop(file).close()
        return "0", b""

    def close_all(self):
        for file in list(self.files):
            self.close(file)

    def call(self, file, command, arguments, twist):
        """Returns the result, and all that is where responses go."""
        if file not in self.files:
            self.open(file)
        f = self.files[file]
        f.twist = twist
        if "fd" in arguments:
            arguments["fd"] = self.files[arguments["fd"]].fd if arguments["fd"] in self.files else -1
        ctypes.memset(f.answer, UNTOUCHED[0], 512)
        return getattr(f, command)(**arguments), f.answer.raw[:512]

    def wait(self, file, seconds):
        poll = select.poll()
        if file in self.files:
            poll.register(self.files[file].fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def serve(self, link):
        while True:
            try:
                method, *arguments = link.recv()
            except EOFError:
                os._exit(0)
            link.send(getattr(self, method)(*arguments))


class Remote:
    """A process that is another one."""

    def __init__(self):
        self.pid = 0

    def start(self):
        here, there = multiprocessing.connection.Pipe()
        self.pid = os.fork()
        if not self.pid:
            here.close()
            Process().serve(there)
        there.close()
        self.link = here

    def kill(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.link.close()
            self.pid = 0

    def __getattr__(self, method):
        def call(*arguments):
            if not self.pid:
                self.start()
            self.link.send((method, *arguments))
            return self.link.recv()
        return call


class Barrier:
    """A connection that is refused, behind all that the device does for the commands before."""

    def __init__(self, address):
        self.address = ucm.in4(address, 9)
        self.file = ucm.File()
        self.qpns = itertools.count(0xf00000)

    NONE = {"drain", "get", "query", "query_route", "init_qp", "create", "open", "bind", "bind_ip", "listen", "migrate", "sleep"}
    OF_ADDRESSES = {"resolve", "resolve_ip", "resolve_route", "option", "join", "join_ip", "leave"}

    def pass_by(self, command="", result="0"):
        """A command that has failed has caused nothing, but for those that then refuse the connection. Addresses send no messages."""
        if command in self.NONE or (result != "0" and command not in ("accept", "reject", "connect")):
            return
        f = self.file
        number = f.new()
        ucm.ok(f.resolve(number, self.address))
        f.event("ADDR_RESOLVED")
        ucm.ok(f.resolve_route(number))
        f.event("ROUTE_RESOLVED")
        if command not in self.OF_ADDRESSES:
            ucm.ok(f.connect(number, qpn=next(self.qpns)))
            f.event("REJECTED")
        ucm.ok(f.destroy(number))


def settle():
    """Under `run` the end of an open file is noticed a moment later, at the latest before a client is refused a port that another has."""
    with ucm.File() as f:
        for result in "0", "EADDRINUSE":
            assert f.bind(f.new(), ucm.in4(OWN[0], 9)) == result


# ---- what a trace has -------------------------------------------------------------------------------------------------

class Names:
    """Numbers that the device chooses: each kind's in the order in which they are seen first."""

    def __init__(self):
        self.kinds = {}

    def of(self, kind, number):
        known = self.kinds.setdefault(kind, {})
        return f"<{kind}{known.setdefault(number, len(known))}>"


def runs(data):
    """Hexadecimal, with runs of zeros made short."""
    return re.sub(r"(?:00){4,}", lambda m: f"({len(m[0]) // 2})", " ".join(f"{byte:02x}" for byte in data).replace(" ", ""))


def with_names(data, parts=(), at=0):
    """parts: (offset, size, name) of bytes that a name stands for. The bytes behind, which nobody has touched, are left out."""
    data, said = data.rstrip(UNTOUCHED), ""
    for offset, size, name in sorted(parts):
        if offset + size <= len(data):
            said += runs(data[at:offset]) + name
            at = offset + size
    return said + runs(data[at:])


class Tracer:
    """Names the numbers in what a command has answered."""

    def __init__(self):
        self.names = Names()

    def port(self, data, at):
        """A part, if the port there is ephemeral."""
        number = struct.unpack_from(">H", data, at)[0]
        return [(at, 2, self.names.of("port", number))] if number in EPHEMERAL else []

    def port_of(self, data, at):
        """The port of the sockaddr there."""
        family = struct.unpack_from("<H", data, at)[0]
        return self.port(data, at + 30) if family == ucm.AF_IB else self.port(data, at + 2) if family in (2, 10) else []

    def number(self, kind, data, at, form="<I", besides=(0,)):
        number = struct.unpack_from(form, data, at)[0]
        return [] if number in besides else [(at, struct.calcsize(form), self.names.of(kind, number))]

    def flow(self, data, at, shift=0):
        """The flow label there is a hash of both ports: chosen, if one of them is."""
        number = struct.unpack_from(">I", data, at)[0] >> shift
        return [] if not number or number in FLOWS else [(at, 4 - shift // 8, self.names.of("flow", number))]

    def flow_of_ah(self, data, at):
        number = struct.unpack_from("<I", data, at)[0]
        return [] if not number or number in FLOWS else [(at, 4, self.names.of("flow", number))]

    @staticmethod
    def without_lids(data):
        """Of a path. With RoCE it has no LIDs, and no bit for raw traffic. The kernel has the first bytes of what says where the path leads
        by Ethernet there: 1, and the destination's address."""
        mac = mac_of(data[24:40])
        if data[56:60] + bytes([data[60] & 0x80]) == bytes([1]) + mac[:3] + bytes([(mac[3] & 1) << 7]):
            return data[:56] + bytes(4) + bytes([data[60] & 0x7f]) + data[61:]
        return data

    def query(self, data, option):
        if option == ucm.PATH:
            return self.flow(data, 60, 8) if data[0] == 1 else []
        return self.port_of(data, 16) + self.port_of(data, 144)

    def query_route(self, data):
        return self.port_of(data, 136) + self.port_of(data, 164) + self.flow(data, 48)

    def init_qp(self, data):
        return self.number("psn", data, 24) + self.number("psn", data, 28) + self.flow_of_ah(data, 56)

    def event(self, name, data):
        return self.flow_of_ah(data, 44) if name == "ESTABLISHED" else []

    def answer(self, command, arguments, data):
        if command == "query":
            data = self.without_lids(data) if arguments["option"] == ucm.PATH else data
            return with_names(data, self.query(data, arguments["option"]))
        if command in ("query_route", "init_qp"):
            return with_names(data, getattr(self, command)(data))
        return with_names(data)


# ---- a program --------------------------------------------------------------------------------------------------------

class Run:
    """One program."""
    ENDS = {"REJECTED", "UNREACHABLE", "ESTABLISHED", "CONNECT_RESPONSE", "DISCONNECTED", "CONNECT_ERROR"}

    def __init__(self, program, processes, barrier, options):
        self.ops, self.expect = program["ops"], program.get("expect")
        self.base = program.get("base", 0)  # of the QPs' numbers: a number is used once
        self.processes, self.barrier, self.options = processes, barrier, options
        self.ids, self.tracer = {}, Tracer()
        self.unanswered = {}  # {uid or id: ...}: names whose REQ or REP is
        self.places = {}  # {name: (process, file)}
        self.destinations, self.parted = {}, set()

    def name_of(self, number):
        return next((name for name, n in reversed(self.ids.items()) if n == number), f"?{number}")

    def number_of(self, name):
        return self.ids.get(name, ucm.NONE)

    def learn(self, name, number, *place):
        self.ids[name], self.places[name] = number, place

    def forget(self, *gone):
        """Numbers are reused, and the barrier uses some, too."""
        for name in self.ids:
            if name in gone or self.places[name] in gone or self.places[name][0] in gone:
                self.ids[name] = ucm.NONE

    def event(self, data, *place):
        event = ucm.Event.of(data[:ucm.EVENT_SIZE])
        if event.name == "CONNECT_REQUEST":
            self.learn(f"r{(struct.unpack_from('<I', data, 20)[0] or data[60]) & 0xff}", event.id, *place)
        if event.name in self.ENDS:
            self.unanswered.pop(self.name_of(event.id), None)
        return [f"{event.uid:x}", f"{event.name} {event.status} id={self.name_of(event.id)} "
                f"{with_names(data, self.tracer.event(event.name, data), 20)}", self.name_of(event.id)]

    def drain(self, process, file, number):
        """All events that the file has, and the first that is none."""
        events, expected = [], (self.expect[number] if self.expect else 0)
        while True:
            if len(events) < expected:
                self.processes[process].wait(file, LATE)
            result, data = self.processes[process].call(file, "get", {}, {})
            if result != "0":
                return [result, events]
            event = self.event(data, process, file)
            if event[2] not in self.parted:
                events.append(event[:2])

    def arguments(self, arguments):
        made = {k: v for k, v in arguments.items() if k not in ("id", "twist", "as")}
        for key in ADDRESSES:
            if key in made:
                made[key] = sockaddr(made[key])
        if "id" in arguments:
            made["number"] = self.number_of(arguments["id"])
        if "qpn" in made:
            made["qpn"] |= self.base << 8 & 0xffffff
        if "fill" in made:
            made["fill"] = bytes([made["fill"]])
        if "value" in made:
            made["value"] = bytes.fromhex(made["value"])
        return made

    def lingers(self, command, arguments):
        return not self.options.apart and command in ("accept", "reject") and arguments.get("id") in self.unanswered

    def migrates_from_another_file(self, process, command, arguments):
        """Of the same process: all open files of the node are one inode over CUSE, so nobody sees that it is another one."""
        name = arguments.get("id")
        return (self.options.cuse and command == "migrate" and self.number_of(name) != ucm.NONE
                and self.places[name][0] == process and self.places[name][1] != arguments["fd"])

    def parts(self, command, arguments, result):
        """From here on the identifier's ways part, as differences.json explains."""
        name = arguments.get("id")
        if command in ("resolve", "resolve_ip") and result in ("0", "ENETUNREACH"):
            self.destinations[name] = kind_of(arguments["destination"])
        command = command.removesuffix("_ip")
        if (command, self.destinations.get(name)) in DIFFERENCES and result in ("0", "ENETUNREACH"):
            self.parted.add(name)

    def call(self, process, file, command, arguments):
        if self.lingers(command, arguments) or self.migrates_from_another_file(process, command, arguments):
            return ["skip"]
        if arguments.get("id") in self.parted and command != "destroy":
            return ["parted"]
        result, data = self.processes[process].call(file, command, self.arguments(arguments), arguments.get("twist", {}))
        if self.options.cuse and result == "ENOTSUPP":  # FUSE has no such errno
            result = "EOPNOTSUPP"
        self.parts(command, arguments, result)
        if command == "destroy" and result == "0":
            self.forget(arguments["id"])
        if arguments.get("id") in self.parted:
            return ["parted"]
        if result != "0":
            return [result, with_names(data)]
        if "as" in arguments and data[:4] != 4 * UNTOUCHED:
            self.learn(arguments["as"], struct.unpack_from("<I", data)[0], process, file)
            return [result, with_names(data, [(0, 4, arguments["as"])])]
        if command == "migrate":
            self.places[arguments["id"]] = process, file
        if command in ("connect", "accept") and arguments.get("valid", 1):
            self.unanswered[arguments["id"]] = True
        if command == "get":
            return [result, [self.event(data, process, file)[:2]]]
        return [result, self.tracer.answer(command, arguments, data)]

    def op(self, number, process, file, command, arguments):
        if command == "sleep":
            time.sleep(arguments["seconds"])
            return ["0"]
        if command == "close":
            self.forget((process, file))
            return [self.processes[process].close(file)[0]]
        if command == "kill":
            self.forget(process)
            self.processes[process].kill()
            return ["0"]
        if command == "drain":
            return self.drain(process, file, number)
        return self.call(process, file, command, arguments)

    def all(self):
        trace = []
        for number, (process, file, command, arguments) in enumerate(self.ops):
            trace.append(self.op(number, process, file, command, arguments))
            if not self.barrier and command in ("close", "kill"):
                settle()
            if self.barrier:
                self.barrier.pass_by(command, trace[-1][0] if trace[-1][0] != "parted" else "0")
        for process in self.processes:
            process.close_all()
        if self.barrier:
            self.barrier.pass_by()
        return trace


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--node", metavar="PATH", default=ucm.NODE)
    ap.add_argument("--barrier", metavar="ADDRESS")
    ap.add_argument("--apart", action="store_true")
    ap.add_argument("--cuse", action="store_true")
    args = ap.parse_args()
    ucm.NODE = args.node
    alone, several = [Process()], [Remote(), Remote()]
    barrier = Barrier(args.barrier) if args.barrier else None
    for line in sys.stdin:
        program, began = json.loads(line), time.monotonic()
        processes = several if any(op[0] for op in program["ops"]) else alone
        trace = Run(program, processes, barrier, args).all()
        print(json.dumps({"trace": trace, "seconds": round(time.monotonic() - began, 3)}), flush=True)
    for process in several:
        process.kill()


if __name__ == "__main__":
    main()
