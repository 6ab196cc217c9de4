# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""CONNECT, ACCEPT, REJECT, DISCONNECT, NOTIFY and INIT_QP_ATTR: the states of a connection."""

import select
import struct

from rules_id import ACK_TIMEOUT, OPTION_ID
from ucm import IB, INIT, NONE, NOWHERE, PATH, RC, RTR, RTS, SQD, TCP, XRC_INI, XRC_TGT, Ends, File, in4, ok

COMM_EST, PATH_MIG = 4, 5  # of enum ib_event_type
CONSUMER, VENDOR_OPTION = 28, 35


def mask(f):
    """What INIT_QP_ATTR has answered."""
    return f"mask={f.word():#x}"


# ---- without a connection ---------------------------------------------------------------------------------------------

def without_device(t):
    with File() as f:
        number = f.new()
        t.say("cm-connect-none", f.connect(NONE))
        t.say("cm-connect-idle", f.connect(number))
        t.say("cm-connect-invalid-none", f.connect(NONE, valid=0))
        t.say("cm-accept-none", f.accept(NONE))
        t.say("cm-accept-idle", f.accept(number))
        t.say("cm-reject-none", f.reject(NONE))
        t.say("cm-reject-idle", f.reject(number))
        t.say("cm-reject-reason-1-none", f.reject(NONE, 1))
        t.say("cm-disc-none", f.disconnect(NONE))
        t.say("cm-disc-idle", f.disconnect(number))
        t.say("cm-notify-none", f.notify(NONE, PATH_MIG))
        t.say("cm-notify-idle", f.notify(number, PATH_MIG))
        t.say("cm-initqp-idle", f.init_qp(number, INIT))
        t.say("cm-initqp-state-7-none", f.init_qp(NONE, 7))


def without_connection(t):
    with Ends(t.address) as ends:
        f, number = ends.client, ends.resolved()
        t.say("cm-connect-no-route", f.connect(number))
        t.say("cm-connect-invalid", f.connect(number, valid=0))
        t.say("cm-connect-in-short", f.connect(number, size=279))
        t.say("cm-accept-in-short", f.accept(number, size=287))
        t.say("cm-accept-no-conn", f.accept(number))
        t.say("cm-reject-no-conn", f.reject(number))
        t.say("cm-reject-reason-1", f.reject(number, 1))
        t.say("cm-disc-no-conn", f.disconnect(number))
        t.say("cm-notify-no-conn", f.notify(number, PATH_MIG))
        t.say("cm-initqp-out-short", f.init_qp(number, INIT, 143))
        t.say("cm-initqp-state-7", f.init_qp(number, 7))
        t.say("cm-initqp-fault", f.init_qp(number, INIT, response=NOWHERE))
        t.say("cm-initqp-init", f.init_qp(number, INIT), mask(f), f"access={f.word(36):#x}")
        t.say("cm-initqp-rtr-before-connect", f.init_qp(number, RTR), mask(f))
        t.say("cm-initqp-init-listener", ends.server.init_qp(ends.listener, INIT))


# ---- CONNECT ----------------------------------------------------------------------------------------------------------

def connect(t):
    with Ends(t.address) as ends:
        f, number = ends.client, ends.routed()
        t.say("cm-connect-overflow", f.connect(number, 220), f"255={f.connect(number, 255)}")
        t.say("cm-connect-plen-57", f.connect(number, 57))
        t.say("cm-connect-plen-56-after", f.connect(number, 56, resources=3, depth=5, fill=b"x"))
        request = ends.server.event("CONNECT_REQUEST")
        t.say("cm-connect-twice", f.connect(number))
        length, resources, depth = request.conn()
        t.say("cm-swap", "0", f"resources={resources}", f"depth={depth}")
        t.say("cm-connect-data", "0", request.data[28:84].decode())
        t.say("cm-connect-request-uid", "0", f"uid={request.uid:#x}", f"new={request.id not in (ends.listener, number)}")
    with Ends(t.address) as ends:
        _, request = ends.requested(length=10)
        number, child, response = ends.accepted(length=10)
        t.say("cm-req-len", "0", f"length={request.conn()[0]}")
        t.say("cm-rep-len", "0", f"length={response.conn()[0]}")


