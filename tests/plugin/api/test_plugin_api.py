# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a plug-in is compiled and linked with: the public headers, the functions that they mark UVD_API, uverbsd.pc."""
import os
import pathlib
import platform
import re
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build")).resolve()
PROGRAMS = [BUILD / "src/uverbsd", BUILD / "tools/uverbsctl"]
HEADERS = sorted(p for p in (ROOT / "include/uverbsd").glob("*.h") if p.name != "uapi_later.h")  # see include/meson.build
CC = os.environ.get("CC", "cc").split()
WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"]


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **more)
    assert done.returncode == 0, done.stdout
    return done.stdout


def code_of(header):
    """The header without comments and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S).replace("\\\n", " ")
    return re.sub(r"^\s*#.*$", "", text, flags=re.M)


def public_functions():
    return {name for header in HEADERS for name in re.findall(r"^UVD_API\b[^;{(]*?(\w+)\(", code_of(header), re.M)}


def symbols(file, *options):
    """The names of a file's dynamic symbols, without those of other libraries that the program has copies of."""
    lines = (line.split() for line in run("nm", "-D", *options, file).splitlines())
    return {line[-1] for line in lines if "@" not in line[-1]}


def exported(program):
    """What a program defines, without what the compiler and the linker add: those names begin with an underscore."""
    return {name for name in symbols(program, "--defined-only") if not name.startswith("_")} - {"data_start"}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_a_program_exports_the_interface_of_plug_ins_and_nothing_else(program):
    functions = public_functions()
    assert len(functions) > 60 and {"uvd_req_alloc", "uvd_mm_read", "uvd_logf"} <= functions
    assert sorted(functions - exported(program)) == [] and sorted(exported(program) - functions) == []


@pytest.mark.parametrize("header", HEADERS, ids=lambda p: p.name)
def test_a_public_header_declares_no_function_that_a_plug_in_cannot_call(header):
    declared = re.findall(r"^(?!typedef|static|UVD_API)\w[^;{}()=]*?(\w+)\([^;{]*;", code_of(header), re.M)
    assert declared == []


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """(root of the installation, its headers' folder, pkg-config with the arguments as a command)"""
    root = tmp_path_factory.mktemp("root")
    run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root)
    pc, = root.rglob("uverbsd.pc")
    prefix = re.search(r"^prefix=(.*)$", pc.read_text(), re.M)[1]

    def ask(*options):
        return run("pkg-config", f"--define-variable=prefix={root}{prefix}", *options, "uverbsd",
                   env={**os.environ, "PKG_CONFIG_PATH": str(pc.parent)}).split()
    return root, root / f".{prefix}/include/uverbsd", ask


def test_all_headers_for_plug_ins_are_installed(installed):
    assert sorted(p.name for p in installed[1].iterdir()) == sorted(p.name for p in HEADERS)


def test_pkg_config_knows_version_and_folder_of_plug_ins(installed):
    _, headers, ask = installed
    assert ask("--modversion") == re.findall(r"^ *version: '(.*)'", (ROOT / "meson.build").read_text(), re.M)[:1]
    assert ask("--variable=api_version") == re.findall(r"UVD_API_VERSION =? ?(\d+)", (headers / "api.h").read_text())
    folder, = ask("--variable=plugindir")
    assert folder.endswith("/uverbsd/plugins") and folder.startswith(str(headers.parents[1]))


def layout(tmp_path, names):
    """The size of each public struct, and of those that may grow the offset of the last field that layout.txt names."""
    lines = [f'printf("{" ".join(n)} %zu\\n", ' + (f"offsetof(struct {n[0]}, {n[1]})" if len(n) > 1 else f"sizeof(struct {n[0]})") + ");"
             for n in names]
    source, program = tmp_path / "layout.c", tmp_path / "layout"
    source.write_text("#include <stddef.h>\n#include <stdio.h>\n" + "".join(f"#include <uverbsd/{h.name}>\n" for h in HEADERS) +
                      "int main(void)\n{\n" + "\n".join(lines) + "\n}\n")
    run(*CC, "-I", ROOT / "include", source, "-o", program)
    return run(program).splitlines()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="layout.txt has the sizes of x86_64")
def test_what_plug_ins_rely_on_changes_with_the_api_version_only(tmp_path):
    version, *known = [line for line in (HERE / "layout.txt").read_text().splitlines() if not line.startswith("#")]
    names = [tuple(line.split()[:-1]) for line in known]
    public = {name for header in HEADERS for name in re.findall(r"^struct (uvd_\w+) \{", code_of(header), re.M)}
    assert {n[0] for n in names} == public
    assert layout(tmp_path, names) == known, "a plug-in of this API version could misbehave: UVD_API_VERSION grows with this change"
    assert f"#define UVD_API_VERSION {version.split()[-1]}\n" in (ROOT / "include/uverbsd/api.h").read_text()


@pytest.mark.parametrize("options", [[], ["-std=c11"]], ids=["gnu", "c11"])
def test_a_plug_in_is_compiled_with_the_installed_headers_alone(installed, tmp_path, options):
    _, headers, ask = installed
    for header in headers.iterdir():
        (tmp_path / f"only_{header.stem}.c").write_text(f"#include <uverbsd/{header.name}>\n")
    plugin = tmp_path / "plugin.so"
    run(*CC, "-shared", "-fPIC", *options, *WARNINGS, *ask("--cflags"), HERE / "plugin.c", *tmp_path.glob("*.c"),
        "-o", plugin)
    needed = {name for name in symbols(plugin, "--undefined-only") if name.startswith("uvd_")}
    assert len(needed) == 3 and needed <= exported(PROGRAMS[0])
