# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Devices that are removed and added while uverbsd runs, on the real node."""
import errno
import fcntl
import os
import pathlib
import re
import subprocess
import time

import pytest

from conftest import BUILD, MAPPED, NAMES, NOBODY, ONE_PROCESS, STUCK, environment, start_client, wait_for
from test_uverbsctl import uverbsctl

USER = dict(user=NOBODY, group=NOBODY, extra_groups=[], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
NODE = pathlib.Path("/dev/infiniband/uverbs0")
CUSE = pathlib.Path("/sys/class/cuse/infiniband!uverbs0")
CLASS = pathlib.Path(f"/run/uverbsd/sysfs/class/infiniband/{NAMES[0]}")


def device(*args, user=0):
    done = uverbsctl("device", *args, user=user)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def names():
    done = subprocess.run(["ibv_devices"], env=environment(), text=True, stdout=subprocess.PIPE, timeout=STUCK)
    return sorted(line.split()[0] for line in done.stdout.splitlines()[2:] if line.strip())


def refused(path):
    """Returns the errno of an open, or 0."""
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError as e:
        return e.errno
    return 0


def test_node_and_tree_go_and_come_back(start):
    start("--devices", "2")
    before = CLASS.stat().st_mtime_ns
    assert names() == NAMES
    assert device("remove", NAMES[0]) == [NAMES[0], "uverbs0"]
    assert names() == [NAMES[1]]
    assert refused(NODE) == errno.ENOENT and not CUSE.exists() and not CLASS.exists()
    assert device("add", NAMES[0]) == [NAMES[0], "uverbs0"]
    assert names() == NAMES
    assert CLASS.stat().st_mtime_ns > before     # libibverbs takes it for another device
    assert NODE.stat().st_mode & 0o777 == 0o666
    start_client("loop-pd").kill()


def test_a_new_device_is_made_from_options(start):
    start()
    # The backend cannot map queues, so the device is hfi1.
    second = "hfi1_0" if MAPPED else "hfi1_1"
    assert device("add", "--backend", "null", "--ports", "2") == [second, "uverbs1"]
    assert device("add", "--name", "other", "--number", "7") == ["other", "uverbs7"]
    assert names() == sorted([NAMES[0], second, "other"])
    assert device("remove", "uverbs7") == ["other", "uverbs7"]
    assert names() == sorted([NAMES[0], second])


def test_a_number_is_free_with_the_last_close(start):
    start("--devices", "2")
    for _ in range(3):
        holder = os.open(NODE, os.O_RDWR)
        assert device("remove", "uverbs0")[1] == "uverbs0"
        assert uverbsctl("device", "add", "--name", "other", "--number", "0").returncode == 1
        os.close(holder)
        assert device("add", "--name", "other", "--number", "0") == ["other", "uverbs0"]


def test_what_cannot_be_is_told(start):
    start()
    for words, *args in [("no such device", "remove", "mlx5_0"), ("plugged in already", "add", NAMES[0]),
                         ("was removed", "add", "mlx5_0"), ("such a device", "add", "--name", NAMES[0]),
                         ("number is taken", "add", "--number", "0")]:
        done = uverbsctl("device", *args)
        assert done.returncode == 1 and words in done.stderr, done.stderr
    done = uverbsctl("device", "remove", NAMES[0], user=NOBODY)
    assert done.returncode == 1 and "only root" in done.stderr
    assert names() == [NAMES[0]]


def test_asyncwatch_sees_device_fatal(start):
    start()
    p = subprocess.Popen(["stdbuf", "-oL", "ibv_asyncwatch", "-d", NAMES[0]], env=environment(), **USER)
    assert "async event FD" in p.stdout.readline()
    device("remove", NAMES[0])
    assert "IBV_EVENT_DEVICE_FATAL (8), port 0" in p.stdout.readline()
    assert p.poll() is None     # the file stays open, and ibv_asyncwatch waits for more events
    p.kill()
    p.wait()


def filters(*args):
    done = uverbsctl("filter", *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_filter_removes_the_device_and_it_comes_back_with_its_lists_and_filters(start):
    d = start("--filter", "error:seed=1", "--allow", "qp-types:RC")

    def comes_back(times):
        wait_for("the device", lambda: d.log.read_text().count("filter flap: the device is back") == times)

    def is_as_before():
        assert names() == [NAMES[0]] and f"{NAMES[0]}: error:seed=1" in filters("list")
        done = subprocess.run(["ibv_devinfo", "-d", NAMES[0]], env=environment(), timeout=STUCK, **USER)
        assert done.returncode == 0 and "PORT_ACTIVE" in done.stdout
        done = subprocess.run(["ibv_ud_pingpong", "-d", NAMES[0]], env=environment(), timeout=STUCK, **USER)
        assert done.returncode == 1 and "Couldn't create QP" in done.stdout

    # A filter that a user adds to a device that filters have removed acts anew.
    for turn in 1, 2:
        watch = subprocess.Popen(["stdbuf", "-oL", "ibv_asyncwatch", "-d", NAMES[0]], env=environment(), **USER)
        assert "async event FD" in watch.stdout.readline()
        clients = [start_client(mode) for mode in ("loop-pd", "loop-channel")]
        filters("add", NAMES[0], "flap:device=yes,after=1ms,down=1ms")
        assert "IBV_EVENT_DEVICE_FATAL (8), port 0" in watch.stdout.readline()
        for p in clients:
            assert p.wait(STUCK) == 0
            assert p.stdout.read().strip() == f"error {errno.EIO}"
        comes_back(turn)
        assert watch.poll() is None
        watch.kill()
        watch.wait()
    is_as_before()
    wait_for("the end of the old nodes", lambda: len(d.status()["devices"]) == 1)

    # The post of the schedule fails. A client that is idle keeps the old node; others find the new one.
    filters("add", NAMES[0], "flap:device=yes,posts=10,down=1ms")
    pair = [BUILD / "tools/uverbsctl", "pair", "ibv_rc_pingpong", "-g", "0", "-e", "-n", "100"]
    done = subprocess.run(pair, env=environment(), timeout=STUCK, **USER)
    assert re.match("client 1\n.*(Couldn't post send|Couldn't request CQ|cq_event|[Ff]ailed)", done.stdout), done.stdout
    comes_back(3)

    # Until the time is over nobody finds the device, unless a user adds it; then the schedule does nothing more.
    filters("add", NAMES[0], "flap:device=yes,after=1ms,down=60s")
    wait_for("the removal", lambda: not names() and not list(CLASS.parent.iterdir()) and not list(NODE.parent.glob("uverbs*")))
    wait_for("the end of the old node", lambda: not d.status()["devices"])
    assert device("add", NAMES[0])[0] == NAMES[0] and names() == [NAMES[0]]
    assert d.log.read_text().count("filter flap: removal 1 of the device") == 4
    d.wait_idle()


def test_filter_of_the_configuration_removes_the_device_as_often_as_asked(start):
    d = start("--filter", "flap:device=yes,after=1ms,down=1ms,up=1ms,times=3")
    wait_for("the device", lambda: d.log.read_text().count("filter flap: the device is back") == 3)
    assert re.findall(r"removal (\d) of", d.log.read_text()) == ["1", "2", "3"]
    start_client("loop-pd").kill()
    # A user who adds it begins anew.
    device("remove", NAMES[0])
    device("add", NAMES[0])
    wait_for("the device", lambda: d.log.read_text().count("filter flap: the device is back") == 6)


def test_device_add_that_is_refused_leaves_a_removed_device_its_return_filters_and_lists(start):
    d = start("--devices", "2", "--filter", "error:seed=1", "--allow", "qp-types:RC")
    filters("add", NAMES[0], "flap:device=yes,after=1ms,down=6s")
    wait_for("the removal", lambda: names() == [NAMES[1]])
    refused = uverbsctl("device", "add", "--name", NAMES[0], "--allow", "qp-types:UD", "--filter", "error:seed=2", "--number", "1")
    assert refused.returncode == 1 and "the number is taken" in refused.stderr, refused.stderr
    wait_for("the device", lambda: "filter flap: the device is back" in d.log.read_text())
    assert names() == NAMES and f"{NAMES[0]}: error:seed=1" in filters("list")
    done = subprocess.run(["ibv_ud_pingpong", "-d", NAMES[0]], env=environment(), timeout=STUCK, **USER)
    assert done.returncode == 1 and "Couldn't create QP" in done.stdout


def test_device_that_a_user_adds_does_not_come_back_by_itself(start):
    """The other device tells when the time is over."""
    d = start("--devices", "2")
    for name in NAMES[0], NAMES[1]:
        filters("add", name, "flap:device=yes,after=1ms,down=6s")
    wait_for("the removals", lambda: not names())
    device("add", "--name", NAMES[0])
    device("remove", NAMES[0])
    wait_for("the other device", lambda: names() == [NAMES[1]])
    time.sleep(0.2)
    assert names() == [NAMES[1]]
    assert d.log.read_text().count("filter flap: the device") == 1      # "is back", and no "does not come back"


@pytest.mark.parametrize("mode", ["loop-pd", "loop-channel", "loop-transfer"])
def test_clients_in_calls_get_eio_and_the_rest_goes_when_they_do(start, mode):
    d = start()
    clients = [start_client(mode) for _ in range(3)]
    holder = os.open(NODE, os.O_RDWR)
    again = os.open(NODE, os.O_PATH)
    time.sleep(0.3)
    device("remove", NAMES[0])
    for p in clients:
        assert p.wait(STUCK) == 0
        assert p.stdout.read().strip() == f"error {errno.EIO}"
    # An open file stays open, but every call on it fails. The node cannot be opened again.
    with pytest.raises(OSError) as e:
        fcntl.ioctl(holder, 0xc0181b01, bytearray(24))
    assert e.value.errno in (errno.EIO, errno.EINVAL)
    with pytest.raises(OSError) as e:
        os.write(holder, (0).to_bytes(4, "little") + (4).to_bytes(2, "little") + (2).to_bytes(2, "little") + bytes(8))
    assert e.value.errno == errno.EIO   # GET_CONTEXT
    assert not NODE.exists() and CUSE.exists()
    assert refused(f"/proc/self/fd/{again}") == errno.EIO
    os.close(again)
    s = d.status()
    assert not s["memlock"] and [x["removed"] for x in s["devices"]] == [True]
    assert not s["devices"][0]["objects"]
    # CUSE keeps the name until that file is closed, so the new node has another number.
    assert device("add", NAMES[0]) == [NAMES[0], "uverbs1"]
    os.close(holder)
    wait_for("the end of the old node", lambda: not CUSE.exists())
    assert [x["removed"] for x in d.status()["devices"]] == [False]


def test_pingpong_ends_when_its_device_goes(start):
    d = start("--devices", "2")
    args = ["-p", "18599", "-n", "100000000"]
    server = subprocess.Popen(["ibv_rc_pingpong", "-d", NAMES[0], *args], env=environment(), **USER)
    # The server listens once its port 18599 (hexadecimal 48A7) is in the table of sockets.
    wait_for("the server", lambda: ":48A7 " in open("/proc/net/tcp").read() + open("/proc/net/tcp6").read())
    client = subprocess.Popen(["ibv_rc_pingpong", "-d", NAMES[1], *args, "localhost"], env=environment(), **USER)
    wait_for("both to talk", lambda: sum(x["objects"].get("UVERBS_OBJECT_QP", 0) for x in d.status()["devices"]) == 2)
    time.sleep(1)
    device("remove", NAMES[0])
    assert server.wait(STUCK) == 1, server.stdout.read()
    client.kill()   # if its last message was received it waits for a reply that never comes
    text = client.communicate(timeout=STUCK)[0]
    assert "Failed status" not in text or "transport retry counter exceeded" in text
    d.wait_idle()


def test_a_client_that_holds_a_call_up_holds_up_its_removal_alone(start):
    # The client's memory is behind userfaultfd, which with two processes is EFAULT.
    d = start(*ONE_PROCESS)
    held = start_client("hold-up", user=0)
    time.sleep(0.5)
    removal = subprocess.Popen([BUILD / "tools" / "uverbsctl", "device", "remove", "hfi1_0"], text=True,
                               stdout=subprocess.PIPE)
    wait_for("the removal's beginning", lambda: d.status()["devices"][0]["removed"])
    assert device("add", "hfi1_0") == ["hfi1_0", "uverbs1"]
    other = subprocess.run(["ibv_devinfo"], env=environment(), timeout=STUCK, **USER)
    assert other.returncode == 0 and removal.poll() is None
    held.kill()
    assert removal.wait(STUCK) == 0 and removal.stdout.read() == "hfi1_0 uverbs0\n"
    held.wait()
    wait_for("the end of the old node", lambda: not CUSE.exists())


def test_abort_of_a_removed_node_frees_its_name_and_no_more(start):
    d = start()
    holder = os.open(NODE, os.O_RDWR)
    device("remove", NAMES[0])
    (CUSE / "abort").write_text("1")
    wait_for("the end of the old node", lambda: not CUSE.exists())
    with pytest.raises(OSError):
        os.write(holder, bytes(8))
    os.close(holder)
    assert device("add", NAMES[0]) == [NAMES[0], "uverbs0"]
    assert names() == [NAMES[0]] and d.process.poll() is None


def test_stop_while_a_removed_device_is_open(start):
    d = start()
    holder = os.open(NODE, os.O_RDWR)
    device("remove", NAMES[0])
    assert d.stop() == 0, d.log.read_text()
    os.close(holder)


def test_again_and_again_beside_a_device_that_works(start, monkeypatch):
    d = start("--devices", "2")
    monkeypatch.setenv("IBDEV", NAMES[1])     # for start_client()
    bystander = start_client("loop-transfer")
    monkeypatch.setenv("IBDEV", NAMES[0])
    for _ in range(2):
        clients = [start_client(m) for m in ("loop-pd", "loop-channel")]
        device("remove", NAMES[0])
        for p in clients:
            assert p.wait(STUCK) == 0 and f"error {errno.EIO}" in p.stdout.read()
        device("add", NAMES[0])
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()
    d.wait_idle()
