# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Devices of a run that are removed and added while its programs run."""
import re
import time

import pytest

from conftest import STUCK, UVERBSCTL
from test_run import port  # noqa: F401 (a fixture)

# Prints the devices that libibverbs lists, in one line.
LIST = "echo $(ibv_devices | tail -n +3 | awk '{print $1}' | sort);"
DEVICE = f"{UVERBSCTL} device"


def sh(run, script, *options, **kw):
    r = run("sh", "-c", script, options=options, cwd=run.folder, **kw)
    return r.stdout, r


def test_node_and_tree_go_and_come_back(run):
    out, r = sh(run, f"{LIST} {DEVICE} remove hfi1_0; {LIST} ls /dev/infiniband /sys/class/infiniband;"
                     f"cat /dev/infiniband/uverbs0; stat /dev/infiniband/uverbs0;"
                     f"{DEVICE} add hfi1_0; {LIST} ibv_devinfo -d hfi1_0 | head -1", "--devices", "2")
    assert out.split("\n") == ["hfi1_0 hfi1_1", "hfi1_0 uverbs0", "hfi1_1", "/dev/infiniband:", "rdma_cm",
                               "uverbs1", "", "/sys/class/infiniband:", "hfi1_1", "hfi1_0 uverbs0", "hfi1_0 hfi1_1",
                               "hca_id:\thfi1_0", ""], r
    assert r.stderr.count("No such file or directory") == 2


def test_what_is_added_again_is_another_device(run):
    stat = "stat -c %y /sys/class/infiniband/hfi1_0;"
    out, r = sh(run, f"{stat} {DEVICE} remove uverbs0 >/dev/null; {DEVICE} add uverbs0 >/dev/null; {stat}")
    before, after = out.split("\n")[:2]
    assert before < after, r


def test_a_new_device_is_made_from_options(run):
    out, r = sh(run, f"{DEVICE} add --backend null --ports 2; {DEVICE} add --name other --number 9; {LIST}"
                     f"ibv_devinfo -d hfi1_1 | grep -c 'port:'; ibv_devinfo -d other | head -1")
    assert out.split("\n")[:3] == ["hfi1_1 uverbs1", "other uverbs9", "hfi1_0 hfi1_1 other"], r
    assert "hca_id:\tother" in out and r.stderr == ""


def test_a_removed_device_comes_back_although_another_one_has_its_number(run):
    out, r = sh(run, f"{DEVICE} remove hfi1_0; {DEVICE} add --name other --number 0; {DEVICE} add hfi1_0; {LIST}")
    assert out == "hfi1_0 uverbs0\nother uverbs0\nhfi1_0 uverbs1\nhfi1_0 other\n", r


def test_default_persona_is_that_of_mapped_queues_where_the_backend_has_them(run):
    add = f"{UVERBSCTL} device add"
    for options, listed in (("", "rxe0"), ("--backend soft", "rxe0"), ("--backend null", "hfi1_0"), ("--persona hfi1", "hfi1_0")):
        r = run.without_persona("sh", "-c", LIST, options=options.split())
        assert r.stdout == listed + "\n", (options, r)
    r = run.without_persona("sh", "-c", f"{add}; {add} --backend null; {add} --name other; {add} --name other --persona rxe; {LIST}")
    assert r.stdout == "rxe1 uverbs1\nhfi1_0 uverbs2\nother uverbs3\nhfi1_0 other rxe0 rxe1\n", r
    assert "device other: libibverbs knows persona rxe by its name" in r.stderr


def test_each_device_that_is_added_has_a_guid_of_its_own(run):
    """As its name counts for its persona, and another one can have been removed, its number does not tell which GUIDs are free."""
    own = "cat /sys/class/infiniband/*/node_guid | sort | uniq -c | awk '{print $1}'"
    r = run.without_persona("sh", "-c", f"for o in '--persona hfi1' '' '--name other' '--persona hfi1'; do {DEVICE} add $o; done; {own}")
    assert r.stdout == "hfi1_0 uverbs1\nrxe1 uverbs2\nother uverbs3\nhfi1_1 uverbs4\n" + 5 * "1\n", r
    # A removed device comes back with its own. A new device that takes its name takes that, too.
    guid = "cat /sys/class/infiniband/{}/node_guid"
    out, r = sh(run, f"{guid.format('hfi1_0')}; {DEVICE} remove hfi1_0; {DEVICE} add --name other; {DEVICE} add hfi1_0; {own};"
                     f"{DEVICE} remove hfi1_0; {DEVICE} add --name hfi1_0; {guid.format('hfi1_0')};"
                     f"{DEVICE} add --guid 0002:c903:00ab:cdef >&2;"
                     f"{DEVICE} add --name last --guid 0002:c903:00ab:cdef >&2; {own}")
    lines = out.split("\n")
    assert lines[0] == lines[8] and lines[4:6] == ["1", "1"] and lines[9:] == ["2", "1", "1", ""], (lines, r)


