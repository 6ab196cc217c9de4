# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a run needs of the system: each message is one line that names what is missing and what to do."""
import os
import shutil
import subprocess
import pytest
from conftest import BIN, BUILD, NOBODY, SANITIZED, STUCK, UVERBSCTL
from test_run import pingpong, port  # noqa: F401 (a fixture)

# A user other than root becomes root in a user namespace.
UNSHARE = ["unshare", "--mount"] if not os.geteuid() else ["unshare", "--map-root-user", "--mount"]


def in_namespace(script, unshare=()):
    """Runs a shell script as root in a mount namespace of its own. $RUN is `uverbsctl run`."""
    argv = [*UNSHARE, *unshare, "sh", "-c", f'RUN="{UVERBSCTL} run"; {script}']
    r = subprocess.run(argv, capture_output=True, text=True, timeout=STUCK)
    if "unshare failed" in r.stderr:
        assert not os.environ.get("CI"), r.stderr
        pytest.skip(r.stderr)
    return r


def refused(r, *words):
    lines = r.stderr.splitlines()
    assert r.returncode == 125 and len(lines) == 1 and lines[0].startswith("uverbsctl run: "), r
    assert all(word in lines[0] for word in words), lines


@pytest.mark.parametrize("option, remedy", [("", "TMPDIR"), ("--join", "XDG_RUNTIME_DIR")])
def test_folder_that_is_read_only_is_named_with_the_remedy(option, remedy):
    # uverbsctl is in /tmp, too.
    r = in_namespace(f"mount --bind {BIN} /mnt && mount -t tmpfs -o ro none /tmp && "
                     f"unset TMPDIR XDG_RUNTIME_DIR && exec /mnt/uverbsctl run {option} -- true")
    refused(r, " /tmp", "EROFS", remedy)


def test_runtime_folder_that_is_read_only_is_named_and_not_replaced_by_tmp():
    r = in_namespace("mount -t tmpfs -o ro none /mnt && export XDG_RUNTIME_DIR=/mnt && exec $RUN --join ro -- true")
    refused(r, "XDG_RUNTIME_DIR is /mnt: EROFS", "mount it writable", "unset")


@pytest.mark.parametrize("mode", ("0720", "0702"))
def test_folder_of_the_sockets_that_others_may_write_to_is_refused(mode):
    r = in_namespace("mount -t tmpfs none /mnt && mkdir /mnt/uverbsd && "
                     f"chmod {mode} /mnt/uverbsd && export XDG_RUNTIME_DIR=/mnt && exec $RUN --join open -- true")
    refused(r, "/mnt/uverbsd", "EPERM")


@pytest.mark.parametrize("length, shown", [(80, ".sock"), (91, "/0")])
def test_folder_and_name_that_no_socket_can_have_are_refused(length, shown):
    """An address of a socket has 107 bytes at most, and a folder that was cut off would be another one."""
    name = 30 * "n"
    r = in_namespace(f"mount -t tmpfs none /mnt && d=/mnt/$(printf %0{length}d 0) && mkdir -m 700 $d && mkdir -p ${{d%0}} && "
                     f"export XDG_RUNTIME_DIR=$d && exec $RUN --join {name} -- true")
    refused(r, shown, "ENAMETOOLONG")


EACH_GID = """
from pyverbs.addr import AH, AHAttr, GlobalRoute
from pyverbs.device import Context
from pyverbs.pd import PD
with Context(name="rxe0") as c, PD(c) as pd:
    for i in range(len(c.query_gid_table(16))):
        gid = c.query_gid(1, i)
        AH(pd, attr=AHAttr(gr=GlobalRoute(dgid=gid, sgid_index=i), is_global=1, port_num=1)).close()
        print(i, gid)
"""


@pytest.mark.parametrize("remove, gids", [
    ("", ["0 0000:0000:0000:0000:0000:ffff:7f00:0001", "1 0000:0000:0000:0000:0000:0000:0000:0001"]),
    ("ip addr del ::1/128 dev lo && ", ["0 0000:0000:0000:0000:0000:ffff:7f00:0001"])])
