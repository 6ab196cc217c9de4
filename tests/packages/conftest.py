# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Packages of the last commit, and clean roots of the suites of Debian that they are for."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITES = os.environ.get("UVERBSD_SUITE", "bookworm trixie sid").split()
VERSION = re.search(r"\((.*)\)", (ROOT / "debian/changelog").read_text())[1]
STUCK = 1800  # seconds: a limit for what is stuck, and not for what is slow


def said(*argv, status=0, **kwargs):
    done = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=STUCK, check=False,
                          stdin=subprocess.DEVNULL, **kwargs)
    assert status in (None, done.returncode), done.stdout
    return done.stdout


def why_no_roots():
    if os.geteuid():
        return "only root can make a clean root"
    if not shutil.which("debootstrap"):
        return "debootstrap is not installed"
    return None


class Packages:
    """The packages of one suite, in a folder."""

    def __init__(self, suite, folder):
        self.suite, self.folder = suite, folder

    def inside(self, script, *options, status=0):
        """Runs lines of shell in a clean root of the suite: $DEBS is the folder, $PACKAGES its packages. What they change is dropped."""
        begin = f"DEBS={self.folder} PACKAGES=$(ls {self.folder}/*.deb | grep -v dbgsym)"
        return said(ROOT / "scripts/root", *options, "--bind", self.folder, self.suite, "sh", "-euc", f"{begin}\n{script}", status=status)


@pytest.fixture(scope="session", params=SUITES)
def packages(request):
    why = why_no_roots()
    if why:
        pytest.skip(why)
    made = os.environ.get("UVERBSD_DEBS")
    if made and len(SUITES) == 1:
        yield Packages(request.param, pathlib.Path(made))
        return
    with tempfile.TemporaryDirectory(prefix="debs-", dir="/var/tmp") as folder:
        said(ROOT / "scripts/deb", "--suite", request.param, "--twice", "--lintian", folder)
        yield Packages(request.param, pathlib.Path(folder))
