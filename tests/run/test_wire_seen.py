# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What is seen of the wire: captures, counters, dropped packets, and destinations that the network cannot reach."""
import collections
import json
import pathlib
import re
import socket
import struct
import subprocess
import sys

import pytest

from conftest import STUCK, UVERBSCTL, own_network, users
from test_pcap import ACK, READ, RESPONSES, UC, frames_of, tshark

pytestmark = pytest.mark.parametrize("run", users()[-1:], indirect=True)  # an ordinary user, if there is a choice
ADDRESSES = "192.0.2.9", "192.0.2.10"
PROGRAMS = ["ibv_rc_pingpong -g 0 -n 20 -s 5000", "ibv_ud_pingpong -g 0 -n 5 -s 500", "ibv_uc_pingpong -g 0 -n 5 -s 3000",
            "ib_read_lat -x 0 -F -n 5 -s 20000"]
COUNTERS = "grep . /sys/class/infiniband/rxe0/ports/1/hw_counters/*"
# `meet` waits for the other side, and until no datagram is left in a socket: then each side has received all that the other has sent.
SIDE = """listens() { until grep -q ":$(printf %04X $1) .* 0A " /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done; }
meet() { echo >to$1 & read x <to$2; wait; while grep :12B7 /proc/net/udp | grep -qv :00000000; do sleep 0.05; done; }
"""
SEQUENCE_NAK = 0x60
Packet = collections.namedtuple("Packet", "src dst sport dport id ttl opcode qp psn syndrome bytes")


@pytest.fixture(name="own")
def fixture_own(run):
    own_network(run, "ip link set lo up\n" + "".join(f"ip addr add {a}/32 dev lo\n" for a in ADDRESSES))
    return run


def engines(run, programs, script="", options=("", "")):
    """Runs both sides of programs on two engines, then `script` on both. Returns what each engine's script has printed, and the log."""
    folder = pathlib.Path(run.folder)
    commands = ["mkfifo to0 to1"]
    for end, address in enumerate(ADDRESSES):
        lines = [SIDE]
        for port, program in enumerate(programs, 18515):
            lines += [f"listens {port}"] * end + [f"{program} -p {port} {ADDRESSES[0] * end} >said{end} 2>&1 || cat said{end} >&2"]
        (folder / f"side{end}").write_text("\n".join([*lines, f"meet {end} {1 - end}", script]))
        commands.append(f"{UVERBSCTL} run --persona rxe --mtu 1024 --wire {address} {options[end]} -- sh side{end} >out{end} &")
    r = subprocess.run([*run.prefix, "sh", "-c", "\n".join([*commands, "wait"])], capture_output=True, text=True, env=run.env,
                       cwd=folder, timeout=STUCK)
    return [(folder / f"out{end}").read_text() for end in (0, 1)], r.stderr


def packets_of(run, end):
    return [packet_of(frame) for frame in frames_of(pathlib.Path(run.folder) / f"pcap{end}")]


def packet_of(frame):
    """Of IPv4."""
    ip_id, ttl, src, dst, sport, dport = struct.unpack_from("!H2xBx2x4s4sHH", frame, 18)
    opcode, qp, psn = frame[42], *struct.unpack_from("!II", frame, 46)
    return Packet(socket.inet_ntoa(src), socket.inet_ntoa(dst), sport, dport, ip_id, ttl, opcode, qp & 0xffffff, psn & 0xffffff,
                  frame[54] if opcode == ACK else None, frame[42:])


def ways(packets, end):
    """What this end has sent, and what it has received."""
    return [p for p in packets if p.src == ADDRESSES[end]], [p for p in packets if p.dst == ADDRESSES[end]]


def counters_of(out):
    return {name: int(value) for name, value in re.findall(r"(\w+):(\d+)$", out, re.M)}


CAPTURES = "--pcap pcap0", "--pcap pcap1"


