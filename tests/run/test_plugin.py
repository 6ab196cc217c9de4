# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Plug-ins of a run: on its command line, and loaded, reloaded and unloaded while its programs run."""
import json
import os
import shutil
import subprocess
import tempfile

import pytest

from conftest import BUILD, SANITIZED, STUCK, UVERBSCTL, until

ASK = f"{UVERBSCTL} call TOY ASK --answer 8"
PLUGIN = f"{UVERBSCTL} plugin"


@pytest.fixture
def toy(run):
    """Two versions of the plug-in, and another one, in a folder of the user that runs, below /tmp: people build there."""
    with tempfile.TemporaryDirectory(prefix="uverbsd-tests-", dir=run.folder) as folder:
        os.chmod(folder, 0o755)
        run.toys = folder
        for name in ("toy.so", "toy2.so", "posts.so"):
            path = os.path.join(folder, name)
            shutil.copy(BUILD / "tests/run" / name, path)
            os.chmod(path, 0o755)
            if run.prefix:
                os.chown(path, 65534, 65533)
        if run.prefix:
            os.chown(folder, 65534, 65533)
        yield os.path.join(folder, "toy.so")


def sh(run, script, *options):
    r = run("sh", "-c", script, options=options, cwd=run.toys, timeout=STUCK)
    return r.stdout, r


# ---- the command line -------------------------------------------------------------------------------------------------


def test_a_plugin_of_the_command_line_has_its_options(run, toy):
    out, r = sh(run, ASK, "--plugin", toy, "colour=blue", "answer=42")
    assert out == "TOY ASK answer=42\n" and r.stderr == "", r


def test_a_relative_path_is_of_the_folder_at_start(run, toy):
    out, r = sh(run, f"cd /; {ASK}", "--plugin", "./toy.so")
    assert out == "TOY ASK answer=1\n", r


def test_a_section_of_the_file_loads_a_plugin(run, toy):
    config = os.path.join(run.toys, "uverbsd.conf")
    long = os.path.join(run.toys, "x" * 60, "toy.so")  # longer than libinih's sections
    os.mkdir(os.path.dirname(long), 0o755)
    shutil.copy2(toy, long)
    os.chmod(long, 0o755)
    if run.prefix:
        os.chown(long, 65534, 65533)
    for text, options, answer in ((f"[plugin {toy}]\n", (), 1), (f"[plugin {toy}]\nanswer = 5\n", (), 5),
                                  (f"[plugin {long}]\nanswer = 6\n[uverbsd]\ndevices = 1\n", (), 6),
                                  (f"[plugin {toy}]\nanswer = 5\n", ("--plugin", toy, "answer=9"), 9)):
        with open(config, "w", encoding="ascii") as f:
            f.write(text)
        out, r = sh(run, ASK, "--config", config, *options)
        assert out == f"TOY ASK answer={answer}\n", (text, r)


def test_help_lists_the_options_that_a_plugin_declares(run, toy):
    for options in (["--help", "--plugin", toy], ["--plugin", toy, "answer=3", "--help"]):
        r = subprocess.run([*run.prefix, UVERBSCTL, "run", *options], capture_output=True, text=True, timeout=STUCK)
        assert r.returncode == 0 and "Plug-in toy 1.0, a toy" in r.stdout, r
        assert "answer=N" in r.stdout and "what TOY_ASK answers" in r.stdout and "(default: red)" in r.stdout, r


def test_what_cannot_be_loaded_ends_the_run_with_status_2(run, toy):
    for options, said in ((["--plugin", "/nowhere/x.so"], "ENOENT"), (["--plugin", toy, "wrong=1"], "wrong"),
                          (["--plugin", "toy.so"], "uverbsd/plugins/toy.so")):
        out, r = sh(run, "echo ran", *options)
        assert (r.returncode, out) == (2, "") and said in r.stderr, r


def test_backend_and_persona_of_a_plugin_are_valid_in_its_command_line(run, toy):
    r = run.without_persona("sh", "-c", "ls /sys/class/infiniband; cat /sys/class/infiniband/toy_0/fw_ver",
                            options=["--backend", "toyback", "--persona", "toyface", "--plugin", toy])
    assert r.stdout.split() == ["toy_0", "1.2.3"], r
    r = run.without_persona("true", options=["--backend", "toyback"])
    assert r.returncode == 2 and "`toyback` is no backend" in r.stderr, r


# ---- a running run ----------------------------------------------------------------------------------------------------


