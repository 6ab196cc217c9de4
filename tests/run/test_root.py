# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs that have another root than their run: in a sandbox, a chroot, or a container. They have the device, and no way out."""
import os
import pathlib
import shutil
import pytest
from conftest import STUCK, UVERBSCTL, children, sanitizer, until
from test_mount import namespaces  # noqa: F401 (a fixture)
from test_run import pingpong, port  # noqa: F401 (a fixture)
from test_start import in_namespace

PYTHON = "/usr/bin/python3"
SYSFS = '"$SYSFS_PATH"/class'
OWN_TMP = ["--ro-bind", "/", "/", "--tmpfs", "/tmp", "--dev", "/dev"]


def bwrap(*program, options=()):
    assert shutil.which("bwrap"), "bubblewrap is not installed: scripts/packages"
    return ["bwrap", *OWN_TMP, *options, *program]


@pytest.fixture
def jail(run):
    """A folder that is the root of a program, on the same mount as the root of its run. Returns the command up to the program."""
    folder = pathlib.Path(run.folder, "jail")
    folder.mkdir(mode=0o755)
    shutil.copy("/bin/busybox", folder)
    own = [] if run.privileged else ["unshare", "--user", "--map-root-user"]
    return [*own, "chroot", folder.as_posix(), "/busybox"]


# ThreadSanitizer has a thread of its own, and only a process with one thread can enter a user namespace, as --mount does.
MOUNT = [] if sanitizer() == "thread" else [([], ["--mount"])]


@pytest.mark.parametrize("options, of_run", [([], []), (["--unshare-all", "--proc", "/proc"], ["--persona", "rxe"]), *MOUNT])
def test_sandbox_with_a_tmp_of_its_own_has_the_device(run, options, of_run):
    r = run(*bwrap("ibv_devinfo", options=options), options=of_run)
    assert r.returncode == 0 and "PORT_ACTIVE" in r.stdout and r.stderr == "", r


def test_pingpong_in_a_sandbox_with_processes_of_its_own(run, abi, port):  # noqa: F811
    r = run(*bwrap(*pingpong("-n 200 -e -p", port), options=["--unshare-pid", "--proc", "/proc", "--chdir", "/tmp"]), options=abi)
    assert r.returncode == 0 and r.stdout.count("200 iters") == 2, r.stdout + r.stderr


@pytest.mark.parametrize("tmpdir", ["{}/", "{}/link"])
def test_folder_of_the_run_is_known_however_tmpdir_names_it(run, tmpdir):
    os.symlink(".", run.folder + "/link")
    run.env["TMPDIR"] = tmpdir.format(run.folder)
    r = run(*bwrap("ibv_devinfo"))
    assert r.returncode == 0 and "PORT_ACTIVE" in r.stdout, r
    run.client("node_by_other_paths")


def test_chroot_finds_the_devices_by_the_path_and_by_that_of_the_system(run, jail):
    r = run("sh", "-c", f'for s in {SYSFS} /sys/class; do "$@" ls -l $s/infiniband_verbs && "$@" cat $s/infiniband/hfi1_0/node_type; done',
            "-", *jail)
    assert r.returncode == 0 and r.stderr == "", r
    assert r.stdout.count("uverbs0\n") == 2 and r.stdout.count("1: CA\n") == 2, r


def test_sandbox_sees_changes_of_devices(run):
    ls = " ".join(bwrap("ls", "/sys/class/infiniband"))
    r = run("sh", "-c", f"{ls} && {UVERBSCTL} device remove uverbs1 >&2 && {ls}", options=["--devices", "2"])
    assert r.returncode == 0 and r.stdout.split() == ["hfi1_0", "hfi1_1", "hfi1_0"], r


