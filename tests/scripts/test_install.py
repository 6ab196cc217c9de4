# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What `meson install` puts where, and that versions have one home."""
import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", ROOT / "build")).resolve()
VERSION = re.search(r"^  version: '([^']+)'", (ROOT / "meson.build").read_text(), re.M)[1]
PREFIX = next(o["value"] for o in json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text()) if o["name"] == "prefix")


def said(*argv, **kwargs):
    done = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
                          **kwargs)
    assert done.returncode == 0, done.stdout
    return done.stdout


def tracked(*patterns):
    return set(said("git", "ls-files", "-co", "--exclude-standard", *patterns, cwd=ROOT).split())


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that stands for the prefix."""
    root = tmp_path_factory.mktemp("root")
    said("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root)
    assert [p.name for p in root.iterdir()] == [PREFIX.split("/")[1]], "a file is installed outside of the prefix"
    return root / PREFIX.lstrip("/")


@pytest.fixture(scope="module")
def files(installed):
    return {str(p.relative_to(installed)) for p in installed.rglob("*") if not p.is_dir()}


def test_everything_is_installed_and_nothing_else(installed, files):
    libdir, = {p.parent.parent for p in installed.rglob("uverbsd.pc")}
    lib = str(libdir.relative_to(installed))
    docs, man = "share/doc/uverbsd/", {f for f in files if f.startswith("share/man/")}
    examples = {p.removeprefix("plugins/") for p in tracked("plugins")} - {"meson.build"}
    headers = {p.removeprefix("include/") for p in tracked("include/uverbsd")} - {"uverbsd/uapi_later.h"}
    pages = {p for p in tracked("docs") if not p.startswith("docs/man/")} - {"docs/meson.build"}
    assert len(examples) > 30 and len(headers) > 20 and len(pages) > 40
    expected = {
        "sbin/uverbsd", "bin/uverbsctl", f"{lib}/pkgconfig/uverbsd.pc", "lib/systemd/system/uverbsd.service", "lib/sysusers.d/uverbsd.conf",
        "lib/tmpfiles.d/uverbsd.conf", "lib/udev/rules.d/60-uverbsd.rules", "share/bash-completion/completions/uverbsctl",
        *(f"share/uverbsd/python/{n}" for n in ("uverbs.py", "uverbs_call.py", "uverbs_schema.py", "uverbs.json")),
        *(docs + n for n in ("README.md", "CHANGELOG.md", "SECURITY.md")), *(docs + p for p in pages),
        *(f"{docs}examples/{n}" for n in examples), *(f"include/{h}" for h in headers),
        docs + "examples/uverbsd.service.d/filter.conf", docs + "examples/modprobe.d/uverbsd.conf",
    }
    assert sorted(expected - files) == [] and sorted(files - expected - man) == []


def test_only_programs_can_be_executed(installed, files):
    programs = {"sbin/uverbsd", "bin/uverbsctl"}
    wrong = {f for f in files if bool((installed / f).stat().st_mode & 0o111) != (f in programs)}
    assert not wrong


def test_no_text_names_a_folder_of_this_build(installed, files):
    texts = {f: (installed / f).read_bytes() for f in files}
    texts = {f: text for f, text in texts.items() if text[:4] != b"\x7fELF"}
    assert len(texts) > 100
    assert [f for f, text in texts.items() if str(ROOT).encode() in text or str(BUILD).encode() in text] == []


def test_the_unit_starts_the_installed_program(installed):
    unit = (installed / "lib/systemd/system/uverbsd.service").read_text()
    started, = re.findall(r"^ExecStart=(\S+)", unit, re.M)
    assert started == f"{PREFIX}/sbin/uverbsd" and (installed / "sbin/uverbsd").is_file()


def test_below_usr_the_folders_are_those_of_the_distribution(tmp_path):
    said("meson", "setup", "--prefix=/usr", "-Dpythondir=/usr/lib/python3/dist-packages", tmp_path / "build", cwd=ROOT)
    to = set(json.loads((tmp_path / "build/meson-info/intro-installed.json").read_text()).values())

    def folder(package, variable, usual):
        done = subprocess.run(["pkg-config", f"--variable={variable}", package], stdout=subprocess.PIPE, text=True, check=False)
        return done.stdout.strip() or usual
    assert {
        folder("systemd", "systemdsystemunitdir", "/usr/lib/systemd/system") + "/uverbsd.service",
        folder("systemd", "sysusersdir", "/usr/lib/sysusers.d") + "/uverbsd.conf",
        folder("systemd", "tmpfilesdir", "/usr/lib/tmpfiles.d") + "/uverbsd.conf",
        folder("udev", "udevdir", "/usr/lib/udev") + "/rules.d/60-uverbsd.rules",
        "/usr/lib/python3/dist-packages/uverbs.py", "/usr/sbin/uverbsd", "/usr/bin/uverbsctl",
    } <= to
    pc = next((tmp_path / "build/meson-private").glob("uverbsd.pc")).read_text()
    assert re.search(r"^pythondir=(.*)$", pc, re.M)[1] == "/usr/lib/python3/dist-packages"
    unit = (tmp_path / "build/contrib/uverbsd.service").read_text()
    assert "\nExecStart=/usr/sbin/uverbsd" in unit


def test_programs_and_changes_have_the_version_of_the_project():
    assert said(BUILD / "tools/uverbsctl", "--version") == f"uverbsctl {VERSION}\n"
    assert said(BUILD / "src/uverbsd", "--version") == f"uverbsd {VERSION}\n"
    newest = re.search(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(), re.M)[1]
    assert newest == VERSION
