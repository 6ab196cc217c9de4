# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl run --pcap`: tshark and scapy read what programs of the distribution have sent."""
import collections
import os
import pathlib
import re
import struct
import subprocess
import zlib

import pytest
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

import perftest
from conftest import MISTAKES, STUCK, UVERBSCTL, pair

RXE, HFI1 = ("--persona", "rxe"), ("--persona", "hfi1")
(SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, READ, READ_RESPONSE_FIRST,
 READ_RESPONSE_MIDDLE, READ_RESPONSE_LAST, ACK, ATOMIC_ACK, FETCH_ADD) = 0, 1, 2, 4, 6, 7, 8, 12, 13, 14, 15, 17, 18, 20
UC, UD = 0x20, 0x60
RESPONSES = range(READ_RESPONSE_FIRST, ATOMIC_ACK + 1)
# Each program's packets by opcode. A pingpong sends 4 KiB each way in 4 packets, perftest in as many as 4 KiB packets do.
PROGRAMS = {
    "ibv_rc_pingpong -g 0 -n 5": {SEND_FIRST: 10, SEND_MIDDLE: 20, SEND_LAST: 10, ACK: 10},
    "ibv_uc_pingpong -g 0 -n 5": {UC | SEND_FIRST: 10, UC | SEND_MIDDLE: 20, UC | SEND_LAST: 10},
    "ibv_ud_pingpong -g 0 -n 5": {UD | SEND_ONLY: 10},
    "ib_write_bw -s 10000 -n 5": {WRITE_FIRST: 5, WRITE_MIDDLE: 5, WRITE_LAST: 5, ACK: 5},
    "ib_read_lat -s 10000 -n 5": {READ: 5, READ_RESPONSE_FIRST: 5, READ_RESPONSE_MIDDLE: 5, READ_RESPONSE_LAST: 5},
    "ib_atomic_bw -n 5": {FETCH_ADD: 5, ATOMIC_ACK: 5},
}
FIELDS = ["infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.bth.a", "infiniband.reth.dmalen",
          "infiniband.aeth.msn", "frame.len"]
Packet = collections.namedtuple("Packet", "opcode qp psn asks length msn size")


def capture(run, program, options=RXE):
    path = pathlib.Path(run.folder) / "pcap"
    argv = run.argv(["sh", "-c", pair(f"{program} -p $port")], [*options, "--pcap", str(path)], ())
    r = perftest.undisturbed(lambda: subprocess.run(argv, capture_output=True, text=True, env=run.env, timeout=STUCK),
                             lambda r: r.stdout + r.stderr if r.returncode else "")
    assert r.returncode == 0 and "--pcap" not in r.stderr, r
    return path


def without_home(folder):
    """tshark reads preferences in $HOME, and ends with SIGSEGV if it may not."""
    return {**os.environ, "HOME": str(folder)}


def tshark(path, *options):
    r = subprocess.run(["tshark", "-r", str(path), *options], capture_output=True, text=True, env=without_home(path.parent),
                       timeout=STUCK, check=False)
    assert r.returncode == 0, r
    return r.stdout.splitlines()


def packets_of(path):
    fields = [f for field in FIELDS for f in ("-e", field)]
    return [Packet(*(int(v, 0) if v else None for v in line.split("\t"))) for line in tshark(path, "-T", "fields", *fields)]


def frames_of(path):
    reader = RawPcapReader(str(path))
    try:
        assert reader.linktype == 1
        return [frame for frame, _ in reader]
    finally:
        reader.close()