def connect_refused(t):
    with Ends(t.address) as ends:
        number = ends.routed()
        ok(ends.server.destroy(ends.listener))
        result = ends.client.connect(number)
        t.say("cm-connect-refused", result, ends.client.event())
        t.say("cm-connect-after-refused", ends.client.connect(number))


def connect_other_type(t):
    """The listener's QP type is not that of the request's other end: the port has a service, which refuses."""
    with File() as f, File() as g:
        listener = f.new(ps=IB, qp=XRC_INI)
        ok(f.bind(listener, in4(t.address)))
        port = f.source(listener)[1]
        ok(f.listen(listener))
        numbers = [routed_to(g, t.address, port, qp=qp) for qp in (RC, XRC_TGT)]
        t.say("cm-connect-other-type", g.connect(numbers[0]), g.event(), f"server={f.get()}")
        t.say("cm-connect-xrc-tgt", g.connect(numbers[1]))


def routed_to(f, address, port, **param):
    number = f.new(ps=IB, **param)
    ok(f.resolve(number, in4(address, port)))
    f.event("ADDR_RESOLVED")
    ok(f.resolve_route(number))
    f.event("ROUTE_RESOLVED")
    return number


def path_of_connection(t):
    """The flow label is a hash of the active end's ports, at both ends, and a service id is in the request alone."""
    with Ends(t.address) as ends:
        number, request = ends.requested()
        labels = 31 * ends.client.source(number)[1] + ends.port & 0xfffff
        said = []
        for f, end in (ends.client, number), (ends.server, request.id):
            ok(f.query_route(end))
            said.append(f"label={struct.unpack_from('>I', f.answer, 48)[0] == labels}")
            ok(f.query(end, PATH))
            service = struct.unpack_from(">Q", f.answer, 16)[0]
            said.append(f"service={'none' if not service else service == TCP << 16 | ends.port}")
        t.say("cm-query-path-connected", "0", *said)


def connect_stale(t):
    """A QP's number that has a connection already."""
    with Ends(t.address) as ends:
        ok(ends.client.connect(ends.routed(), qpn=0x77))
        ends.server.event("CONNECT_REQUEST")
        result = ends.client.connect(ends.routed(), qpn=0x77)
        t.say("cm-connect-stale", result, event_soon(ends.client), f"server={ends.server.get()}")


def accept_stale(t):
    """The same at the other end: its first connection is up, and the active end looks for the QP's number in the reply."""
    with Ends(t.address) as ends:
        number, _, _ = ends.accepted(qpn=0x78)
        ok(ends.client.accept(number, valid=0))
        ends.server.event("ESTABLISHED")
        _, request = ends.requested()
        result = ends.server.accept(request.id, qpn=0x78)
        t.say("cm-accept-stale", result, event_soon(ends.server), f"client={ends.client.get()}")


def event_soon(f):
    """The next event, if it comes within two seconds."""
    poll = select.poll()
    poll.register(f.fd, select.POLLIN)
    return f.event() if poll.poll(2000) else "nothing"


def backlog_of_refused_listen(t):
    """A LISTEN that fails has set the backlog."""
    with Ends(t.address, backlog=1) as ends:
        numbers = [ends.routed(), ends.routed()]
        result = ends.server.listen(ends.listener, 2)
        for number in numbers:
            ok(ends.client.connect(number))
        t.say("cm-listen-refused-backlog", result, *(ends.server.event().name for _ in range(2)))


def connect_backlog(t):
    """The second request waits for a place until the server has asked for the first."""
    ends = Ends(t.address, backlog=1)
    first, second = ends.routed(), ends.routed()
    ok(ends.client.connect(first))
    ends.server.wait()
    result = ends.client.connect(second)

    def seen():
        t.say("cm-connect-backlog", result, f"client={ends.client.get()}", *(ends.server.event().name for _ in range(1)),
              f"server={ends.server.get()}")
        if t.args.slow:
            t.say("cm-connect-backlog-later", "0", ends.server.event().name)
        else:
            t.skip("cm-connect-backlog-later", "six seconds (--slow)")
    t.later(seen)


def connect_without_answer(t):
    if not t.args.slow:
        t.skip("cm-connect-no-answer", "minutes (--slow)")
        return
    ends = Ends(t.address, backlog=1)
    first, second = ends.routed(), ends.routed()
    ok(ends.client.connect(first))
    ends.server.wait()
    result = ends.client.connect(second)
    t.later(lambda: t.say("cm-connect-no-answer", result, ends.client.event()))


