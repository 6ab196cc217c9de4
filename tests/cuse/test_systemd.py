# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
contrib/systemd under a real systemd: the distribution's, as the first process of its own pid namespace. The test's client programs
run in that namespace, too.
"""
import pathlib
import shutil
import subprocess

import pytest

from conftest import BUILD, NAMES, STUCK

CONTRIB = pathlib.Path(__file__).resolve().parents[2] / "contrib" / "systemd"
UNITS = pathlib.Path("/etc/systemd/system")

CHECK_SERVICE = """[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/bash {script}
StandardOutput=file:{out}
StandardError=inherit
ExecStopPost=/bin/systemctl --force exit
"""

# /run is this mount namespace's own, but for the folder where the kernel's modprobe looks. systemd needs a cgroup hierarchy.
BOOT = """mount --bind /run/modprobe.d /mnt
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/modprobe.d && mount --move /mnt /run/modprobe.d
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
exec env container=lxc /lib/systemd/systemd --system --unit=check.service --log-target=null --show-status=no
"""

HELPERS = """
export SYSFS_PATH=/run/uverbsd/sysfs
systemctl mask --runtime modprobe@cuse.service systemd-tmpfiles-setup.service >/dev/null 2>&1
show() { echo "$1=$(systemctl show -p "$1" --value uverbsd)"; }
client() { setpriv --reuid 65534 --regid 65533 --clear-groups $CLIENT "$@" >/dev/null; echo "$1: $?"; }
engine() { pgrep -u _uverbsd -x uverbsd; }
wait_for() { for ((i = 0; i < 600; i++)); do eval "$1" && return; sleep 0.1; done; echo "not: $1"; }
"""


@pytest.fixture
def under_systemd(tmp_path):
    """Runs lines of shell as a service. Returns the lines that they print."""
    placed = [UNITS / "uverbsd.service", UNITS / "uverbsd.service.d", UNITS / "check.service"]

    def run(script, filtered=False):
        text = (CONTRIB / "uverbsd.service").read_text()
        placed[0].write_text(text.replace("/usr/sbin/uverbsd", str(BUILD / "src" / "uverbsd"))
                             .replace("[Service]", "[Service]\nStandardError=append:/run/said.log"))
        if filtered:
            shutil.copytree(CONTRIB / "uverbsd.service.d", placed[1])
        path, out = tmp_path / "check.sh", tmp_path / "out"
        path.write_text(f"BUILD={BUILD} CLIENT={BUILD}/tests/cuse/cuse-client CTL={BUILD}/tools/uverbsctl\n{HELPERS}\n{script}\necho end\n")
        placed[2].write_text(CHECK_SERVICE.format(script=path, out=out))
        try:
            subprocess.run(["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "sh", "-c", BOOT],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=STUCK)
        except subprocess.TimeoutExpired:
            raise AssertionError(out.read_text() if out.exists() else "it did not boot") from None
        said = out.read_text().splitlines()
        assert said[-1] == "end", said
        return said[:-1]
    yield run
    for path in placed:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def test_service_is_one_and_starts_again(under_systemd):
    said = under_systemd("""
        systemctl start uverbsd; systemctl is-active uverbsd   # when it is ready, and not before
        client channels 2; client seccomp 2
        main=$(systemctl show -p MainPID --value uverbsd) old=$(engine)
        kill -SEGV $old; wait_for '[[ $(engine) && $(engine) != $old ]]'
        $CTL status >/dev/null; client channels 2; show NRestarts
        old=$(engine); $CTL daemon restart; wait_for '[[ $(engine) && $(engine) != $old ]]'
        $CTL status >/dev/null; client channels 2; show NRestarts
        [[ $(systemctl show -p MainPID --value uverbsd) == $main ]] && echo same
        kill -KILL $main; wait_for '[[ $(systemctl show -p NRestarts --value uverbsd) == 1 ]]'
        wait_for 'systemctl is-active --quiet uverbsd'; client channels 2
        systemctl stop uverbsd; show Result; ls -d /dev/infiniband/* /run/uverbsd/* 2>/dev/null""")
    assert said == ["active", "channels: 0", "seccomp: 0", "channels: 0", "NRestarts=0",
                    "the restart begins; programs must open the device again", "channels: 0", "NRestarts=0", "same",
                    "channels: 0", "Result=success"]


def test_devices_are_found_without_a_variable_and_adapters_come_first(under_systemd):
    """On a machine without an adapter the daemon keeps the kernel's RDMA stack from being loaded, until something else loads it."""
    said = under_systemd("""
        unset SYSFS_PATH
        test_alias=$(</run/modprobe.d/uverbsd-test.conf)
        rm /run/modprobe.d/uverbsd-test.conf
        devices() { ibv_devices | awk 'NR > 2 { print $1 }'; }
        stack() { [[ -d /sys/module/ib_core ]] && echo stack || echo none; }
        alias() { [[ -e /run/modprobe.d/uverbsd.conf ]] && echo alias || echo none; }
        told() { grep -c 'ib_core is loaded' /run/said.log; }
        # udev loads others, too, which use it.
        unload() {
            for ((i = 0; i < 20; i++)); do
                rmmod $(awk '/^(ib_|rdma_|iw_|rpcrdma)/ { print $1 }' /proc/modules) 2>/dev/null; [[ $(stack) == none ]] && break
            done; stack; }
        echo first; ibv_devices >/dev/null; stack; systemctl start uverbsd; alias; told; systemctl stop uverbsd; alias; unload
        echo without; systemctl start uverbsd; devices; stack; alias; told; ibstat -l
        echo appears; ip link add dummy9 type dummy; ip link set dummy9 up
        modprobe rdma_rxe && rdma link add rxe9 type rxe netdev dummy9
        wait_for '[[ $(alias) == none ]]'; told; devices; wait_for '[[ -e /sys/class/infiniband/rxe9 ]]'
        ls /sys/class/infiniband; systemctl stop uverbsd
        echo with; systemctl start uverbsd; systemctl is-active uverbsd; alias; told; grep -o 'because there is an adapter .*' /run/said.log
        kill -KILL $(systemctl show -p MainPID --value uverbsd); wait_for '[[ $(systemctl show -p NRestarts --value uverbsd) == 1 ]]'
        wait_for 'systemctl is-active --quiet uverbsd'; alias; systemctl stop uverbsd; rdma link del rxe9; ip link del dummy9; unload
        echo killed; systemctl start uverbsd; alias; kill -KILL $(systemctl show -p MainPID --value uverbsd)
        systemctl stop uverbsd; alias
        echo "$test_alias" > /run/modprobe.d/uverbsd-test.conf""")
    device = NAMES[0]
    assert said == ["first", "stack", "alias", "1", "none", "none",
                    "without", device, "none", "alias", "1", device,
                    "appears", "2", "rxe9", *sorted([device, "rxe9"]),
                    "with", "active", "none", "3", "because there is an adapter (rxe9)", "none", "none",
                    "killed", "alias", "none"]


def test_daemon_that_serves_nobody_is_started_again(under_systemd):
    said = under_systemd("""
        mkdir /run/systemd/system/uverbsd.service.d
        printf '[Service]\nWatchdogSec=5\n' > /run/systemd/system/uverbsd.service.d/watchdog.conf
        systemctl daemon-reload; systemctl start uverbsd; sleep 12; show NRestarts   # longer than the watchdog's time
        kill -STOP $(engine); wait_for '[[ $(systemctl show -p NRestarts --value uverbsd) == 1 ]]'
        wait_for 'systemctl is-active --quiet uverbsd'; client channels 2; show NRestarts; systemctl stop uverbsd; show Result""")
    assert said == ["NRestarts=0", "channels: 0", "NRestarts=1", "Result=success"]


def test_with_the_filter_only_clients_with_one_fall_back(under_systemd):
    said = under_systemd("""
        systemctl start uverbsd; systemctl is-active uverbsd
        grep Seccomp: /proc/$(systemctl show -p MainPID --value uverbsd)/status | tr -d '\\t'
        client channels 2; client seccomp 2
        old=$(engine); $CTL daemon restart; wait_for '[[ $(engine) && $(engine) != $old ]]'
        $CTL status >/dev/null; client channels 2
        systemctl stop uverbsd; show Result""", filtered=True)
    assert said == ["active", "Seccomp:2", "channels: 0", "seccomp: 1", "the restart begins; programs must open the device again",
                    "channels: 0", "Result=success"]
