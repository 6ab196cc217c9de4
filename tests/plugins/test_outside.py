# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Plug-ins outside of the tree: only an installed uverbsd is needed to make, build and test one."""
import os
import shlex
import shutil
import subprocess

import pytest

from conftest import BUILD, ROOT, said

EXAMPLES = ["hello", "counter", "kv", "persona-example"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_builds_against_the_installed_headers(installed, tmp_path, name):
    folder = shutil.copytree(ROOT / "plugins" / name, tmp_path / name)
    assert "Ok:                 1" in installed.build_and_test(folder)
    assert (folder / f"build/{name}.so").exists()


def test_new_plugin_builds_and_passes_its_test_at_once(installed, tmp_path):
    out = said(installed.uverbsctl, "new-plugin", "mine", cwd=tmp_path)
    assert sorted(out.split()) == ["mine/README.md", "mine/meson.build", "mine/mine.c", "mine/test.sh"]
    assert "Ok:                 1" in installed.build_and_test(tmp_path / "mine")
    text = "".join(p.read_text() for p in (tmp_path / "mine").iterdir() if p.is_file())
    assert "skeleton" not in text.lower()


def test_new_plugin_changes_no_file_that_exists(installed, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/mine.c").write_text("precious")
    out = said(installed.uverbsctl, "new-plugin", "mine", "other", cwd=tmp_path, status=1)
    assert "other/mine.c: EEXIST" in out and (tmp_path / "other/mine.c").read_text() == "precious"


@pytest.mark.parametrize("name", ["", "Mine", "a b", "../up", "x" * 25, "7up", "a-b"])
def test_new_plugin_refuses_a_name_that_c_does_not_take(installed, tmp_path, name):
    assert "a name has" in said(installed.uverbsctl, "new-plugin", name, cwd=tmp_path, status=2)
    assert not list(tmp_path.iterdir())


def can_mount():
    done = subprocess.run(["unshare", "-r", "-m", "true"], stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0


@pytest.mark.skipif(not can_mount(), reason="this user can make no mount namespace")
def test_new_plugin_needs_nothing_but_the_installed_files(installed, tmp_path):
    """In a mount namespace that has the installed files at their place, and neither sources nor build folder."""
    hidden = "\n".join(f"mount -t tmpfs none {shlex.quote(str(d))}" for d in (BUILD, ROOT))
    work = tmp_path / "work"
    work.mkdir()
    script = f"""
set -e
cd /
mount --bind {shlex.quote(str(installed.prefix))} {shlex.quote(installed.usual)}
{hidden}
test ! -e {ROOT}/meson.build
cd {work}
uverbsctl new-plugin mine
cd mine
meson setup build
meson test -C build --print-errorlogs
"""
    pc = next(installed.prefix.glob("**/uverbsd.pc")).parent.relative_to(installed.prefix)
    env = {**os.environ, "PATH": f"{installed.usual}/bin:/usr/bin:/bin", "PKG_CONFIG_PATH": f"{installed.usual}/{pc}"}
    out = said("unshare", "-r", "-m", "sh", "-c", script, env=env)
    assert "Ok:                 1" in out