# This program tries all that it can with the folders that it opens. It prints a line for each way out that it finds.
WALK = """
import ctypes, errno, os, sys
UP, secret, most = "../" * 40, sys.argv[1], ["dev", "sys"]
libc = ctypes.CDLL(None, use_errno=True)
if len(sys.argv) > 2:
    libc.unshare(0x10020000)  # a user and a mount namespace, if there is no right to mount yet
may_mount = any(line.startswith("CapEff:") and int(line.split()[1], 16) >> 21 & 1 for line in open("/proc/self/status"))

def attempt(what, function, *args, **kw):
    try:
        print(what, top, function(*args, **kw))
    except OSError as e:
        if e.errno not in (errno.ENOENT, errno.EROFS, errno.EPERM, errno.EACCES):
            print(what, top, e)

def clear_read_only(fd):  # mount_setattr(), with the root of the mount, and its mounts
    attr = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
    if libc.syscall(442, fd, b"", 0x1000 | 0x8000, ctypes.byref(attr), 32):
        raise OSError(ctypes.get_errno(), "mount_setattr")
    return "is writable"

count = 0
for flags in os.O_RDONLY, os.O_PATH:
    for top in "/sys/class/infiniband", "/sys/class/infiniband/hfi1_0/ports/1", "/dev/infiniband", os.environ["SYSFS_PATH"] + "/class":
        folder = os.open(top, flags | os.O_DIRECTORY)
        count += 1
        attempt("openat", os.open, UP + secret, os.O_RDONLY, dir_fd=folder)
        attempt("magic link", os.open, f"/proc/self/fd/{folder}/{UP}{secret}", os.O_RDONLY)
        above = os.open(UP, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        if sorted(os.listdir(above)) != most:
            print("above", top, os.listdir(above))
        os.fchdir(folder)
        attempt("fchdir", os.open, UP + secret, os.O_RDONLY)
        attempt("mount_setattr", clear_read_only, above)
        attempt("create", os.open, "mine", os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=folder)
        attempt("symlink", os.symlink, secret, "link", dir_fd=folder)
        os.chdir("/")
        os.close(above)
        os.close(folder)
top = "/sys/class/infiniband/hfi1_0/node_type"
node_type = os.open(top, os.O_RDONLY)
attempt("chmod", os.fchmod, node_type, 0o666)
attempt("write", os.open, f"/proc/self/fd/{node_type}", os.O_RDWR)
attempt("control", os.stat, os.environ["UVERBSD_CONTROL"])
print("looked at", count, "and may mount:", may_mount)
"""
NO_WAY = "looked at 8 and may mount: True\n"


@pytest.fixture
def walk(run):
    """A program that looks for a way to a file that no sandbox has, and the file."""
    secret = pathlib.Path(run.folder, "secret")
    secret.touch()
    return [PYTHON, "-c", WALK, secret.as_posix()[1:]]


def test_folders_of_the_device_are_no_way_out_of_a_sandbox(run, walk):
    r = run(*bwrap(*walk, "unshare"))
    assert r.returncode == 0 and r.stdout == NO_WAY, r


def test_folders_of_the_device_are_no_way_out_of_a_chroot(run, walk):
    own = ["unshare", "--map-root-user", "--mount"] if not run.privileged else ["unshare", "--mount"]
    script = (f"mkdir {run.folder}/jail && cd {run.folder}/jail && "
              "for d in usr proc etc; do mkdir $d && mount --rbind /$d $d || exit; done &&"
              'for d in bin lib lib64; do ln -s usr/$d $d; done && exec chroot . "$@"')
    r = run(*own, "sh", "-c", script, "-", *walk, "unshare")
    assert r.returncode == 0 and r.stdout == NO_WAY, r


def test_the_walk_finds_the_file_if_the_root_is_that_of_the_run(run, walk):
    """So it looks where there is something to find."""
    r = run(*walk)
    ways = "openat", "magic link", "above", "fchdir", "create", "symlink", "chmod", "write", "control"
    assert r.returncode == 0 and all(f"\n{way} /" in "\n" + r.stdout for way in ways), r


def without_user_namespaces(script, *options):
    """In a user namespace of its own the sysctl is that namespace's."""
    return in_namespace(f"echo 0 >/proc/sys/user/max_user_namespaces && exec $RUN {' '.join(options)} -- sh -c '{script}'",
                        ["--user", "--map-root-user"])


def test_without_user_namespaces_another_root_has_no_folders_and_the_log_says_why(tmp_path):
    shutil.copy("/bin/busybox", tmp_path)
    look = f"for s in {SYSFS} /sys/class; do chroot {tmp_path} /busybox ls $s/infiniband || echo none; done"
    r = without_user_namespaces(f"{look}; ibv_devices")
    assert r.returncode == 0 and r.stdout.count("none\n") == 2 and r.stdout.count("rxe0") == 1, r
    assert r.stderr.count("uverbsctl run: ") == 1 and "ENOSPC: allow user namespaces" in r.stderr, r


@pytest.mark.parametrize("options", [[], ["--mount"]])
def test_without_user_namespaces_programs_with_the_root_of_the_run_have_the_device(options):
    r = without_user_namespaces("ibv_devices && exec 3<$SYSFS_PATH && readlink /proc/self/fd/3 && echo $SYSFS_PATH", *options)
    assert r.returncode == 0 and "rxe0" in r.stdout and r.stderr == "", r
    assert len(set(r.stdout.splitlines()[-2:])) == 1, r


def test_engine_has_no_process_left_that_made_the_mount(run):
    p = run.start("sh", "-c", " ".join(bwrap("ls", "/sys/class/infiniband")) + "; read line")
    assert p.stdout.readline() == "hfi1_0\n"
    engine = run.engine(p)
    assert until(lambda: len(children(engine)) == 1), children(engine)
    p.communicate("\n", timeout=STUCK)
    assert p.returncode == 0