def test_each_gid_of_rxe_is_an_address_of_this_machine_and_serves_address_handles(tmp_path, remove, gids):
    program = tmp_path / "gids.py"
    program.write_text(EACH_GID)
    r = in_namespace(f"ip link set lo up && {remove}exec $RUN -- /usr/bin/python3 {program}", ["--net"])
    assert r.returncode == 0 and r.stdout.splitlines() == gids, r


def test_daemon_of_another_user_says_that_it_needs_root():
    user = [] if os.geteuid() else NOBODY
    program = shutil.copy(BUILD / "src/uverbsd", BIN / "uverbsd")
    r = subprocess.run([*user, program, "--separate", "no", "--control", "/control"], capture_output=True, text=True, timeout=STUCK)
    assert r.returncode == 1 and "start uverbsd as root; `uverbsctl run` needs no rights" in r.stderr, r


if not SANITIZED:  # the sanitizers need /proc themselves
    @pytest.mark.parametrize("hide", ["umount -l /proc", "mount -t tmpfs none /proc"])
    def test_missing_proc_is_named_with_the_remedy(hide):
        if os.geteuid() and hide.startswith("umount"):
            pytest.skip("a user namespace cannot unmount what it has inherited")
        refused(in_namespace(f"{hide} && exec $RUN -- true"), "/proc/self: ENOENT", "mount proc on /proc")


def test_proc_of_another_pid_namespace_is_named_with_the_remedy():
    refused(in_namespace("$RUN -- true; exit $?", ["--pid", "--fork"]), "pid namespace", "--mount-proc")


def test_proc_of_the_own_pid_namespace_is_good():
    r = in_namespace("$RUN -- ibv_devinfo; exit $?", ["--pid", "--fork", "--mount-proc"])
    assert r.returncode == 0 and "rxe0" in r.stdout, r


def test_missing_null_device_is_named_with_the_remedy():
    refused(in_namespace("mount -t tmpfs none /dev && exec $RUN -- true"), "/dev/null: ENOENT", "mknod")


def daemon(prepare, folder, separate="yes"):
    (folder / "tree").mkdir()
    return in_namespace(f"{prepare} && exec {BUILD}/src/uverbsd --separate {separate} --sysfs {folder}/tree/sysfs "
                        f"--control {folder}/control")


@pytest.mark.parametrize("separate, error", [("yes", "ENOENT"), ("no", "ESRCH")])
def test_daemon_without_proc_says_so_too(tmp_path, separate, error):
    r = daemon("mount -t tmpfs none /proc", tmp_path, separate)
    assert r.returncode == 1 and f"{error}: this process is not in /proc: mount proc on /proc" in r.stderr, r


def test_daemon_in_a_read_only_folder_names_it_and_the_option(tmp_path):
    tree = tmp_path / "tree"
    r = daemon(f"mount --bind {tree} {tree} && mount -o remount,bind,ro {tree}", tmp_path)
    assert r.returncode == 1 and f"cannot make {tree}/sysfs: EROFS: choose another directory with --sysfs" in r.stderr, r


# ---- limits of open files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1023, 512, 256, 64])
def test_program_that_lowers_its_limit_of_open_files_has_the_device(run, limit, port):  # noqa: F811
    r = run("sh", "-c", f"ulimit -n {limit}; ibv_devinfo && exec \"$@\"", "sh", *pingpong("-n 20 -p", port), cwd=run.folder)
    assert r.returncode == 0 and "hca_id" in r.stdout and r.stdout.count("20 iters") == 2, r


@pytest.mark.parametrize("limit", [256, 64])
def test_run_under_a_low_limit_of_open_files_has_the_device(run, limit):
    r = subprocess.run(["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", *run.argv(["ibv_devinfo"])],
                       capture_output=True, text=True, env=run.env, timeout=STUCK)
    assert r.returncode == 0 and "hca_id" in r.stdout, r
