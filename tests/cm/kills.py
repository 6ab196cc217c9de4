#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""kills.py ADDRESS NUMBER: kills that many clients at random moments of their connections, and their server now and then. Afterwards
nothing may be left of any of them: the next identifier gets the first number, and the port is free."""
import os
import random
import signal
import sys
import time

from ucm import STUCK, File, in4, ok

PORT = 7600
LIFE = 0.012  # seconds: a client that is not killed connects and disconnects several times meanwhile
CLIENTS_OF_A_SERVER = 40


def serve(address, ready):
    file = File()
    listener = file.new()
    ok(file.bind(listener, in4(address, PORT)))
    ok(file.listen(listener, 64))
    os.write(ready, b"1")
    while True:
        event = file.event()
        if event.name == "CONNECT_REQUEST":
            if file.accept(event.id, uid=event.id + 1) != "0":
                file.destroy(event.id)
        elif event.name == "DISCONNECTED":
            file.disconnect(event.id)
            file.destroy(event.id)
        elif event.name in ("REJECTED", "UNREACHABLE"):
            file.destroy(event.id)


def call(address):
    while True:
        with File() as file:
            number = file.new()
            ok(file.resolve(number, in4(address, PORT)))
            file.event("ADDR_RESOLVED")
            ok(file.resolve_route(number))
            file.event("ROUTE_RESOLVED")
            ok(file.connect(number, qpn=random.randrange(1 << 24)))
            if file.event().name != "CONNECT_RESPONSE":
                continue
            file.accept(number, valid=0)
            if random.random() < 0.7:
                file.disconnect(number)
                file.event()


def start(work, *args):
    pid = os.fork()
    if not pid:
        try:
            random.seed(os.getpid())
            work(*args)
        finally:
            os._exit(1)
    return pid


def start_server(address):
    ours, theirs = os.pipe()
    pid = start(serve, address, theirs)
    os.close(theirs)
    began = os.read(ours, 1)
    os.close(ours)
    return pid if began else None


def kill(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def is_clean(address):
    with File() as file:
        number = file.new()
        return number == 0 and file.bind(number, in4(address, PORT)) == "0"


def main(address, number):
    server = None
    for n in range(number):
        if n % CLIENTS_OF_A_SERVER == 0:
            if server:
                kill(server)
            server = start_server(address)
            assert server, "the port of a server that was killed is not free"
        client = start(call, address)
        time.sleep(random.random() * LIFE)
        kill(client)
    kill(server)
    end = time.monotonic() + STUCK
    while not is_clean(address):
        assert time.monotonic() < end, "something is left of clients that were killed"
        time.sleep(0.01)
    print(f"{number} clients were killed, and nothing is left of them")


main(sys.argv[1], int(sys.argv[2]))
