# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The man pages: they are up to date, have every option, name pages that exist, and mandoc and man have no complaint about them."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", "build")).resolve()
UVERBSCTL = BUILD / "tools" / "uverbsctl"
MAN = ROOT / "docs" / "man"
sys.path.insert(0, str(MAN))
import make  # noqa: E402

TABLES = make.read_tables(BUILD)
PAGES = sorted(p for p in MAN.iterdir() if re.fullmatch(r"\.[1-8]", p.suffix))
NAMES = [p.name for p in PAGES]
# Pages of other packages that ours name, with the package of Debian that has each.
OTHERS = {
    "ibv_devinfo(1)": "ibverbs-utils", "ioctl(2)": "manpages-dev", "modprobe.d(5)": "kmod", "pkg-config(1)": "pkgconf",
    "sd_notify(3)": "libsystemd-dev", "seccomp(2)": "manpages-dev", "strace(1)": "strace", "systemd(1)": "systemd",
    "write(2)": "manpages-dev",
}


def said_by(*command, **env):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
                          env={**os.environ, **env})
    return done.stdout, done.stderr


def page(name):
    return (MAN / name).read_text()


def options_of(text):
    """The options that heads of items of a page have: `--name`, `-n`."""
    heads = "\n".join(line for line in text.splitlines() if line.startswith(".It "))
    return {"-" + name for name in re.findall(r"\bFl (-?[a-z][\w-]*)", heads)}


def keys_of(text):
    return set(re.findall(r"^\.It Cm (\S+) =", text, re.MULTILINE))


def options_in_help(text):
    """The options that a help text lists at the beginnings of its lines."""
    listed = re.findall(r"^ +(-\w\b|--[a-z][\w-]*)(?:, (--[a-z][\w-]*))?", text, re.MULTILINE)
    return {option for pair in listed for option in pair if option}


def test_pages_and_their_list_are_up_to_date():
    stale = make.stale(make.pages(TABLES))
    assert not stale, f"{stale}: `ninja -C BUILD man-pages` mends this"


@pytest.mark.parametrize("program, name", [("uverbsd", "uverbsd.8"), ("run", "uverbsctl-run.1")])
def test_each_option_of_a_program_is_in_its_page(program, name):
    options = {"--" + o["name"] for o in TABLES.options if program in o["programs"]}
    assert len(options) > 80
    assert options <= options_of(page(name))


def test_each_option_that_uverbsd_lists_is_in_its_page():
    listed = options_in_help(said_by(BUILD / "src" / "uverbsd", "--help=all")[0])
    assert {"--config", "--workers", "--limit-files", "--version"} <= listed <= options_of(page("uverbsd.8"))


@pytest.mark.parametrize("name", TABLES.commands)
def test_each_option_of_a_command_is_in_its_page(name):
    command = TABLES.commands[name]
    rows = command["options"] + [o for verb in command["verbs"] for o in verb["options"]]
    options = {"--" + o["long"] for o in rows if o["long"]} | {"-" + o["short"] for o in rows if o["short"]}
    listed = options_in_help(said_by(UVERBSCTL, name, "--help")[0])
    common = options_of(page("uverbsctl.1"))
    assert options <= options_of(page(f"uverbsctl-{name}.1"))
    assert listed <= options_of(page(f"uverbsctl-{name}.1")) | common


def test_each_key_of_the_file_is_in_its_page():
    keys = {o["name"].removeprefix("limit-") for o in TABLES.options if o["file"]} - {"plugin"}
    assert len(keys) > 100
    assert keys == keys_of(page("uverbsd.conf.5"))


def test_each_command_is_in_the_page_of_uverbsctl():
    named = set(re.findall(r"^\.It Xr uverbsctl-(\S+) 1", page("uverbsctl.1"), re.MULTILINE))
    assert named == set(TABLES.commands) == {p.name[10:-2] for p in PAGES if p.name.startswith("uverbsctl-")}


@pytest.mark.parametrize("filter_", TABLES.filters, ids=lambda f: f["name"])
def test_each_option_of_a_filter_is_in_its_page(filter_):
    text = page("uverbsctl-filter.1").split(f".Ss Filter {filter_['name']}\n")[1].split("\n.Ss")[0]
    assert filter_["options"]
    assert [o["name"] for o in filter_["options"] if not re.search(rf"(^|[\s,]){re.escape(o['name'])}([\s.,]|$)", text)] == []


def test_each_function_for_plugins_is_in_its_page():
    marked = set()
    for header in (ROOT / "include" / "uverbsd").glob("*.h"):
        marked |= set(re.findall(r"^UVD_API[^;{]*?\b(\w+)\(", header.read_text(), re.MULTILINE))
    assert len(marked) > 80
    assert marked == set(re.findall(r"^\.It Ft .*\bFn (\w+)", page("uverbsd-plugin.3"), re.MULTILINE))


def test_each_difference_from_the_kernel_is_in_its_page():
    rows = [line for line in (ROOT / "docs" / "abi-differences.md").read_text().split("\n## Call by call")[0].splitlines()
            if line.startswith("| ") and not re.match(r"\| (what|---) ", line)]
    differences = page("uverbsd.7").split(".Sh DIFFERENCES")[1].split(".Ss Connection management")[0]
    assert len(rows) > 100
    assert len(re.findall(r"^\.It ", differences, re.MULTILINE)) == len(rows)


@pytest.mark.parametrize("name", NAMES)
def test_pages_that_a_page_names_exist(name):
    ours = {f"{p.stem}({p.suffix[1:]})" for p in PAGES}
    named = {f"{n}({s})" for n, s in re.findall(r"\bXr (\S+) ([1-8])", page(name))}
    assert named
    assert named <= ours | OTHERS.keys()


@pytest.mark.parametrize("name", NAMES)
def test_documents_that_a_page_names_exist(name):
    named = re.findall(r"/usr/share/doc/uverbsd/docs/([\w./-]+\.md)", page(name))
    assert [n for n in named if not (ROOT / "docs" / n).exists()] == []


@pytest.mark.parametrize("name", NAMES)
def test_page_has_the_sections_that_readers_expect(name):
    wanted = {"NAME", "DESCRIPTION", "SEE ALSO"} | ({"SYNOPSIS"} if name[-1] in "138" else set())
    assert wanted <= set(re.findall(r"^\.Sh (.+)", page(name), re.MULTILINE))


def test_mandoc_has_no_complaint():
    said, _ = said_by("mandoc", "-Tlint", *PAGES)
    # It looks for the pages that a page names among those that are installed here.
    assert [line for line in said.splitlines() if "referenced manual not found" not in line] == []


def test_man_renders_all_pages_without_a_warning():
    _, said = said_by("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", *PAGES, LC_ALL="C.UTF-8", MANROFFSEQ="", MANWIDTH="80")
    assert said == ""


def examples_of_the_file():
    text = (MAN / "uverbsd.conf.5.in").read_text().split("## EXAMPLES\n")[1].split("\n## ")[0]
    return re.findall(r"^```\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("example", examples_of_the_file(), ids=lambda e: e.split("\n")[0])
def test_example_of_a_file_can_be_used(example, tmp_path):
    plugin = BUILD / "plugins" / "counter.so"
    if "counter.so" in example and not plugin.exists():
        pytest.skip("the plug-in counter is not built")
    (tmp_path / "uverbsd.conf").write_text(example.replace("counter.so", str(plugin)))
    done = subprocess.run([UVERBSCTL, "run", "--config", tmp_path / "uverbsd.conf", "--", "echo", "works"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("works\n", 0), done.stderr
