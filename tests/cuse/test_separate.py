# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two processes: what the engine process may do, and how both processes end. test_lives.py tests how the broker starts another one."""
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from conftest import (BUILD, ENGINE_USER, MAPPED, NAMES, NOBODY, NOBODYS_GROUP, ONE_PROCESS, PERSONA, STUCK, children, environment,
                      left_behind, run_client, start_client, status_of, wait_for)


@pytest.fixture
def separate(start):
    return lambda *options: start("--separate", "yes", *options)


def test_uverbsd_is_two_processes_unless_one_is_asked_for(start):
    d = start()
    assert d.serving != d.process.pid and d.stop() == 0
    d = start(*ONE_PROCESS)
    assert d.serving == d.process.pid and d.stop() == 0


def test_without_its_user_the_engine_process_is_nobodys(start, tmp_path):
    without = tmp_path / "passwd"
    lines = pathlib.Path("/etc/passwd").read_text().splitlines(keepends=True)
    without.write_text("".join(line for line in lines if not line.startswith(f"{ENGINE_USER}:")))
    in_namespace = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/passwd && exec "$@"', without)
    d = start("--separate", "yes", program=(*in_namespace, BUILD / "src" / "uverbsd"))
    assert status_of(d.serving)["Uid"].split() == [str(NOBODY)] * 4
    os.kill(d.serving, signal.SIGKILL)
    wait_for("another engine process", lambda: d.starts() == 2)
    said = [line for line in d.log.read_text().splitlines() if ENGINE_USER in line]
    assert len(said) == 1 and "runs as nobody" in said[0] and "contrib/sysusers.d/uverbsd.conf" in said[0], said


def test_two_processes_need_rights_and_one_line_says_which():
    """uverbsd does not become one process by itself."""
    for caps, missing in ("-sys_ptrace", ": CAP_SYS_PTRACE;"), ("-all,+dac_override", ": CAP_SYS_PTRACE CAP_SYS_ADMIN "):
        done = subprocess.run(["setpriv", "--bounding-set", caps, BUILD / "src" / "uverbsd"], stderr=subprocess.PIPE, text=True,
                              timeout=STUCK)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
        assert missing in done.stderr and "--separate no" in done.stderr
    assert not left_behind()


def test_engine_process_has_no_rights(separate, engine_user):
    d = separate()
    engine = d.serving
    s = status_of(engine)
    assert s["Uid"].split() == [str(engine_user)] * 4 and "0" not in s["Gid"].split() and not s["Groups"].strip()
    assert [s[c] for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")] == ["0" * 16] * 5
    assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2"
    assert os.stat(f"/proc/{engine}/mem").st_uid == 0, "it is dumpable"
    for ns in ("mnt", "net", "ipc"):
        assert os.readlink(f"/proc/{engine}/ns/{ns}") != os.readlink(f"/proc/self/ns/{ns}")
    assert os.listdir(f"/proc/{engine}/root/") == []
    mounts = pathlib.Path(f"/proc/{engine}/mounts").read_text().splitlines()
    assert len(mounts) == 1 and mounts[0].split()[3].startswith("ro,"), mounts
    devices = pathlib.Path(f"/proc/{engine}/net/dev").read_text().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in devices] == ["lo"]


def test_broker_keeps_only_what_its_table_says(separate):
    d = separate()
    names = [0, 1, 3, 5, 6, 7, 8, 19, 21, 27]  # CHOWN DAC_OVERRIDE FOWNER KILL SETGID SETUID SETPCAP PTRACE ADMIN MKNOD
    s = status_of(d.process.pid)
    assert int(s["CapEff"], 16) == int(s["CapPrm"], 16) == int(s["CapBnd"], 16) == sum(1 << n for n in names)
    with open(f"/proc/{d.process.pid}/maps") as f:
        assert f.read()
    p = start_client("loop-pd")
    helper = next(c for c in children(d.process.pid) if c != d.serving)
    s = status_of(helper)
    assert int(s["CapEff"], 16) == int(s["CapBnd"], 16) == 1 << 1 | 1 << 19 and s["NoNewPrivs"] == "1"
    assert not [fd for fd in os.listdir(f"/proc/{helper}/fd") if int(fd) > 4 and "cuse" in os.readlink(f"/proc/{helper}/fd/{fd}")]
    p.kill()
    p.wait()