# ---- while it is being made -------------------------------------------------------------------------------------------

def request_sent(t):
    with Ends(t.address) as ends:
        number, request = ends.requested(resources=3, depth=5, qpn=0x77)
        f, child = ends.client, request.id
        t.say("cm-initqp-init-req-sent", f.init_qp(number, INIT), mask(f), f"access={f.word(36):#x}")
        t.say("cm-initqp-rtr-req-sent", f.init_qp(number, RTR))
        t.say("cm-initqp-rts-req-sent", f.init_qp(number, RTS))
        f = ends.server
        t.say("cm-initqp-init-req-rcvd", f.init_qp(child, INIT), mask(f), f"access={f.word(36):#x}")
        t.say("cm-initqp-rtr-req-rcvd", f.init_qp(child, RTR), mask(f), f"qpn={f.word(32):#x}", f"rd_atomic={f.answer.raw[131]}")
        t.say("cm-initqp-rts-req-rcvd", f.init_qp(child, RTS), mask(f), f"rd_atomic={f.answer.raw[130]}",
              f"timeout={f.answer.raw[134]}")
        t.say("cm-initqp-sqd-req-rcvd", f.init_qp(child, SQD))
        t.say("cm-disc-req-rcvd", f.disconnect(child), f"then={f.init_qp(child, RTR)}")


def accept_twice(t):
    """A failed ACCEPT resets the connection. Linux does not cancel what was sent, and so the end of the identifier waits for that."""
    if not t.args.lingering:
        t.skip("cm-accept-req-sent", "the program would not end for minutes (--lingering)")
        t.skip("cm-accept-twice", "the program would not end for minutes (--lingering)")
        return
    with Ends(t.address) as ends:
        number, request = ends.requested()
        t.say("cm-accept-req-sent", ends.client.accept(number, valid=0), f"child={ends.server.init_qp(request.id, RTR)}")
        number, child, _ = ends.accepted()
        t.say("cm-accept-twice", ends.server.accept(child), ends.client.event())


def accept(t):
    with Ends(t.address) as ends:
        number, request = ends.requested()
        f, child = ends.server, request.id
        t.say("cm-accept", f.accept(child, uid=0x2000, length=196, fill=b"y"), ends.client.event())
        t.say("cm-accept-data", "0", ends.client.answer.raw[28:224].decode().replace("y" * 196, "196-bytes"))


def accept_data_197(t):
    with Ends(t.address) as ends:
        _, request = ends.requested()
        t.say("cm-accept-plen-197", ends.server.accept(request.id, 197), ends.client.event())


def accept_invalid(t):
    """A failed ACCEPT rejects the request."""
    with Ends(t.address) as ends:
        _, request = ends.requested()
        t.say("cm-accept-wrong-state", ends.server.accept(request.id, valid=0), ends.client.event(),
              f"then={ends.server.accept(request.id)}")


def ready_to_use(t):
    with Ends(t.address) as ends:
        number, child, response = ends.accepted(resources=2, depth=4)
        f = ends.client
        t.say("cm-initqp-rts-rep-rcvd", f.init_qp(number, RTS), mask(f), f"rd_atomic={f.answer.raw[130]}")
        t.say("cm-accept-rtu-twice-a", f.accept(number, valid=0))
        event = ends.server.event()
        t.say("cm-accept-uid", "0", event, f"uid={event.uid:#x}", f"own-id={event.id == child}")
        t.say("cm-accept-rtu-twice-b", f.accept(number, valid=0))
        t.say("cm-reject-established", ends.server.reject(child))
        t.say("cm-notify-established", ends.server.notify(child, PATH_MIG))
        t.say("cm-notify-established-again", ends.server.notify(child, COMM_EST))
        t.say("cm-initqp-rtr-established", f.init_qp(number, RTR), mask(f))
        ok(f.option(number, OPTION_ID, ACK_TIMEOUT, b"\x11"))
        ok(f.init_qp(number, RTS))
        t.say("cm-initqp-timeout", "0", f"timeout={f.answer.raw[134]}")


