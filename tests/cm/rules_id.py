# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Identifiers: how they are made, destroyed and asked about, and their options."""
import struct
import threading

from ucm import (ADDR, GID, IB, NONE, NOWHERE, PATH, TCP, UDP, Ends, Event, File, in4, ip_and_port, ok)

OPTION_ID, OPTION_IB = 0, 1
TOS, REUSEADDR, AFONLY, ACK_TIMEOUT = range(4)
IB_PATH = 1
ONE, ZERO = struct.pack("<i", 1), struct.pack("<i", 0)
PATH_RECORD = struct.pack("<II64x", 1 | 2 | 8 | 32, 0)  # GMP, PRIMARY, BIDIRECTIONAL


def create(t):
    with File() as f:
        t.say("cm-create-out-3", f.create(out=3))
        t.say("cm-create-out-3-bad-ps", f.create(ps=1, out=3))
        t.say("cm-create-ps-bad", f.create(ps=1))
        number = f.new()
        ok(f.destroy(number))
        t.say("cm-create-resp-fault", f.create(response=NOWHERE), f"destroy={f.destroy(number)}")
        t.say("cm-create-ps-bad-fault", f.create(ps=1, response=NOWHERE))
        t.say("cm-create-ps-ib-qp-255", f.create(ps=IB, qp=255))
        t.say("cm-create-ps-tcp-qp-ignored", f.create(ps=TCP, qp=99))


def destroy(t):
    with File() as f, File() as g:
        number = f.new()
        t.say("cm-destroy-out-3", f.destroy(NONE, out=3))
        t.say("cm-destroy-none", f.destroy(NONE))
        t.say("cm-destroy-foreign", g.destroy(number))
        t.say("cm-destroy-resp-fault", f.destroy(number, response=NOWHERE))
        t.say("cm-destroy-after-fault", f.destroy(number))