def test_pingpong_with_events_as_nobody(separate):
    d = separate()
    ids = dict(env=environment(), user=NOBODY, group=NOBODYS_GROUP, extra_groups=[], stdout=subprocess.PIPE)
    server = subprocess.Popen(["ibv_rc_pingpong", "-g", "0", "-e", "-n", "20"], **ids)
    time.sleep(2)
    client = subprocess.Popen(["ibv_rc_pingpong", "-g", "0", "-e", "-n", "20", "localhost"], **ids)
    for p in (client, server):
        assert b"20 iters" in p.communicate(timeout=STUCK)[0] and p.returncode == 0
    assert d.status()["grants"]["fell_back"] == 0
    d.wait_idle()


def test_log_says_once_why_no_queues_are_mapped(separate):
    d = separate()
    os.kill(d.serving, signal.SIGKILL)
    wait_for("another engine process", lambda: d.starts() == 2)
    why = "no mapped queues, so each post and poll is a call: EOPNOTSUPP; programs get them over CUSE with Linux 6.9 or later"
    assert d.log.read_text().count(why) == (not MAPPED)
    assert [device["persona"] for device in d.status()["devices"]] == [PERSONA]


def test_grants_of_threads_at_once(separate):
    d = separate()
    run_client("threads", "5")
    assert d.status()["grants"]["fell_back"] == 0
    d.wait_idle()


def test_loan_is_made_as_the_client(separate):
    """While a client asks for event files, the broker has a child with the client's user id, to borrow its thread."""
    d = separate()
    p = start_client("loop-channel")
    uids = set()
    end = time.monotonic() + 20
    while time.monotonic() < end and str(NOBODY) not in uids:
        for c in children(d.process.pid):
            try:
                s = status_of(c)
                if c != d.serving:
                    uids.add(s["Uid"].split()[0])
            except (FileNotFoundError, ProcessLookupError):
                pass
    p.kill()
    p.wait()
    assert str(NOBODY) in uids


def test_event_files_that_a_client_has_closed_are_collected(separate):
    d = separate()
    p = start_client("loop-channel")
    counts = [0]

    def they_fall():
        counts.append(d.status()["devices"][0]["objects"].get("UVERBS_OBJECT_COMP_CHANNEL", 0))
        return max(counts) > 32 and counts[-1] < max(counts) / 2
    wait_for("a look at all descriptors", they_fall)
    p.kill()
    p.wait()
    d.wait_idle()


def test_memlock_limit_is_the_clients(separate):
    separate()
    code = ("import ctypes, sys\n"
            "v = ctypes.CDLL('libibverbs.so.1', use_errno=True)\n"
            "for f in 'ibv_get_device_list', 'ibv_open_device', 'ibv_alloc_pd', 'ibv_reg_mr':\n"
            "    getattr(v, f).restype = ctypes.c_void_p\n"
            "d = ctypes.cast(v.ibv_get_device_list(None), ctypes.POINTER(ctypes.c_void_p))\n"
            "pd = ctypes.c_void_p(v.ibv_alloc_pd(ctypes.c_void_p(v.ibv_open_device(ctypes.c_void_p(d[0])))))\n"
            "b = ctypes.create_string_buffer(1 << 20)\n"
            "print(bool(v.ibv_reg_mr(pd, b, ctypes.c_size_t(int(sys.argv[1])), 1)), ctypes.get_errno())\n")

    def reg(size):
        done = subprocess.run(["/usr/bin/python3", "-c", code, str(size)], env=environment(), user=NOBODY, group=NOBODYS_GROUP,
                              extra_groups=[], stdout=subprocess.PIPE, text=True, timeout=STUCK,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536)))
        return done.stdout.split()
    assert reg(16384)[0] == "True"
    assert reg(1 << 20) == ["False", "12"]