def test_the_captures_of_both_ends_have_the_same_packets_in_each_direction(own):
    _, log = engines(own, PROGRAMS, options=CAPTURES)
    assert log == "", log
    bad = "_ws.malformed || !infiniband.invariant.crc || ip.checksum.status == 0"
    assert tshark(pathlib.Path(own.folder) / "pcap0", "-Y", bad, "-o", "ip.check_checksum:TRUE") == []
    files = [packets_of(own, end) for end in (0, 1)]
    for end in (0, 1):
        sent, received = ways(files[end], end)[0], ways(files[1 - end], 1 - end)[1]
        assert sent == received and len(sent) > 60
        assert len(files[end]) == len(sent) + len(ways(files[end], end)[1])
        assert {(p.sport, p.dport, p.ttl) for p in sent} == {(4791, 4791, 64)}
        # The identification is the place in a message of packets of one length.
        assert sent[0].id == 0 and all(p.id in (0, q.id + 1) for q, p in zip(sent, sent[1:])) and max(p.id for p in sent) > 1
    assert {p.opcode for p in files[0]} >= {0, 1, 2, 0x11, 0x64, 0x20, 0x21, 0x22, READ, 0x0d, 0x0e, 0x0f}
    # No answer is before its request.
    for packets in files:
        asked = {address: set() for address in ADDRESSES}
        for p in packets:
            if p.opcode in RESPONSES and p.opcode not in (0x0e, 0x0f):
                assert p.psn in asked[p.dst], p
            asked[p.src].add(p.psn)


def test_lost_packets_show_in_counters_and_captures_as_what_they_cause(own):
    """Of the client's first message the second packet is lost, and the acknowledgement: it is sent once more, to a server that waits for
    the second message."""
    losses = [f"--pcap pcap{end} --filter loss:rc=@2" for end in (0, 1)]
    outs, log = engines(own, ["ibv_rc_pingpong -g 0 -n 2 -s 4096", "ibv_ud_pingpong -g 0 -n 5 -s 500"],
                        f"{COUNTERS}; {UVERBSCTL} status --json", losses)
    assert "filter loss" in log and "wire:" not in log, log
    server, client = (counters_of(out) for out in outs)
    gone = [json.loads(out.splitlines()[-1])["wire"][0]["dropped"].get("no such QP", 0) for out in outs]
    for end, c in enumerate((server, client)):
        sent, received = ways(packets_of(own, end), end)
        assert c["sent_pkts"] == len(sent), (c, len(sent))
        assert c["rcvd_pkts"] + gone[end] == len(received), (c, gone, len(received))
        assert c["rdma_sends"] == c["rdma_recvs"] == 2 + 5 and c["send_err"] == 0, c
    sent, received = ways(packets_of(own, 0), 0)
    assert server["out_of_seq_request"] == sum(p.syndrome == SEQUENCE_NAK for p in sent) == 1, outs
    assert client["out_of_seq_request"] == 0 and client["rcvd_seq_err"] == 1 and server["rcvd_seq_err"] == 0, outs
    requests = [p.psn for p in received if p.opcode < UC and p.opcode not in RESPONSES]
    assert server["duplicate_request"] == len([p for i, p in enumerate(requests) if p in requests[:i]]) - 2 - gone[0] > 0, (outs, requests)
    assert client["completer_retry_err"] >= 2, outs


# Sends datagrams: faulty ones, a damaged packet, and a whole one, twice, to a QP that does not exist.
DATAGRAMS = r"""
import socket, sys, zlib
there, here = sys.argv[1:]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((here, 0))
bth = bytes([4, 0, 255, 255, 0, 0x12, 0x34, 0x56, 0, 0, 0, 1])
udp = s.getsockname()[1].to_bytes(2, "big") + (4791).to_bytes(2, "big") + b"\0\x18\xff\xff"
ip = b"\x45\xff\0\x2c\0\0\x40\0\xff\x11\xff\xff" + socket.inet_aton(here) + socket.inet_aton(there)
icrc = zlib.crc32(b"\xff" * 8 + ip + udp + bth[:4] + b"\xff" + bth[5:]).to_bytes(4, "little")
for datagram in (bth[:11], bth + b"12345", b"\4\1" + bth[2:] + icrc, b"\x1f" + bth[1:] + icrc, b"\4\x30" + bth[2:] + icrc,
                 bth + b"1" * 4108, bth + b"1" * 9000, b"\x11" + bth[1:] + icrc + b"1" * 12, bth + b"1234", bth + icrc, bth + icrc):
    s.sendto(datagram, (there, 4791))
"""
DROPPED = {"too short": 1, "not a multiple of 4 bytes": 1, "unknown transport version": 1, "unknown opcode": 1,
           "more pad bytes than bytes": 1, "more payload than any MTU": 2, "payload where the opcode has none": 1,
           "wrong ICRC": 1, "no such QP": 2}


