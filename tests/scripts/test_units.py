# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""contrib/systemd: systemd understands every line, and the unit allows what the broker needs and no more."""
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNIT = ROOT / "contrib" / "systemd" / "uverbsd.service"


def verify(folder, change=lambda text: text):
    """systemd's messages about the unit and its drop-ins. The unit's programs must exist, so /bin/true replaces them."""
    shutil.copytree(UNIT.parent, folder, dirs_exist_ok=True)
    (folder / UNIT.name).write_text(change(re.sub("/usr/s?bin/uverbs(d|ctl)", "/bin/true", UNIT.read_text())))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", folder / UNIT.name], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120)
    return "\n".join(line for line in done.stdout.splitlines() if "uverbsd" in line)


def test_systemd_understands_the_unit(tmp_path):
    assert verify(tmp_path) == ""


def test_systemd_would_say_so(tmp_path):
    assert "Nonsense" in verify(tmp_path, lambda text: text.replace("[Service]\n", "[Service]\nNonsense=1\n"))


def test_capabilities_are_those_of_the_broker():
    table = (ROOT / "src" / "broker" / "sandbox.c").read_text()
    needed = set(re.findall(r"\{ (CAP_\w+), BROKER", table))
    allowed = set(re.findall(r"CAP_\w+", " ".join(re.findall(r"^CapabilityBoundingSet=(.*)", UNIT.read_text(), re.M))))
    assert len(needed) > 5 and needed == allowed