def test_setuid_program_that_writes_to_the_node_gets_nowhere(separate):
    """The write fails as in the kernel, because the caller is not the opener. The daemon never accesses the memory of such a caller."""
    separate()
    program = "/usr/bin/uverbsd-test-head"
    shutil.copy("/usr/bin/head", program)
    os.chmod(program, 0o4755)
    done = subprocess.run(["/usr/bin/python3", "-c", "import os\n"
                           "fd = os.open('/dev/infiniband/uverbs0', os.O_RDWR)\n"
                           "os.dup2(fd, 1)\n"
                           f"os.execv('{program}', ['head', '-c', '8', '/dev/zero'])"],
                          env=environment(), user=NOBODY, group=NOBODYS_GROUP, extra_groups=[], stderr=subprocess.PIPE,
                          timeout=STUCK)
    os.unlink(program)
    assert done.returncode != 0 and b"Permission denied" in done.stderr, done.stderr


# A daemon as many are: root starts it, and it becomes its own user without an exec. From then on /proc shows it to root alone.
DROPS = """
import ctypes, os, sys
os.setgroups([])
os.setresgid(*[int(sys.argv[2])] * 3)
os.setresuid(*[int(sys.argv[1])] * 3)
assert os.stat("/proc/self/mem").st_uid == 0
v = ctypes.CDLL("libibverbs.so.1", use_errno=True)
for f in "ibv_get_device_list", "ibv_open_device", "ibv_alloc_pd", "ibv_reg_mr", "ibv_create_comp_channel", "ibv_create_cq":
    getattr(v, f).restype = ctypes.c_void_p
p = ctypes.c_void_p
d = ctypes.cast(v.ibv_get_device_list(None), ctypes.POINTER(p))
context = p(v.ibv_open_device(p(d[0])))
pd = p(v.ibv_alloc_pd(context))
memory = ctypes.create_string_buffer(8192)
mr = v.ibv_reg_mr(pd, memory, ctypes.c_size_t(8192), 1)
channel = p(v.ibv_create_comp_channel(context))
print(*[bool(x) for x in (context, pd, mr, channel.value, v.ibv_create_cq(context, 10, None, channel, 0))])
"""


def drops(user=NOBODY):
    return subprocess.run(["/usr/bin/python3", "-c", DROPS, str(user), str(NOBODYS_GROUP)], env=environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=STUCK)


def test_daemon_that_has_dropped_root_without_an_exec_is_a_client(separate):
    d = separate()
    done = drops()
    assert done.stdout.split() == ["True"] * 5, done
    assert d.status()["grants"]["fell_back"] == 0
    d.wait_idle()


def test_root_clients_can_be_refused(separate):
    d = separate("--root-clients", "refuse")
    done = subprocess.run(["ibv_devinfo"], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=STUCK)
    assert done.returncode != 0
    # The log names the program and the remedy.
    said = re.search(r"open: EACCES: ibv_devinfo, pid \d+, is root's: .*--root-clients .*`all`", d.log.read_text())
    assert said, d.log.read_text()
    done = subprocess.run(["ibv_devinfo"], env=environment(), user=NOBODY, group=NOBODYS_GROUP, extra_groups=[],
                          stdout=subprocess.PIPE, timeout=STUCK)
    assert done.returncode == 0 and NAMES[0].encode() in done.stdout
    # A process that has dropped root's rights without an exec can still know what root has read.
    assert "True" not in drops().stdout


def test_killed_broker_takes_the_engine_with_it(separate):
    d = separate()
    engine = d.serving
    p = start_client("loop-pd")
    d.process.kill()
    d.process.wait(STUCK)
    wait_for("the engine's end", lambda: not os.path.exists(f"/proc/{engine}"))
    p.wait(STUCK)
    wait_for("no node", lambda: not list(pathlib.Path("/sys/class/cuse").glob("*")))
    # The next daemon replaces what the killed one has left.
    separate().stop()
    assert not left_behind()


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_both(separate, sig):
    d = separate("--devices", "2")
    engine = d.serving
    p = start_client("loop-pd")
    assert d.stop(sig) == 0
    assert not os.path.exists(f"/proc/{engine}") and not left_behind()
    p.wait(STUCK)