def notify(t):
    with Ends(t.address) as ends:
        number, child, _ = ends.accepted()
        result = ends.server.notify(child, COMM_EST)
        t.say("cm-notify-rep-sent", result, ends.server.event())
        t.say("cm-notify-then-rtu", ends.client.accept(number, valid=0))


# ---- its end ----------------------------------------------------------------------------------------------------------

def reject(t):
    with Ends(t.address) as ends:
        number, request = ends.requested()
        f, child = ends.server, request.id
        t.say("cm-reject-plen-149", f.reject(child, 0, 149))
        result, event = f.reject(child, 0, 10), ends.client.event()
        t.say("cm-reject", result, event, f"length={event.conn()[0]}")
        t.say("cm-reject-twice", f.reject(child))
        t.say("cm-accept-after-reject", f.accept(child))
        t.say("cm-initqp-after-reject", ends.client.init_qp(number, INIT))
    with Ends(t.address) as ends:
        _, request = ends.requested()
        t.say("cm-reject-reason-35", ends.server.reject(request.id, VENDOR_OPTION), ends.client.event())


def reject_by_client(t):
    with Ends(t.address) as ends:
        number, child, _ = ends.accepted()
        t.say("cm-reject-rep-rcvd", ends.client.reject(number), ends.server.event())


def disconnect(t):
    with Ends(t.address) as ends:
        number, child = ends.established()
        t.say("cm-disc", ends.client.disconnect(number), ends.server.event())
        t.say("cm-disc-passive", ends.server.disconnect(child), ends.client.event())
        t.say("cm-disc-again", ends.client.disconnect(number))
        t.say("cm-initqp-after-disc", ends.server.init_qp(child, RTR))


def timewait(t):
    ends = Ends(t.address)
    number, child = ends.established()
    ok(ends.client.disconnect(number))
    ends.server.event("DISCONNECTED")
    ok(ends.server.disconnect(child))
    ends.client.event("DISCONNECTED")
    t.later(lambda: t.say("cm-disc-timewait", "0", f"client={ends.client.event()}", f"server={ends.server.event()}"))


def destroy(t):
    with Ends(t.address) as ends:
        number, request = ends.requested()
        t.say("cm-destroy-req-rcvd", ends.server.destroy(request.id), ends.client.event())
    with Ends(t.address) as ends:
        number, child = ends.established()
        t.say("cm-destroy-established", ends.client.destroy(number), ends.server.event(), f"reported={ends.client.word()}")
    with Ends(t.address) as ends:
        number, child, _ = ends.accepted()
        t.say("cm-destroy-rep-rcvd", ends.client.destroy(number), ends.server.event())
    with Ends(t.address) as ends:
        number, child, _ = ends.accepted()
        t.say("cm-destroy-rep-sent", ends.server.destroy(child), ends.client.event())


def destroy_before_accept(t):
    """The server has not accepted yet: its identifier has no name of its own, and gets no event."""
    ends = Ends(t.address)
    number, request = ends.requested()
    result = ends.client.destroy(number)

    def seen():
        t.say("cm-new-id-quiet", ends.server.get())
        t.say("cm-destroy-req-sent", result, f"accept={ends.server.accept(request.id)}")
        ends.client.close()
        ends.server.close()
    t.later(seen)


def close_listener(t):
    with Ends(t.address) as ends:
        ok(ends.client.connect(ends.routed()))
        ends.server.wait()
        ends.server.close()
        t.say("cm-listen-close", "0", ends.client.event())
    with Ends(t.address) as ends:
        ok(ends.client.connect(ends.routed()))
        ends.server.wait()
        t.say("cm-listen-destroy", ends.server.destroy(ends.listener), ends.client.event(), f"reported={ends.server.word()}",
              f"server={ends.server.get()}")
    with Ends(t.address) as ends:
        number, child = ends.established()
        ok(ends.server.destroy(ends.listener))
        t.say("cm-listen-destroy-established", ends.server.disconnect(child), ends.client.event())


GROUPS = (timewait, connect_backlog, backlog_of_refused_listen, destroy_before_accept, without_device, without_connection, connect,
          connect_refused, connect_other_type, path_of_connection, connect_stale, accept_stale, request_sent, accept, accept_data_197,
          accept_invalid, ready_to_use, notify, reject, reject_by_client, disconnect, destroy, close_listener, connect_without_answer)
LAST = (accept_twice,)
