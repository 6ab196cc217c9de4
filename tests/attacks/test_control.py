# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The control socket while users make too many connections and requests."""
import json
import os
import select
import socket
import subprocess
import time

from conftest import Attack, USER, cuse

OBJECTS = 60000 if os.environ.get("UVERBSD_LONG") else 2000
CONTROL = "/run/uverbsd/control"


def connect(number, user):
    """Connects as often as told, by a process of that user. Returns a socket that keeps the process while it is open: see connected()."""
    ours, theirs = socket.socketpair()
    if not os.fork():
        try:
            ours.close()
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            sockets = [socket.socket(socket.AF_UNIX) for _ in range(number)]
            for s in sockets:
                s.connect(CONTROL)
            until, ended = time.monotonic() + 4, []
            while len(ended) < number - 8 and time.monotonic() < until:
                time.sleep(0.1)
                ended = select.select(sockets, [], [], 0)[0]
            theirs.sendall(json.dumps([number - len(ended), sockets[0] in ended, sockets[-1] in ended]).encode())
            theirs.recv(1)
        finally:
            os._exit(0)
    theirs.close()
    return ours


def connected(process):
    """How many connections of the process are open, and whether the first and the last one end."""
    return tuple(json.loads(process.recv(100)))


def ask_status(user):
    return subprocess.run([cuse.BUILD / "tools" / "uverbsctl", "status", "--json"], user=user, group=user, extra_groups=[],
                          stdout=subprocess.PIPE, text=True, timeout=cuse.STUCK)


def status(user=0):
    done = ask_status(user)
    assert done.returncode == 0
    return json.loads(done.stdout)


def test_connections_of_one_user_push_out_nobody_elses(start):
    d = start("--devices", "2")
    held = Attack("stuck", "page", user=0)
    cuse.wait_for("a call that waits", lambda: d.held().get(USER, {}).get("calls"))
    remove = subprocess.Popen([cuse.BUILD / "tools" / "uverbsctl", "device", "remove", cuse.NAMES[0]], stdout=subprocess.PIPE)
    crowd = []
    try:
        time.sleep(0.5)
        assert remove.poll() is None
        # A user may have eight connections; a new one replaces the user's oldest. They end after five seconds.
        crowd.append(connect(60, USER))
        assert connected(crowd[0]) == (8, True, False)
        # Many users leave no room. What has sent no command for a second gives way to a further user, and root's do not count.
        crowd += [connect(8, USER + 1 + i) for i in range(8)]
        cuse.wait_for("an answer to a further user", lambda: ask_status(USER + 9).returncode == 0)
        assert len(status()["devices"]) == 2
        crowd.append(connect(60, 0))
        assert remove.poll() is None and len(status()["devices"]) == 2
    finally:
        held.end()
    assert remove.wait(cuse.STUCK) == 0 and cuse.NAMES[0].encode() in remove.stdout.read()
    for process in crowd:
        process.close()
    cuse.wait_for("the node's end, after its last file", lambda: len(status(USER)["devices"]) == 1)
    d.wait_idle()


def test_everybody_who_asks_at_once_gets_an_answer(start):
    start()
    asking = []
    for _ in range(8):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(cuse.STUCK)
        s.connect(CONTROL)
        s.sendall(b"status\n")
        asking.append(s)
    for s in asking[:4]:
        s.close()
    for s in asking[4:]:
        assert json.loads(s.makefile().readline())["devices"]


def test_answer_is_no_older_than_the_question(start):
    d = start()
    for n in range(1, 30):
        fd = os.open("/dev/infiniband/uverbs0", os.O_RDWR)
        assert d.files() == 1, n
        os.close(fd)
        assert d.files() == 0, n


def shortest(what):
    """The shortest duration of seven calls of what(), in seconds."""
    times = []
    for _ in range(7):
        time.sleep(0.1)
        began = time.monotonic()
        what()
        times.append(time.monotonic() - began)
    return min(times)


def test_status_takes_no_longer_with_many_objects(start):
    d = start()
    # An answer lists 256 objects of a file at most, and counts the others.
    held = Attack("crowd", "objects", 256)
    few = shortest(d.status)
    held.end()
    held = Attack("crowd", "objects", OBJECTS)
    assert d.status()["devices"][0]["objects"]["UVERBS_OBJECT_MR"] == OBJECTS
    many = shortest(d.status)
    held.end()
    d.wait_idle()
    assert many < 2 * few + 0.02, (few, many)
