#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes the calls of the rules of catalogue.json that hold on InfiniBand ports, and prints a line for each, as rules.py does.

The device has two ports, each with the GID fe80::... of one subnet. No kernel with such ports was asked: the rules are from reading.
"""
import argparse
import ipaddress
import os
import pathlib
import struct
import sys

from rules import Rules, run_groups
from ucm import ADDR, GID, IB, INIT, IPOIB, PATH, RTR, RTS, TCP, UDP, Ends, File, in4, in6, ok, sockaddr_ib

ALL = 2 ** 64 - 1
FULL = 0xffff  # the P_Key of the default partition
NOBODY = bytes.fromhex("fe80000000000000") + bytes(7) + b"\x77"  # a GID of the subnet that no port has
CLASS = pathlib.Path(os.environ.get("SYSFS_PATH", "/sys")) / "class/infiniband"


def service(port, ps=TCP):
    return ps << 16 | port


def at(gid, port=0, ps=TCP, mask=ALL, pkey=FULL):
    return sockaddr_ib(gid, service(port, ps), mask, pkey)


def ib_address(sockaddr):
    """P_Key, GID, service id and its mask of a struct sockaddr_ib."""
    pkey, gid = struct.unpack_from(">H4x16s", sockaddr, 2)
    return pkey, gid, *struct.unpack_from(">QQ", sockaddr, 24)


class IbEnds(Ends):
    """Both ends with addresses of AF_IB. The server listens at the second port's GID, or (wild) at any."""

    def __init__(self, t, ps=TCP, wild=False):
        self.gids, self.wild = t.gids, wild
        super().__init__(t.gids[1], ps)

    def own(self):
        return at(bytes(16) if self.wild else self.address, ps=self.ps)

    def port_of(self, number):
        ok(self.server.query(number, ADDR))
        return ib_address(self.server.answer.raw[16:])[2] & 0xffff

    def destination(self):
        return at(self.address, self.port, self.ps)


def bind(t):
    with File() as f:
        number = f.new(ps=IB)
        result = f.bind(number, at(t.gids[1], ps=IB))
        ok(f.query(number, ADDR))
        pkey, gid, sid, mask = ib_address(f.answer.raw[16:])
        t.say("cm-ib-bind", result, port(f), f"pkey={pkey:#x}", f"gid={gid == t.gids[1]}", f"space={sid >> 16:#x}",
              f"own-port={sid & 0xffff > 0}", f"mask={mask:#x}")
        t.say("cm-ib-bind-no-gid", f.bind(f.new(), at(NOBODY)))
        t.say("cm-ib-bind-other-space", f.bind(f.new(ps=UDP), at(t.gids[0], ps=TCP)))
        t.say("cm-ib-bind-in-use", f.bind(f.new(ps=IB), at(t.gids[1], sid & 0xffff, IB)))
        number = f.new(ps=IB)
        result = f.bind(number, at(bytes(16), ps=UDP, mask=0))
        ok(f.query(number, ADDR))
        t.say("cm-ib-bind-mask-0", result, f"space={ib_address(f.answer.raw[16:])[2] >> 16:#x}")
        t.say("cm-ib-listen-any", f.bind(f.new(), at(bytes(16))), f"listen={f.listen(number)}")
        t.say("cm-ib-bind-ipoib", f.bind(f.new(ps=IPOIB), in4("127.0.0.1")))


def resolve(t):
    with File() as f:
        number = f.new()
        result = f.resolve(number, at(t.gids[1], 7))
        event = f.event()
        ok(f.query(number, ADDR))
        pkey, gid, sid, _ = ib_address(f.answer.raw[16:])
        t.say("cm-ib-raddr", result, event, f"first-port={gid == t.gids[0]}", f"pkey={pkey:#x}", f"space={sid >> 16:#x}", port(f))
        number = f.new()
        t.say("cm-ib-raddr-no-pkey", f.resolve(number, at(t.gids[1], 7, pkey=0x1234)), f"bind={f.bind(number, at(t.gids[0]))}",
              f"again={f.resolve(number, at(t.gids[1], 7))}")
        t.say("cm-ib-raddr-other-subnet", f.resolve(f.new(), at(bytes.fromhex("fec0") + t.gids[1][2:], 7)))
        t.say("cm-ib-raddr-family-mix", f.resolve(f.new(), in4("127.0.0.1", 7), at(t.gids[0])))
    with File() as f:
        number = f.new()
        result = f.resolve(number, at(bytes(16), 7))
        event = f.event()
        ok(f.query(number, ADDR))
        source = ib_address(f.answer.raw[16:])[1]
        t.say("cm-ib-raddr-any", result, event, f"source={ipaddress.IPv6Address(source)}", f"route={f.resolve_route(number)}", f.event())
        number = f.new()
        result = f.resolve(number, at(NOBODY, 7))
        event = f.event()
        t.say("cm-ib-rroute-no-record", result, event, f"route={f.resolve_route(number)}", f.event(), f"again={f.resolve_route(number)}")