def test_devices_come_and_go(separate):
    d = separate("--devices", "2")
    ctl = [pathlib.Path(os.environ["UVERBSD_BUILD"]) / "tools" / "uverbsctl", "device"]
    subprocess.run([*ctl, "remove", NAMES[1]], check=True, stdout=subprocess.DEVNULL, timeout=STUCK)
    assert not os.path.exists("/dev/infiniband/uverbs1") and not os.path.exists(f"/run/uverbsd/sysfs/class/infiniband/{NAMES[1]}")
    wait_for("the node's end", lambda: len(d.status()["devices"]) == 1)
    subprocess.run([*ctl, "add", NAMES[1]], check=True, stdout=subprocess.DEVNULL, timeout=STUCK)
    assert os.path.exists("/dev/infiniband/uverbs1") and os.path.exists(f"/run/uverbsd/sysfs/class/infiniband/{NAMES[1]}")


def device(*command):
    """Returns the output of uverbsctl, and whether it has succeeded."""
    done = subprocess.run([BUILD / "tools" / "uverbsctl", "device", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=STUCK)
    return done.stdout, done.returncode == 0


def test_device_that_stays_serves_however_many_come_and_go(separate):
    separate("--backend", "null", "--devices", "2")
    for _ in range(66):
        assert device("remove", "hfi1_1")[1] and device("add", "hfi1_1")[1]
    for name in "hfi1_0", "hfi1_1":
        done = subprocess.run(["ibv_devinfo", "-d", name], env=environment(), timeout=STUCK, user=NOBODY, group=NOBODYS_GROUP,
                              extra_groups=[], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout


def test_devices_that_were_not_configured_come_and_go(separate):
    d = separate("--ucaps", "good")
    nodes = sorted(os.listdir("/dev/infiniband"))
    for name in ("new", "other", "new"):
        assert device("add", "--name", name, "--ports", "2", "--ucaps", "good")[1]
        assert os.listdir(f"/run/uverbsd/sysfs/class/infiniband/{name}/ports") in (["1", "2"], ["2", "1"])
        assert subprocess.run(["ibv_devinfo", "-d", name], env=environment(), user=NOBODY, group=NOBODYS_GROUP, extra_groups=[],
                              stdout=subprocess.DEVNULL, timeout=STUCK).returncode == 0
        assert not device("add", "--name", name)[1]
        subprocess.run([BUILD / "tools" / "uverbsctl", "port", "down", name, "2"], check=True, timeout=STUCK)
        state = pathlib.Path(f"/run/uverbsd/sysfs/class/infiniband/{name}/ports/2/state").read_text()
        assert state.startswith("1: DOWN")
        assert device("remove", name)[1] and not os.path.exists(f"/run/uverbsd/sysfs/class/infiniband/{name}")
        assert device("add", name)[1] and device("remove", name)[1]
    wait_for("the nodes' end", lambda: len(d.status()["devices"]) == 1)
    assert sorted(os.listdir("/dev/infiniband")) == nodes
    said, done = device("add", "--name", "new", "--ucaps", "bad")
    assert not done and "User Capabilities" in said
    said, done = device("add", "--name", "../../new")
    assert not done and "has a `/`" in said  # of an engine process that does not look the broker refuses it: tests/broker/attacker.c


def test_engine_that_obeys_an_attacker_gets_nothing(sysfs_is_asked):
    with tempfile.TemporaryDirectory(prefix="uverbsd-tests-", dir="/run") as folder:
        os.chmod(folder, 0o755)
        for name in ("toy.so", "open.so", "theirs.so"):
            shutil.copy(BUILD / "tests/plugin/look0.so", f"{folder}/{name}")
            os.chmod(f"{folder}/{name}", 0o775 if name == "open.so" else 0o755)
        os.chown(f"{folder}/theirs.so", NOBODY, NOBODYS_GROUP)
        os.symlink("toy.so", f"{folder}/link.so")
        os.mkdir(f"{folder}/folder.so")
        done = subprocess.run([BUILD / "tests" / "broker" / "attacker", "--separate", "yes", "--ucaps", "good", "--plugin-dir", folder],
                              stderr=subprocess.PIPE, text=True, timeout=STUCK)
    assert done.returncode == 0 and "attacker: 0 failures" in done.stderr, done.stderr
    assert not left_behind()
