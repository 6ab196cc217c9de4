# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
Upgrades of a running service, under a real systemd with real CUSE: a Debian 12 in a virtual machine (tests/vm/run-in-vm). The old
packages are the new ones with a lower version, and with programs whose broker has the same version, or another one.
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import ROOT, said

# What the packages need, so that the machine needs no network.
WITH = ("systemd udev kmod procps python3 ibverbs-utils ibverbs-providers libcap-ng0 libdw1 libelf1 libev4 libfuse3-3 libibverbs1 libinih1 "
        "libjansson4 libseccomp2")

CLIENT = """
import time, uverbs
dev = uverbs.open("/dev/infiniband/uverbs0")
print("client: before", bool(dev.PD.ALLOC_PD()), flush=True)
while not __import__("os").path.exists("/run/upgraded"):
    time.sleep(0.1)
try:
    dev.PD.ALLOC_PD()
except OSError as e:
    print("client: on its open file", type(e).__name__)
print("client: again", bool(uverbs.open("/dev/infiniband/uverbs0").PD.ALLOC_PD()), flush=True)
"""

SERVICE = """[Unit]
DefaultDependencies=no
After=systemd-udevd.service
[Service]
Type=oneshot
ExecStart=/bin/bash {script}
StandardOutput=file:{out}
StandardError=inherit
ExecStopPost=/bin/systemctl --force exit
"""

SCRIPT = """
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
systemctl mask --runtime modprobe@cuse.service >/dev/null 2>&1
engine() {{ pgrep -u _uverbsd -x uverbsd; }}
main() {{ systemctl show -p MainPID --value uverbsd; }}
ok() {{ "${{@:2}}" >/run/said 2>&1 && echo "$1: ok" || {{ echo "$1: failed"; cat /run/said; }}; }}
ok install dpkg -i {old}/*.deb
systemctl is-active uverbsd; systemctl is-enabled uverbsd
cp /usr/bin/uverbsctl /run/old-uverbsctl
dpkg-deb --fsys-tarfile {new}/uverbsctl_*.deb | tar -xO ./usr/bin/uverbsctl >/run/new-uverbsctl
chmod +x /run/new-uverbsctl
ok "new uverbsctl, old daemon" /run/new-uverbsctl status
ok "new uverbsctl, old daemon, call" /run/new-uverbsctl call PD ALLOC
python3 {client} >/run/client & client=$!
until grep -q before /run/client; do sleep 0.1; done
old_main=$(main) old_engine=$(engine)
ok upgrade dpkg -i {new}/*.deb
grep -o 'engine process is the new program' /run/said
[[ $(main) == $old_main ]] && echo "the broker runs on" || echo "the service was restarted"
[[ $(engine) != $old_engine && $(readlink /proc/$(engine)/exe) == /usr/sbin/uverbsd ]] && echo "the engine process is new"
systemctl is-active uverbsd >/run/said || {{ cat /run/said; systemctl status --no-pager uverbsd; }}
touch /run/upgraded; wait $client; cat /run/client
ok "old uverbsctl, new daemon" /run/old-uverbsctl status
ok "old uverbsctl, new daemon, call" /run/old-uverbsctl call PD ALLOC
ok purge dpkg --purge uverbsd
systemctl is-active uverbsd
ls -d /dev/infiniband/* /run/uverbsd /etc/systemd/system/*/uverbsd* /run/modprobe.d/uverbsd* 2>/dev/null
getent passwd _uverbsd
echo end
"""


def repack(deb, folder, programs):
    """A package of version 0.0.1-1 with other programs."""
    tree = folder / "tree"
    said("dpkg-deb", "-R", deb, tree)
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*$", "Version: 0.0.1-1", control.read_text()))
    for name, file in programs.items():
        place = next(tree.glob(f"usr/*bin/{name}"), None)
        if place:
            shutil.copy(file, place)
    said("dpkg-deb", "--root-owner-group", "-b", tree, folder / f"{deb.name.split('_')[0]}_old.deb")
    shutil.rmtree(tree)


def with_another_broker(folder):
    """The programs of this commit with another UVD_WIRE_VERSION, or what UVERBSD_OLD_BUILD has: a build of an earlier commit."""
    old = os.environ.get("UVERBSD_OLD_BUILD")
    if not old:
        source, old = folder / "source", folder / "build"
        source.mkdir()
        subprocess.run(["sh", "-c", f"git archive HEAD | tar -C {source} -x"], cwd=ROOT, check=True)
        wire = source / "src/broker/wire.h"
        wire.write_text(re.sub(r"UVD_WIRE_VERSION = \d+", "UVD_WIRE_VERSION = 1", wire.read_text()))
        said("meson", "setup", "--prefix=/usr", "-Dhasty=true", old, source)
        said("ninja", "-C", old, "src/uverbsd", "tools/uverbsctl")
    return {"uverbsd": pathlib.Path(old) / "src/uverbsd", "uverbsctl": pathlib.Path(old) / "tools/uverbsctl"}


@pytest.mark.parametrize("packages", ["bookworm"], indirect=True)
@pytest.mark.parametrize("broker", ["same", "other"])
def test_upgrade_of_a_running_service(packages, broker, tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    programs = with_another_broker(tmp_path) if broker == "other" else {}
    for name in ("uverbsd", "uverbsctl", "python3-uverbs"):
        deb, = packages.folder.glob(f"{name}_*.deb")
        shutil.copy(deb, new)
        repack(deb, old, programs)
    (tmp_path / "client.py").write_text(CLIENT)
    (tmp_path / "script").write_text(SCRIPT.format(old=old, new=new, client=tmp_path / "client.py"))
    (tmp_path / "out").touch()
    (tmp_path / "check.service").write_text(SERVICE.format(script=tmp_path / "script", out=tmp_path / "out"))
    said(ROOT / "scripts/root", "--with", WITH, "bookworm", "true")
    boot = f"""mount -t tmpfs -o mode=755 tmpfs /run
        cp {tmp_path}/check.service /etc/systemd/system
        exec env container=lxc /lib/systemd/systemd --system --unit=check.service --log-target=null --show-status=no"""
    said(ROOT / "tests/vm/run-in-vm", "--share", tmp_path, "--timeout", "500", "--", ROOT / "scripts/root", "--with", WITH, "--bind",
         tmp_path, "--devices", "bookworm", "sh", "-c", boot, status=None)
    restarted = ["engine process is the new program", "the broker runs on"] if broker == "same" else ["the service was restarted"]
    assert (tmp_path / "out").read_text().splitlines() == [
        "install: ok", "active", "enabled", "new uverbsctl, old daemon: ok", "new uverbsctl, old daemon, call: ok", "upgrade: ok",
        *restarted, "the engine process is new", "client: before True", "client: on its open file OSError", "client: again True",
        "old uverbsctl, new daemon: ok", "old uverbsctl, new daemon, call: ok", "purge: ok", "inactive", "end"]
