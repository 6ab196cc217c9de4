# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs that find their peers by librdmacm: Debian's rdmacm-utils, perftest -R, qperf, libfabric, and TCP programs over rsockets."""
import json
import re

import pytest

import perftest
from conftest import (CAN_LOCK, CLIENTS, CUSE, IP, LIMIT, LONG, PLACE, SANITIZED, STUCK, default_device, device_with_ip, listens,
                      over_cuse, until)

LOCALHOST = "127.0.0.1"
ROUNDS = 1000 if LONG else 100
PRELOAD = "/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so"


class Ports:
    last = 7200

    @classmethod
    def next(cls):
        cls.last += 1
        return cls.last


def listeners(device):
    return {int(i["src"].rpartition(":")[2]) for i in device.cm_ids() if i["state"] == "LISTEN"}


def serve(device, argv, port):
    server = device.start(*argv)
    until(lambda: server.ended() or port in listeners(device), f"{argv} listening", tell=lambda: server.text() + device.diagnosis())
    return server


def cm_pair(device, server, client, port):
    """Starts the client when the server listens. Returns both outputs, the server's first."""
    s = serve(device, server, port)
    c = device.start(*client)
    return s.wait().ok(), c.wait().ok()


@over_cuse("ioctl")
def test_rping_verifies_its_data(device):
    port = Ports.next()
    rping = ["stdbuf", "-oL", "rping", "-p", port, "-C", ROUNDS, "-v", "-V"]  # it writes to stderr, too, which may not part a line
    server, client = cm_pair(device, [*rping, "-s"], [*rping, "-c", "-a", LOCALHOST], port)
    assert server.count("server ping data") == ROUNDS, server
    assert client.count("ping data: ") == ROUNDS, client


@over_cuse("write")
def test_rping_in_the_other_abi(device):
    port = Ports.next()
    cm_pair(device, ["rping", "-s", "-p", port, "-C", 10, "-V"], ["rping", "-c", "-a", LOCALHOST, "-p", port, "-C", 10, "-V"], port)


@default_device
def test_connections_of_one_program(device):
    port = Ports.next()
    for text in cm_pair(device, ["ucmatose", "-p", port, "-c", 20], ["ucmatose", "-s", LOCALHOST, "-p", port, "-c", 20], port):
        assert "return status 0" in text, text


@default_device
def test_many_connections_at_once(device):
    port = Ports.next()
    server = serve(device, ["cmtime", "-p", port], port)
    text = device.run("cmtime", "-s", LOCALHOST, "-p", port, "-c", ROUNDS).ok()
    assert re.search(r"^destroy ", text, re.M), text
    assert not server.ended(), server.text()