def lid(t, number):
    """A LID by whose it is: an adapter's LIDs depend on how many devices there are."""
    return {t.lids[0]: "own", t.lids[1]: "other"}.get(number, hex(number))


def record(t, f, number):
    """What the packed path record says, by the places of its fields (InfiniBand 15.2.5.16)."""
    ok(f.query(number, PATH))
    rec = f.answer.raw[16:80]
    dlid, slid, flow = struct.unpack_from(">HHI", rec, 40)
    pkey, classes = struct.unpack_from(">HH", rec, 50)
    return (f"paths={f.word()}", f"flags={f.word(8):#x}", f"slid={lid(t, slid)}", f"dlid={lid(t, dlid)}", f"pkey={pkey:#x}", f"flow={flow}",
            f"tclass={rec[48]}", f"numb={rec[49]:#x}", f"sl={classes}", f"mtu={rec[54]:#x}", f"rate={rec[55]:#x}", f"life={rec[56]:#x}")


def user_record(t, f, number):
    """Both GIDs of QUERY_ROUTE's struct ib_user_path_rec, and the rest."""
    ok(f.query_route(number))
    rec = f.answer.raw[8:72]
    dgid, sgid, dlid, slid = struct.unpack_from(">16s16sHH", rec)
    reversible, mtu = struct.unpack_from("<II", rec, 44)
    hops, tclass, numb, sl, *selectors, rate, life_selector, life, _ = rec[54:64]
    return [sgid, dgid], (f"slid={lid(t, slid)}", f"dlid={lid(t, dlid)}", f"pkey={struct.unpack_from('>H', rec, 52)[0]:#x}",
                          f"reversible={reversible}", f"mtu={mtu}", f"hops={hops}", f"tclass={tclass}", f"numb={numb}", f"sl={sl}",
                          f"selectors={selectors + [life_selector]}".replace(" ", ""), f"rate={rate}", f"life={life}")


def ah(f):
    """The address handle of INIT_QP_ATTR: LID, rate, has it a GRH, port."""
    return dict(zip(("lid", "rate", "global", "port"), struct.unpack_from("<H2xBBB", f.answer.raw, 64)))


def timeout(f):
    return f"timeout={f.answer.raw[134]}"


def port(f):
    return f"port={f.answer.raw[8]}"


def paths(t):
    with IbEnds(t) as ends:
        f, number = ends.client, ends.routed()
        t.say("cm-ib-path", "0", *record(t, f, number))
        gids, told = user_record(t, f, number)
        t.say("cm-ib-query-route", "0", f"gids={gids == t.gids}", *told)
        ok(f.query(number, GID))
        source, destination = ib_address(f.answer.raw[16:]), ib_address(f.answer.raw[144:])
        t.say("cm-ib-query-gid", "0", f"source={source[1] == t.gids[0]}", f"destination={destination[1] == t.gids[1]}",
              f"pkeys={source[0]:#x},{destination[0]:#x}", f"service={destination[2] == service(ends.port)}")
    with File() as f:
        number = f.new()
        ok(f.resolve(number, in4("127.0.0.1", 7)))
        f.event("ADDR_RESOLVED")
        gids, told = user_record(t, f, number)
        t.say("cm-ib-query-route-before", "0", f"gids={gids == [t.gids[0]] * 2}", told[2], f"paths={f.word(192)}")
        ok(f.resolve_route(number))
        f.event("ROUTE_RESOLVED")
        t.say("cm-ib-path-loopback", "0", record(t, f, number)[-1])
        ok(f.query(number, ADDR))
        pkey = struct.unpack_from(">H", f.answer.raw, 10)[0]
        ok(f.query(number, GID))
        destination = ib_address(f.answer.raw[144:])
        t.say("cm-ib-query-gid-ip", "0", f"addr-pkey={pkey:#x}", f"pkey={destination[0]:#x}", f"gid={destination[1] == t.gids[0]}",
              f"service={destination[2] == service(7)}")


