# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The command line of uverbsctl: its table, its help, and its messages."""
import json
import os
import pathlib
import re
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build")).resolve()
UVERBSCTL = str(BUILD / "tools" / "uverbsctl")
UVERBSD = str(BUILD / "src" / "uverbsd")


def call(*command, **env):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ, **env))


@pytest.fixture(scope="module", name="tables")
def tables_of_uverbsctl():
    done = call(UVERBSCTL, "internal-tables")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def shown(tables):
    return [c for c in tables["commands"] if not c["hidden"]]


def test_each_command_has_a_group_three_examples_and_texts_that_say_something(tables):
    assert [n for g in tables["groups"] for n in g["commands"]] == [c["name"] for c in shown(tables)]
    for c in shown(tables):
        assert len(c["examples"]) >= 3 and c["purpose"] and c["synopses"] and len(c["exit"]) >= 3, c["name"]
        assert all("\t" not in t and "  " not in t for t in c["text"]), c["name"]
        assert all(o["help"] and o["help"][-1] != "." for v in [c, *c["verbs"]] for o in v["options"]), c["name"]


@pytest.mark.parametrize("width", [60, 80, 100])
def test_help_fits_into_the_terminal(tables, width):
    """Only a command that has to be copied, or a name, may be longer."""
    programs = [[UVERBSCTL, "--help"], [UVERBSD, "--help"], *([UVERBSCTL, c["name"], "--help"] for c in shown(tables))]
    for program in programs:
        done = call(*program, COLUMNS=str(width))
        assert (done.returncode, done.stderr) == (0, "")
        for line in done.stdout.splitlines():
            assert len(line) <= width or re.match(r"(Usage:|  \S)", line) or " " not in line.strip(), line


def test_help_has_all_of_the_table(tables):
    for c in shown(tables):
        text = call(UVERBSCTL, c["name"], "--help").stdout
        words = " ".join(text.split())
        assert text.startswith("Usage: ") and text == call(UVERBSCTL, "help", c["name"]).stdout
        assert all(e["command"] in text for e in c["examples"]) and all(" ".join(s.split()) in words for s in c["synopses"])
        assert all(t in words for t in c["text"]), c["name"]
        for option in (o for v in [c, *c["verbs"]] for o in v["options"]):
            assert f"--{option['long']}" in text and option["help"] in words, (c["name"], option["long"])
    top = call(UVERBSCTL, "--help").stdout
    assert all(f"\n{g['title']}:\n" in top for g in tables["groups"])
    assert [m for m in re.findall(r"^  ([a-z-]+)  ", top, re.M)] == [c["name"] for c in shown(tables)]


def test_help_of_a_filter_lists_what_its_rules_take(tables):
    for f in tables["filters"]:
        done = call(UVERBSCTL, "filter", "--help", f["name"])
        assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(f"{f['name']}: ")
        words = set(re.findall(r"[\w.-]+", done.stdout))
        assert all(o["name"] in words for o in f["options"]), f["name"]
    done = call(UVERBSCTL, "filter", "--help", "errorx")
    assert done.returncode == 2 and done.stderr.startswith("uverbsctl filter: --help: unknown filter `errorx`; the nearest are error,")


SECTIONS = {"options": "program", "devices": "device", "ports": "port", "limits": "limit"}


@pytest.mark.parametrize("program", ["run", "uverbsd"])
def test_help_of_run_and_of_uverbsd_is_a_screen_and_sections(tables, program):
    words = [UVERBSD] if program == "uverbsd" else [UVERBSCTL, "run"]

    def listed(*options):
        done = call(*words, *options)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout, set(re.findall(r"^  --([a-z-]+)", done.stdout, re.M))
    options = [o for o in tables["options"] if program in o["programs"]]
    text, common = listed("--help")
    assert 24 <= len(text.splitlines()) <= 50 and common - {"help", "version"} < {o["name"] for o in options} and "persona" in common
    assert listed("--help=all")[1] - {"help", "version"} == {o["name"] for o in options}
    for section, scope in SECTIONS.items():
        assert listed(f"--help={section}")[1] - {"help", "version"} == {o["name"] for o in options if o["scope"] == scope}, section
    filters = listed("--help=filters")[0]
    assert all(re.search(rf"^  {f['name']} +\w", filters, re.M) for f in tables["filters"])
    done = call(*words, "--help=prots")
    assert (done.returncode, done.stdout) == (2, "") and "--help: unknown section `prots`; the nearest are ports," in done.stderr


