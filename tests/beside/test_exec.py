# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl exec` of an ordinary user: programs find the daemon's devices, and not the kernel's rxe0."""
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import cuse

UVERBSCTL = cuse.BUILD / "tools" / "uverbsctl"
OURS = cuse.NAMES[0]
GID = "-g 0" if cuse.MAPPED else ""
PERFTEST = "-F -x 0" if cuse.MAPPED else "-F"
LONG = "UVERBSD_LONG" in os.environ
NAMESPACES = pathlib.Path("/proc/sys/user/max_user_namespaces")
HEAD = ["device", "node", "GUID", "------", "----------------"]  # of what ibv_devices prints


@pytest.fixture(name="suid")
def fixture_suid():
    """A program that anybody executes as root: `id`."""
    program = pathlib.Path("/usr/local/bin/uverbsd-test-id")
    shutil.copy("/usr/bin/id", program)
    program.chmod(0o4755)
    assert subprocess.run([program, "-u"], stdout=subprocess.PIPE, text=True, check=True, **cuse.ids_of(cuse.NOBODY)).stdout == "0\n"
    yield program
    program.unlink()


@pytest.fixture(name="without_namespaces")
def fixture_without_namespaces():
    before = NAMESPACES.read_text()
    NAMESPACES.write_text("0")
    yield
    NAMESPACES.write_text(before)


def start(*argv):
    return subprocess.Popen([UVERBSCTL, "exec", "--", *argv], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            **cuse.ids_of(cuse.NOBODY))


def execute(*argv):
    p = start(*argv)
    out, err = p.communicate(timeout=cuse.STUCK)
    return subprocess.CompletedProcess(argv, p.returncode, out, err)


def tcp_listens(port):
    return any(f":{port:04X} " in line and " 0A " in line
               for name in ("tcp", "tcp6") for line in pathlib.Path("/proc/net", name).read_text().splitlines())


def run_pair(server, client, listens):
    ends = [start(*server.split())]
    cuse.wait_for("the server", lambda: listens() or ends[0].poll() is not None)
    ends.append(start(*client.split()))
    for end in reversed(ends):
        out, err = end.communicate(timeout=cuse.STUCK)
        assert end.returncode == 0, out + err


def test_only_the_daemons_devices_are_found(daemon):
    done = execute("sh", "-c", "ibv_devices && cd /sys/class && ls infiniband && ls infiniband_verbs && ls -d net/lo")
    assert done.returncode == 0 and done.stderr == "", done
    words = done.stdout.split()
    guid = words.pop(len(HEAD) + 1)
    assert guid == daemon.status()["devices"][0]["node_guid"].replace(":", "")
    assert words == [*HEAD, OURS, OURS, "abi_version", pathlib.Path(daemon.nodes[0]).name, "net/lo"]


def test_without_it_the_kernels_device_is_found(daemon):
    """So this machine answers by netlink, and has folders in /sys/class."""
    guid = pathlib.Path("/sys/class/infiniband/rxe0/node_guid").read_text().strip().replace(":", "")
    said = subprocess.run(["ibv_devices"], text=True, stdout=subprocess.PIPE, check=True, timeout=cuse.STUCK).stdout
    assert said.split() == [*HEAD, "rxe0", guid] and guid not in execute("ibv_devices").stdout
    assert pathlib.Path(daemon.nodes[0]).name != "uverbs0"


@pytest.mark.parametrize("program", ["ibstat"] + ["ibstatus"] * LONG)
def test_programs_with_a_built_in_path_find_it(daemon, program):
    done = execute(program)
    assert done.returncode == 0 and f"'{OURS}'" in done.stdout and "active" in done.stdout.lower(), done
    assert done.stdout.count("'") == 2, done


@pytest.mark.parametrize("program", [f"ibv_rc_pingpong -e -n 50 {GID}", f"ib_send_bw -n 50 {PERFTEST}"]
                         + [f"ibv_rc_pingpong -n 50 {GID}"] * LONG)
def test_pair(daemon, program):
    run_pair(program, f"{program} localhost", lambda: tcp_listens(18515))


def test_rping_reaches_the_daemons_rdma_cm(daemon):
    assert daemon.text_of("this uverbsd's is /dev/infiniband/uverbsd_cm")
    requests = daemon.status()["devices"][0]["requests"]
    run_pair("rping -s -V -C 5 -a 127.0.0.1", "rping -c -V -C 5 -a 127.0.0.1",
             lambda: any(i["state"] == "LISTEN" for i in daemon.status()["cm_ids"]))
    assert daemon.status()["devices"][0]["requests"] > requests


def test_where_mounts_are_not_allowed_libibverbs_finds_it_all_the_same(daemon, without_namespaces):
    done = execute("sh", "-c", "ibv_devices && grep NoNewPrivs /proc/self/status && ls /sys/class/infiniband")
    assert done.returncode == 0 and done.stdout.split()[len(HEAD)] == OURS, done
    assert done.stdout.split()[-3:] == ["NoNewPrivs:", "1", "rxe0"], done
    assert done.stderr.count("\n") == 1, done
    for words in "warning: programs that read /sys/class themselves", "ibstat", "ENOSPC", "user.max_user_namespaces":
        assert words in done.stderr, done
    run_pair(f"ibv_rc_pingpong -e -n 50 {GID}", f"ibv_rc_pingpong -e -n 50 {GID} localhost", lambda: tcp_listens(18515))


def test_set_user_id_programs_give_no_rights(daemon, suid):
    assert execute(suid, "-u").stdout == f"{cuse.NOBODY}\n"


def test_without_namespaces_they_give_none_either(daemon, suid, without_namespaces):
    assert execute(suid, "-u").stdout == f"{cuse.NOBODY}\n"


def test_mounts_are_the_programs_own(daemon):
    def ours():
        return [line for line in open("/proc/self/mountinfo") if "/sys/class" in line or "/dev/infiniband" in line]

    before = ours()
    done = execute("cat", "/proc/self/mountinfo")
    assert " /sys/class " in done.stdout and " /dev/infiniband/rdma_cm " in done.stdout and ours() == before == [], done


def test_only_netlink_of_rdma_is_refused(daemon):
    done = execute("python3", "-c", """if True:
        import errno, os, socket
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_UDP)
        for kind in socket.SOCK_RAW, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC:
            try:
                socket.socket(socket.AF_NETLINK, kind, 20)
            except OSError as e:
                print(errno.errorcode[e.errno])
        """)
    assert done.stdout == "EPROTONOSUPPORT\n" * 2, done
