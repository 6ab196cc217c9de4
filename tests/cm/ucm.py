# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""/dev/infiniband/rdma_cm without a library of RDMA: the commands of rdma/rdma_user_cm.h, and the two ends of a connection.

A command returns the name of its errno, "0" if it succeeded; File.answer is where responses go.
"""
import collections
import ctypes
import errno
import itertools
import os
import select
import socket
import struct

NODE = "/dev/infiniband/rdma_cm"
CREATE_ID, DESTROY_ID, BIND_IP, RESOLVE_IP, RESOLVE_ROUTE, QUERY_ROUTE, CONNECT, LISTEN, ACCEPT, REJECT, DISCONNECT, INIT_QP_ATTR, \
    GET_EVENT, GET_OPTION, SET_OPTION, NOTIFY, JOIN_IP_MCAST, LEAVE_MCAST, MIGRATE_ID, QUERY, BIND, RESOLVE_ADDR, JOIN_MCAST = range(23)
TCP, UDP, IPOIB, IB = 0x106, 0x111, 0x002, 0x13f
RC, UD, XRC_INI, XRC_TGT = 2, 4, 9, 10
INIT, RTR, RTS, SQD = 1, 2, 3, 4
ADDR, PATH, GID = range(3)
EVENTS = ("ADDR_RESOLVED", "ADDR_ERROR", "ROUTE_RESOLVED", "ROUTE_ERROR", "CONNECT_REQUEST", "CONNECT_RESPONSE", "CONNECT_ERROR",
          "UNREACHABLE", "REJECTED", "ESTABLISHED", "DISCONNECTED", "DEVICE_REMOVAL", "MULTICAST_JOIN", "MULTICAST_ERROR",
          "ADDR_CHANGE", "TIMEWAIT_EXIT")
AF_IB = 27
EVENT_SIZE = 336
NONE = 99999  # no file has such an id
NOWHERE = 8  # nothing is mapped there
STUCK = 300  # seconds: a limit for what is stuck, and not for what is slow

libc = ctypes.CDLL(None, use_errno=True)
# Numbers that user space has no name for, or that Python has another one for.
NAMES = {**errno.errorcode, 524: "ENOTSUPP", errno.EOPNOTSUPP: "EOPNOTSUPP"}


def errno_name(number):
    return NAMES.get(number, str(number)) if number else "0"


def status_name(status):
    """Of an event: a negative errno by its name."""
    return f"-{errno_name(-status)}" if status < 0 else str(status)


def ok(result):
    assert result == "0", result


# ---- addresses --------------------------------------------------------------------------------------------------------

def in4(address="0.0.0.0", port=0):
    return struct.pack("<H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(address) + bytes(8)


def in6(address="::", port=0, scope=0):
    return (struct.pack("<H", socket.AF_INET6) + struct.pack(">HI", port, 0)
            + socket.inet_pton(socket.AF_INET6, address) + struct.pack("<I", scope))


def sockaddr_ib(gid=bytes(16), sid=0, mask=0, pkey=0):
    return struct.pack("<H", AF_IB) + struct.pack(">HI", pkey, 0) + gid + struct.pack(">QQ", sid, mask) + bytes(8)


def padded(data, size):
    return data + bytes(size - len(data))


def ip_and_port(sockaddr):
    return socket.inet_ntoa(sockaddr[4:8]), struct.unpack_from(">H", sockaddr, 2)[0]


# ---- an open of the node ----------------------------------------------------------------------------------------------

class Event(collections.namedtuple("Event", "uid id name status data")):
    """data: all of struct rdma_ucm_event_resp."""

    @classmethod
    def of(cls, data):
        uid, number, event, status = struct.unpack_from("<QIIi", data)
        return cls(uid, number, EVENTS[event], status_name(status), data)

    def conn(self):
        """What a connection's event says of the peer's parameters."""
        length, _, resources, depth = struct.unpack_from("<4B", self.data, 284)
        return length, resources, depth

    def ud(self):
        """The data's length, the QP's number and the Q_Key of an event of datagrams."""
        return self.data[316], *struct.unpack_from("<II", self.data, 20)

    def __str__(self):
        return f"{self.name}={self.status}"


QPNS = itertools.count(0x1000)  # a number that has a connection already would make the next one stale


def conn_param(length=0, valid=1, qpn=None, qkey=0, resources=1, depth=1, fill=b"\0"):
    qpn = next(QPNS) if qpn is None else qpn
    return struct.pack("<II", qpn, qkey) + fill * 256 + struct.pack("<8B", length, 0, resources, depth, 0, 7, 7, valid)


class File:
    def __init__(self, flags=os.O_NONBLOCK | os.O_CLOEXEC):
        self.fd = os.open(NODE, os.O_RDWR | flags)
        self.answer = ctypes.create_string_buffer(4096)

    def close(self):
        os.close(self.fd)
        self.fd = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def write_at(self, address, size):
        """write() of bytes at this address."""
        ctypes.set_errno(0)
        done = libc.write(self.fd, ctypes.c_void_p(address), ctypes.c_size_t(size))
        assert done in (-1, size), done
        return errno_name(ctypes.get_errno()) if done < 0 else "0"

    def write(self, data, size=None):
        """write() of the first `size` bytes, all by default: a command can be longer than its write()."""
        room = ctypes.create_string_buffer(data, len(data) or 1)
        return self.write_at(ctypes.addressof(room), len(data) if size is None else size)

    def command(self, number, request=b"", out=0, size=None):
        """size: what the header says of the request, by default the truth."""
        return self.write(struct.pack("<IHH", number, len(request) if size is None else size, out) + request)

    def room(self, response):
        """Where a response is to be written: `response`, by default to the answer."""
        return ctypes.addressof(self.answer) if response is None else response

    def word(self, at=0):
        return struct.unpack_from("<I", self.answer, at)[0]

    # Identifiers.

    def create(self, ps=TCP, qp=RC, uid=0x1000, out=4, response=None):
        return self.command(CREATE_ID, struct.pack("<QQHB5x", uid, self.room(response), ps, qp), out)

    def new(self, **param):
        ok(self.create(**param))
        return self.word()

    def destroy(self, number, out=4, response=None):
        return self.command(DESTROY_ID, struct.pack("<QII", self.room(response), number, 0), out)

    def migrate(self, number, fd, response=None):
        return self.command(MIGRATE_ID, struct.pack("<QIi", self.room(response), number, fd), 4)

    def option(self, number, level, name, value, size=None, at=None):
        room = ctypes.create_string_buffer(value, max(1, len(value)))
        return self.command(SET_OPTION, struct.pack("<QIIII", ctypes.addressof(room) if at is None else at, number, level, name,
                                                    len(value) if size is None else size))

    def get(self, out=EVENT_SIZE, response=None):
        return self.command(GET_EVENT, struct.pack("<Q", self.room(response)), out)

    def wait(self):
        """Waits until there is an event."""
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        assert poll.poll(STUCK * 1000), "no event"

    def event(self, name=None):
        self.wait()
        ok(self.get())
        event = Event.of(self.answer.raw[:EVENT_SIZE])
        assert name in (None, event.name), event
        return event

    # Addresses.

    def bind(self, number, address, size=None, reserved=0):
        return self.command(BIND, struct.pack("<IHH", number, len(address) if size is None else size, reserved) + padded(address, 128))

    def bind_ip(self, number, address):
        return self.command(BIND_IP, struct.pack("<Q", 0) + padded(address, 28) + struct.pack("<I", number))

    def resolve(self, number, destination, source=b"", sizes=(None, None), reserved=0):
        """sizes: of source and destination, by default the truth."""
        source_size, size = (len(a) if s is None else s for a, s in zip((source, destination), sizes))
        return self.command(RESOLVE_ADDR, struct.pack("<IIHHI", number, 2000, source_size, size, reserved) + padded(source, 128)
                            + padded(destination, 128))

    def resolve_ip(self, number, destination, source=b""):
        return self.command(RESOLVE_IP, padded(source, 28) + padded(destination, 28) + struct.pack("<II", number, 2000))

    def resolve_route(self, number, timeout=2000):
        return self.command(RESOLVE_ROUTE, struct.pack("<II", number, timeout))

    def query(self, number, option, out=280, response=None):
        return self.command(QUERY, struct.pack("<QII", self.room(response), number, option), out)

    def query_route(self, number, out=208, response=None):
        return self.command(QUERY_ROUTE, struct.pack("<QII", self.room(response), number, 0), out)

    def source(self, number):
        """The IPv4 address and the port that the identifier is bound to."""
        ok(self.query(number, ADDR))
        return ip_and_port(self.answer.raw[16:])

    # Connections.

    def listen(self, number, backlog=5):
        return self.command(LISTEN, struct.pack("<II", number, backlog))

    def connect(self, number, length=0, size=None, **param):
        return self.command(CONNECT, conn_param(length, **param) + struct.pack("<IIII", number, 0, 0, 0), 0, size)

    def accept(self, number, length=0, uid=0x2000, size=None, **param):
        return self.command(ACCEPT, struct.pack("<Q", uid) + conn_param(length, **param) + struct.pack("<IIII", number, 0, 0, 0), 0, size)

    def reject(self, number, reason=0, length=0):
        return self.command(REJECT, struct.pack("<IBBH", number, length, reason, 0) + bytes(256))

    def disconnect(self, number):
        return self.command(DISCONNECT, struct.pack("<I", number))

    def notify(self, number, event):
        return self.command(NOTIFY, struct.pack("<II", number, event))

    def init_qp(self, number, state, out=144, response=None):
        return self.command(INIT_QP_ATTR, struct.pack("<QII", self.room(response), number, state), out)

    # Multicast.

    def join(self, number, address, flags=0, size=None, out=4, response=None, uid=0x3000):
        return self.command(JOIN_MCAST, struct.pack("<QQIHH", self.room(response), uid, number,
                                                    len(address) if size is None else size, flags) + padded(address, 128), out)

    def join_ip(self, number, address, out=4, uid=0x3000):
        return self.command(JOIN_IP_MCAST, struct.pack("<QQ", self.room(None), uid) + padded(address, 28) + struct.pack("<I", number), out)

    def leave(self, number, out=4, response=None):
        return self.command(LEAVE_MCAST, struct.pack("<QII", self.room(response), number, 0), out)


# ---- both ends of a connection ----------------------------------------------------------------------------------------

class Ends:
    """A server that listens at a port of its own, and a client. Each has the node open by itself."""

    def __init__(self, address, ps=TCP, backlog=5):
        self.address, self.ps = address, ps
        self.server, self.client = File(), File()
        self.listener = self.server.new(ps=ps)
        ok(self.server.bind(self.listener, self.own()))
        self.port = self.port_of(self.listener)
        ok(self.server.listen(self.listener, backlog))

    def own(self):
        """The server's address, without a port."""
        return in4(self.address)

    def port_of(self, number):
        return self.server.source(number)[1]

    def destination(self):
        return in4(self.address, self.port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for file in (self.client, self.server):
            if file.fd >= 0:
                file.close()

    def resolved(self, **param):
        number = self.client.new(ps=self.ps, **param)
        ok(self.client.resolve(number, self.destination()))
        self.client.event("ADDR_RESOLVED")
        return number

    def routed(self, **param):
        number = self.resolved(**param)
        ok(self.client.resolve_route(number))
        self.client.event("ROUTE_RESOLVED")
        return number

    def requested(self, **param):
        """Returns the client's identifier, and the event that the server has got. param: of CONNECT."""
        number = self.routed()
        ok(self.client.connect(number, **param))
        return number, self.server.event("CONNECT_REQUEST")

    def accepted(self, **param):
        """Returns the client's identifier, the server's, and the event that the client has got. param: of ACCEPT."""
        number, request = self.requested()
        ok(self.server.accept(request.id, **param))
        return number, request.id, self.client.event()

    def established(self):
        number, child, _ = self.accepted()
        ok(self.client.accept(number, valid=0))
        self.server.event("ESTABLISHED")
        return number, child
