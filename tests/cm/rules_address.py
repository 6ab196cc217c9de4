# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""BIND, LISTEN, RESOLVE_ADDR, RESOLVE_ROUTE, and the ports."""
import contextlib
import ctypes
import pathlib
import struct

from rules_file import in_child
from rules_id import ONE, OPTION_ID, REUSEADDR
from ucm import ADDR, AF_IB, GID, IB, IPOIB, NONE, TCP, UDP, Ends, File, in4, in6, ip_and_port, libc, ok, sockaddr_ib

CAP_NET_BIND_SERVICE = 10
TCP_SID = TCP << 16  # a service id of the port space TCP
FOREIGN = "192.0.2.1"  # an address that nobody has
FAMILY_99 = struct.pack("<H", 99) + bytes(14)
PORT_RANGE = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")


def port_of(t):
    """A port that is free."""
    with File() as f:
        number = f.new()
        ok(f.bind(number, in4(t.address)))
        port = f.source(number)[1]
        ok(f.destroy(number))
        return port


# ---- BIND -------------------------------------------------------------------------------------------------------------

def bind(t):
    with File() as f, File() as g:
        number, address = f.new(), in4(t.address)
        t.say("cm-bind-none", f.bind(NONE, address))
        t.say("cm-bind-foreign", g.bind(number, address))
        t.say("cm-bind-size-0", f.bind(number, address, 0))
        t.say("cm-bind-size-17", f.bind(number, address, 17))
        t.say("cm-bind-reserved", f.bind(number, address, None, 1))
        t.say("cm-bind-family-0", f.bind(number, bytes(16)))
        t.say("cm-bind-family-99", f.bind(number, FAMILY_99))
        t.say("cm-bind-size-before-id", f.bind(NONE, address, 17))
        t.say("cm-bind-ip-family-ib", f.bind_ip(number, struct.pack("<H", AF_IB)))
        t.say("cm-bind-ip-none", f.bind_ip(NONE, address))
        t.say("cm-bind-not-local", f.bind(number, in4(FOREIGN)))
        t.say("cm-bind-linklocal", f.bind(number, in6("fe80::1")))
        t.say("cm-bind-ib-space", f.bind(number, sockaddr_ib(sid=0x10000, mask=2 ** 64 - 1)))
        t.say("cm-bind-after-failure", f.bind(number, in4()))
        t.say("cm-bind-twice", f.bind(number, address))
        number = f.new()
        t.say("cm-bind-ip", f.bind_ip(number, address), f"own-address={f.source(number)[0] == t.address}")


def bind_ephemeral(t):
    """Port 0: a port from the range of ephemeral ones."""
    first, last = map(int, PORT_RANGE.read_text().split())
    with File() as f:
        number = f.new()
        result = f.bind(number, in4(t.address))
        t.say("cm-bind-ephemeral", result, f"in-range={first <= f.source(number)[1] <= last}")


def bind_devices(t):
    """Which addresses a device has."""
    with File() as f:
        t.say("cm-bind-loopback-kernel", f.bind(f.new(), in4("127.0.0.1")))
        if t.args.other:
            t.say("cm-bind-no-device", f.bind(f.new(), in4(t.args.other)))
        else:
            t.skip("cm-bind-no-device", "no other address (--other)")


def bind_ipoib(t):
    """The port space IPOIB is InfiniBand's alone."""
    with File() as f:
        number = f.new(ps=IPOIB)
        result = f.bind(number, in4(t.address))
        ok(f.resolve(number, in4(t.address)))
        t.say("cm-bind-ipoib-ethernet", result, f.event())