def connect(t):
    with IbEnds(t) as ends:
        f, number = ends.client, ends.routed()
        t.say("cm-ib-connect-plen-93", f.connect(number, 93))
        t.say("cm-ib-connect", f.connect(number, 92, fill=b"d"))
        request = ends.server.event("CONNECT_REQUEST")
        t.say("cm-ib-req", "0", f"length={request.conn()[0]}", f"same={request.data[28:120] == b'd' * 92}")
        ok(ends.server.query(request.id, ADDR))
        source, destination = ib_address(ends.server.answer.raw[16:]), ib_address(ends.server.answer.raw[144:])
        t.say("cm-ib-child", "0", f"source={source[1] == t.gids[1]}", f"destination={destination[1] == t.gids[0]}",
              f"pkeys={source[0]:#x},{destination[0]:#x}", f"service={source[2] == service(ends.port)}", f"theirs={destination[2]:#x}",
              f"masks={source[3]:#x},{destination[3]:#x}", port(ends.server))
        ok(ends.server.init_qp(request.id, RTR))
        to_client = ah(ends.server)
        ok(ends.server.accept(request.id))
        f.event("CONNECT_RESPONSE")
        ok(f.init_qp(number, RTR))
        to_server = ah(f)
        t.say("cm-ib-initqp-rtr", "0", f"to-server={lid(t, to_server.pop('lid'))}", f"to-client={lid(t, to_client['lid'])}",
              *(f"{k}={v}" for k, v in to_server.items()), f"mtu={f.word(12)}")
        ok(f.init_qp(number, RTS))
        t.say("cm-ib-initqp-rts", "0", timeout(f))
        ok(f.accept(number, valid=0))
        t.say("cm-ib-established", "0", ends.server.event(), f"disconnect={f.disconnect(number)}", ends.server.event())
    with IbEnds(t, wild=True) as ends:
        _, child = ends.established()
        ok(ends.server.query(child, ADDR))
        t.say("cm-ib-connect-any", "0", f"source={ib_address(ends.server.answer.raw[16:])[1] == t.gids[1]}", port(ends.server))
    with IbEnds(t) as ends:
        number = ends.routed()
        ok(ends.server.destroy(ends.listener))
        t.say("cm-ib-connect-refused", ends.client.connect(number), ends.client.event())
    with Ends("127.0.0.1") as ends:
        number, _ = ends.established()
        ok(ends.client.init_qp(number, RTS))
        t.say("cm-ib-timeout-loopback", "0", timeout(ends.client))


def datagrams(t):
    with IbEnds(t, ps=UDP) as ends:
        number = ends.routed()
        t.say("cm-ib-connect-ud", ends.client.connect(number, 216, fill=b"u"))
        request = ends.server.event("CONNECT_REQUEST")
        ok(ends.server.query(request.id, ADDR))
        source, destination = ib_address(ends.server.answer.raw[16:]), ib_address(ends.server.answer.raw[144:])
        t.say("cm-ib-child-ud", "0", f"length={request.ud()[0]}", f"source={source[1] == t.gids[1]}", f"destination={any(destination[1])}")
        t.say("cm-ib-accept-ud", ends.server.accept(request.id, 5, qpn=0x55, qkey=0x77), *ud_answer(ends))
    with IbEnds(t, ps=UDP) as ends:
        _, request = ends.requested()
        t.say("cm-ib-accept-ud-qkey-0", ends.server.accept(request.id, qpn=0x55), *ud_answer(ends))
    with IbEnds(t, ps=UDP) as ends:
        number, request = ends.requested()
        ok(ends.client.init_qp(number, INIT))
        t.say("cm-ib-accept-ud-other-qkey", ends.server.accept(request.id, qkey=0x77), ends.client.event())
    with IbEnds(t, ps=UDP) as ends:
        _, request = ends.requested()
        ok(ends.server.init_qp(request.id, INIT))
        t.say("cm-ib-accept-ud-own-qkey", ends.server.accept(request.id, qkey=0x77), ends.client.event())


