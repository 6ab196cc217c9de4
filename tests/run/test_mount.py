# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl run --mount`: chdir(), ".." and links below /sys/class and /dev are the kernel's own work."""
import os
import shutil
import subprocess
import pytest
from conftest import BIN, STUCK, UVERBSCTL, until
from test_run import pair_in_two_runs, pingpong, port  # noqa: F401 (a fixture)
from test_start import in_namespace, refused

MOUNT = ["--mount"]


@pytest.fixture(autouse=True)
def namespaces():
    """Skips where this machine does not let its users have namespaces."""
    unprivileged = [] if os.geteuid() else ["setpriv", "--reuid=65534", "--regid=65533", "--clear-groups"]
    r = subprocess.run([*unprivileged, "unshare", "--user", "--mount", "true"], capture_output=True, text=True)
    if r.returncode:
        assert not os.environ.get("CI"), r.stderr
        pytest.skip(r.stderr)


def sh(run, script, *options):
    return run("sh", "-c", script, options=[*MOUNT, *options])


def test_folders_can_be_entered_and_left(run):
    r = sh(run, "cd /sys/class/infiniband/hfi1_0 && cat ../hfi1_0/node_type && cd ports/1 && pwd -P && cat state &&"
                "cd ../../.. && ls && cd ../infiniband_verbs && ls; ls -a /sys/class/infiniband/..")
    assert r.returncode == 0 and r.stderr == "", r
    lines = r.stdout.splitlines()
    assert lines[:4] == ["1: CA", "/sys/class/infiniband/hfi1_0/ports/1", "4: ACTIVE", "hfi1_0"], lines
    assert lines[4:6] == ["abi_version", "uverbs0"] and {"infiniband", "net"} <= set(lines[6:]), lines


def test_open_folder_is_that_of_the_mount(run):
    r = sh(run, "exec 3</sys/class/infiniband/hfi1_0; readlink /proc/self/fd/3; stat -c %n /proc/self/fd/3/../../net")
    assert r.stdout.splitlines() == ["/sys/class/infiniband/hfi1_0", "/proc/self/fd/3/../../net"], r


def test_without_the_option_the_folders_cannot_be_entered(run):
    assert run("sh", "-c", "cd /sys/class/infiniband").returncode != 0 or os.path.isdir("/sys/class/infiniband")


def test_other_classes_stay_and_their_links_lead_to_the_devices(run):
    classes = {c for c in os.listdir("/sys/class") if not c.startswith("infiniband")}
    r = sh(run, "ls /sys/class; cd /sys/class/net/lo && cat ifindex && cd -P .. && pwd")
    assert classes <= set(r.stdout.split()) and r.stdout.splitlines()[-2:] == ["1", "/sys/devices/virtual/net"], r


def test_entry_of_the_connection_manager_is_found_in_the_machines_class_misc(run):
    r = sh(run, "cat /sys/class/misc/rdma_cm/abi_version /sys/class/misc/rdma_cm/dev; stat -c %t:%T /dev/infiniband/rdma_cm;"
                "cd /sys/class/misc && cat rdma_cm/abi_version; ls")
    lines = r.stdout.splitlines()
    major, minor = map(int, lines[1].split(":"))
    assert (lines[0], lines[2:4]) == ("4", [f"{major:x}:{minor:x}", "4"]), r
    assert sorted(lines[4:]) == sorted(os.listdir("/sys/class/misc")), r


def test_nothing_can_be_made_in_the_folder_of_classes(run):
    assert "Read-only" in sh(run, "mkdir /sys/class/mine").stderr


def test_devices_cannot_be_removed_from_the_folders(run):
    r = sh(run, "rm -r /sys/class/infiniband/hfi1_0; echo 7 >/sys/class/infiniband/hfi1_0/ports/1/counters/port_xmit_data;"
                "cat /sys/class/infiniband/hfi1_0/ports/1/counters/port_xmit_data")
    assert r.stdout == "0\n" and r.stderr.count("Read-only") > 10, r


def test_counters_are_those_of_the_moment(run, port):  # noqa: F811
    """The files are written twice a second, and before an open by a path."""
    script = f"({pingpong('-n 200 -p', port)[2]}) >&2; read n </sys/class/infiniband/hfi1_0/ports/1/counters/port_xmit_packets; echo $n"
    r = run("sh", "-c", script, options=MOUNT, cwd=run.folder)
    assert r.returncode == 0 and int(r.stdout) >= 400, r


