# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""uverbsctl replay of traces of rdma_cm."""
import random
import struct

import pytest

from cm_client import CLIENT, PYTHON, client
from conftest import UVERBSCTL
from test_cm_tools import CONNECT, DATAGRAM, called
from test_replay_trace import CALL, PIECES, RESULT, changed, pieces, records, replay, replayed
from test_trace import calls_of, record, trace_file, verb

pytestmark = pytest.mark.parametrize("run", ["self"], indirect=True)
WRITTEN = 2  # enum uvd_piece_kind
RXE = ("--persona", "rxe")
RPING = """
rping -s -C 3 & server=$!
until rping -c -a 127.0.0.1 -C 3; do sleep 0.1; done
wait $server
"""
# Holds identifiers, so that the replay gets others than the trace has.
BESIDE = """
fds = [opened() for _ in range(2)]
held = [create(fd) for fd in fds for _ in range(3)]
r = subprocess.run([sys.argv[1], "replay", "--json", sys.argv[2]], stdout=subprocess.PIPE, text=True)
print(r.stdout)
"""
# A listener at a port that the device chooses, and a client that asks it.
PORT = """
def called(line):
    r = subprocess.run([sys.argv[1], "call", "--json", "-f", "-", "rdma_cm"], input=line, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(l)["results"] for l in r.stdout.splitlines()]

server = subprocess.Popen([sys.argv[1], "call", "--json", "-f", "-", "rdma_cm"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
__import__("atexit").register(server.kill)
print("id = CM_ID CREATE_ID --ps TCP --qp_type RC --uid 7\\nCM_ID BIND --id $id --addr 127.0.0.1:0\\n"
      "CM_ID QUERY --id $id --option ADDR\\nCM_ID LISTEN --id $id --backlog 5", file=server.stdin, flush=True)
lines = [json.loads(server.stdout.readline())["results"] for _ in range(4)]
print("child = CM_ID GET_EVENT\\nCM_ID REJECT --id $child", file=server.stdin, flush=True)
told = called(f'''
id = CM_ID CREATE_ID --ps TCP --qp_type RC --uid 8
CM_ID RESOLVE_ADDR --id $id --dst_addr {lines[2]["src_addr"]} --timeout_ms 100
CM_ID GET_EVENT
CM_ID RESOLVE_ROUTE --id $id --timeout_ms 100
CM_ID GET_EVENT
CM_ID CONNECT --id $id --conn_param.valid 1
CM_ID GET_EVENT
''')
assert told[-1]["event"] == "REJECTED" and told[-1]["status"] == 28, told
server.communicate()
"""


def scripted(run, script, device=RXE):
    called(run, script, *device, "--trace", str(trace_file(run)))
    return trace_file(run)


def programmed(run, program, device=RXE):
    client(run, program, [*device, "--trace", str(trace_file(run))])
    return trace_file(run)


def number_of(run, path, name, nth=0):
    return [i for i, c in enumerate(calls_of(run, path)) if verb(c) == name][nth]


def cut(run, path, *numbers):
    """Removes calls. Returns their records."""
    data, all_calls = path.read_bytes(), list(records(path.read_bytes(), CALL))
    gone = [all_calls[n] for n in sorted(numbers)]
    kept, at = b"", 0
    for begin, size in gone:
        kept, at = kept + data[at:begin], begin + size
    path.write_bytes(kept + data[at:])
    return [data[begin:begin + size] for begin, size in gone]


def put(path, number, call):
    """Inserts a record in front of the call of this number."""
    data = path.read_bytes()
    at = list(records(data, CALL))[number][0]
    path.write_bytes(data[:at] + call + data[at:])


def nothing_differs(found):
    assert not found["differences"] and not found["not_made"] and found["calls"], found


@pytest.mark.parametrize("persona", ["hfi1", "rxe"])
def test_rping_of_two_sides_is_replayed_without_a_difference(run, persona):
    device = ("--persona", persona)
    path = record(run, RPING, device)
    assert "DISCONNECTED" in [c["out"].get("event") for c in calls_of(run, path)]
    nothing_differs(replayed(run, path, device))


@pytest.mark.parametrize("script", [CONNECT, DATAGRAM], ids=["connect", "datagram"])
def test_identifiers_and_groups_are_those_of_the_replay(run, script):
    path = scripted(run, script)
    r = run(PYTHON, "-c", CLIENT + BESIDE, UVERBSCTL, str(path), options=RXE)
    assert '"differences": [], "not_made": []' in r.stdout, r


def test_port_that_the_device_chose_is_the_replays(run):
    path = programmed(run, PORT)
    nothing_differs(replayed(run, path, RXE))


