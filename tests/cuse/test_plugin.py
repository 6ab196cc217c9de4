# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Plug-ins of the daemon, in one process and in a sandboxed engine process (--separate yes)."""
import os
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

from conftest import BUILD, PERSONA, STUCK, environment, wait_for

UVERBSCTL = str(BUILD / "tools" / "uverbsctl")


@pytest.fixture
def toy():
    """A folder that only root can change; /tmp is none."""
    with tempfile.TemporaryDirectory(prefix="uverbsd-tests-", dir="/run") as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "toy.so")
        shutil.copy(BUILD / "tests/run/toy.so", path)
        os.chmod(path, 0o755)
        yield path


def ctl(d, command, *words):
    return subprocess.run([UVERBSCTL, command, "--control", str(d.control), *words], capture_output=True, text=True, timeout=STUCK)


def ask(d, method="ASK", *words):
    return subprocess.run([UVERBSCTL, "call", "--control", str(d.control), "TOY", method, *words], capture_output=True, text=True,
                          env=environment(), timeout=STUCK)


@pytest.mark.parametrize("separate", ["no", "yes"])
def test_plugins_load_reload_and_unload_while_it_runs(start, toy, separate):
    d = start("--separate", separate, "--plugin-dir", os.path.dirname(toy))
    engine = d.serving
    assert ctl(d, "plugin", "load", toy, "answer=12").stdout == "toy 1.0 generation 1\n"
    assert ask(d, "ASK", "--answer", "8").stdout == "TOY ASK answer=12\n"
    assert ctl(d, "plugin", "reload", "toy", "answer=13").stdout == "toy 1.0 generation 2\n"
    assert ask(d, "ASK", "--answer", "8").stdout == "TOY ASK answer=13\n"
    assert ctl(d, "plugin", "unload", "toy", "--wait").returncode == 0
    assert "no object" in ask(d).stderr
    assert "toy " not in ctl(d, "plugin", "list").stdout
    assert d.serving == engine


@pytest.mark.parametrize("separate", ["no", "yes"])
def test_a_plugin_of_the_options_brings_a_backend_and_a_persona(start, toy, separate):
    d = start("--separate", separate, "--plugin", toy, "answer=7", "--backend", "toyback", "--persona", "toyface")
    device = d.status()["devices"][0]
    assert (device["device"], device["backend"], device["persona"]) == ("toy_0", "toyback", "toyface")
    assert ask(d, "ASK", "--answer", "8").stdout == "TOY ASK answer=7\n"


@pytest.mark.skipif(os.environ.get("UVERBSD_SANITIZER") != "asan", reason="it looks for reports of AddressSanitizer: --long")
@pytest.mark.parametrize("separate", ["no", "yes"])
def test_sanitizer_reports_a_leak_and_an_overflow_in_the_engine(start, toy, separate, monkeypatch):
    monkeypatch.delenv("ASAN_OPTIONS", raising=False)
    d = start("--separate", separate, "--plugin", toy)
    assert ask(d, "LEAK").returncode == 0
    assert d.stop() != 0
    assert re.findall(r"(\d+) byte\(s\) leaked", d.log.read_text()) == ["123"], d.log.read_text()
    d = start("--separate", separate, "--plugin", toy)
    assert ask(d, "OVERFLOW").returncode != 0
    # The engine exits, and is killed by no signal: so that ends the daemon.
    assert d.process.wait(STUCK) != 0 and d.text_of("AddressSanitizer: heap-buffer-overflow"), d.log.read_text()


def maps_of(pid):
    with open(f"/proc/{pid}/maps") as f:
        return f.read()


def test_code_of_a_plugin_is_in_the_engine_process_alone(start, toy):
    d = start("--separate", "yes", "--plugin", toy)
    assert "memfd:uverbsd-plugin" in maps_of(d.serving)
    assert "plugin" not in maps_of(d.process.pid) and "toy" not in maps_of(d.process.pid)
    assert ctl(d, "plugin", "unload", "toy").returncode == 0
    assert "memfd:uverbsd-plugin" not in maps_of(d.serving)