def destination_kept(t):
    """A failed RESOLVE_ADDR leaves a destination behind, and the GID of none is that of 0.0.0.0."""
    with File() as f:
        first, second = f.new(), f.new()
        ok(f.bind(first, in4(t.address)))
        own = in4(t.address, f.source(first)[1])
        ok(f.query(first, GID))
        t.say("cm-query-gid-no-destination", "0", f"gid={f.answer.raw[152:168].hex()}")
        t.say("cm-raddr-port-in-use", f.resolve(second, own, own), f"query={f.query(second, ADDR)}",
              f"kept={f.answer.raw[144:152] == own[:8]}")
        t.say("cm-raddr-other-family", f.resolve(first, in6("::2", 5)), f"query={f.query(first, ADDR)}",
              f"kept={f.answer.raw[144:172] == in6('::2', 5)}")
        gid = bytes(10) + b"\xff\xff" + in4(t.address)[4:8]
        t.say("cm-raddr-ib-ethernet", f.resolve(f.new(), sockaddr_ib(gid, sid=TCP << 16 | 5)), f"event={f.get()}")


def bind_in_use(t):
    port = port_of(t)
    own, every = in4(t.address, port), in4(port=port)
    with File() as f:
        ok(f.bind(f.new(), every))
        t.say("cm-bind-in-use", f.bind(f.new(), every))
        t.say("cm-bind-in-use-specific", f.bind(f.new(), own))
        t.say("cm-bind-other-ps", f.bind(f.new(ps=UDP), own))
    with File() as f:
        ok(f.bind(f.new(), own))
        t.say("cm-bind-same-address", f.bind(f.new(), own))
        t.say("cm-bind-in-use-wildcard", f.bind(f.new(), every))
    with File() as f:
        t.say("cm-bind-after-close", f.bind(f.new(), own))


def sharing(f, address):
    """Two identifiers with REUSEADDR that have the same port."""
    both = f.new(), f.new()
    for number in both:
        ok(f.option(number, OPTION_ID, REUSEADDR, ONE))
    return both, [f.bind(number, address) for number in both]


def bind_reuse(t):
    port = port_of(t)
    with File() as f:
        numbers, results = sharing(f, in4(t.address, port))
        t.say("cm-bind-reuse-both", *results)
        t.say("cm-listen-reuse-conflict", f.listen(numbers[0]))
        ok(f.destroy(numbers[1]))
        t.say("cm-listen-reuse-alone", f.listen(numbers[0]))
        late = f.new()
        ok(f.option(late, OPTION_ID, REUSEADDR, ONE))
        t.say("cm-bind-reuse-listener", f.bind(late, in4(t.address, port)))
        t.say("cm-bind-reuse-one-only", f.bind(late, in4(t.address, port_of(t))))
    with File() as f:
        numbers, results = sharing(f, in4(port=port))
        t.say("cm-listen-reuse-conflict-any", f.listen(numbers[0]), f"bind={'+'.join(results)}")
    with File() as f:
        ok(f.bind(f.new(), in4(t.address, port)))
        late = f.new()
        ok(f.option(late, OPTION_ID, REUSEADDR, ONE))
        t.say("cm-bind-reuse-late", f.bind(late, in4(t.address, port)))


# ---- privileged ports, the end of the ports ----------------------------------------------------------------------------

def may_bind_low():
    line = next(x for x in pathlib.Path("/proc/self/status").read_text().splitlines() if x.startswith("CapEff"))
    return int(line.split()[1], 16) >> CAP_NET_BIND_SERVICE & 1


def drop_bind_service():
    head = struct.pack("<Ii", 0x20080522, 0)
    data = ctypes.create_string_buffer(24)
    assert libc.capget(head, data) == 0
    effective = struct.unpack_from("<I", data)[0]
    struct.pack_into("<I", data, 0, effective & ~(1 << CAP_NET_BIND_SERVICE))
    assert libc.capset(head, data) == 0


def free_low_port(f, t):
    """The result of a BIND to a port below 1024."""
    return f.bind(f.new(), in4(t.address, 80))


def bind_low_port(t):
    def without():
        drop_bind_service()
        with File() as f:
            t.say("cm-bind-port-low", free_low_port(f, t), f"1023={f.bind(f.new(), in4(t.address, 1023))}",
                  f"1024={f.bind(f.new(), in4(t.address, 1024))}")
    in_child(without)
    if not may_bind_low():
        t.skip("cm-bind-port-80", "no CAP_NET_BIND_SERVICE")
        return
    with File() as f:
        t.say("cm-bind-port-80", free_low_port(f, t))