def destroy_race(t):
    """Each of two threads destroys the same identifier: one of them does, the other finds none."""
    with File() as f:
        results = []
        for _ in range(20):
            number, together = f.new(), threading.Barrier(2)

            def both(number=number, together=together):
                together.wait()
                results.append(f.destroy(number))
            threads = [threading.Thread(target=both) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        t.say("cm-destroy-race", "+".join(sorted(set(results) - {"0"})), f"destroyed={results.count('0')}")


def destroy_reported(t):
    """A CONNECT_REQUEST counts for the listener."""
    with Ends(t.address) as ends:
        _, child = ends.established()
        ok(ends.server.destroy(child))
        of_child = ends.server.word()
        ok(ends.server.destroy(ends.listener))
        t.say("cm-destroy-reported", "0", f"child={of_child}", f"listener={ends.server.word()}")


# ---- questions --------------------------------------------------------------------------------------------------------

def query(t):
    with Ends(t.address) as ends:
        f, number = ends.client, ends.resolved()
        t.say("cm-query-none", f.query(NONE, ADDR))
        t.say("cm-query-option-3", f.query(number, 3))
        t.say("cm-query-option-3-none", f.query(NONE, 3))
        t.say("cm-query-addr-out-271", f.query(number, ADDR, 271))
        t.say("cm-query-addr-out-272", f.query(number, ADDR, 272))
        t.say("cm-query-path-out-7", f.query(number, PATH, 7))
        t.say("cm-query-gid-out-271", f.query(number, GID, 271))
        t.say("cm-query-fault", f.query(number, ADDR, response=NOWHERE))
        t.say("cm-query-out-before-fault", f.query(number, ADDR, 271, NOWHERE))
        t.say("cm-query-path-out-8", f.query(number, PATH, 8), f"paths={f.word()}")
        t.say("cm-qroute-out-short", f.query_route(number, 199))
        f.answer[208:216] = b"x" * 8
        t.say("cm-qroute", f.query_route(number, 512), f"behind={f.answer.raw[208:216].decode()}")


def query_answers(t):
    """Without a device, and with a route."""
    with Ends(t.address) as ends:
        f, idle, number = ends.client, ends.client.new(), ends.routed()
        result = f.query(idle, ADDR)
        t.say("cm-query-addr-idle", result, f"port={f.answer.raw[8]} sizes={struct.unpack_from('<HH', f.answer, 12)}")
        t.say("cm-query-path-idle", f.query(idle, PATH, 440), f"paths={f.word()}")
        result = f.query(number, PATH, 79)
        t.say("cm-query-path-out-79", result, f"paths={f.word()}", f"flags={path_flags(f, number, 79)}")
        t.say("cm-query-path-out-80", f.query(number, PATH, 80), f"paths={f.word()}", f"flags={path_flags(f, number, 80)}")
        ok(f.query(number, ADDR))
        same = ip_and_port(f.answer.raw[16:])[0] == ip_and_port(f.answer.raw[144:])[0] == t.address
        t.say("cm-query-addr", "0", f"port={f.answer.raw[8]} sizes={struct.unpack_from('<HH', f.answer, 12)} same={same}")
        ok(f.query(number, GID))
        family, pkey = struct.unpack_from("<H", f.answer, 16)[0], struct.unpack_from(">H", f.answer, 18)[0]
        sid = struct.unpack_from(">Q", f.answer, 16 + 128 + 24)[0]
        t.say("cm-query-gid", "0", f"family={family} pkey={pkey:#x} gid={f.answer.raw[24:36].hex()}",
              f"service={sid >> 16:#x} own-port={sid & 0xffff == ends.port}")


def path_flags(f, number, size):
    """The flags of the path record: what is behind the response stays as it was."""
    f.answer[8:12] = b"\xff" * 4
    ok(f.query(number, PATH, size))
    return hex(f.word(8))


# ---- options ----------------------------------------------------------------------------------------------------------

def option(t):
    with Ends(t.address) as ends:
        f, number = ends.client, ends.resolved()
        t.say("cm-opt-none", f.option(NONE, OPTION_ID, TOS, b"\1"))
        t.say("cm-opt-level-2", f.option(number, 2, 0, b"\1"))
        t.say("cm-opt-name-9", f.option(number, OPTION_ID, 9, b"\1"))
        t.say("cm-opt-tos-len-2", f.option(number, OPTION_ID, TOS, b"\1\0"))
        t.say("cm-opt-tos", f.option(number, OPTION_ID, TOS, b"\1"))
        t.say("cm-opt-reuse-len-1", f.option(number, OPTION_ID, REUSEADDR, b"\1"))
        t.say("cm-opt-afonly-len-1", f.option(number, OPTION_ID, AFONLY, b"\1"))
        t.say("cm-opt-afonly-bound", f.option(number, OPTION_ID, AFONLY, ONE))
        t.say("cm-opt-timeout-len", f.option(number, OPTION_ID, ACK_TIMEOUT, b"\1\0"))
        t.say("cm-opt-timeout-31", f.option(number, OPTION_ID, ACK_TIMEOUT, b"\x1f"))
        t.say("cm-opt-timeout-32", f.option(number, OPTION_ID, ACK_TIMEOUT, b"\x20"))
        t.say("cm-opt-len-huge", f.option(number, OPTION_ID, TOS, b"\1", 0xffffffff))
        t.say("cm-opt-len-huge-none", f.option(NONE, OPTION_ID, TOS, b"\1", 0xffffffff))
        t.say("cm-opt-fault", f.option(number, OPTION_ID, TOS, b"\1", at=NOWHERE))
        t.say("cm-opt-fault-before-level", f.option(number, 9, 0, b"\1", at=NOWHERE))
        t.say("cm-opt-len-0", f.option(number, OPTION_ID, TOS, b""))
        t.say("cm-opt-ib-name-2", f.option(number, OPTION_IB, 2, b"\1"))
        t.say("cm-opt-ib-path-len-0", f.option(number, OPTION_IB, IB_PATH, b""))
        t.say("cm-opt-ib-path-len-71", f.option(number, OPTION_IB, IB_PATH, bytes(71)))
        t.say("cm-opt-ib-path-no-flags", f.option(number, OPTION_IB, IB_PATH, bytes(72)))


def option_by_state(t):
    with File() as f:
        idle, bound, listens, ud = f.new(), f.new(), f.new(), f.new(ps=UDP)
        ok(f.bind(bound, in4(t.address)))
        ok(f.listen(listens))
        t.say("cm-opt-reuse-idle", f.option(idle, OPTION_ID, REUSEADDR, ONE), f"off={f.option(idle, OPTION_ID, REUSEADDR, ZERO)}")
        t.say("cm-opt-reuse-bound", f.option(bound, OPTION_ID, REUSEADDR, ONE))
        t.say("cm-reuse-off-bound", f.option(bound, OPTION_ID, REUSEADDR, ZERO))
        t.say("cm-reuse-listen", f.option(listens, OPTION_ID, REUSEADDR, ONE))
        t.say("cm-afonly-bound", f.option(bound, OPTION_ID, AFONLY, ONE), f"listens={f.option(listens, OPTION_ID, AFONLY, ONE)}")
        t.say("cm-timeout-ud", f.option(ud, OPTION_ID, ACK_TIMEOUT, b"\x0e"))


def option_path(t):
    with Ends(t.address) as ends:
        f, idle, number, routed = ends.client, ends.client.new(), ends.resolved(), ends.routed()
        t.say("cm-setpath-idle", f.option(idle, OPTION_IB, IB_PATH, PATH_RECORD))
        t.say("cm-setpath-state", f.option(routed, OPTION_IB, IB_PATH, PATH_RECORD))
        result = f.option(number, OPTION_IB, IB_PATH, PATH_RECORD)
        ok(f.get())
        t.say("cm-setpath-event", result, Event.of(f.answer.raw[:336]).name)


GROUPS = (create, destroy, destroy_race, destroy_reported, query, query_answers, option, option_by_state, option_path)