def test_load_list_reload_and_unload(run, toy):
    out, r = sh(run, f"{PLUGIN} load ./toy.so colour=blue answer=4; {ASK}; {PLUGIN} reload toy; {ASK}; cp toy2.so toy.so;"
                     f"{PLUGIN} reload toy answer=8; {ASK}; {PLUGIN} list --json >list; {PLUGIN} unload toy; {PLUGIN} list")
    assert r.stderr == "" and out.split("\n")[:6] == ["toy 1.0 generation 1", "TOY ASK answer=4", "toy 1.0 generation 2",
                                                      "TOY ASK answer=4", "toy 1.0 generation 3", "TOY ASK answer=8"], r
    assert "\ntoy " not in out.split("answer=8")[1], r
    with open(os.path.join(run.toys, "list"), encoding="ascii") as f:
        entry = [p for p in json.load(f)["plugins"] if p["name"] == "toy"]
    assert [(p["file"], p["generation"], p["objects"]) for p in entry] == [(os.path.realpath(toy), 3, 0)]


def test_a_device_can_be_added_with_what_a_loaded_plugin_brings(run, toy):
    out, r = sh(run, f"{PLUGIN} load ./toy.so; {UVERBSCTL} device add --backend toyback --persona toyface;"
                     f"{PLUGIN} unload toy; {UVERBSCTL} device remove toy_0; {PLUGIN} unload toy; echo $?")
    assert out.split("\n")[1:] == ["toy_0 uverbs1", "toy_0 uverbs1", "0", ""], r
    assert "uverbsctl plugin: " in r.stderr and r.stderr.count("\n") == 1, r


def test_unload_names_the_processes_that_hold_objects_and_wait_waits_for_them(run, toy):
    # No process but the shell may keep the pipe open: the client ends when the shell closes it.
    script = (f"{PLUGIN} load ./toy.so >/dev/null; mkfifo f;"
              f"(exec {UVERBSCTL} call -f f) >calls & client=$!; exec 3>f; echo 't = TOY NEW' >&3;"
              f"for i in $(seq 200); do {PLUGIN} list | grep -q 'toy .* 1  /' && break; sleep 0.05; done;"
              f"{PLUGIN} unload toy; echo $? $client;"
              f"(exec 3>&-; {PLUGIN} unload toy --wait && echo unloaded) & wait=$!; sleep 0.5; kill -0 $wait && echo waits;"
              f"exec 3>&-; wait $client; wait $wait; {PLUGIN} list | grep toy")
    out, r = sh(run, script)
    status, client = out.split("\n")[0].split()
    assert status == "1" and f"process {client} (uverbsctl) has 1" in r.stderr, r
    assert out.split("\n")[1:] == ["waits", "unloaded", ""], r


def test_a_wait_ends_with_its_asker(run, toy):
    script = (f"{PLUGIN} load ./toy.so >/dev/null; mkfifo f; {UVERBSCTL} call -f f >calls & exec 3>f; echo 't = TOY NEW' >&3;"
              f"for i in $(seq 200); do {PLUGIN} list | grep -q 'toy .* 1  /' && break; sleep 0.05; done;"
              f"echo made; read line; {PLUGIN} unload toy --wait & wait=$!; read line; kill $wait; wait $wait; echo killed;"
              f"read line; {PLUGIN} list >/dev/null && echo lists; exec 3>&-")
    p = run.start("sh", "-c", script, cwd=run.toys)
    assert p.stdout.readline() == "made\n"

    def threads():
        return len(os.listdir(f"/proc/{run.engine(p)}/task"))
    before = threads()
    p.stdin.write("\n")
    p.stdin.flush()
    assert until(lambda: threads() == before + 1), (before, threads())  # the thread that waits
    p.stdin.write("\n")
    p.stdin.flush()
    assert p.stdout.readline() == "killed\n"
    assert until(lambda: threads() == before), (before, threads())
    out, err = p.communicate("\n", timeout=STUCK)
    assert out == "lists\n", err


def test_a_run_is_asked_from_outside_by_its_name(run, toy):
    name = f"plugin-{os.getpid()}"
    p = run.start("sh", "-c", f"echo ready; read line; {ASK}", options=["--join", name])
    assert p.stdout.readline() == "ready\n"
    r = subprocess.run([*run.prefix, UVERBSCTL, "plugin", "--run", name, "load", toy, "answer=77"], env=run.env,
                       capture_output=True, text=True, timeout=STUCK)
    assert (r.returncode, r.stdout) == (0, "toy 1.0 generation 1\n"), r
    assert p.communicate("\n", timeout=STUCK)[0] == "TOY ASK answer=77\n"
    r = subprocess.run([*run.prefix, UVERBSCTL, "plugin", "--run", name, "list"], env=run.env, capture_output=True, text=True,
                       timeout=STUCK)
    assert r.returncode == 1 and "no run of yours" in r.stderr, r