@contextlib.contextmanager
def few_ports(t):
    """The number of ephemeral ports, which is small; None: it is not."""
    text = PORT_RANGE.read_text()
    first, last = map(int, text.split())
    changes = t.args.ports and last - first > 100
    if changes:
        PORT_RANGE.write_text("41000 41019")
        first, last = 41000, 41019
    try:
        yield last - first + 1 if last - first <= 100 else None
    finally:
        if changes:
            PORT_RANGE.write_text(text)


def bind_until_ports_are_gone(t):
    with few_ports(t) as num, File() as f:
        if num is None:
            t.skip("cm-bind-ports-gone", "too many ports (--ports)")
            return
        bound, result = 0, "0"
        while result == "0" and bound <= num:
            result = f.bind(f.new(), in4(t.address))
            bound += result == "0"
        t.say("cm-bind-ports-gone", result, f"many={bound > num // 2}", f"udp={f.bind(f.new(ps=UDP), in4(t.address))}")


# ---- LISTEN -----------------------------------------------------------------------------------------------------------

def listen(t):
    with File() as f:
        number, idle = f.new(), f.new()
        ok(f.bind(number, in4(t.address)))
        t.say("cm-listen-none", f.listen(NONE))
        t.say("cm-listen-bound", f.listen(number))
        t.say("cm-listen-twice", f.listen(number))
        t.say("cm-listen-idle", f.listen(idle), f"address={f.source(idle)[0]}")
    with Ends(t.address, backlog=0) as ends:
        t.say("cm-listen-backlog-0", "0", *(ends.requested()[1].name for _ in range(2)))


# ---- RESOLVE_ADDR -----------------------------------------------------------------------------------------------------

def resolve_checks(t):
    with File() as f, File() as g:
        number, address = f.new(), in4(t.address)
        t.say("cm-raddr-none", f.resolve(NONE, address))
        t.say("cm-raddr-foreign", g.resolve(number, address))
        t.say("cm-raddr-dst-size-0", f.resolve(number, address, sizes=(None, 0)))
        t.say("cm-raddr-src-size-bad", f.resolve(number, address, address, sizes=(5, None)))
        t.say("cm-raddr-reserved", f.resolve(number, address, reserved=1))
        t.say("cm-raddr-size-before-id", f.resolve(NONE, address, sizes=(None, 3)))
        t.say("cm-raddr-family-mix", f.resolve(number, in6("2001:db8::1"), address))
        t.say("cm-raddr-src-not-local", f.resolve(f.new(), address, in4(FOREIGN)))
        t.say("cm-resolve-ip-none", f.resolve_ip(NONE, address))
        t.say("cm-resolve-ip-family", f.resolve_ip(f.new(), struct.pack("<H", AF_IB)))


def resolve_keeps_bound(t):
    """The implicit BIND stays although the rest has failed."""
    with File() as f:
        number, address = f.new(), in4(t.address)
        mixed = f.resolve(number, in6("2001:db8::1"), address)
        t.say("cm-raddr-keeps-bound", mixed, f"bind={f.bind(number, address)}", f"resolve={f.resolve(number, address)}")


def resolve_states(t):
    with File() as f:
        number, address = f.new(), in4(t.address, 7)
        t.say("cm-raddr", f.resolve(number, address), *named(f))
        t.say("cm-raddr-after-resolved", f.resolve(number, address))
        t.say("cm-bind-after-resolved", f.bind(number, address))
        t.say("cm-listen-resolved", f.listen(number))
        again = f.new()
        ok(f.resolve(again, address))
        t.say("cm-raddr-twice", f.resolve(again, address))
        f.event()
        t.say("cm-resolve-ip", f.resolve_ip(f.new(), address), *named(f))
        bound = f.new()
        ok(f.bind(bound, in4(t.address)))
        t.say("cm-raddr-bound", f.resolve(bound, address), *named(f))
        wild = f.new()
        ok(f.bind(wild, in4()))
        t.say("cm-raddr-wildcard", f.resolve(wild, address), *named(f), f"own-address={f.source(wild)[0] == t.address}")


