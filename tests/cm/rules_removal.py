# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A device goes while identifiers are bound to it."""
import os
import time

from ucm import ADDR, STUCK, Ends, File, in4


def removed(f, number, command):
    """Removes the device, and waits until the identifier has no more."""
    assert os.system(f"{command} >/dev/null") == 0
    end = time.monotonic() + STUCK
    while f.query(number, ADDR) != "ENXIO":
        assert time.monotonic() < end
        time.sleep(0.01)


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


LAST = (removal,)