def ud_answer(ends):
    event = ends.client.event()
    return event, f"qkey={event.ud()[2]:#x}"


# ---- multicast --------------------------------------------------------------------------------------------------------

def member(f, ps=UDP):
    number = f.new(ps=ps)
    ok(f.bind(number, in4("127.0.0.1")))
    return number


def joined(f, number, address, flags=0):
    """Joins. Returns the membership's number, the group's GID and LID, and the event."""
    ok(f.join(number, address, flags))
    group, event = f.word(), f.event("MULTICAST_JOIN")
    return group, ipaddress.IPv6Address(event.data[28:44]), struct.unpack_from("<H", event.data, 52)[0], event


def gid_of(*args):
    return f"gid={joined(*args)[1]}"


def groups(t):
    with File() as f:
        number = member(f)
        group, gid, lid, event = joined(f, number, in4("239.1.2.3"))
        t.say("cm-ib-join", "0", f"gid={gid}", f"lid={lid:#x}", f"qkey={event.ud()[2]:#x}", f"qpn={event.ud()[1]:#x}",
              f"hops={event.data[49]}", f"sl={event.data[54]}", f"rate={event.data[56]}", f"global={event.data[57]}")
        _, again, same, _ = joined(f, member(f), in4("239.1.2.3"))
        t.say("cm-ib-join-again", "0", f"gid={again}", f"same-lid={same == lid}")
        other, _, next_lid, _ = joined(f, number, in4("239.1.2.4"))
        t.say("cm-ib-join-other", "0", f"lid={next_lid:#x}")
        ok(f.leave(group))
        kept = joined(f, number, in4("239.1.2.5"))[2]
        ok(f.leave(other))
        t.say("cm-ib-leave-last", "0", f"kept={kept:#x}", f"then={joined(f, number, in4('239.1.2.6'))[2]:#x}")
        t.say("cm-ib-join-send-only", "0", gid_of(f, number, in4('239.1.2.7'), 1))
        t.say("cm-ib-join-ip6", "0", gid_of(f, number, in6('ff0e::1:2:3:4:5:9')))
        t.say("cm-ib-join-sa-gid", "0", gid_of(f, number, in6('ff12:a01b:fe80::9')))
        t.say("cm-ib-join-gid", "0", gid_of(f, number, sockaddr_ib(ipaddress.IPv6Address('ff12:1:2:3::9').packed)))
        chosen = [joined(f, number, in4())[1] for _ in range(2)]
        t.say("cm-ib-join-any", "0", f"sa={all(str(c).startswith('ff12:a01b:fe80:') for c in chosen)}", f"same={chosen[0] == chosen[1]}")
    with File() as f:
        _, gid, _, event = joined(f, member(f, IPOIB), in4("239.1.2.3"))
        t.say("cm-ib-join-ipoib", "0", f"gid={gid}", f"qkey={event.ud()[2]:#x}")
        _, gid, _, event = joined(f, member(f, IPOIB), in6("ff0e::1:2:3:4:5:9"))
        t.say("cm-ib-join-ipoib-ip6", "0", f"gid={gid}")
        number = f.new(ps=UDP)
        ok(f.bind(number, at(t.gids[0], ps=UDP)))
        t.say("cm-ib-join-without-ipoib", f.join(number, in4("239.1.2.3")))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("device", help="such as hfi1_0")
    ap.add_argument("--only", metavar="GROUP", help="groups with this in their name")
    rules = Rules(ap.parse_args())
    ports = [CLASS / rules.args.device / "ports" / n for n in "12"]
    rules.gids = [ipaddress.IPv6Address((p / "gids/0").read_text().strip()).packed for p in ports]
    rules.lids = [int((p / "lid").read_text(), 16) for p in ports]
    run_groups(GROUPS, rules)


GROUPS = (bind, resolve, paths, connect, datagrams, groups)


if __name__ == "__main__":
    sys.exit(main())