def named(f):
    """The next event: its name and its status."""
    event = f.event()
    return event.name, f"status={event.status}"


def resolve_destinations(t):
    with File() as f:
        number = f.new()
        result = f.resolve(number, in4(port=7))
        event = named(f)
        ok(f.query(number, 0))
        source, destination = (ip_and_port(f.answer.raw[at:])[0] for at in (16, 144))
        t.say("cm-raddr-any-dst", result, *event, f"source={source}", f"destination={destination}")
        number = f.new()
        result = f.resolve(number, in4("203.0.113.1", 7))
        t.say("cm-raddr-unreachable", result, *(named(f) if result == "0" else ()), f"bind={f.bind(number, in4())}")
        t.say("cm-raddr-again", f.resolve(number, in4(t.address, 7)), *named(f))


# ---- what is InfiniBand's alone ----------------------------------------------------------------------------------------

def of_infiniband(t):
    """AF_IB and the port space IPOIB on an Ethernet port."""
    gid = bytes(10) + b"\xff\xff" + in4(t.address)[4:8]
    with File() as f:
        t.say("cm-bind-ib", f.bind(f.new(), sockaddr_ib(gid, TCP_SID)))
        number = f.new()
        t.say("cm-bind-ib-any", f.bind(number, sockaddr_ib(sid=TCP_SID, mask=2 ** 64 - 1)), f"listen={f.listen(number)}")
        number = f.new()
        t.say("cm-raddr-ib", f.resolve(number, sockaddr_ib(gid, TCP_SID + 7, 2 ** 64 - 1, 0xffff)), *named(f),
              f"route={f.resolve_route(number)}")
        t.say("cm-raddr-ib-no-pkey", f.resolve(f.new(), sockaddr_ib(gid, TCP_SID + 7, 2 ** 64 - 1, 0x1234)))
        number = f.new()
        result = f.resolve(number, sockaddr_ib(sid=TCP_SID + 7, mask=2 ** 64 - 1))
        event = named(f)
        ok(f.query(number, ADDR))
        t.say("cm-raddr-ib-any", result, *event, f"source={f.answer.raw[24:40].hex()}", f"space={f.answer.raw[40:46].hex()}")
        t.say("cm-rroute-ib-any", f.resolve_route(number), f"again={f.resolve_route(number)}")
        number = f.new(ps=IB)
        result = f.resolve(number, sockaddr_ib(sid=TCP_SID + 7, mask=2 ** 64 - 1))
        event = named(f)
        ok(f.query(number, ADDR))
        t.say("cm-raddr-ib-space", result, *event, f"space={f.answer.raw[40:46].hex()}")
        t.say("cm-bind-ipoib", f.bind(f.new(ps=IPOIB), in4(t.address)))
        number = f.new(ps=IPOIB)
        t.say("cm-raddr-ipoib", f.resolve(number, in4(t.address, 7)), *named(f), f"bind={f.bind(number, in4())}")


def uid_0(t):
    f = File()
    number = f.new(uid=0)
    ok(f.resolve(number, in4(t.address, 7)))
    t.later(lambda: t.say("cm-uid-0", f.get(), f"route={f.resolve_route(number)}"))


# ---- RESOLVE_ROUTE ----------------------------------------------------------------------------------------------------

def resolve_route(t):
    with Ends(t.address) as ends:
        f, idle = ends.client, ends.client.new()
        number = ends.resolved()
        t.say("cm-rroute-none", f.resolve_route(NONE))
        t.say("cm-rroute-idle", f.resolve_route(idle))
        t.say("cm-rroute-timeout-0", f.resolve_route(number, 0))
        t.say("cm-rroute", f.resolve_route(number), *named(f))
        t.say("cm-rroute-twice", f.resolve_route(number))


GROUPS = (bind_ipoib, destination_kept, bind, bind_ephemeral, bind_devices, bind_in_use, bind_reuse, bind_low_port,
          bind_until_ports_are_gone, listen, resolve_checks, resolve_keeps_bound, resolve_states, resolve_destinations, of_infiniband,
          uid_0, resolve_route)