def test_status_counts_dropped_packets_by_reason(own):
    there, here = ADDRESSES
    script = f"""until {UVERBSCTL} status --json >status && grep -q "such QP.: *2" status; do sleep 0.05; done
cat status; {UVERBSCTL} status"""
    r = own("sh", "-c", f"{sys.executable} -c '{DATAGRAMS}' {there} {here}; {script}",
            options=["--persona", "rxe", "--wire", f"{here},{there}"], cwd=own.folder)
    assert r.returncode == 0 and [w["dropped"] for w in json.loads(r.stdout.splitlines()[0])["wire"]] == [{}, DROPPED], r
    assert "\n  dropped 2 packets: no such QP\n" in r.stdout, r


# The server of a pingpong that has no QP: it says what it is asked to say, and is at its end when the client is.
NOBODY_THERE = r"""
import socket, subprocess, sys
s = socket.create_server(("127.0.0.1", 0))
client = subprocess.Popen([*sys.argv[2:], "-p", str(s.getsockname()[1]), "127.0.0.1"], stdout=subprocess.DEVNULL)
c = s.accept()[0]
c.recv(100)
c.send(f"0000:000123:000000:00000000000000000000ffff{socket.inet_aton(sys.argv[1]).hex()}\0".encode())
c.recv(100)
client.wait()
"""


@pytest.mark.parametrize("to, before, line", [
    (ADDRESSES[1], "true", "ECONNREFUSED: no program receives on UDP port 4791 there: is its engine running?"),
    (ADDRESSES[1], "ip link set lo mtu 600",
     "EMSGSIZE: the path carries IP packets of 600 bytes: use a path MTU of 512, or a larger MTU of the interfaces"),
    ("198.51.100.7", "true", "ENETUNREACH: no packets reach it: `ip route get` shows the route"),
])
def test_destination_out_of_reach_is_told_once_with_the_remedy(own, to, before, line):
    """The client's requests are retried seven times, and end as those to a peer that is silent do."""
    r = own("sh", "-c", f"{before}; {sys.executable} -c '{NOBODY_THERE}' {to} ibv_rc_pingpong -g 0 -n 1 -s 2000",
            options=["--persona", "rxe", "--mtu", "1024", "--wire", ADDRESSES[0]])
    assert r.stderr.count("wire: ") == 1 and f"uverbsctl run: warning: wire: {to}: {line}\n" in r.stderr, r
    assert "Failed status transport retry counter exceeded (12)" in r.stderr, r


FORGED = r"""
import socket, sys
there, here = (socket.inet_aton(a) for a in sys.argv[1:])
udp, bth = bytes.fromhex("12b712b7001c0000"), bytes.fromhex("0440ffff0000000400000001")
quote = b"\x45\0\0\x30\0\0\x40\0\x40\x11\0\0" + here + there + udp + bth + bytes(64)
icmp = b"\3\3\0\0\0\0\0\0" + quote
total = sum(int.from_bytes(icmp[i:i + 2], "big") for i in range(0, len(icmp), 2))
total = (total & 0xffff) + (total >> 16)
total = ~((total & 0xffff) + (total >> 16)) & 0xffff
socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).sendto(icmp[:2] + total.to_bytes(2, "big") + icmp[4:], (sys.argv[2], 0))
"""


def test_icmp_message_about_a_packet_that_was_not_sent_is_not_told(own):
    """Of two messages about two addresses the forged one comes first."""
    forged, silent = "198.51.100.7", ADDRESSES[1]
    r = own("sh", "-c", f"{sys.executable} -c '{FORGED}' {forged} {ADDRESSES[0]}; "
            f"{sys.executable} -c '{NOBODY_THERE}' {silent} ibv_rc_pingpong -g 0 -n 1 -s 2000",
            options=["--persona", "rxe", "--mtu", "1024", "--wire", ADDRESSES[0]])
    assert r.stderr.count("wire: ") == 1 and f"wire: {silent}: ECONNREFUSED" in r.stderr, r
