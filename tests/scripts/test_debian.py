# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""debian/ repeats facts that have a home elsewhere. tests/packages builds the packages."""
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", ROOT / "build")).resolve()
DEBIAN = ROOT / "debian"
VERSION = re.search(r"^  version: '([^']+)'", (ROOT / "meson.build").read_text(), re.M)[1]
# What debian/control needs besides, or else: debhelper and its helpers, and Debian's way to find systemd's folders.
TOOLS = {"debhelper-compat", "dh-sequence-installsysusers", "dh-sequence-python3", "python3", "systemd-dev"}
# What scripts/packages has besides: what every build of a package has, what programs need when they run, other names.
BESIDES = {"gcc", "libc6-dev", "ninja-build", "pkg-config", "ibverbs-providers", "ibverbs-utils", "kmod"}


def fields(text):
    """The fields of each paragraph of debian/control."""
    paragraphs = (re.findall(r"^([A-Z][\w-]*):((?:.*\n)(?: .*\n)*)", p + "\n", re.M) for p in text.strip().split("\n\n"))
    return [{name: value.strip() for name, value in p} for p in paragraphs]


def names(value):
    """The first choice of each dependency, without its version."""
    return {re.match(r"[\w.+-]+", part.strip())[0] for part in value.split(",") if part.strip()}


def test_a_build_needs_the_packages_of_scripts_demo():
    section = re.search(r"^\[demo\]\n((?:[a-z].*\n)+)", (ROOT / "scripts/packages").read_text(), re.M)[1].split()
    needs = names(fields((DEBIAN / "control").read_text())[0]["Build-Depends"])
    assert BESIDES <= set(section) and TOOLS <= needs
    assert needs - TOOLS - {"pkgconf"} == set(section) - BESIDES


def test_the_newest_entry_has_the_version_of_the_project():
    name, version = re.match(r"(\S+) \((.*)-[^-]*\)", (DEBIAN / "changelog").read_text()).groups()
    assert (name, version) == ("uverbsd", VERSION)


def test_the_architectures_are_those_of_the_program():
    cpus = re.search(r"cpu_family not in \[(.*)\]", (ROOT / "src/cpu/meson.build").read_text())[1]
    built = {{"x86_64": "amd64", "aarch64": "arm64"}[cpu] for cpu in re.findall(r"\w+", cpus)}
    for package in fields((DEBIAN / "control").read_text())[1:]:
        assert package["Architecture"] == "all" or set(package["Architecture"].split()) == built


def test_every_override_has_a_reason():
    for path in DEBIAN.rglob("*lintian-overrides"):
        lines = path.read_text().splitlines()
        for i, line in enumerate(lines):
            assert line.startswith("#") or (i and lines[i - 1].startswith("#")), f"{path}: {line}: the line before has no reason"


@pytest.mark.parametrize("script", sorted(p.name for p in DEBIAN.glob("uverbsd.p*")))
def test_scripts_of_the_package_are_posix_shell(script):
    done = subprocess.run(["sh", "-n", DEBIAN / script], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0 and "#DEBHELPER#" in (DEBIAN / script).read_text(), done.stderr


def test_each_test_of_the_packages_is_in_their_table():
    table = re.findall(r"^Tests: (.*)$", (DEBIAN / "tests/control").read_text(), re.M)
    files = {p.name for p in (DEBIAN / "tests").iterdir()} - {"control"}
    assert set(table) == files and all((DEBIAN / "tests" / f).stat().st_mode & 0o111 for f in files)


def test_a_source_archive_has_every_file_of_the_commit():
    subprocess.run(["meson", "dist", "-C", BUILD, "--no-tests", "--allow-dirty", "--formats", "gztar"], check=True,
                   stdout=subprocess.DEVNULL)
    archive = BUILD / f"meson-dist/uverbsd-{VERSION}.tar.gz"
    listed = subprocess.run(["git", "ls-tree", "-r", "--name-only", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    with tarfile.open(archive) as tar:
        assert {m.name for m in tar if not m.isdir()} == {f"uverbsd-{VERSION}/{name}" for name in listed.split()}
    shutil.rmtree(archive.parent)