def test_identifier_that_migrates_is_the_other_files(run):
    path = programmed(run, """
one, two = opened(), opened()
number = create(one)
assert resolve(one, number) > 0 and select.select([one], [], [], 300)[0]
assert migrate(two, number, one) > 0
assert get(two) == 7 and destroy(two, number) > 0
""")
    nothing_differs(replayed(run, path, RXE))


def test_events_of_two_identifiers_may_come_in_another_order(run):
    path = programmed(run, "fd = opened()\nassert event(fd, 1) > 0 and event(fd, 2) > 0 and get(fd) == 1 and get(fd) == 2\n")
    first = number_of(run, path, "CM_ID.GET_EVENT")
    put(path, first, *cut(run, path, first + 1))
    nothing_differs(replayed(run, path, RXE))


def test_events_of_one_identifier_come_in_one_order(run):
    path = scripted(run, CONNECT)
    first, second = (number_of(run, path, "CM_ID.GET_EVENT", n) for n in (0, 1))
    data, all_calls = bytearray(path.read_bytes()), list(records(path.read_bytes(), CALL))
    for number in first, second:  # ADDR_RESOLVED and ROUTE_RESOLVED change places
        at, size = all_calls[number]
        event, = (a for a, kind, kept in pieces(data, at, size) if kind == WRITTEN and kept >= 24)
        data[event + 12] ^= 2
    path.write_bytes(data)
    assert [(d["call"], d["item"], d["expected"], d["result"]) for d in replayed(run, path, RXE)["differences"]] == [
        (first + 1, "event", '"ROUTE_RESOLVED"', '"ADDR_RESOLVED"'), (second + 1, "event", '"ADDR_RESOLVED"', '"ROUTE_RESOLVED"')]


def test_call_that_ended_after_the_event_that_it_caused_is_made_before(run):
    path = scripted(run, CONNECT)
    resolve = number_of(run, path, "CM_ID.RESOLVE_ROUTE")
    call, = cut(run, path, resolve)
    put(path, resolve + 2, call)  # behind its event and a call that uses the route
    nothing_differs(replayed(run, path, RXE))


def test_result_that_the_trace_does_not_have_is_a_difference(run):
    path = scripted(run, CONNECT)
    call = changed(run, path, lambda c: verb(c) == "CM_ID.LISTEN", lambda data, at, _: struct.pack_into("=q", data, at + RESULT, -22))
    assert replayed(run, path, RXE)["differences"] == [
        {"call": call, "target": "CM_ID.LISTEN", "item": "result", "expected": "EINVAL", "result": "ok"}]


def test_address_that_the_replay_does_not_have_is_a_difference(run):
    path = scripted(run, """
id = CM_ID CREATE_ID --ps TCP --qp_type RC --uid 8
CM_ID RESOLVE_ADDR --id $id --dst_addr 192.0.2.9:1 --timeout_ms 100
CM_ID GET_EVENT
CM_ID RESOLVE_ROUTE --id $id --timeout_ms 100
CM_ID GET_EVENT
""", (*RXE, "--ip", "192.0.2.9"))
    nothing_differs(replayed(run, path, (*RXE, "--ip", "192.0.2.9")))
    found = replayed(run, path, RXE)
    assert [(d["target"], d["item"], d["expected"], d["result"]) for d in found["differences"]] == [
        ("CM_ID.GET_EVENT", "event", '"ADDR_RESOLVED"', '"ADDR_ERROR"'), ("CM_ID.GET_EVENT", "status", "0", "4294967195"),
        ("CM_ID.RESOLVE_ROUTE", "result", "ok", "EINVAL")], found
    assert [d["why"] for d in found["not_made"]] == ["a command of rdma_cm before it had another result"], found


def test_event_that_does_not_come_is_a_difference(run):
    path = scripted(run, CONNECT)
    cut(run, path, number_of(run, path, "CM_ID.CONNECT"))
    found = replayed(run, path, RXE)
    assert [(d["item"], d["expected"], d["result"]) for d in found["differences"]] == [("event", "CONNECT_REQUEST", "missing")], found
    assert [d["target"] for d in found["not_made"]] == ["CM_ID.REJECT", "CM_ID.GET_EVENT"], found


def test_trace_of_rdma_cm_with_wrong_bytes_harms_nothing(run):
    path = scripted(run, CONNECT)
    good = path.read_bytes()
    calls = [at for at, _ in records(good, CALL)]
    for seed in range(2):
        chance, data = random.Random(seed), bytearray(good)
        for _ in range(20):
            at = chance.choice(calls) + chance.randrange(PIECES, 300)
            if at < len(data):
                data[at] = chance.choice((0, 1, 127, 255))
        path.write_bytes(data)
        status, said = replay(run, path, "--hang", "20", device=RXE)
        assert status in (0, 1, 2) and ("difference" in said or "uverbsctl" in said), (seed, status, said)
