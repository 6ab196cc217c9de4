# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
Random and mutated packets over IPv6 for an engine that works: from strangers, and from the peer of its QPs. With UVERBSD_LONG a million.
UVERBSD_PACKETS is another number, and UVERBSD_SEED chooses them.
"""
import collections
import contextlib
import ctypes
import os
import pathlib
import random
import shutil
import socket
import struct
import tempfile
import time
import zlib

import pytest

from conftest import BIN, BUILD, until
from wire_engine import Engine, Pair, idle, reports_in
from wirenet import ADDRESSES, Net, shell

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="makes network namespaces")
LONG = "UVERBSD_LONG" in os.environ
PACKETS = int(os.environ.get("UVERBSD_PACKETS", 1000000 if LONG else 6000))
SEED = int(os.environ.get("UVERBSD_SEED", 46))
TARGET = shutil.copy(BUILD / "tests/run/run_target", BIN / "run_target").as_posix()
VICTIM, OTHER, PEER, STRANGER = ADDRESSES[0][1], ADDRESSES[1][1], "fd98::3", "fd98::66"
CLONE_NEWNET, SO_RCVBUFFORCE = 0x40000000, 33
PORT = 4791
BACKLOG = 60000  # bytes in the victim's sockets: then the attack waits, or the programs' packets would be too late
AT_ONCE = 2  # pairs of programs beside the attack

# Headers behind the BTH: by the operation, the last five bits of an opcode.
RETH, ATOMIC, AETH, IMMEDIATE, INVALIDATE, ATOMIC_ACK, DETH, XRC = range(8)
HEADERS = {3: [IMMEDIATE], 5: [IMMEDIATE], 6: [RETH], 9: [IMMEDIATE], 10: [RETH], 11: [RETH, IMMEDIATE], 12: [RETH], 13: [AETH], 15: [AETH],
           16: [AETH], 17: [AETH], 18: [AETH, ATOMIC_ACK], 19: [ATOMIC], 20: [ATOMIC], 22: [INVALIDATE], 23: [INVALIDATE], 29: [RETH]}
OPERATIONS = *range(21), 22, 23, 29, 4, 4, 10, 10, 12, 12
WITHOUT_PAYLOAD = {12, 17, 18, 19, 20}
READ, ACK, ATOMIC_ANSWER, READ_ANSWERS = 12, 17, 18, {13, 14, 15, 16}
TRANSPORTS = {"rc": 0, "requester": 0, "uc": 0x20, "ud": 0x60}
QKEY = 0x11111111  # of the distribution's programs, too


def socket_in(net, end, address, port):
    """A UDP socket in the namespace of an end of the link."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net", "rb") as ours, open(f"/proc/{net.holders[end].pid}/ns/net", "rb") as theirs:
        assert not libc.setns(theirs.fileno(), CLONE_NEWNET), os.strerror(ctypes.get_errno())
        try:
            s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
            s.bind((address, port))
            s.connect((VICTIM, PORT))
            s.setblocking(False)
        finally:
            assert not libc.setns(ours.fileno(), CLONE_NEWNET)
    return s


def icrc(addresses, ports, packet):
    """Of a packet without its ICRC: what routers change counts as ones."""
    length = len(packet) + 4 + 8
    begin = b"\xff" * 8 + b"\x6f\xff\xff\xff" + struct.pack("!HBB", length, 17, 255) + addresses + ports + struct.pack("!H", length)
    return struct.pack("<I", zlib.crc32(begin + b"\xff\xff" + packet[:4] + b"\xff" + packet[5:]))


