# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Plug-ins outside of the tree: only an installed uverbsd is needed to make, build and test one."""
import os
import shlex
import shutil
import subprocess

import pytest

from conftest import BUILD, ROOT, said

EXAMPLES = ["hello", "counter", "kv", "persona-example", "filter-example"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_builds_against_the_installed_headers(installed, scratch, name):
    folder = shutil.copytree(ROOT / "plugins" / name, scratch / name)
    assert "Ok:                 1" in installed.build_and_test(folder)
    assert (folder / f"build/{name}.so").exists()


def test_new_plugin_builds_and_passes_its_test_at_once(installed, scratch):
    out = said(installed.uverbsctl, "new-plugin", "mine", cwd=scratch)
    assert sorted(out.split()) == ["mine/README.md", "mine/meson.build", "mine/mine.c", "mine/test.sh"]
    assert "Ok:                 1" in installed.build_and_test(scratch / "mine")
    text = "".join(p.read_text() for p in (scratch / "mine").iterdir() if p.is_file())
    assert "skeleton" not in text.lower()


def test_new_plugin_changes_no_file_that_exists(installed, scratch):
    (scratch / "other").mkdir()
    (scratch / "other/mine.c").write_text("precious")
    out = said(installed.uverbsctl, "new-plugin", "mine", "other", cwd=scratch, status=1)
    assert "other/mine.c: EEXIST" in out and (scratch / "other/mine.c").read_text() == "precious"


@pytest.mark.parametrize("name", ["", "Mine", "a b", "../up", "x" * 25, "7up", "a-b"])
def test_new_plugin_refuses_a_name_that_c_does_not_take(installed, scratch, name):
    assert "a name begins with a lower-case letter" in said(installed.uverbsctl, "new-plugin", name, cwd=scratch, status=2)
    assert not list(scratch.iterdir())


def can_mount():
    done = subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0


@pytest.mark.skipif(not can_mount(), reason="only root can do this")
def test_new_plugin_needs_nothing_but_the_installed_files(installed):
    """In a mount namespace that has the installed files at their place, and neither sources nor build folder."""
    pc = next(installed.prefix.glob("**/uverbsd.pc")).parent.relative_to(installed.prefix)
    script = f"""
set -e
cd /
mount --bind {shlex.quote(str(installed.prefix))} {shlex.quote(installed.usual)}
mount -t tmpfs -o mode=755 none {shlex.quote(str(BUILD))}
mount -t tmpfs -o mode=755 none {shlex.quote(str(ROOT))}
test ! -e {shlex.quote(str(ROOT))}/meson.build
cd {shlex.quote(str(ROOT))}
sed -i 's|^prefix=.*|prefix={installed.usual}|' {installed.usual}/{pc}/uverbsd.pc
uverbsctl new-plugin mine
cd mine
meson setup build
meson test -C build --print-errorlogs
"""
    env = {**os.environ, "PATH": f"{installed.usual}/bin:/usr/bin:/bin", "PKG_CONFIG_PATH": f"{installed.usual}/{pc}"}
    before = (installed.prefix / pc / "uverbsd.pc").read_text()
    try:
        assert "Ok:                 1" in said("unshare", "-m", "sh", "-c", script, env=env)
    finally:
        (installed.prefix / pc / "uverbsd.pc").write_text(before)
