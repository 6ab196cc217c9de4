# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The machine loses an address, or a device goes, while identifiers are bound to it."""
import os
import time

from ucm import ADDR, RTS, STUCK, UDP, Ends, File, in4, ok


def until(what):
    end = time.monotonic() + STUCK
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def done(command):
    assert os.system(f"{command} >/dev/null") == 0


def can_bind(f, address):
    """BIND of a new identifier, which is destroyed."""
    number = f.new()
    result = f.bind(number, in4(address))
    ok(f.destroy(number))
    return result


def told(f, result):
    """A command's result, with its event if there is to be one."""
    return (result, f.event()) if result == "0" else (result,)


def lost(t):
    if not t.args.lose:
        for rule in ("cm-lost-bind", "cm-lost-raddr", "cm-lost-raddr-src", "cm-lost-connected", "cm-lost-connect", "cm-lost-accept",
                     "cm-lost-disconnect", "cm-lost-join", "cm-lost-back"):
            t.skip(rule, "no address to lose (--lose)")
        return
    address, lose, back = t.args.lose
    with Ends(address) as ends, File() as f:
        (number, child), (again, _) = ends.established(), ends.established()
        ready, request = ends.routed(), ends.requested()[1]
        member = f.new(ps=UDP)
        ok(f.bind(member, in4(address)))
        done(lose)
        until(lambda: can_bind(f, address) != "0")
        t.say("cm-lost-bind", can_bind(f, address))
        other = f.new()
        t.say("cm-lost-raddr", *told(f, f.resolve(other, in4(address, 7))))
        t.say("cm-lost-raddr-src", f.resolve(f.new(), in4(address, 7), in4(address)))
        t.say("cm-lost-connected", ends.client.get(), f"server={ends.server.get()}", f"source={ends.client.source(number)[0] == address}",
              f"child={ends.server.query(child, ADDR)}", f"rts={ends.client.init_qp(number, RTS)}",
              f"listener={ends.server.query(ends.listener, ADDR)}")
        t.say("cm-lost-connect", ends.client.connect(ready), f"event={ends.client.get()}")
        t.say("cm-lost-accept", ends.server.accept(request.id), f"client={ends.client.get()}", f"server={ends.server.get()}")
        t.say("cm-lost-disconnect", ends.client.disconnect(number), f"again={ends.client.disconnect(number)}")
        t.say("cm-lost-join", *told(f, f.join(member, in4("224.0.0.9"))))
        done(back)
        until(lambda: can_bind(f, address) == "0")
        t.say("cm-lost-back", f.resolve(other, in4(address, 7)), f.event(), f"disconnect={ends.client.disconnect(again)}",
              f"new={len(ends.established())}", f"client={ends.client.get()}", f"server={ends.server.get()}")


def removed(f, number, command):
    """Removes the device, and waits until the identifier has no more."""
    done(command)
    until(lambda: f.query(number, ADDR) == "ENXIO")


def removal(t):
    if not t.args.remove:
        t.skip("cm-device-removal", "no device to remove (--remove)")
        t.skip("cm-id-dying", "no device to remove (--remove)")
        return
    address, command = t.args.remove
    with Ends(address) as ends, File() as f:
        number, child = ends.established()
        unbound = f.new()
        removed(ends.client, number, command)
        t.say("cm-device-removal", "0", f"client={ends.client.event()}", f"server={ends.server.event()}",
              f"child={ends.server.query(child, ADDR)}", f"unbound={f.query(unbound, ADDR)}", f"bind={f.bind(unbound, in4())}")
        t.say("cm-id-dying", ends.client.query(number, ADDR), f"disconnect={ends.client.disconnect(number)}",
              f"destroy={ends.client.destroy(number)}", f"reported={ends.client.word()}", f"then={ends.client.destroy(number)}")


LAST = (lost, removal)