def test_what_cannot_be_is_told(run):
    wrong = {"remove mlx5_0": "no such device", "add hfi1_0": "plugged in already", "add mlx5_0": "was removed",
             "add --name hfi1_0": "such a device", "add --number 0": "device with that number"}
    out, r = sh(run, "".join(f"{DEVICE} {args} || echo status $?;" for args in wrong) + LIST)
    assert out == "status 1\n" * len(wrong) + "hfi1_0\n", r
    assert all(words in line for words, line in zip(wrong.values(), r.stderr.splitlines())), r


def test_a_wrong_command_line_is_status_2(run):
    wrong = ["", "remove", "add --ports", "add --ports 77", "add --devices 2", "drop hfi1_0", "add 'a b'"]
    out, r = sh(run, "".join(f"{DEVICE} {args}; echo $?;" for args in wrong))
    assert out == "2\n" * len(wrong), r


def test_help_is_asked_of_no_device(run):
    out, r = sh(run, f"for args in --help 'add --help' 'remove -h'; do {DEVICE} $args | head -1; done; {LIST}")
    assert re.fullmatch(r"(Usage: uverbsctl device .*\n){3}hfi1_0\n", out) and r.stderr == "", r


def test_asyncwatch_sees_device_fatal_and_waits_on(run):
    out, r = sh(run, f"stdbuf -oL ibv_asyncwatch -d hfi1_0 >events 2>&1 & watch=$!;"
                     f"for i in $(seq 100); do grep -q event events && break; sleep 0.1; done;"
                     f"{DEVICE} remove hfi1_0 >/dev/null;"
                     f"for i in $(seq 100); do grep -q FATAL events && break; sleep 0.1; done;"
                     f"sleep 0.3; kill -0 $watch && echo waits; kill $watch; cat events")
    assert out.startswith("waits") and "IBV_EVENT_DEVICE_FATAL (8), port 0" in out, r
    assert r.stderr.count("hfi1_0: event DEVICE_FATAL: the device is gone, or its adapter is; close it and look for another one") == 1, r


def until_listens(port):
    """Returns shell code that waits until the server is in the kernel's table of sockets, in the state LISTEN (0A)."""
    return f"for i in $(seq 600); do grep -qs ':{port:04X} 0*:0000 0A ' /proc/net/tcp /proc/net/tcp6 && break; sleep 0.05; done;"


@pytest.mark.parametrize("mode", ["", "-e"])
def test_pingpong_ends_when_its_device_goes(run, abi, mode, port):
    script = (f"ibv_rc_pingpong -d hfi1_0 -p {port} {mode} -n 100000000 >server 2>&1 & server=$!; {until_listens(port)}"
              f"stdbuf -oL ibv_rc_pingpong -d hfi1_1 -p {port} {mode} -n 100000000 localhost >client 2>&1 & client=$!;"
              f"for i in $(seq 600); do grep -qs remote client && break; sleep 0.05; done; sleep 1;"
              f"{DEVICE} remove hfi1_0 >/dev/null; wait $server; echo $?;"
              # If its last message was received the client waits for a reply that never comes: it gets no error.
              f"sleep 0.5; kill $client; wait $client; cat client")
    out, r = sh(run, script, "--devices", "2", *abi)
    assert out.startswith("1\n"), r
    assert "Failed status" not in out or "transport retry counter exceeded" in out, r


def test_a_device_that_stays_works_on(run, port):
    a = f"-d hfi1_1 -p {port} -n 2000"
    script = (f"ibv_rc_pingpong {a} >server 2>&1 & server=$!; {until_listens(port)}"
              f"ibv_rc_pingpong {a} localhost >client 2>&1 & client=$!;"
              f"for i in 1 2 3 4 5; do {DEVICE} remove hfi1_0; {DEVICE} add hfi1_0; done >/dev/null;"
              f"wait $server && wait $client && cat server client; {LIST}")
    out, r = sh(run, script, "--devices", "2")
    assert out.count("2000 iters") == 2 and out.endswith("hfi1_0 hfi1_1\n"), r


def test_devices_of_a_joined_run_are_shared(run):
    name = f"unplug-{time.monotonic_ns()}"
    first = run.start("sh", "-c", f"echo ready; read line; {LIST}", options=["--join", name, "--devices", "2"])
    assert first.stdout.readline() == "ready\n"
    out, r = sh(run, f"{DEVICE} remove hfi1_1; {LIST}", "--join", name)
    assert out == "hfi1_1 uverbs1\nhfi1_0\n", r
    assert first.communicate("\n", timeout=STUCK)[0] == "hfi1_0\n"