@pytest.mark.parametrize("options, said", [
    (["--persona", "rxee"], "--persona: `rxee` is no persona; the nearest are rxe, hfi1"),
    (["--backend", "sof"], "--backend: `sof` is no backend; the nearest are soft, "),
    (["--filter", "error:create_qp=ENOMEN"], "create_qp: `ENOMEN` is not an errno; the nearest are ENOMEM, "),
    (["--state", "dwn"], "--state: `dwn` is none of: active down"),
])
def test_a_wrong_value_brings_the_nearest(options, said):
    done = call(UVERBSCTL, "run", *options, "--", "true")
    assert done.returncode in (2, 125) and said in done.stderr, done  # 125: the device finds out


@pytest.mark.parametrize("words, message", [
    (["stats"], "uverbsctl: unknown command `stats`; the nearest are status, pair, trace; see `uverbsctl --help`"),
    (["help", "stats"], "uverbsctl: unknown command `stats`; the nearest are status, pair, trace; see `uverbsctl --help`"),
    (["status", "--jsn"], "uverbsctl status: unknown option `--jsn`; the nearest are --json, --run, --help; see --help"),
    (["status", "-q"], "uverbsctl status: unknown option `-q`; see --help"),
    (["status", "--interval"], "uverbsctl status: option `--interval` needs a value; see --help"),
    (["status", "--json=1"], "uverbsctl status: option `--json` takes no value; see --help"),
    (["status", "more"], "uverbsctl status: `more` is too much; see `uverbsctl status --help`"),
    (["status", "--", "more"], "uverbsctl status: `more` is too much; see `uverbsctl status --help`"),
    (["status", "-n", "x"], "uverbsctl status: --interval: `x` is not a number; see `uverbsctl status --help`"),
    (["status", "-n", "0"], "uverbsctl status: --interval: `0` is not from 0.1 to 86400; see `uverbsctl status --help`"),
    (["trace", "-p", "-1"], "uverbsctl trace: --pid: `-1` is not a number; see `uverbsctl trace --help`"),
    (["tree", "--format", "jsn"],
     "uverbsctl tree: --format: unknown value `jsn`; the nearest are json, text, syzlang; see `uverbsctl tree --help`"),
    (["port"], "uverbsctl port: a verb is missing, as up, down; see `uverbsctl port --help`"),
    (["port", "dwn", "a", "1"], "uverbsctl port: unknown verb `dwn`; the nearest are down, up; see `uverbsctl port --help`"),
    (["port", "down", "a"], "uverbsctl port down: PORT is missing; see `uverbsctl port --help`"),
    (["port", "down", "a", "1", "2"], "uverbsctl port down: `2` is too much; see `uverbsctl port --help`"),
    (["port", "down", "a", "b"], "uverbsctl port down: `b` is not the number of a port; see `uverbsctl port --help`"),
    (["call", "--device", "a", "PD"], "uverbsctl call: METHOD is missing; see `uverbsctl call --help`"),
    (["env", "ibstat"], "uverbsctl env: COMMAND `ibstat` is for --mount; see `uverbsctl env --help`"),
    (["run", "--personna", "x"],
     "uverbsctl run: unknown option `--personna`; the nearest are --persona, --personas, --version; see --help"),
    (["run", "--l", "1"], "uverbsctl run: ambiguous option `--l`; the nearest are --lid, --lmc, --log-level; see --help"),
    (["plugin", "unload", "kv", "--wiat"],
     "uverbsctl plugin unload: unknown option `--wiat`; the nearest are --wait, --help, --run; see --help"),
    (["device", "add", "--prots", "2"],
     "uverbsctl device add: unknown option `--prots`; the nearest are --ports, --quota, --join; see --help"),
    (["device", "add", "x", "--run", "a", "--control", "b"],
     "uverbsctl device add: --control and --run name two sockets; see `uverbsctl device --help`"),
])
def test_a_wrong_command_line_is_one_sentence_and_2(words, message):
    done = call(UVERBSCTL, *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message + "\n")