class Sender:
    """Where packets come from."""

    def __init__(self, net, address, port):
        self.socket = socket_in(net, 1, address, port)
        self.addresses = socket.inet_pton(socket.AF_INET6, address) + socket.inet_pton(socket.AF_INET6, VICTIM)
        self.ports = struct.pack("!HH", self.socket.getsockname()[1], PORT)

    def send(self, packet, damage=None):
        """damage: a function of the whole packet."""
        packet += icrc(self.addresses, self.ports, packet)
        while True:
            with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
                return self.socket.send(damage(packet) if damage else packet)
            time.sleep(0.001)

    def received(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                yield self.socket.recv(65536)


class Qp:
    """One of the victim's, as its peer sees it."""

    def __init__(self, kind, number, peers_number):
        self.kind, self.number, self.peers_number = kind, number, peers_number
        self.psn = 0
        self.requests = collections.deque(maxlen=16)  # of a requester: (PSN, operation)
        self.sent = self.asked = self.answers = self.answered = 0  # packets, and bytes of READs, to the QP and from it


class Attack:
    def __init__(self, rng, qps, memory):
        self.rng, self.qps, self.memory = rng, qps, memory
        self.payload = rng.randbytes(8192)
        self.qkeys = []

    def others(self, programs):
        """A number near those of the QPs that other programs may have."""
        return self.qps[-1].number + self.rng.randrange(-30, 4 * programs + 8) & 0xffffff

    def address(self):
        begin, size, _ = self.memory
        near = (begin, begin + size, begin - 1, begin + self.rng.randrange(size), begin + size - self.rng.randrange(9), 0, 1 << 64)
        return (self.rng.choice(near) + self.rng.randrange(-8, 9) * (self.rng.random() < 0.3)) % (1 << 64)

    def rkey(self):
        key = self.memory[2]
        return self.rng.choice((key, key, key, key, key, key ^ 1 << self.rng.randrange(32), 0, self.rng.getrandbits(32)))

    def account(self, packet):
        """What is due for this packet at most."""
        qp = next((qp for qp in self.qps if len(packet) >= 12 and packet[5:8] == qp.number.to_bytes(3, "big")), None)
        if not qp:
            return
        qp.sent += 1
        if packet[0] == READ and len(packet) >= 28:
            address, rkey, size = struct.unpack_from("!QII", packet, 12)
            begin, whole, key = self.memory
            if rkey == key and begin <= address and address + size <= begin + whole:
                qp.asked += size

    def header(self, kind):
        r = self.rng
        if kind == RETH:
            return struct.pack("!QII", self.address(), self.rkey(), r.choice(
                (0, 1, 8, 64, 1024, 4096, 4097, 8192, 20000, 65536, 65537, 1 << 31, (1 << 32) - 1, r.getrandbits(32))))
        if kind == ATOMIC:
            aligned = self.address() & ~7 if r.random() < 0.9 else self.address()
            return struct.pack("!QIQQ", aligned, self.rkey(), r.getrandbits(64), r.getrandbits(64))
        if kind == AETH:
            syndrome = r.choice((0x1f, 0x00, 0x20 + r.randrange(32), 0x60, 0x61, 0x62, 0x63, r.randrange(256)))
            return struct.pack("!I", syndrome << 24 | r.getrandbits(24))
        if kind == INVALIDATE:
            return struct.pack("!I", self.rkey())
        if kind == DETH:
            return struct.pack("!II", r.choice((*self.qkeys, r.getrandbits(32))), r.getrandbits(24))
        return r.randbytes(8 if kind == ATOMIC_ACK else 4)

    def packet(self, qp, number=None):
        """A packet to the QP, or of the kind that it has to that number; some of it can be wrong. Returns it without ICRC."""
        r = self.rng
        operation = r.choice(OPERATIONS)
        psn = (qp.psn + r.choice((0, 0, 0, 0, 0, 0, 1, -1, 2, -2, 5, -17, 1 << 22, 1 << 23, (1 << 23) - 1))) & 0xffffff
        if qp.kind == "requester" and qp.requests and r.random() < 0.9:
            psn, asked = r.choice(qp.requests)
            psn = psn + r.choice((0, 0, 0, 0, 1, -1)) & 0xffffff
            operation = r.choice((16, 16, 13, 14, 15) if asked == READ else (ATOMIC_ANSWER,) if asked in (19, 20) else (ACK,))
            if r.random() < 0.1:
                operation = r.choice((ACK, 16, ATOMIC_ANSWER))
        if qp.kind == "ud":
            operation = r.choice((4, 5))
        opcode = TRANSPORTS[qp.kind] | operation
        headers = [DETH] * (qp.kind == "ud") + HEADERS.get(operation, [])
        payload = b""
        if operation not in WITHOUT_PAYLOAD:
            payload = self.payload[:r.choice((0, 1, 4, 7, 64, 1024, 4096, 4096, 4096, r.randrange(5000)))]
        body = b"".join(self.header(h) for h in headers)
        if RETH in headers and operation != READ and r.random() < 0.8 and operation in (10, 11):
            body = body[:12] + struct.pack("!I", len(payload)) + body[16:]
        pad = -len(payload) % 4
        flags, pkey, first, ack = r.choice((0, 0x40, 0x80, 0xc0)) | pad << 4, 0xffff, 0, r.choice((0, 0x80))
        number = qp.number if number is None else number
        for _ in range(r.choice((0, 0, 0, 0, 0, 0, 1, 1, 2, 5))):
            what = r.randrange(11)
            if what == 0:
                opcode = r.randrange(256) if qp.kind != "ud" else opcode
            elif what == 1:
                flags = r.randrange(256)
            elif what == 2:
                pkey = r.choice((0x7fff, 0, 1, 0x8001, r.getrandbits(16)))
            elif what == 3:
                first = r.randrange(256)
            elif what == 4 and qp.kind != "ud":  # a packet with the right Q_Key is everybody's to send
                number = r.choice((number ^ 1 << r.randrange(24), 0, 1, 0xffffff, r.getrandbits(24)))
            elif what == 5:
                ack = r.randrange(256)
            elif what == 6:
                psn = r.getrandbits(24)
            elif what == 7 and body:
                at = r.randrange(len(body))
                body = body[:at] + r.randbytes(1) + body[at + 1:]
            elif what == 8:
                body = body[:r.randrange(len(body) + 1)]
            elif what == 9:
                payload = payload[:r.randrange(len(payload) + 1)]
            else:
                payload += self.payload[:r.choice((1, 4, 16, 4096))]
        return struct.pack("!BBHB3sB3s", opcode, flags, pkey, first, number.to_bytes(3, "big"), ack, psn.to_bytes(3, "big")) + \
            body + payload + bytes(pad)

    def damage(self, packet):
        r = self.rng
        kind = r.randrange(4)
        if kind == 0:  # byte 4, FECN and BECN, has no check
            at = r.choice((0, 1, 2, 3, *range(5, len(packet))))
            return packet[:at] + bytes([packet[at] ^ 1 << r.randrange(8)]) + packet[at + 1:]
        if kind == 1:
            return packet[:r.randrange(len(packet))]
        if kind == 2:
            return packet + r.randbytes(r.choice((1, 2, 3, 4, 8)))
        return packet[:-4] + bytes([packet[-4] ^ 0xff]) + packet[-3:] if len(packet) > 16 else packet[:11]


class Judge:
    """What the victim sends to its peer: answers that are due."""

    def __init__(self, qps, peer):
        self.peer = peer
        self.qps = {qp.peers_number: qp for qp in qps}
        self.opcodes = collections.Counter()

    def read(self):
        for packet in self.peer.received():
            opcode, number, psn = packet[0], int.from_bytes(packet[5:8], "big"), int.from_bytes(packet[9:12], "big")
            assert number in self.qps and len(packet) >= 16, packet.hex()
            qp, operation = self.qps[number], opcode & 31
            self.opcodes[opcode] += 1
            is_answer = opcode in {ACK, ATOMIC_ANSWER, *READ_ANSWERS}
            assert is_answer if qp.kind == "rc" else qp.kind == "requester" and opcode < 0x20, (qp.kind, packet.hex())
            assert packet[-4:] == icrc(self.peer.addresses[16:] + self.peer.addresses[:16], self.peer.ports, packet[:-4]), packet.hex()
            if is_answer:
                qp.answers += 1
                if operation in READ_ANSWERS:  # without BTH, ICRC, AETH and pad
                    qp.answered += len(packet) - 16 - (4 if operation != 14 else 0) - (packet[1] >> 4 & 3)
                syndrome = packet[12] if operation != 14 else 0
                # It waits for this one (RNR, sequence error), is connected anew, or waits for the next one.
                qp.psn = psn if syndrome & 0x60 == 0x20 or syndrome == 0x60 else 0 if syndrome > 0x60 else psn + 1 & 0xffffff
            elif not qp.requests or qp.requests[-1] != (psn, operation):
                qp.requests.append((psn, operation))

    def check(self):
        """No more answers than packets, of READs as many as these have asked for."""
        for qp in self.qps.values():
            assert qp.answers <= qp.sent + qp.asked // 4096 and qp.answered <= qp.asked, vars(qp)


def backlog(net):
    """Bytes that wait in the victim's sockets, and packets that these have dropped."""
    lines = [line.split() for line in pathlib.Path(f"/proc/{net.holders[0].pid}/net/udp6").read_text().splitlines()]
    ours = [line for line in lines if line[1].endswith(f":{PORT:04X}")]
    return sum(int(line[4].split(":")[1], 16) for line in ours), sum(int(line[-1]) for line in ours)


@pytest.fixture(name="net")
def fixture_net():
    net = Net(mtu=9000)
    for address in (PEER, STRANGER):
        shell(*net.enter(1), "ip", "addr", "add", f"{address}/64", "dev", "wire1", "nodad")
    yield net
    net.close()


class Programs:
    """Pairs of programs between the victim and the other engine, again and again."""

    def __init__(self, engines, rng):
        self.engines, self.rng, self.number, self.pairs = engines, rng, 0, []
        self.results = collections.Counter()

    def step(self, more=True):
        while more and len(self.pairs) < AT_ONCE:
            self.pairs.append(Pair(self.engines, self.rng, self.number, kills=0))
            self.number += 1
        for pair in [p for p in self.pairs if p.step()]:
            self.pairs.remove(pair)
            self.results[pair.result] += 1
        return not self.pairs


def test_packets_that_an_attacker_sends_get_no_answer_that_is_not_due(net):
    rng = random.Random(SEED)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="uverbsd-attack-"))
        os.chmod(folder, 0o777)
        engines = [stack.enter_context(Engine(net, end, folder, addresses=ADDRESSES[end][::-1])) for end in (0, 1)]  # IPv6 is the first GID
        victim = engines[0]
        assert until(lambda: not victim.status("--accounts")["accounts"])
        before = victim.looks()
        fifo = f"{folder}/fifo"
        os.mkfifo(fifo)
        os.chmod(fifo, 0o666)
        orders = stack.enter_context(open(os.open(fifo, os.O_RDWR), "w", encoding="utf-8"))
        said = victim.start("target", TARGET, PEER, fifo)
        assert until(lambda: "ready" in said() or victim.has_ended("target")) and "ready" in said(), said()

        def ask(order):
            lines = said().count("\n")
            print(order, file=orders, flush=True)
            assert until(lambda: said().count("\n") > lines or victim.has_ended("target")) and "FAIL" not in said(), said()
            return [int(word) for word in said().splitlines()[-1].split()[1:]]

        words = [line.split() for line in said().splitlines()]
        qps = [Qp(w[1], int(w[2]), int(w[3])) for w in words if w[0] == "qp"]
        attack = Attack(rng, qps, next(tuple(map(int, w[1:])) for w in words if w[0] == "memory"))
        programs = Programs(engines, rng)
        peer, others = Sender(net, PEER, PORT), Sender(net, OTHER, 0)
        strangers = [Sender(net, STRANGER, port) for port in (PORT, 0)]
        judge = Judge(qps, peer)
        sent = collections.Counter()

        def send_all(send, number):
            """Calls send() until that many packets have reached the victim's sockets."""
            begin, lost = sum(sent.values()), backlog(net)[1]
            while True:
                for _ in range(32):
                    send()
                programs.step()
                judge.read()
                waiting, dropped = backlog(net)
                while waiting > BACKLOG:
                    time.sleep(0.001)
                    waiting, dropped = backlog(net)
                if sum(sent.values()) - begin - (dropped - lost) >= number:
                    break
            assert until(lambda: not backlog(net)[0])

        def from_strangers():
            kind = rng.random()
            if kind < 0.6:
                qp = rng.choice(qps)
                number = qp.number if qp.kind == "ud" or rng.random() < 0.6 else attack.others(programs.number)
                rng.choice(strangers).send(attack.packet(qp, number))
                sent["stranger"] += 1
            elif kind < 0.8:
                peer.send(attack.packet(rng.choice(qps)), attack.damage)
                sent["damaged"] += 1
            else:  # what the other engine sends to the programs' QPs, if it were damaged
                others.send(attack.packet(rng.choice(qps[:6]), attack.others(programs.number)), attack.damage)
                sent["damaged, of the other engine"] += 1

        def from_peer():
            qp = rng.choice(qps)
            packet = attack.packet(qp)
            if qp.kind != "ud" and rng.random() < 0.05:
                peer.send(packet, attack.damage)
            else:
                attack.account(packet)
                peer.send(packet)
            sent["peer"] += 1

        attack.qkeys = [0, 0x80010000]
        send_all(from_strangers, PACKETS * 2 // 5)
        assert ask("look") == [0, 0, 0], "a packet that nobody sent to these QPs has changed something"
        assert not judge.opcodes, judge.opcodes
        middle = victim.looks()
        attack.qkeys += [QKEY] * 2
        ask("work")
        send_all(from_peer, PACKETS * 3 // 5)
        assert until(lambda: programs.step(more=False))
        judge.read()
        judge.check()
        looked = ask("look")
        dropped = [w["dropped"] for w in victim.status()["wire"]]
        print(f"seed {SEED}: sent {dict(sent)}, lost by the kernel {backlog(net)[1]}, changed, completions, failed QPs: {looked}\n"
              f"answers {dict(judge.opcodes)}\ndropped {dropped}\nprograms {dict(programs.results)}\n"
              f"fds, threads, KiB: {before}, {middle}, ", end="")
        orders.close()
        assert until(lambda: victim.has_ended("target")) and victim.ended["target"] == 0, said()
        assert not [packet for s in (*strangers, others) for packet in s.received()]
        after = idle(victim)
        print(after)
        assert [e.close() for e in engines] == [0, 0], [e.words() for e in engines]
        assert not reports_in(folder), reports_in(folder)
        assert not any(" is still charged for " in e.words() for e in engines), victim.words()
    assert looked[0] and looked[1] and looked[2], looked
    assert {ACK, READ, ATOMIC_ANSWER} <= set(judge.opcodes) and READ_ANSWERS & set(judge.opcodes)
    assert {"too short", "wrong ICRC", "no such QP", "other transport", "other address"} <= set(dropped[0]), dropped
    # The reader of doorbells, which comes with the first program, has three descriptors as long as the run.
    assert programs.results["whole"] and after[0] <= before[0] + 3 and after[1] <= middle[1] + 2
