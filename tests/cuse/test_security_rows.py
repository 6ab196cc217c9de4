# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
docs/service.md's table of what the unit leaves out: each directive of it, alone in a drop-in of the unit, fails with the check that the
table names, and with none before. The unit as it is passes all. CHECKS has them, in their order.
"""
import pathlib
import re

import pytest

from conftest import NAMES
from test_systemd import under_systemd  # noqa: F401 (a fixture)  pylint: disable=unused-import

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "service.md"
AT_ONCE = 8  # rows in one boot of systemd

CHECKS = f"""
unset SYSFS_PATH
dir=/run/systemd/system/uverbsd.service.d
mkdir -p $dir /run/toys
cp $BUILD/tests/run/toy.so /run/toys/
quiet() {{ timeout 60 "$@" >/dev/null 2>&1; }}
user() {{ quiet setpriv --reuid 65534 --regid 65533 --clear-groups "$@"; }}

check_start() {{ quiet systemctl start uverbsd && systemctl is-active --quiet uverbsd; }}
check_alias() {{ [[ -e /run/modprobe.d/uverbsd.conf ]]; }}
check_devices() {{ ibv_devices 2>/dev/null | grep -q '^ *{NAMES[0]} '; }}
check_status() {{ quiet $CTL status; }}
check_channels() {{ user $CLIENT channels 2; }}
check_seccomp() {{ user $CLIENT seccomp 2; }}
check_plugin() {{ quiet $CTL plugin load /run/toys/toy.so answer=12; }}

row() {{
    local check found=ok
    printf '%s\\n' '[Unit]' StartLimitIntervalSec=0 '[Service]' Restart=no TimeoutStartSec=30 TimeoutStopSec=20 ExecStart= \\
        "ExecStart=$BUILD/src/uverbsd --sysfs overlay --netlink-alias /run/modprobe.d/uverbsd.conf --plugin-dir /run/toys" >$dir/row.conf
    printf '%s\\n' "$@" >>$dir/row.conf
    systemctl daemon-reload
    for check in start alias devices status channels seccomp plugin; do
        check_$check || {{ found=$check; break; }}
    done
    echo "$1: $found"
    {{ quiet systemctl stop uverbsd; systemctl kill -s KILL uverbsd; systemctl reset-failed uverbsd; umount /sys/class; }} 2>/dev/null
}}
"""


def rows():
    """Of the page: pairs of a line of the unit, and the check that fails."""
    table = PAGE.read_text(encoding="utf-8").split("## What the unit restricts")[1]
    return [(line, check) for lines, check in re.findall(r"(?m)^\| (`.*`) \| `(\w+)` \|", table) for line in re.findall("`(.*?)`", lines)]


@pytest.mark.parametrize("part", range(-(-len(rows()) // AT_ONCE)))
def test_each_directive_that_is_left_out_breaks_what_the_page_says(under_systemd, part):  # noqa: F811
    some = rows()[part * AT_ONCE:(part + 1) * AT_ONCE]
    said = under_systemd(CHECKS + "".join(f"row '{line}'\n" for line, _ in some))
    assert said == [f"{line}: {check}" for line, check in some]


def test_the_unit_as_it_is_passes_the_checks(under_systemd):  # noqa: F811
    assert under_systemd(CHECKS + "row ''\n") == [": ok"]
