# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Random programs for carry.py: commands that lead somewhere, and between them commands that are wrong in some way.

The generator has a rough idea of the states of identifiers, to reach all of them. Nothing depends on that it is right.
"""
import json
import random

import ucm

IP4, IP6, ALIEN4 = "10.99.0.1", "fd99::1", "192.0.2.1"
GROUPS = (["4", "239.1.2.3", 0], ["4", "224.0.0.251", 0], ["6", "ff0e::7", 0], ["4", IP4, 0])
GID4 = (bytes(10) + b"\xff\xff" + bytes([10, 99, 0, 1])).hex()
PORTS = (0, 0, 7001, 7001, 7002, 7003, 700)
LEVELS = {0: (0, 1, 2, 3, 4), 1: (1, 2), 2: (0,)}
LOCAL = {"4": IP4, "6": IP6}


class Id:
    def __init__(self, name, process, file, ps, state="idle"):
        self.name, self.process, self.file, self.ps, self.state = name, process, file, ps, state
        self.family, self.port, self.peer = "4", 0, None


class Generator:
    def __init__(self, seed, processes, apart=False):
        self.sleep = 7 if apart else 3  # until a REQ is sent again, or a connection has left TIMEWAIT
        self.random = random.Random(f"{seed} {processes}")
        self.processes, self.ops, self.ids, self.groups, self.last = processes, [], [], [], 0

    def chance(self, percent):
        return self.random.randrange(100) < percent

    def label(self):
        self.last += 1
        return self.last

    def add(self, process, file, command, **arguments):
        self.ops.append([process, file, command, {k: v for k, v in arguments.items() if v is not None}])

    def on(self, i, command, **arguments):
        self.add(i.process, i.file, command, id=i.name, **arguments)

    def place(self):
        return self.random.randrange(self.processes), self.random.choice("fgh" if self.processes == 1 else "ff g".replace(" ", ""))

    def pick(self, *states):
        found = [i for i in self.ids if not states or i.state in states]
        return self.random.choice(found) if found else None

    def drain(self, i=None):
        process, file = (i.process, i.file) if i else self.place()
        self.add(process, file, "drain")

    def address(self, family=None, port=None, own=80):
        """An address to bind to, mostly one of the device."""
        choose = self.random.choice
        family = family or choose("44446")
        port = choose(PORTS) if port is None else port
        if self.chance(own):
            return [family, LOCAL[family], port]
        return choose(([family, {"4": "0.0.0.0", "6": "::"}[family], port], [family, {"4": "0.0.0.0", "6": "::"}[family], port],
                       ["6", "link", port, "dummy0"], ["6", "link", port], ["4", ALIEN4, port],
                       ["4", "239.1.2.3", port], ["6", "fd99::2", port],
                       ["ib", GID4, choose((0, 0x1060000 + port, 0x1110000 + port, 0x13f0000 + port, 77)), choose((0, 2**64 - 1, 0xffff))],
                       ["ib", bytes(16).hex(), choose((0, 0x1060000 + port)), choose((0, 2**64 - 1))],
                       ["raw", choose(("", "0200", "0300000000000000", "02001b59" + "00" * 11, "ffff" + "00" * 14))]))

    # What leads somewhere.

    def create(self, ps=None):
        ps = ps or self.random.choices((ucm.TCP, ucm.UDP, ucm.IB, ucm.IPOIB), (70, 20, 5, 5))[0]
        i = Id(f"c{self.label()}", *self.place(), ps)
        self.add(i.process, i.file, "create", **{"as": i.name}, ps=ps, qp=self.random.choice((2, 2, 2, 4, 9, 10)) if ps == ucm.IB else None,
                 uid=0 if self.chance(2) else 0x1000 + self.last)
        self.ids.append(i)
        return i

    def reuse(self, i, name, value=1):
        self.on(i, "option", level=0, name=name, value=value.to_bytes(4, "little").hex())

    def listener(self):
        i = self.create()
        if self.chance(25):
            self.reuse(i, self.random.choice((1, 2)), self.random.choice((0, 1, 1)))
        i.family, i.port = self.random.choice("4446"), self.random.choice((7001, 7001, 7002, 7003))
        if self.chance(75):
            self.on(i, "bind", address=[i.family, LOCAL[i.family] if self.chance(75) else {"4": "0.0.0.0", "6": "::"}[i.family], i.port])
        else:
            self.on(i, "bind_ip", address=[i.family, LOCAL[i.family], i.port])
        i.state = "bound"
        if self.chance(90):
            self.listen(i)

    def listen(self, i):
        self.on(i, "listen", backlog=self.random.choice((0, 1, 2, 5, 5, 2000)))
        i.state = "listen"

    def client(self):
        server = self.pick("listen")
        i = self.create(server.ps if server and self.chance(90) else None)
        if server:
            i.family, i.port = server.family, server.port
        self.resolve(i)
        if self.chance(85):
            self.route(i)
        if i.state == "routed" and self.chance(85):
            self.connect(i)

    def resolve(self, i):
        server = self.pick("listen")
        port = i.port or (server.port if server else 7001)
        destination = [i.family, LOCAL[i.family], port]
        if self.chance(8):
            destination = self.random.choice((["4", "239.1.2.3", port], ["6", "ff0e::7", port], ["6", "link", port, "dummy0"],
                                              self.address(port=port)))
            if destination[1] in ("0.0.0.0", "::", bytes(16).hex()):
                destination = ["4", ALIEN4, port]
        source = self.address(self.random.choice("46") if self.chance(5) else i.family, own=90) if self.chance(25) else None
        self.on(i, "resolve_ip" if self.chance(20) and destination[0] in "46" and (source or "4")[0] in "46" else "resolve",
                destination=destination, source=source)
        i.state = "resolved"
        if self.chance(85):
            self.drain(i)

    def route(self, i):
        if self.chance(5):
            self.on(i, "option", level=1, name=1, value=("13000000" + "00" * 68) if self.chance(70) else "00" * 72)
        else:
            self.on(i, "resolve_route", timeout=self.random.choice((2000, 2000, 2000, 1, 0)))
        i.state = "routed"
        if self.chance(85):
            self.drain(i)

    def data(self, *most):
        return self.random.choice((0, 0, 1, 7, *most, 255) if self.chance(12) else (0, 1, 8, 50))

    def conn(self, length, label):
        return {"length": length, "resources": self.random.choice((0, 1, 3, 128, 255)), "depth": self.random.choice((0, 1, 4, 129)),
                "qpn": label, "qkey": self.random.choice((None, None, None, 0x11, 0x80000001)), "fill": label}

    def connect(self, i):
        label = self.label()
        length = self.data(56, 57, 92, 93, 180, 181, 216, 217)
        stale = self.pick("connected", "requested")
        qpn = int(stale.name[1:]) if stale and self.chance(3) and stale.name[0] == "r" else label
        self.on(i, "connect", **{**self.conn(max(length, 1) if i.ps != ucm.TCP else length, label), "qpn": qpn},
                valid=0 if self.chance(3) else None)
        i.state = "connecting"
        server = next((s for s in self.ids if s.state == "listen" and s.port == i.port and s.ps == i.ps), None)
        if not server:
            self.drain(i)
            return
        child = Id(f"r{label}", server.process, server.file, server.ps, "requested")
        child.peer, i.peer = i, child
        child.family, child.port = i.family, i.port
        self.ids.append(child)
        if self.chance(90):
            self.drain(server)

    def accept(self, i):
        label = self.label()
        self.on(i, "accept", **self.conn(self.data(136, 137, 196, 197), label), uid=0 if self.chance(2) else 0x2000 + label,
                valid=0 if self.chance(4) else None)
        i.state = "connected" if i.ps == ucm.UDP else "accepted"
        if i.peer and i.peer.state == "connecting":
            i.peer.state = "responded"
            if self.chance(90):
                self.drain(i.peer)

    def respond(self, i):
        self.on(i, "accept", length=0, qpn=0, valid=0)
        i.state = "connected"
        if i.peer:
            i.peer.state = "connected"
            if self.chance(85):
                self.drain(i.peer)

    def reject(self, i):
        self.on(i, "reject", reason=self.random.choice((0, 0, 0, 28, 35, 1, 255)), length=self.data(136, 137, 148, 149))
        i.state = "ended"
        if i.peer and self.chance(90):
            self.drain(i.peer)

    def disconnect(self, i):
        self.on(i, "disconnect")
        i.state = "ended"
        if i.peer:
            if self.chance(85):
                self.drain(i.peer)
            if self.chance(60):
                self.on(i.peer, "disconnect")
                self.drain(i)
                self.pause(5)
                self.drain(i)

    def pause(self, percent):
        """Once in a program."""
        if self.sleep and self.chance(percent):
            self.add(0, "", "sleep", seconds=self.sleep)
            self.sleep = 0

    def destroy(self, i):
        self.on(i, "destroy")
        i.state = "gone"
        if i.peer and self.chance(80):
            self.drain(i.peer)

    def advance(self, i):
        step = {"idle": (self.resolve, self.bind), "bound": (self.listen, self.resolve), "resolved": (self.route,),
                "routed": (self.connect,),
                "connecting": (self.look, self.drain), "requested": (self.accept, self.accept, self.accept, self.reject, self.look),
                "responded": (self.respond, self.respond, self.respond, self.look, self.reject), "accepted": (self.look, self.notify),
                "connected": (self.disconnect, self.look, self.look, self.notify, self.destroy),
                "ended": (self.look, self.destroy, self.disconnect),
                "listen": (self.drain, self.look), "gone": (self.look,)}[i.state]
        self.random.choice(step)(i)

    def bind(self, i):
        address = self.address()
        if address[0] in "46":
            i.family, i.port = address[0], address[2]
        self.on(i, "bind", address=address)
        i.state = "bound"

    # What asks, or is odd.

    def look(self, i):
        choose = self.random.choice
        if self.chance(50):
            self.on(i, "init_qp", state=choose((1, 2, 2, 3, 3, 0, 4, 6, 7)), out=143 if self.chance(3) else None)
        elif self.chance(60):
            self.on(i, "query", option=choose((0, 0, 1, 1, 2, 2, 3)),
                    out=choose((440, 440, 280, 280, 279, 276, 272, 271, 88, 80, 79, 8, 7, 0)))
        else:
            self.on(i, "query_route", out=choose((208, 208, 207, 204, 200, 199, 0)))

    def notify(self, i):
        self.on(i, "notify", event=self.random.choice((4, 4, 4, 5, 0, 99)))

    def option(self, i):
        level = self.random.choice((0, 0, 0, 0, 1, 2))
        name, size = self.random.choice(LEVELS[level]), self.random.choice((1, 1, 4, 4, 0, 2, 72))
        value = bytes(self.random.choice((0, 1, 18, 0x2e)) if not n else 0 for n in range(size))
        self.on(i, "option", level=level, name=name, value=value.hex())

    def join(self, i):
        name, group = f"m{self.label()}", self.random.choice(GROUPS)
        if self.chance(60):
            self.on(i, "join", **{"as": name}, address=group, flags=self.random.choice((0, 0, 0, 1, 1, 2, 3)), uid=0x3000 + self.last)
        else:
            self.on(i, "join_ip", **{"as": name}, address=group, uid=0x3000 + self.last)
        self.groups.append(Id(name, i.process, i.file, 0))
        if self.chance(70):
            self.drain(i)

    def leave(self, _=None):
        if self.groups:
            group = self.random.choice(self.groups)
            self.add(group.process, group.file, "leave", id=group.name)

    def migrate(self, i):
        file = self.random.choice("fgh")
        self.add(i.process, file, "migrate", id=i.name, fd=i.file if self.chance(80) else self.random.choice("fgh"))
        if self.chance(80):
            i.file = file

    def close(self, i):
        self.add(i.process, i.file, "close")
        for other in self.ids:
            if (other.process, other.file) == (i.process, i.file):
                other.state = "gone"
                if other.peer and other.peer.state != "gone":
                    self.drain(other.peer)

    def kill(self, i):
        self.add(i.process, "", "kill")
        for other in self.ids:
            if other.process == i.process:
                other.state = "gone"
                if other.peer and other.peer.process != i.process:
                    self.drain(other.peer)

    def get(self, i):
        """An event for which there is no room."""
        self.add(i.process, i.file, "get", out=self.random.choice((0, 8, 323)))

    def wrong(self, i):
        """A command that may be in the wrong place, of the wrong identifier, or say something wrong of its sizes."""
        known = len(self.ops)
        state = i.state
        self.random.choice((self.bind, self.resolve, self.route, self.accept, self.reject, self.look, self.notify, self.option, self.join,
                            self.listen, self.disconnect, self.connect, self.respond, self.destroy, self.get, self.migrate, self.leave))(i)
        i.state = state if len(self.ops) > known and self.ops[known][2] != "destroy" else i.state
        if len(self.ops) == known:
            return
        process, file, command, arguments = self.ops[known]
        if self.chance(25) and command not in ("drain", "get"):
            self.ops[known] = [*self.place(), command, arguments]
            process, file = self.ops[known][:2]
        if self.chance(10) and "id" in arguments:
            arguments["id"] = self.random.choice(("nobody", *(other.name for other in self.ids)))
        if self.chance(8) and command != "drain":
            arguments["twist"] = self.random.choice(({"in": 0}, {"in": 4}, {"in": 280}, {"in": 288}, {"out": 0}, {"out": 3}, {"length": 7},
                                                     {"length": 8},
                                                     {"length": 12}, {"in": 1000}, {"number": 13}, {"number": 23}, {"in": 0, "length": 8}))
        if self.chance(2) and command in ("query", "query_route", "init_qp", "create", "destroy", "join", "leave", "get"):
            arguments["response"] = ucm.NOWHERE

    def step(self):
        i = self.pick()
        kinds = (self.listener, self.client, lambda: self.advance(i), lambda: self.wrong(i), lambda: self.look(i), lambda: self.option(i),
                 lambda: self.join(i), lambda: self.migrate(i), lambda: self.leave(i), lambda: self.close(i), self.drain, self.create)
        self.random.choices(kinds, (6, 14, 40, 14, 8, 3, 4, 2, 1, 0.4, 3, 2))[0]()

    def program(self):
        self.listener()
        self.client()
        most = self.random.choice((12, 20, 30, 40))
        while len(self.ops) < most:
            self.step()
        if self.processes > 1 and self.chance(30):
            self.kill(self.pick())
        self.pause(50 if self.sleep == 7 else 0)
        for process in range(self.processes):
            for file in "fgh" if self.processes == 1 else "fg":
                self.add(process, file, "drain")
        return self.ops


def program(seed, processes, apart=False):
    """Returns the list of its ops."""
    return Generator(seed, processes, apart).program()


def text(ops):
    return "".join(json.dumps(op) + "\n" for op in ops)
