# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a build folder has with and without -Dtests=true, and how `build` of scripts/lib.sh and scripts/require-tests treat an old one."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", ROOT / "build")).resolve()


def run(*argv, status=0, **kwargs):
    done = subprocess.run([str(a) for a in argv], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100,
                          check=False, **kwargs)
    assert done.returncode == status, done.stdout
    return done.stdout


def told(build, what):
    """What meson tells of a build folder without being started."""
    return json.loads((build / f"meson-info/intro-{what}.json").read_text())


@pytest.fixture(scope="module")
def default(tmp_path_factory):
    """A folder that is configured, not built, without options."""
    folder = tmp_path_factory.mktemp("default") / "build"
    run("meson", "setup", folder, cwd=ROOT)
    return folder


def test_default_build_has_no_test_programs(default):
    places = [pathlib.Path(t["defined_in"]).parent.relative_to(ROOT) for t in told(default, "targets")]
    assert pathlib.Path("src") in places and pathlib.Path("tools") in places
    assert not [p for p in places if p.parts and p.parts[0] in ("tests", "bench", "fuzz")]
    assert told(default, "tests") == []


def test_default_build_does_not_need_libcheck(default):
    names = [d["name"] for d in told(default, "dependencies")]
    assert "libibverbs" in names and "check" not in names


def test_installed_files_do_not_depend_on_tests(default):
    assert "tests = true" in (BUILD / "meson-private/cmd_line.txt").read_text()
    files = set(told(default, "installed").values())
    assert {"uverbsd", "uverbsctl", "uverbsd.pc"} <= {pathlib.Path(f).name for f in files}
    assert files == set(told(BUILD, "installed").values())


@pytest.fixture(scope="module")
def life(tmp_path_factory):
    """What is seen of a build folder that was configured before its project had the option `tests`, step by step."""
    project = tmp_path_factory.mktemp("project")
    folder, seen = project / "build", {}

    def step(name, *options):
        said = run("bash", "-c", '. "$0"; build build "$@"', ROOT / "scripts/lib.sh", *options, cwd=project)
        required = subprocess.run([ROOT / "scripts/require-tests", folder], text=True, stderr=subprocess.PIPE, check=False)
        seen[name] = {"tests": (folder / "made").exists(), "configured": "Project name" in said, "refused": required.stderr}

    (project / "meson.build").write_text("project('toy')\n")
    step("made before")
    (project / "meson_options.txt").write_text("option('tests', type: 'boolean', value: false)\n")
    (project / "meson.build").write_text("project('toy')\nif get_option('tests')\n"
                                         "  configure_file(output: 'made', configuration: {'x': 1})\nendif\n")
    step("without tests")
    step("with tests", "-Dtests=true", "-Dwerror=true")
    step("alike", "-Dtests=true", "-Dwerror=true")
    return seen


def test_a_folder_that_was_configured_before_the_option_existed_gets_tests(life):
    assert not life["without tests"]["tests"]
    assert life["with tests"]["tests"] and life["with tests"]["configured"]


def test_a_folder_that_was_configured_alike_is_not_configured_again(life):
    assert life["alike"]["tests"] and not life["alike"]["configured"]


def test_what_needs_tests_refuses_a_folder_without_them(life):
    for name in ("made before", "without tests"):
        assert "-Dtests=true" in life[name]["refused"]
    assert life["with tests"]["refused"] == ""
