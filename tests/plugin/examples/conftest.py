# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The example plug-ins (plugins/), on devices of `uverbsctl run`, and an installed uverbsd in a folder of its own."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build")).resolve()
UVERBSCTL = BUILD / "tools/uverbsctl"
LONG = bool(os.environ.get("UVERBSD_LONG"))
STUCK = 300  # seconds: a limit for what is stuck, and not for what is slow
SANITIZER = next(o["value"] for o in json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())
                 if o["name"] == "b_sanitize")
SANITIZED = SANITIZER != "none"
# A program that is built outside knows nothing of sanitizers.
collect_ignore = ["test_outside.py", "test_tutorial.py"] if SANITIZED else []


def plugin(name):
    return BUILD / f"plugins/{name}.so"


def client(name):
    return BUILD / f"plugins/{name}-client"


def said(*argv, status=0, **kw):
    """What a command prints; it must end with this status, unless that is None."""
    if "input" not in kw:
        kw.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([str(a) for a in argv], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=STUCK, check=False, **kw)
    assert status in (None, done.returncode), f"{argv}: status {done.returncode}\n{done.stdout}"
    return done.stdout


def on_device(name, *program, values=(), options=(), status=0, **kw):
    """Runs a program on a device with this plug-in."""
    return said(UVERBSCTL, "run", "--plugin", plugin(name), *values, *options, "--", *program, status=status, **kw)


class Installed:
    """uverbsd below a folder, as `meson install` puts it there."""

    def __init__(self, folder):
        said("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", folder)
        prefix = next(o["value"] for o in json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())
                      if o["name"] == "prefix")
        self.prefix = folder / prefix.lstrip("/")
        self.usual = prefix
        pc = next(self.prefix.glob("**/uverbsd.pc"))
        pc.write_text(re.sub(r"(?m)^prefix=.*$", f"prefix={self.prefix}", pc.read_text()))
        self.env = {**os.environ, "PKG_CONFIG_PATH": str(pc.parent), "PATH": f"{self.prefix}/bin:{os.environ['PATH']}"}
        self.uverbsctl = self.prefix / "bin/uverbsctl"

    def build_and_test(self, folder, env=None):
        env = env or self.env
        said("meson", "setup", "build", "--werror", cwd=folder, env=env)
        return said("meson", "test", "-C", "build", "--print-errorlogs", cwd=folder, env=env)


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    yield Installed(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def scratch():
    """A folder for plug-ins. Root may not load any from below a folder that others can write to, as /tmp is."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=BUILD / "tests/plugin/examples"))
    yield folder
    shutil.rmtree(folder)