@default_device
def test_connections_that_come_and_go_leave_nothing(device):
    """The first tenth is a warm-up: the allocator keeps memory for the next ones."""
    number = (2000 if SANITIZED else 10000) if LONG else 100
    device.run(CLIENTS["cycles"], LOCALHOST, number // 10).ok()
    rss, descriptors = device.rss(), device.num_fds()
    text = device.run(CLIENTS["cycles"], LOCALHOST, number, seconds=LIMIT).ok()
    assert f"{number} connections came and went" in text, text
    # The engine hears of a process's end a little later than its parent.
    until(lambda: not device.cm_ids(), "the end of all identifiers")
    status = json.loads(device.control("status", "--json").ok())
    assert not any(d["files"] for d in status["devices"]), status
    assert not json.loads(device.control("status", "--accounts", "--json").ok())["accounts"]
    # An event has more than 64 bytes. Workers of CUSE start meanwhile, and Linux adds up a thread's pages in lots of 64.
    allowed = number * 64 / 1024 + (256 if CUSE else 0)
    assert SANITIZED or device.rss() - rss < allowed, f"{rss} KiB, then {device.rss()}"
    until(lambda: device.num_fds() <= descriptors, "the end of all descriptors", tell=device.all_fds)


@default_device
def test_datagrams_find_their_peer(device):
    for text in cm_pair(device, ["udaddy", "-c", 5], ["udaddy", "-s", LOCALHOST, "-c", 5], 7174):  # it has no option for the port
        assert "return status 0" in text, text


@default_device
def test_rdma_server_and_client(device):
    port = Ports.next()
    server, client = cm_pair(device, ["rdma_server", "-p", port], ["rdma_client", "-s", LOCALHOST, "-p", port], port)
    assert "end 0" in server and "end 0" in client


@default_device
def test_multicast_reaches_the_member(device):
    member = device.start("stdbuf", "-oL", "mckey", "-m", "224.0.0.9", "-b", LOCALHOST)
    until(lambda: member.ended() or "receiving" in member.text(), "mckey joined")
    sender = device.start("mckey", "-m", "224.0.0.9", "-b", LOCALHOST, "-s")
    for text in member.wait().ok(), sender.wait().ok():
        assert "return status 0" in text, text


@default_device
@pytest.mark.parametrize("program, options", [("rstream", ["-S", "4096"]), ("riostream", ["-S", "64"])])
def test_streams_of_rsockets(device, program, options):
    port = Ports.next()
    cm_pair(device, [program, "-p", port, *options], [program, "-s", LOCALHOST, "-p", port, *options], port)


@default_device
def test_rcopy_copies_a_file(device):
    port = Ports.next()
    source, copy = PLACE / "rcopy.from", PLACE / "rcopy.to"
    source.write_bytes(bytes(range(256)) * 1000)
    source.chmod(0o644)
    copy.unlink(missing_ok=True)
    serve(device, ["rcopy", "-p", port], port)
    device.run("rcopy", source, f"{LOCALHOST}:{copy}", "-p", port).ok()
    assert copy.read_bytes() == source.read_bytes()


@default_device
def test_tcp_program_works_over_rsockets(device):
    port = Ports.next()
    preload = ["env", f"LD_PRELOAD={PRELOAD}", CLIENTS["tcp"]]
    server, client = cm_pair(device, [*preload, "serve", port], [*preload, "call", port], port)
    assert "echoed 262144 bytes" in server and "all bytes came back" in client


CAME_EARLY = "Failed to handle RDMA CM event"
PERFTEST = ["ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat"]


@default_device
@pytest.mark.parametrize("program", PERFTEST if LONG else PERFTEST[:2])
def test_perftest_connects_by_librdmacm(device, program):
    """
    perftest connects twice. Its server listens at the same port anew meanwhile, and its client may be earlier: it is rejected then, and
    gives up, as on the kernel's device.
    """
    def attempt():
        port = Ports.next()
        argv = [program, "-R", "-p", port, "-n", 200, "-s", 1024, "-F"]
        server = serve(device, argv, port)
        client = device.run(*argv, LOCALHOST)
        if CAME_EARLY in client.text:
            device.end(server)
        else:
            server.wait().ok()
        return client

    client = next((c for c in (attempt() for _ in range(perftest.ATTEMPTS)) if CAME_EARLY not in c.text), None)
    assert client and re.search(r"^ 1024 +200 ", client.ok(), re.M), client and client.text


@default_device
def test_qperf_connects_by_librdmacm(device):
    port = Ports.next()
    server = device.start("qperf", "-lp", port)  # serves for ever
    text = device.run("qperf", LOCALHOST, "-lp", port, "-cm", 1, "-t", 1, "-m", 1024, "rc_bw").ok()
    assert re.search(r"bw += ", text), text
    assert not server.ended(), server.text()


@default_device
def test_persistent_server_survives_killed_clients(device):
    port = Ports.next()
    server = serve(device, ["rping", "-s", "-P", "-p", port], port)
    for _ in range(100 if LONG else 5):
        client = device.start("rping", "-c", "-a", LOCALHOST, "-p", port, "-C", 1000000)
        # rping's server ends if its client does before it has accepted: only then its identifier has the number of a QP.
        until(lambda: client.ended() or sum(i["state"] == "CONNECT" and i["qp_num"] > 0 for i in device.cm_ids()) >= 2, "a connection")
        device.end(client)
        until(lambda: server.ended() or len(device.cm_ids()) == 1, "the end of the connection", tell=server.text)
    device.run("rping", "-c", "-a", LOCALHOST, "-p", port, "-C", 10, "-V").ok()
    assert not server.ended(), server.text()
    device.end(server)
    until(lambda: not device.cm_ids(), "the end of all identifiers")


FI_PORT = 47592  # of fi_pingpong


@device_with_ip
@pytest.mark.parametrize("provider, endpoint", [("verbs", "msg"), ("verbs;ofi_rxm", "rdm")])
def test_libfabric_connects_by_librdmacm(device, provider, endpoint):
    number = 10 if CUSE else 100
    argv = ["fi_pingpong", "-p", provider, "-e", endpoint, "-I", number, "-S", 1024]
    server = device.start(*argv)
    until(lambda: server.ended() or listens(FI_PORT, server.pid), "fi_pingpong listening", tell=server.text)
    client = device.run(*argv, IP).ok()
    for text in server.wait().ok(), client:
        assert re.search(rf"^1k +{number} ", text, re.M), text


# UCX could also find its peers by TCP, and its data could go by the memory that the processes share.
BY_RDMACM = ["env", "UCX_TLS=rc_v", "UCX_SOCKADDR_TLS_PRIORITY=rdmacm"]


@device_with_ip
@pytest.mark.skipif(not CAN_LOCK, reason="UCX wants 64 MiB of locked memory: RLIMIT_MEMLOCK unlimited, or root")
def test_ucx_connects_by_librdmacm(device):
    """Its io_demo has the client check the data that it reads, and the server the data that the client writes."""
    port = Ports.next()
    io_demo = [*BY_RDMACM, "io_demo", "-p", port, "-q", "-d", "1024:4096", "-n", STUCK, "-t", STUCK]
    server = device.start(*io_demo, locks=True)
    until(lambda: server.ended() or port in listeners(device), "io_demo listening", tell=server.text)
    text = device.start(*io_demo, "-i", 10 if CUSE else 200, "-o", "read,write", IP, locks=True).wait().ok()
    assert "Client exit with status 'OK'" in text and re.search(r"total min:\d+ max:\d+ total:[1-9]", text), text
    assert not server.ended(), server.text()


@default_device
@pytest.mark.parametrize("verb", ["write", "read", "send"])
def test_fio_connects_by_librdmacm(device, verb):
    """Its client is the job that writes, also by RDMA READ; its server takes part only in SEND.

    The server has a receive for each of the 64 messages: fio connects with an RNR retry count of 0, sends without flow control, and
    after RNR_RETRY_EXC_ERR waits for ever, here as on an adapter.
    """
    port = Ports.next()
    job = ["fio", "--ioengine=rdma", f"--port={port}", "--bs=64k", "--size=4m"]
    server = [*job, "--name=receiver", "--rw=read", "--iodepth=64"]
    client = [*job, "--name=sender", "--rw=write", f"--hostname={LOCALHOST}", f"--verb={verb}", "--iodepth=1", "--iodepth_batch_complete=1"]
    texts = cm_pair(device, server, client, port)
    assert all("err= 0" in text for text in texts), texts
    assert all("io=4096KiB" in text for text in (texts if verb == "send" else texts[1:])), texts