def receive(packets, mtu):
    """The receivers of a reliable connection: checks that each packet is the one they expect."""
    ends = sorted({p.qp for p in packets})
    assert len(ends) == 2, ends
    expected, unanswered, done = {}, {qp: collections.deque() for qp in ends}, collections.Counter()
    for p in packets:
        if p.opcode in RESPONSES:
            responder = sum(ends) - p.qp
            assert p.psn == unanswered[responder].popleft(), p
            if p.msn is not None:
                done[responder] += p.opcode not in (READ_RESPONSE_MIDDLE, READ_RESPONSE_LAST)
                assert p.msn == done[responder], p
            continue
        assert p.psn == expected.get(p.qp, p.psn), p
        used = -(-p.length // mtu) if p.opcode == READ else 1
        expected[p.qp] = (p.psn + used) % 2 ** 24
        if p.opcode == READ:
            unanswered[p.qp].extend((p.psn + i) % 2 ** 24 for i in range(used))
        elif p.asks:
            unanswered[p.qp].append(p.psn)
    assert not any(unanswered.values()), unanswered


@pytest.mark.parametrize("program", PROGRAMS)
def test_tshark_and_scapy_read_all_packets_of_a_program(run, program):
    path = capture(run, program)
    assert tshark(path, "-Y", "_ws.malformed || !infiniband.invariant.crc || ip.checksum.status == 0", "-o", "ip.check_checksum:TRUE") == []
    packets = packets_of(path)
    assert collections.Counter(p.opcode for p in packets) == PROGRAMS[program]
    mtu = max(p.size for p in packets) // 1024 * 1024
    if packets[0].opcode < UC:
        receive(packets, mtu)
    for qp in {p.qp for p in packets} if packets[0].opcode >= UC else ():
        psns = [p.psn for p in packets if p.qp == qp]
        assert psns == [(psns[0] + i) % 2 ** 24 for i in range(len(psns))]
    for frame in frames_of(path):
        packet = Ether(frame)
        sent = packet[BTH].icrc
        packet[BTH].icrc = None
        assert bytes(packet) == frame and Ether(bytes(packet))[BTH].icrc == sent, packet.show(dump=True)
        assert packet[IP].src.startswith("127.0.0.")


def test_the_payload_is_what_the_program_sent(run):
    packets = [bytes(Ether(f)[BTH].payload) for f in frames_of(capture(run, "ibv_rc_pingpong -c -g 0 -n 2"))]
    # With -c it fills its buffer with 0x7b, and stores the number of each page, here 0, at the page's start.
    assert collections.Counter(len(p) for p in packets if len(p) > 100) == {1024: 16}
    assert {p for p in packets if len(p) > 100} == {b"\0" + b"{" * 1023, b"{" * 1024}


def test_addresses_without_gids_are_lids_in_ipv6(run):
    path = capture(run, "ibv_rc_pingpong -n 5", (*HFI1, "--lid", "18"))
    bad = "_ws.malformed || !infiniband.invariant.crc || !ipv6 || udp.checksum.status != 1"
    assert tshark(path, "-Y", bad, "-o", "udp.check_checksum:TRUE") == []
    receive(packets_of(path), 4096)
    assert set(tshark(path, "-T", "fields", "-e", "ipv6.src", "-e", "ipv6.dst")) == {"fe80::12\tfe80::12"}
    for frame in frames_of(path):
        masked = bytearray(frame[14:-4])
        masked[0] |= 0xf
        for at in (1, 2, 3, 7, 46, 47, 52):
            masked[at] = 0xff
        assert struct.pack("<I", zlib.crc32(b"\xff" * 8 + masked)) == frame[-4:]


def test_large_messages_are_whole(run):
    path = capture(run, "ib_write_bw -s 1000000 -n 5")
    packets = packets_of(path)
    receive(packets, 4096)
    assert collections.Counter(p.opcode for p in packets) == {WRITE_FIRST: 5, WRITE_MIDDLE: 5 * 243, WRITE_LAST: 5, ACK: 5}


def test_only_a_new_or_a_regular_file_is_written(run):
    path = pathlib.Path(run.folder) / "pcap"
    other = path.with_name("other")
    other.write_text("keep this")
    path.symlink_to(other)
    for name, said in ((path, "ELOOP"), (run.folder, "EISDIR"), ("/nowhere/pcap", "ENOENT"), ("/dev/null", "must be a regular file")):
        r = run("true", options=("--pcap", str(name)))
        assert r.returncode == 125 and f"--pcap {name}: " in r.stderr and said in r.stderr, r
    assert other.read_text() == "keep this"
    path.unlink()
    assert run("true", options=("--pcap", str(path))).returncode == 0
    assert path.stat().st_mode & 0o777 == 0o600 and path.stat().st_size == 24
    assert frames_of(path) == []


def test_trace_and_capture_of_one_file_are_refused(run):
    path = pathlib.Path(run.folder) / "both"
    link = path.with_name("link")
    link.symlink_to(path)
    for trace in (path, link):
        r = run("true", options=("--pcap", str(path), "--trace", str(trace)))
        assert r.returncode == 125 and f"--trace {trace}: EEXIST: --pcap writes this file" in r.stderr, r


def test_capture_without_a_device_of_soft_warns(run):
    path = os.path.join(run.folder, "pcap")
    r = run("true", options=("--backend", "null", "--pcap", path))
    assert r.returncode == 0 and f"--pcap {path}: it stays empty: no device has --backend soft" in r.stderr, r
    assert "stays empty" not in run("true", options=("--pcap", path)).stderr


def test_a_run_that_joins_another_cannot_capture_it(run):
    p = run.start("sh", "-c", "read x", options=("--join", "captured"))
    try:
        run.engine(p)
        r = run("true", options=("--join", "captured", "--pcap", os.path.join(run.folder, "t")))
        assert r.returncode == 125 and "--pcap: the devices of --join captured exist already" in r.stderr, r
    finally:
        p.communicate("\n", timeout=STUCK)


# The page waits a second for the server, and has its port; a test must do neither.
PAGES_PAIR = re.compile(r"'(ibv_rc_pingpong .*) -p 18515 & sleep 1; \1 -p 18515 localhost; wait'")


def test_the_example_of_the_documentation_prints_what_it_says(run):
    page = pathlib.Path(__file__).parents[2] / "docs/pcap.md"
    blocks = re.findall(r"^```\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    env = {**run.env, "HOME": run.folder, "PATH": f"{os.path.dirname(UVERBSCTL)}:{os.environ['PATH']}"}
    script = pathlib.Path(run.folder) / "pair"
    for block in blocks:
        said = []
        for line in block.splitlines():
            if line.startswith("$ "):
                both = PAGES_PAIR.search(line)
                if both:
                    script.write_text(pair(f"{both[1]} -p $port"))
                command = PAGES_PAIR.sub(str(script), line[2:]).replace("sh -c /", "sh /")
                r = subprocess.run([*run.prefix, "sh", "-c", command], capture_output=True, text=True, env=env, cwd=run.folder,
                                   timeout=STUCK, check=False)
                assert r.returncode == 0, (line, r)
                said.append(line)
                said += [s.rstrip() for s in r.stdout.splitlines()]
        assert [re.sub("0x[0-9a-f]+", "N", s) for s in said] == [re.sub("0x[0-9a-f]+", "N", s) for s in block.splitlines()], block
    assert len(blocks) == 2


SEND_ONLY, WRITE_ONLY, ACKNOWLEDGE = 4, 10, 17


@pytest.mark.parametrize("mistake, opcodes", (("qpn_wrong", [SEND_ONLY]), ("psns_differ", [SEND_ONLY]), ("peer_in_init", [SEND_ONLY]),
                                              ("gid_wrong", [SEND_ONLY]), ("r_key_unknown", [WRITE_ONLY, ACKNOWLEDGE])))
def test_requests_that_fail_are_in_the_file(run, mistake, opcodes):
    """Who drops or refuses a request does so after it was on the wire. A request is there once or for each retry that has its bytes."""
    path = pathlib.Path(run.folder) / "failed.pcap"
    r = run(MISTAKES, mistake, options=["--pcap", path, "--persona", "rxe"])
    seen = [int(line.split("\t")[0], 0) for line in tshark(path, "-T", "fields", "-e", "infiniband.bth.opcode")]
    assert seen[:len(opcodes)] == opcodes and set(seen) == set(opcodes), (seen, r.stdout, r.stderr)
    assert tshark(path, "-Y", "_ws.malformed || !infiniband.invariant.crc") == []