def test_a_run_that_joins_cannot_bring_a_plugin(run, toy):
    name = f"plugin-join-{os.getpid()}"
    first = run.start("sh", "-c", "echo ready; read line", options=["--join", name, "--plugin", toy])
    assert first.stdout.readline() == "ready\n"
    second = run("true", options=["--join", name, "--plugin", toy])
    first.communicate("\n", timeout=STUCK)
    assert second.returncode == 125 and f"uverbsctl plugin --run {name} load FILE" in second.stderr, second


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be several users")
def test_only_files_of_the_owner_that_others_cannot_write_are_loaded(run, toy):
    os.chown(toy, 1, 1)
    out, r = sh(run, f"{PLUGIN} load ./toy.so; echo $?")
    assert out == "1\n" and "user 1 owns it" in r.stderr, r
    os.chown(toy, *((65534, 65533) if run.prefix else (0, 0)))
    os.chmod(toy, 0o775)
    out, r = sh(run, f"{PLUGIN} load ./toy.so; echo $?")
    assert out == "1\n" and "may write" in r.stderr, r


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be several users")
def test_another_user_can_list_and_changes_nothing(run, toy):
    if not run.prefix:
        os.chmod(run.folder, 0o755)
    p = run.start("sh", "-c", f"{PLUGIN} load {toy} >/dev/null; echo $UVERBSD_CONTROL; read line; {ASK}")
    control = p.stdout.readline().strip()
    other = ["setpriv", "--reuid=1", "--regid=1", "--clear-groups"]
    for words in (["unload", "toy"], ["reload", "toy"], ["load", toy], ["unload", "toy", "--wait"]):
        r = subprocess.run([*other, UVERBSCTL, "plugin", "--control", control, *words], capture_output=True, text=True, timeout=STUCK)
        assert r.returncode == 1 and "only root and the user" in r.stderr, r
    r = subprocess.run([*other, UVERBSCTL, "plugin", "--control", control, "list"], capture_output=True, text=True, timeout=STUCK)
    assert "toy " in r.stdout, r
    assert p.communicate("\n", timeout=STUCK)[0] == "TOY ASK answer=1\n"


def test_wrong_names_bring_the_nearest(run, toy):
    out, r = sh(run, f"{PLUGIN} load ./toy.so >/dev/null; {PLUGIN} unload tox; {PLUGIN} load ./tog.so; {PLUGIN} loadd x;"
                     f"{UVERBSCTL} plugn")
    lines = r.stderr.splitlines()
    assert "nearest names are toy" in lines[0] and "nearest names there are toy.so" in lines[1], r
    assert "unknown verb `loadd`; the nearest are load, reload, unload;" in lines[2] and "plugin" in lines[3], r


# ---- mistakes of a plug-in ----------------------------------------------------------------------------------------------


if not SANITIZED:  # the sanitizers tell of crashes themselves
    @pytest.mark.parametrize("method, signal", [("CRASH", "SIGSEGV"), ("ABORT", "SIGABRT"), ("RECURSE", "SIGSEGV")])
    def test_a_crash_names_plugin_method_and_client(run, toy, method, signal):
        out, r = sh(run, f"{UVERBSCTL} call TOY {method} & echo $!; wait", "--plugin", toy)
        line = f"plug-in toy crashed with {signal} in UVERBS_METHOD_TOY_{method}, called by thread {out.strip()}\n"
        assert "uverbsctl run: error: " + line in r.stderr, r
        assert "the engine has died" in r.stderr, r


def test_a_handler_that_forgets_is_told_by_name(run, toy):
    out, r = sh(run, f"{UVERBSCTL} call TOY FORGET_OBJECT; {UVERBSCTL} call TOY FORGET_OUTPUT --answer 8;"
                     f"{UVERBSCTL} call TOY NEW; {ASK}", "--plugin", toy)
    lines = [line for line in r.stderr.splitlines() if "mistake" in line]
    assert len(lines) == 2, r
    assert "UVERBS_METHOD_TOY_FORGET_OBJECT: the handler has not set the object of UVERBS_ATTR_TOY_HANDLE" in lines[0], r
    assert "UVERBS_METHOD_TOY_FORGET_OUTPUT: the handler has not written UVERBS_ATTR_TOY_ANSWER" in lines[1], r