def test_options_are_taken_before_and_behind_verbs_and_words():
    script = "{0} port --device uverbs0 down 1 && {0} port up uverbs0 --control $UVERBSD_CONTROL 1 && {0} filter list --json"
    done = call(UVERBSCTL, "run", "--log-level", "error", "--", "sh", "-c", script.format(UVERBSCTL))
    assert done.returncode == 0 and not done.stderr and json.loads(done.stdout)


@pytest.fixture(scope="module", name="in_a_run")
def calls_in_a_run():
    """Runs a command line, or several, on a run's two devices, with what it says and its exit status."""
    def in_a_run(*lines):
        script = "".join(f"{UVERBSCTL} {line}; echo \"= $?\"\n" for line in lines)
        done = call(UVERBSCTL, "run", "--log-level", "error", "--devices", "2", "--", "sh", "-c", script)
        assert done.returncode == 0
        return done.stdout, done.stderr.splitlines()
    return in_a_run


def test_each_old_spelling_does_the_same_with_a_hint(tables, in_a_run):
    values = {"DEVICE": "rxe0", "PORT": "1"}
    assert len(tables["old"]) >= 5
    for spelling in tables["old"]:
        old, now = (" ".join(values.get(w, w) for w in spelling[key].split()) for key in ("old", "now"))
        was, is_now = in_a_run(old), in_a_run(now)
        hint = f"uverbsctl: `{spelling['old']}` is an old spelling of `{spelling['now']}`: it goes with the next release"
        assert was == (is_now[0], [hint, *is_now[1]]), spelling
        assert not any("unknown verb" in line for line in is_now[1])


def test_options_of_an_old_spelling_stay(in_a_run):
    out, said = in_a_run("port --control $UVERBSD_CONTROL rxe1 1 down", "hca --json")
    assert out.startswith("= 0\n[") and out.endswith("= 0\n") and len([line for line in said if "old spelling" in line]) == 2


def test_device_chooses_in_each_command_that_has_it(in_a_run):
    out, said = in_a_run("device list", "status --device uverbs1", "status --device rxe0 --json", "port down 1 --device rxe1",
                         "filter add --device rxe1 error", "filter list", "call --device rxe1 PD ALLOC", "tree --device rxe1 --json",
                         "device remove --device rxe1", "device add --device rxe1", "status --device nope")
    assert said == ["uverbsctl status: no device `nope`; the nearest are rxe1, rxe0"]
    assert out.count("= 0\n") == 10 and out.count("= 1\n") == 1
    answers = out.split("= 0\n")
    assert re.fullmatch(r"rxe0 +/dev/infiniband/uverbs0 +rxe, .*\nrxe1 +/dev/infiniband/uverbs1 .*\n", answers[0]), answers[0]
    assert "rxe1" in answers[1] and "rxe0" not in answers[1] and [d["device"] for d in json.loads(answers[2])["devices"]] == ["rxe0"]
    assert answers[4].startswith("rxe1: error") and answers[8].startswith("rxe1 ")


def test_trace_and_explain_choose_a_device(tmp_path):
    trace = str(tmp_path / "trace")
    script = f"for d in rxe0 rxe1; do {UVERBSCTL} call $d PD DEALLOC --pd_handle 77; {UVERBSCTL} call $d PD ALLOC; done >/dev/null 2>&1"
    done = call(UVERBSCTL, "run", "--devices", "2", "--trace", trace, "--log-level", "error", "--", "sh", "-c", script)
    assert done.returncode == 0, done
    whole = call(UVERBSCTL, "trace", "-i", trace, "--json").stdout.splitlines()
    for device in "rxe1", "uverbs1", "/dev/infiniband/uverbs1":
        chosen = call(UVERBSCTL, "trace", "-i", trace, "--json", "--device", device).stdout.splitlines()
        assert {json.loads(line)["device"] for line in chosen} == {"rxe1"} and 4 <= len(chosen) < len(whole)
    explained = [call(UVERBSCTL, "explain", "-i", trace, *which).stdout.count("0x4d") for which in ([], ["--device", "rxe0"])]
    assert explained[0] == 2 * explained[1] > 0, explained
