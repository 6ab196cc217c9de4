# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What contrib/systemd/uverbsd.service restricts: docs/service.md says why there is no more."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT = {"CapabilityBoundingSet", "KeyringMode", "NoNewPrivileges", "UMask"}
LEFT_OUT = {"DevicePolicy", "DynamicUser", "IPAddressDeny", "LockPersonality", "MemoryDenyWriteExecute", "PrivateDevices", "PrivateMounts",
            "PrivateNetwork", "PrivateTmp", "PrivateUsers", "ProcSubset", "ProtectClock", "ProtectControlGroups", "ProtectHome",
            "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules", "ProtectKernelTunables", "ProtectProc", "ProtectSystem",
            "RemoveIPC", "RestrictAddressFamilies", "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID", "SupplementaryGroups",
            "SystemCallArchitectures", "SystemCallFilter", "User"}


def service():
    lines = (ROOT / "contrib/systemd/uverbsd.service").read_text(encoding="ascii").split("[Service]")[1].split("[Install]")[0].splitlines()
    return [line.split("=", 1) for line in lines if line and not line.startswith("#")]


def test_restrictions_of_the_unit_are_those_of_its_page():
    runs = {"Type", "NotifyAccess", "ExecStart", "ExecReload", "ExecStopPost", "WatchdogSec", "KillMode", "TimeoutStopSec", "Restart",
            "RestartSec", "LimitNOFILE", "LimitMEMLOCK", "LimitNICE"}
    assert {key for key, _ in service()} == KEPT | runs
    table = (ROOT / "docs/service.md").read_text(encoding="utf-8").split("## What the unit restricts")[1]
    assert KEPT == set(re.findall(r"(?m)^\| `(\w+)=[^`]*` \| [^`]", table))
    assert set(re.findall(r"`(\w+)=", table.split("What is left out")[1])) == LEFT_OUT


def test_capabilities_are_those_of_the_broker():
    caps = {c for key, value in service() if key == "CapabilityBoundingSet" for c in value.split()}
    code = (ROOT / "src/broker/sandbox.c").read_text(encoding="ascii")
    assert caps == set(re.findall(r"(?m)^\t\{ (CAP_\w+), [A-Z |]*BROKER", code))
