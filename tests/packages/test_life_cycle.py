# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The packages in clean roots: built twice alike, without an error or a warning of lintian, installed, used, upgraded, removed, purged."""
import re
import subprocess

import pytest

from conftest import ROOT, VERSION

# Files, with their type and mode, of the folders that packages write to. Indexes and caches that dpkg and apt own are left out, and what
# Python makes of modules is not: the package must remove it.
LIST = """
list() {
    find /etc /var /run /usr /opt /srv /home -xdev \\( -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache/apt -o \\
        -path /var/log -o -path /var/cache/debconf -o -path /var/cache/ldconfig \\) -prune -o -printf '%y %m %p\\n' | sort
    sort /etc/passwd /etc/group
}
AS="setpriv --reuid 65534 --regid 65534 --clear-groups"
"""
NAMES = ["python3-uverbs", "uverbsctl", "uverbsctl-static", "uverbsd", "uverbsd-dev", "uverbsd-doc"]


def test_all_packages_are_made(packages):
    names = sorted(p.name.split("_")[0] for p in packages.folder.glob("*.deb"))
    assert [n for n in names if not n.endswith("-dbgsym")] == NAMES


def test_both_programs_provide_the_interface_of_plug_ins(packages):
    number = re.search(r"^#define UVD_API_VERSION (\d+)", (ROOT / "include/uverbsd/api.h").read_text(), re.M)[1]
    for name in ("uverbsd", "uverbsctl"):
        deb, = packages.folder.glob(f"{name}_*.deb")
        told = subprocess.run(["dpkg-deb", "-f", deb, "Provides", "Version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        assert told.splitlines() == [f"Provides: uverbsd-plugin-api-{number}", f"Version: {VERSION}"]


def test_purge_leaves_nothing(packages):
    """What libraries and Python leave is theirs: they are there before, too."""
    out = packages.inside(LIST + """
        apt-get -qq update
        apt-get -qq -y --no-install-recommends install $(dpkg-deb -f $DEBS/uverbsd_*.deb Depends | tr , '\\n' |
            sed 's/[|(].*//; /uverbsctl/d') $(dpkg-deb -f $DEBS/uverbsctl_*.deb Depends | tr , '\\n' | sed 's/[|(].*//') \\
            ibverbs-providers ibverbs-utils libibverbs-dev python3 >/dev/null 2>&1
        list >/tmp/before
        apt-get -qq -y --no-install-recommends install $PACKAGES >/tmp/install 2>&1 || { cat /tmp/install; exit 1; }
        getent passwd _uverbsd | cut -d: -f1,6,7
        uverbsd --version
        $AS uverbsctl run -- ibv_devinfo | grep -o PORT_ACTIVE
        $AS uverbsctl run -- python3 -c 'import uverbs; print(uverbs.open().PD.ALLOC_PD().handle)'
        [ ! -L /etc/systemd/system/multi-user.target.wants/uverbsd.service ] || echo enabled
        apt-get -qq -y purge uverbsd uverbsctl uverbsctl-static uverbsd-dev uverbsd-doc python3-uverbs >/tmp/purge 2>&1
        list >/tmp/after
        diff /tmp/before /tmp/after && echo alike
        """, "--network")
    version = VERSION.split("-", maxsplit=1)[0]
    assert out.splitlines() == ["_uverbsd:/:/usr/sbin/nologin", f"uverbsd {version}", "PORT_ACTIVE", "<PD 0>", "enabled", "alike"]


def test_a_machine_with_an_adapter_gets_a_service_that_is_not_enabled(packages):
    out = packages.inside("""
        apt-get -qq update
        mount -t tmpfs none /sys
        mkdir -p /sys/class/infiniband; ln -s ../../devices/x /sys/class/infiniband/mlx5_0
        apt-get -qq -y --no-install-recommends install $DEBS/uverbsd_*.deb $DEBS/uverbsctl_*.deb 2>&1 | grep adapter
        systemctl is-enabled uverbsd || :""", "--network")
    assert out.splitlines() == ["uverbsd: this machine has an RDMA adapter, so the service is neither enabled nor started.", "disabled"]


def test_removed_packages_keep_their_state_until_the_purge(packages):
    out = packages.inside("""
        apt-get -qq update
        apt-get -qq -y --no-install-recommends install $DEBS/uverbsd_*.deb $DEBS/uverbsctl_*.deb >/dev/null 2>&1
        apt-get -qq -y remove uverbsd >/dev/null 2>&1
        getent passwd _uverbsd >/dev/null && echo user
        [ -e /usr/sbin/uverbsd ] || echo removed
        apt-get -qq -y --no-install-recommends install $DEBS/uverbsd_*.deb >/dev/null 2>&1
        uverbsd --version >/dev/null && echo back
        apt-get -qq -y --reinstall install $DEBS/uverbsd_*.deb >/dev/null 2>&1 && echo again
        """, "--network")
    assert out.splitlines() == ["user", "removed", "back", "again"]


def test_the_tests_of_the_packages_pass(packages):
    """autopkgtest, as an ordinary user; the test of the service needs a machine, and is left out."""
    out = packages.inside("""
        useradd -m tester
        mkdir /tmp/source
        tar -C /tmp/source --strip-components=1 -xf $DEBS/*.orig.tar.xz
        tar -C /tmp/source -xf $DEBS/*.debian.tar.xz
        chown -R tester /tmp/source
        apt-get -qq update
        autopkgtest --user tester $PACKAGES /tmp/source -- null >/tmp/log 2>&1 || status=$?
        sed -n '/@@@@ summary/,$p' /tmp/log
        [ "${status-0}" = 2 ] || { tail -n 100 /tmp/log; exit 1; }
        """, "--network", "--with", "autopkgtest xz-utils")
    results = dict(re.findall(r"^(\S+) +(PASS|FAIL|SKIP)", out, re.M))
    assert results == {"programs": "PASS", "plug-in": "PASS", "fuzz": "PASS", "static": "PASS", "service": "SKIP"}


@pytest.mark.parametrize("profile", ["nocheck"])
def test_the_build_needs_no_tests(packages, profile, tmp_path):
    subprocess.run([ROOT / "scripts/deb", "--suite", packages.suite, f"--{profile}", tmp_path], check=True, stdout=subprocess.DEVNULL)
    log = (tmp_path / "log").read_text()
    assert "fuzz --in-process" not in log and (tmp_path / f"uverbsd_{VERSION}_amd64.deb").exists()
