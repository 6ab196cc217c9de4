# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A packet of each opcode, made by src/wire, as tshark and scapy read it: each field, the payload, the ICRC, and no complaint."""
import json
import os
import pathlib
import struct
import subprocess
import zlib

import pytest
from scapy.contrib.roce import AETH, BTH, CNPPadding
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build"))
HAS = {"deth": 1 << 10, "reth": 1 << 11, "atomiceth": 1 << 12, "aeth": 1 << 13, "atomicacketh": 1 << 14, "immdt": 1 << 15, "ieth": 1 << 16}
# What packet.h calls a field, and its name in tshark with its header.
BTH_FIELDS = {"opcode": "bth.opcode", "solicited": "bth.se", "migrated": "bth.m", "pad": "bth.padcnt", "pkey": "bth.p_key",
              "dest_qpn": "bth.destqp", "ack_req": "bth.a", "psn": "bth.psn"}
FIELDS = {"qkey": "deth.q_key", "src_qpn": "deth.srcqp", "va": ("reth.va", "atomiceth.va"), "rkey": ("reth.r_key", "atomiceth.r_key"),
          "length": "reth.dmalen", "swap_add": "atomiceth.swapdt", "compare": "atomiceth.cmpdt", "syndrome": "aeth.syndrome",
          "msn": "aeth.msn", "original": "atomicacketh.origremdt", "imm": "immdt", "invalidate_rkey": "ieth"}
SCAPY_NAMES = set(BTH.fields_desc[0].i2s.values())


def fields_of(tree):
    """All fields of tshark's JSON by name, however deep: the last of each name."""
    found = {}
    for name, value in tree.items():
        found[name] = value
        if isinstance(value, dict):
            found |= fields_of(value)
    return found


@pytest.fixture(scope="module", name="golden")
def fixture_golden(tmp_path_factory):
    path = tmp_path_factory.mktemp("golden") / "pcap"
    with path.open("wb") as out:
        r = subprocess.run([BUILD / "tests/wire/wire-golden"], stdout=out, stderr=subprocess.PIPE, text=True, timeout=60, check=True)
    told = [dict(pair.split("=") for pair in line.split()) for line in r.stderr.splitlines()]
    return path, [{k: v if k == "name" else int(v, 0) for k, v in packet.items()} for packet in told]


@pytest.fixture(scope="module", name="dissected")
def fixture_dissected(golden):
    """The fields of each packet by tshark, with all checksums checked."""
    path, _ = golden
    # tshark reads preferences in $HOME, and ends with SIGSEGV if it may not.
    text = subprocess.run(["tshark", "-r", str(path), "-T", "json", "--no-duplicate-keys", "-o", "ip.check_checksum:TRUE", "-o",
                           "udp.check_checksum:TRUE"], capture_output=True, text=True, timeout=120, check=True,
                          env={**os.environ, "HOME": str(path.parent)}).stdout
    return [fields_of(p["_source"]["layers"]) for p in json.loads(text)]


def number(text):
    return int(text.replace(":", ""), 16) if ":" in text else int(text, 0)


def frames_of(path):
    reader = RawPcapReader(str(path))
    try:
        return [frame for frame, _ in reader]
    finally:
        reader.close()


def is_known_to_tshark(packet):
    """tshark 4.0 knows neither XRC nor RDMA ATOMIC WRITE nor congestion notifications: of those it reads the BTH alone."""
    return not packet["name"].startswith("XRC") and packet["name"] not in ("RC_ATOMIC_WRITE", "CNP")


def test_tshark_reads_each_field_of_each_opcode(golden, dissected):
    _, told = golden
    assert len(dissected) == len(told) == 2 * 63
    for packet, got in zip(told, dissected):
        for ours, theirs in BTH_FIELDS.items():
            assert number(got["infiniband." + theirs]) == packet[ours], (packet["name"], theirs)
        assert number(got["infiniband.bth.tver"]) == 0
        if not is_known_to_tshark(packet):
            continue
        for ours, theirs in FIELDS.items():
            names = ["infiniband." + n for n in ([theirs] if isinstance(theirs, str) else theirs)]
            there = [n for n in names if n in got]
            has = any(packet["is"] & HAS[n.split(".")[1]] for n in names)
            assert bool(there) == has, (packet["name"], ours, sorted(got))
            for name in there:
                assert number(got[name]) == packet[ours], (packet["name"], name)
        assert number(got["infiniband.invariant.crc"]) == int.from_bytes(packet["icrc"].to_bytes(4, "little"), "big")
        payload = bytes.fromhex(got.get("data.data", "").replace(":", ""))
        assert payload == bytes((i + 1) % 256 for i in range(packet["payload_len"])) + bytes(packet["pad"]), packet["name"]


def test_tshark_complains_of_nothing(golden, dissected):
    _, told = golden
    for packet, got in zip(told, dissected):
        assert got.get("ip.checksum.status", "1") == got["udp.checksum.status"].replace("3", "1") == "1", packet["name"]
        assert "_ws.malformed" not in got and ("_ws.expert" not in got or not is_known_to_tshark(packet)), (packet["name"], got)


def test_scapy_reads_each_bth_and_computes_the_same_icrc(golden):
    path, told = golden
    for packet, frame in zip(told, frames_of(path)):
        got = Ether(frame)
        bth = got[BTH]
        for ours, theirs in {"opcode": "opcode", "solicited": "solicited", "migrated": "migreq", "pad": "padcount", "pkey": "pkey",
                             "fecn": "fecn", "becn": "becn", "dest_qpn": "dqpn", "ack_req": "ackreq", "psn": "psn"}.items():
            assert getattr(bth, theirs) == packet[ours], (packet["name"], theirs)
        if packet["name"] in SCAPY_NAMES:
            assert bth.sprintf("%BTH.opcode%") == packet["name"]
        assert bth.version == bth.resv6 == bth.resv7 == 0
        assert int.from_bytes(bth.icrc.to_bytes(4, "big"), "little") == packet["icrc"]
        if AETH in got:
            assert (got[AETH].syndrome, got[AETH].msn) == (packet["syndrome"], packet["msn"])
        assert (AETH in got) == (packet["name"] == "RC_ACKNOWLEDGE") and (CNPPadding in got) == (packet["name"] == "CNP")
        if IP in got:  # scapy computes no ICRC over IPv6
            sent, bth.icrc = bth.icrc, None
            assert bytes(got) == frame and Ether(bytes(got))[BTH].icrc == sent, packet["name"]


def test_the_icrc_over_ipv6_is_that_of_zlib(golden):
    path, told = golden
    frames = [(packet, frame) for packet, frame in zip(told, frames_of(path)) if IPv6 in Ether(frame)]
    assert len(frames) == 63
    for packet, frame in frames:
        masked = bytearray(frame[14:-4])
        masked[0] |= 0xf
        for at in (1, 2, 3, 7, 46, 47, 52):
            masked[at] = 0xff
        assert struct.pack("<I", zlib.crc32(b"\xff" * 8 + masked)) == frame[-4:] == packet["icrc"].to_bytes(4, "little"), packet["name"]