def test_ids_stay_and_the_system_does_not_see_the_mounts(run):
    def ours():
        return [line for line in open("/proc/self/mountinfo") if "/sys/class" in line or "/dev/infiniband" in line]

    before = ours()
    r = sh(run, "id -u; id -g; cat /proc/self/status; cat /proc/self/mountinfo")
    ids = [os.geteuid(), os.getegid()] if run.argv([])[0] == UVERBSCTL else [65534, 65533]
    assert list(map(int, r.stdout.split()[:2])) == ids, r
    assert "/sys/class/infiniband " in r.stdout and ours() == before
    if any(ids):
        assert "CapEff:\t0000000000000000" in r.stdout and "CapPrm:\t0000000000000000" in r.stdout, r


@pytest.mark.parametrize("mode", ["", "-e"])
def test_pingpong(run, abi, mode, port):  # noqa: F811
    r = run(*pingpong("-n 200 -p", port, mode), options=[*abi, *MOUNT], cwd=run.folder)
    assert r.returncode == 0 and r.stdout.count("200 iters") == 2, r.stdout + r.stderr


def test_pingpong_of_two_runs_that_join(run, port):  # noqa: F811
    for p in pair_in_two_runs(run, port, "--join", *MOUNT):
        out, err = p.communicate(timeout=STUCK)
        assert p.returncode == 0 and "20 iters" in out, out + err


def test_changes_of_devices_are_seen(run):
    r = sh(run, f"cd /sys/class/infiniband && {UVERBSCTL} port down hfi1_0 1 && cat hfi1_0/ports/1/state &&"
                f"{UVERBSCTL} device remove uverbs1 >&2 && ls . ../infiniband_verbs", "--devices", "2")
    assert r.stdout.splitlines()[:2] == ["1: DOWN", ".:"] and "hfi1_1" not in r.stdout, r
    assert "hfi1_0" in r.stdout and "uverbs1" not in r.stdout and "uverbs0" in r.stdout, r


@pytest.mark.parametrize("program", ["ibstat", "ibstatus"])
def test_programs_of_infiniband_diags(run, program):
    assert shutil.which(program), "infiniband-diags is not installed: scripts/packages"
    r = run(program, options=MOUNT)
    assert r.returncode == 0 and "hfi1_0" in r.stdout and "active" in r.stdout.lower(), r


# ---- /dev/infiniband: mounted only if the system has such a folder -------------------------------------------------

DEV = (f"mount --bind {BIN} /mnt && mount -t tmpfs none /dev && mkdir /dev/infiniband && touch /dev/null &&"
       "mount --bind /proc/self/fd/9 /dev/null")


def with_dev_folder(script):
    return in_namespace(f"exec 9</dev/null; {DEV} && exec 9<&- && $RUN --mount -- sh -c '{script}'; exit $?")


def test_folder_of_nodes_can_be_entered():
    r = with_dev_folder("cd /dev/infiniband && ls && pwd -P && stat -c %F uverbs0 ../infiniband/uverbs0 &&"
                        "exec 3<>uverbs0 && stat -L -c %F /dev/infiniband/../infiniband/uverbs0; ls -a ..; ibv_devinfo")
    assert r.stdout.splitlines()[:6] == ["rdma_cm", "uverbs0", "/dev/infiniband", *3 * ["character special file"]], r
    assert r.returncode == 0 and "rxe0" in r.stdout, r


# ---- where it cannot be --------------------------------------------------------------------------------------------


def test_limit_of_user_namespaces_is_named_with_the_sysctl():
    if os.geteuid():
        pytest.skip("only root sets this sysctl")
    # In a user namespace of its own the sysctl is that namespace's.
    r = in_namespace("echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "
                     "--reuid=0 --ambient-caps=-all $RUN --mount -- true", ["--user", "--map-root-user"])
    refused(r, "--mount", "ENOSPC", "user.max_user_namespaces")


def test_nothing_is_left_after_a_refusal(run):
    r = subprocess.run([*run.prefix, "unshare", "--user", "--map-root-user", "sh", "-c",
                        f"echo 0 >/proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all "
                        f"{UVERBSCTL} run --mount -- true"], capture_output=True, text=True, env=run.env, timeout=STUCK)
    assert r.returncode == 125, r
    assert until(lambda: not run.left())