def test_reload_takes_the_new_file_and_serves_old_contexts_with_the_old_one(start, toy):
    d = start("--separate", "yes", "--plugin-dir", os.path.dirname(toy))
    assert ctl(d, "plugin", "load", toy).returncode == 0
    code = maps_of(d.serving).count("r-xp")
    p = subprocess.Popen([UVERBSCTL, "call", "--control", str(d.control), "-f", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True, env=environment())
    p.stdin.write("t = TOY NEW\n")
    p.stdin.flush()
    wait_for("an object", lambda: p.poll() is not None or re.search(r"toy .* 1  /", ctl(d, "plugin", "list").stdout))
    os.remove(toy)
    shutil.copy(BUILD / "tests/run/toy2.so", toy)
    os.chmod(toy, 0o755)
    assert ctl(d, "plugin", "reload", "toy").stdout == "toy 1.0 generation 2\n"
    assert ask(d, "ASK", "--answer", "8").stdout == "TOY ASK answer=2\n"
    p.stdin.write("TOY ASK --answer 8\n")
    p.stdin.close()
    assert "TOY ASK answer=1\n" in p.stdout.read() and p.wait(STUCK) == 0
    wait_for("the end of the old version", lambda: maps_of(d.serving).count("r-xp") == code)


def test_slots_are_used_again(start, toy):
    d = start("--separate", "yes", "--plugin-dir", os.path.dirname(toy), "--plugin", toy, "answer=0")
    for i in range(1, 70):
        r = ctl(d, "plugin", "reload", "toy", f"answer={i}")
        assert r.returncode == 0, r
    assert ask(d, "ASK", "--answer", "8").stdout == "TOY ASK answer=69\n"
    assert maps_of(d.serving).count("memfd:uverbsd-plugin") < 8  # one version


def test_what_an_engine_process_does_not_load(start, toy):
    folder = os.path.dirname(toy)
    os.mkdir(f"{folder}/in")
    os.chmod(f"{folder}/in", 0o755)
    for name in ("toy.so", "open.so", "theirs.so", "toyneedy.so", "toystack.so"):
        source = name if name in ("toyneedy.so", "toystack.so") else "toy.so"
        shutil.copy(BUILD / "tests/run" / source, f"{folder}/in/{name}")
        os.chmod(f"{folder}/in/{name}", 0o775 if name == "open.so" else 0o755)
    shutil.copy(BUILD / "tests/plugin/look1.so", f"{folder}/in/crash.so")
    os.chmod(f"{folder}/in/crash.so", 0o755)
    os.chown(f"{folder}/in/theirs.so", 65534, 65534)
    os.symlink(toy, f"{folder}/in/link.so")
    d = start("--separate", "yes", "--plugin-dir", f"{folder}/in")
    engine = d.serving
    for path, said in ((toy, f"loads plug-ins from one folder, {folder}/in: copy the file into it, or start uverbsd with --plugin-dir"),
                       (f"{folder}/in/../toy.so", "loads plug-ins from one folder"),
                       (f"{folder}/in/none.so", "none.so: ENOENT"),
                       (f"{folder}/in/link.so", "link.so: a symbolic link: copy the file itself into the folder"),
                       (f"{folder}/in/open.so", "open.so: group or others may write to it: chmod go-w"),
                       (f"{folder}/in/theirs.so", "theirs.so: user 65534 owns it"),
                       (f"{folder}/in/crash.so", "crash.so: its constructors crashed with SIGSEGV"),
                       (f"{folder}/in/toystack.so", "with two processes no code may be writable: it needs stacks that hold code"),
                       (f"{folder}/in/toyneedy.so", "can only use libraries that uverbsd itself uses"),
                       (f"{folder}/in/toy.so", "no option `shape`")):
        r = ctl(d, "plugin", "load", path, *(["shape=round"] if path == f"{folder}/in/toy.so" else []))
        assert r.returncode == 1 and said in r.stderr, r
    assert ctl(d, "plugin", "load", f"{folder}/in/toy.so").returncode == 0
    assert d.serving == engine


def test_plugin_dir_may_be_a_build_folder(start, toy):
    folder = os.path.dirname(toy)
    os.symlink(folder, f"{folder}/link")
    d = start("--separate", "yes", "--plugin-dir", ".", program=("env", "-C", f"{folder}/link", str(BUILD / "src" / "uverbsd")))
    for path in ("./toy.so", f"{folder}/toy.so", f"{folder}/./toy.so"):
        r = subprocess.run([UVERBSCTL, "plugin", "--control", d.control, "load", path], cwd=folder, capture_output=True, text=True,
                           timeout=STUCK)
        assert r.stdout.startswith("toy 1.0 generation "), r
        assert ctl(d, "plugin", "unload", "toy").returncode == 0
    os.chmod(folder, 0o775)
    r = ctl(d, "plugin", "load", toy)
    assert f"group or others may write to the folder {folder} (root's, mode 0775): chmod go-w {folder}" in r.stderr, r
    os.chmod(folder, 0o755)
    os.chown(folder, 65534, 65534)
    r = ctl(d, "plugin", "load", toy)
    assert f"user 65534 owns the folder {folder} (mode 0755)" in r.stderr and "copy it to one" in r.stderr, r


def test_a_device_can_have_the_persona_of_a_plugin_that_was_loaded_later(start, toy):
    d = start("--separate", "yes", "--plugin-dir", os.path.dirname(toy))
    assert ctl(d, "plugin", "load", toy).returncode == 0
    r = ctl(d, "device", "add", "--backend", "toyback", "--persona", "toyface")
    assert r.returncode == 0, r
    assert [dev["persona"] for dev in d.status()["devices"]] == [PERSONA, "toyface"]


@pytest.mark.skipif("UVERBSD_SANITIZER" in os.environ, reason="the sanitizers tell of crashes themselves")
@pytest.mark.parametrize("separate", ["no", "yes"])
def test_a_crash_names_plugin_method_and_client(start, toy, separate):
    d = start("--separate", separate, "--plugin", toy)
    ask(d, "CRASH")
    wait_for("the line", lambda: re.search(r"uverbsd: error: plug-in toy crashed with SIGSEGV in UVERBS_METHOD_TOY_CRASH, "
                                           r"called by thread \d+\n", d.log.read_text()))
    if separate == "yes":
        wait_for("another engine process", lambda: d.starts() == 2)
        assert ask(d, "ASK", "--answer", "8").stdout == "TOY ASK answer=1\n"
    else:
        assert d.process.wait(STUCK) == -signal.SIGSEGV
