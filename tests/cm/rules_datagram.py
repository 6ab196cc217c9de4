# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Datagrams: a service id request instead of a connection, and multicast groups."""
from ucm import IB, INIT, NONE, NOWHERE, PATH, RTR, TCP, UD, UDP, Ends, Event, File, in4, in6, ok

GROUP, OTHER_GROUP = "224.0.0.9", "224.0.0.10"


def service_id(t):
    with Ends(t.address, ps=UDP) as ends:
        f, number = ends.client, ends.routed()
        t.say("cm-connect-ud-plen", f.connect(number, 181), f"255={f.connect(number, 255)}")
        t.say("cm-initqp-ud", f.init_qp(number, INIT), f"mask={f.word():#x}", f"qkey={f.word(20):#x}")
        t.say("cm-connect-ud", f.connect(number, 180, fill=b"z"))
        request = ends.server.event("CONNECT_REQUEST")
        t.say("cm-req-len-ud", "0", f"length={request.ud()[0]}", f"same={request.data[60:240] == b'z' * 180}")
        t.say("cm-accept-ud", ends.server.accept(request.id, 5, qpn=0x55, qkey=0x66), *answered(ends))
        t.say("cm-accept-ud-twice", ends.server.accept(request.id))
        t.say("cm-disc-ud", f.disconnect(number))
        t.say("cm-initqp-ud-connected", f.init_qp(number, RTR), f"mask={f.word():#x}", f"qkey={f.word(20):#x}")


def answered(ends):
    event = ends.client.event()
    length, qpn, qkey = event.ud()
    return event, f"length={length}", f"qpn={qpn:#x}", f"qkey={qkey:#x}"


def service_id_child(t):
    """What a request for a service id has made has no path, and its PSN means nothing. The port space IB has the Q_Key of UDP."""
    with Ends(t.address, ps=UDP) as ends:
        _, request = ends.requested(length=1)
        f = ends.server
        t.say("cm-query-path-ud-child", f.query(request.id, PATH), f"paths={f.word()}")
        t.say("cm-initqp-ud-psn", f.init_qp(request.id, RTR), f"mask={f.word():#x}", f"psn={f.word(24) != 0}")
    with File() as f:
        number = f.new(ps=IB, qp=UD)
        ok(f.bind(number, in4(t.address)))
        t.say("cm-initqp-ib-ud", f.init_qp(number, INIT), f"qkey={f.word(20):#x}")


def refused(ends):
    event = ends.client.event()
    return event, f"length={event.ud()[0]}"


def service_id_refused(t):
    with Ends(t.address, ps=UDP) as ends:
        _, request = ends.requested()
        t.say("cm-accept-ud-plen-137", ends.server.accept(request.id, 137), f"then={ends.server.reject(request.id, 0, 8)}",
              ends.client.event())
    with Ends(t.address, ps=UDP) as ends:
        _, request = ends.requested()
        t.say("cm-reject-ud", ends.server.reject(request.id, 0, 8), ends.client.event())
    with Ends(t.address, ps=UDP) as ends:
        _, request = ends.requested()
        t.say("cm-destroy-ud-req-rcvd", ends.server.destroy(request.id), ends.client.event())
    with Ends(t.address, ps=UDP, backlog=1) as ends:
        ok(ends.client.connect(ends.routed(), length=1))
        ends.server.wait()
        t.say("cm-connect-ud-backlog", ends.client.connect(ends.routed(), length=1), ends.client.event())
    with Ends(t.address, ps=UDP) as ends:
        number = ends.routed()
        ok(ends.server.destroy(ends.listener))
        t.say("cm-connect-ud-refused", ends.client.connect(number), *refused(ends))


# ---- multicast --------------------------------------------------------------------------------------------------------

def bound(f, t):
    """An identifier for datagrams that has a device."""
    number = f.new(ps=UDP)
    ok(f.bind(number, in4(t.address)))
    return number


def join_checks(t):
    group = in4(GROUP)
    with File() as f:
        idle, number, connects = f.new(ps=UDP), bound(f, t), f.new(ps=TCP)
        ok(f.bind(connects, in4(t.address)))
        t.say("cm-join-none", f.join(NONE, group))
        t.say("cm-join-idle", f.join(idle, group))
        t.say("cm-join-unbound", f.join(idle, group))
        t.say("cm-join-out-3", f.join(number, group, out=3))
        t.say("cm-join-flags-2", f.join(number, group, 2))
        t.say("cm-join-size", f.join(number, group, size=5))
        t.say("cm-join-zero-addr", f.join(number, in4()))
        t.say("cm-join-family-0", f.join(number, bytes(16)))
        t.say("cm-join-rc-id", f.join(connects, group))
        t.say("cm-join-roce-ip6", f.join(number, in6("ff0e::9")))
        t.say("cm-join-ip-family", f.join_ip(number, bytes(16)))


def join_state(t):
    with Ends(t.address, ps=UDP) as ends:
        t.say("cm-join-state", ends.client.join(ends.routed(), in4(GROUP)), f"resolved={ends.client.join(ends.resolved(), in4(GROUP))}")


def join(t):
    with File() as f, File() as g:
        number = bound(f, t)
        result = f.join(number, in4(GROUP))
        group = f.word()
        event = f.event()
        _, qpn, qkey = event.ud()
        t.say("cm-join", result, event, f"uid={event.uid:#x}", f"group={event.id == group}", f"qpn={qpn:#x}", f"qkey={qkey:#x}",
              f"gid={event.data[28:44].hex()}", f"hops={event.data[49]}", f"global={event.data[57]}")
        t.say("cm-join-again", f.join(number, in4(GROUP)), f.event())
        t.say("cm-join-ip", f.join_ip(number, in4(OTHER_GROUP)), f.event())
        t.say("cm-join-send-only", f.join(number, in4("224.0.0.11"), 1), f.event())
        t.say("cm-leave-none", f.leave(NONE))
        t.say("cm-leave-out-3", f.leave(group, 3))
        t.say("cm-leave-foreign", g.leave(group))
        t.say("cm-leave-reported", f.leave(group), f"reported={f.word()}")
        t.say("cm-leave-twice", f.leave(group))
        t.say("cm-join-destroy", f.destroy(number), f"reported={f.word()}")


def leave_drops_events(t):
    with File() as f:
        number = bound(f, t)
        ok(f.join(number, in4(GROUP)))
        group = f.word()
        f.wait()
        t.say("cm-leave", f.leave(group), f"reported={f.word()}", f"event={f.get()}")
        ok(f.join(number, in4(GROUP)))
        group = f.word()
        t.say("cm-leave-fault", f.leave(group, response=NOWHERE), f"then={f.leave(group)}")
        t.say("cm-join-fault", f.join(number, in4(GROUP), response=NOWHERE), f"event={f.get()}")


def uid_0_of_group(t):
    """A group tells its own uid, whatever the identifier's is, and 0, too. If the identifier's is 0, nothing is told."""
    with File() as f:
        number = bound(f, t)
        ok(f.join(number, in4(GROUP), uid=0))
        t.say("cm-join-uid-0", "0", f.event(), f"uid={Event.of(f.answer.raw[:336]).uid}")
    f = File()
    number = f.new(ps=UDP, uid=0)
    ok(f.bind(number, in4(t.address)))
    ok(f.join(number, in4(GROUP)))
    t.later(lambda: t.say("cm-join-id-uid-0", f.get()))


GROUPS = (service_id, service_id_child, service_id_refused, join_checks, join_state, join, leave_drops_events, uid_0_of_group)
