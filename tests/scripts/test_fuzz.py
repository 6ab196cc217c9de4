# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The fuzz targets' driver, scripts/fuzz, and the examples of docs/fuzzing-in-process.md."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", ROOT / "build")).resolve()
TARGETS = sorted(p.stem.removeprefix("fuzz_") for p in (ROOT / "fuzz").glob("fuzz_*.c"))


def run(*argv, **kwargs):
    return subprocess.run([str(a) for a in argv], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100,
                          check=False, **kwargs)


def test_examples_of_the_document_run():
    text = (ROOT / "docs/fuzzing-in-process.md").read_text()
    block = re.search(r"<!-- worked examples.*?-->\n```\n(.*?)```", text, re.S)[1].replace("build/", f"{BUILD}/")
    lines = block.splitlines()
    assert len(lines) >= 3
    for line in lines:
        done = run("sh", "-c", line)
        assert done.returncode == 0, f"{line}: {done.stdout}"
        assert done.stdout.strip()


def test_script_the_build_and_the_document_name_the_same_targets():
    assert run("scripts/fuzz", "--list").stdout.split() == TARGETS
    text = (ROOT / "docs/fuzzing-in-process.md").read_text().partition("## Run a target")[0]
    rows = re.findall(r"^\| `(\w+)` \|", text, re.M)
    assert sorted(rows) == TARGETS


def test_script_refuses_a_target_that_is_not_there_and_names_those_that_are():
    done = run("scripts/fuzz", "nothing")
    assert done.returncode == 1
    assert "no target 'nothing'" in done.stdout and "ioctl" in done.stdout


def test_input_that_was_executed_last_is_kept(tmp_path):
    last = tmp_path / "last"
    done = run(BUILD / "fuzz/fuzz-queue", "--mutate", "10", "fuzz/corpus/queue", env={**os.environ, "FUZZ_LAST": str(last)})
    assert done.returncode == 0, done.stdout
    data = last.read_bytes()
    assert 0 < int.from_bytes(data[-8:], "little") <= len(data) - 8


def test_dictionary_has_every_method_and_seeds_are_executed(tmp_path):
    words = run(BUILD / "fuzz/fuzz-ioctl", "--dictionary").stdout.splitlines()
    assert all(re.fullmatch(r'\w+="(\\x[0-9a-f]{2})+"', word) for word in words)
    assert run(BUILD / "fuzz/fuzz-ioctl", "--seeds", tmp_path).returncode == 0
    assert len(list(tmp_path.iterdir())) == len(words) > 30
    assert run(BUILD / "fuzz/fuzz-ioctl", tmp_path).returncode == 0


def test_target_of_the_control_socket_answers_the_commands_of_filters_traces_and_meters():
    words = run(BUILD / "fuzz/fuzz-control", "--dictionary").stdout.splitlines()
    assert words and all(re.fullmatch(r'"(\\x[0-9a-f]{2})+"', word) for word in words)
    known = b"".join(bytes.fromhex(word.strip('"').replace("\\x", "")) for word in words)
    # Each request of `uverbsctl filter` must be reachable: a seed that is refused as unknown reaches no filter.
    for seed in ("filter-set", "filter-remove", "filter-loss", "filter-flap", "trace", "meter"):
        said = run(BUILD / "fuzz/fuzz-control", "--tell", f"fuzz/corpus/control/{seed}").stdout
        assert re.search(f"{seed}: {{\"(device|trace|meter)\"", said), said
    filters = re.search(r"#define UVD_FILTERS\(X\) (.*)", (ROOT / "src/filters/filters.h").read_text())[1]
    assert all(f"{name}:".encode() in known for name in re.findall(r"X\((\w+)\)", filters)), known


# The seeds of real programs, with how many calls succeed in the program itself. scripts/fuzz --record prints it.
RECORDED = {
    "rc-ioctl": (50, 52), "rc-write": (49, 49), "rc-events-ioctl": (59, 61), "uc-write": (49, 49),
    "ud-ioctl": (56, 58), "srq-ioctl": (69, 71), "srq-write": (67, 67), "send-bw-ioctl": (59, 61),
    "send-bw-ud-write": (59, 59), "write-bw-ioctl": (44, 46), "read-lat-write": (48, 48), "atomic-lat-ioctl": (46, 48),
    "write-lat-inline-ioctl": (54, 56), "write-lat-inline-write": (52, 52), "devinfo-ioctl": (6, 9),
}


def test_calls_of_a_recorded_program_succeed_as_in_the_program():
    seeds = [f"fuzz/corpus/calls/{name}" for name in RECORDED]
    for rounds in range(2):  # in the second one the device has other numbers
        out = run(BUILD / "fuzz/fuzz-calls", "--tell", *seeds, *(seeds if rounds else ())).stdout
        said = re.findall(r"/([\w-]+): (\d+) of (\d+) calls succeed", out)
        assert len(said) == len(seeds) * (1 + rounds), out
        for name, succeeded, made in said:
            assert (int(succeeded), int(made)) == RECORDED[name], f"{name}: {out}"


def test_trace_of_a_program_becomes_a_seed_whose_calls_have_the_same_results(tmp_path):
    done = run(BUILD / "tools/uverbsctl", "run", "--persona", "hfi1", "--lid", "1", "--trace", tmp_path / "trace", "--", "ibv_devinfo")
    assert done.returncode == 0, done.stdout
    made = run(sys.executable, "fuzz/seeds.py", tmp_path, "devinfo", tmp_path / "trace").stdout
    succeeded, calls = re.search(r"devinfo: (\d+) of (\d+) calls succeeded", made).groups()
    assert int(succeeded) >= 3
    assert f"{succeeded} of {calls} calls succeed" in run(BUILD / "fuzz/fuzz-calls", "--tell", tmp_path / "calls").stdout


# A client whose device has given descriptor 7, the numbers 5 and 9, and objects: struct.unpack() of what a request becomes in a seed.
SEEDS = """
import collections, struct, sys
sys.argv = ["seeds.py", "", "", ""]
sys.path.insert(0, "fuzz")
import seeds
client, call = seeds.Client(), collections.namedtuple("Call", "file")(0)
client.add_fd(0, 7)
client.numbers = {("rkey", 5): 40, ("qpn", 5): 44, ("lkey", 9): 48}

def made(command, form, *values):
    body = bytearray(struct.pack(form, *values))
    request = seeds.Request(client, call, command, body)
    return struct.unpack(form, body), request.copies
"""


def seed_says(text):
    done = run(sys.executable, "-c", SEEDS + text)
    assert done.returncode == 0, done.stdout
    return done.stdout.strip()


@pytest.mark.parametrize("command, form, at", [(18, "=QQIIiI", 4), (18 | 1 << 31, "=QIIiIII", 3)])
def test_descriptor_of_a_recorded_request_becomes_that_of_the_target(command, form, at):
    values = [7 if i == at else 0 for i in range(len(form) - 1)]
    assert seed_says(f"print(made({command}, {form!r}, *{values})[0][{at}] == seeds.FIRST_FD)") == "True"


def test_numbers_of_a_work_request_are_those_that_its_opcode_selects():
    # One work request with one scatter/gather element. The number 5 is where wr.ud.remote_qpn, wr.rdma.rkey and wr.atomic.rkey are.
    form, union = "=QIIIIQIIIIIIIIIIIIQII", (0, 5, 5, 0, 0, 0, 5, 0)
    for opcode, copy in (0, (40, 56)), (2, (44, 52)), (5, (40, 72)):
        values = (0, 0, 1, 1, 56, 0, 1, opcode, 0, 0, *union, 0, 0, 9)
        assert seed_says(f"print(made(28, {form!r}, *{values})[1])") == str([copy, (48, 92)]), opcode


def test_memory_of_a_region_and_its_keys_are_those_of_the_target():
    # REG_MR of a page, its response, and a work request that names an address within, and the key.
    register = "made(9, '=QQQQII', 0, 0x555500001000, 4096, 0, 0, 7)[0][1] - seeds.BUFFER"
    learn = "seeds.Request(client, call, 9, bytearray(40)).learn(client, call, struct.pack('=III', 1, 33, 34), seeds.OUT + 100)"
    post = "made(29, '=QIIIIQIIQII', 0, 0, 1, 1, 16, 0, 1, 0, 0x555500001010, 16, 33)"
    said = seed_says(f"print({register}); {learn}; post = {post}; print(post[0][8] - seeds.BUFFER, post[1])")
    assert said == "0\n16 [(104, 52)]"


def test_handles_are_those_of_the_targets_objects():
    form, values = "=QQIIIIIIIIIBBBx", [0, 0, 90, 91, 92, 93, *[1] * 5, 0, 2]
    said = f"client.filled = True; print(*[made(24, {form!r}, *{values}, srq)[0][2:6] for srq in (0, 1)])"
    assert seed_says(said) == "(0, 1, 1, 93) (0, 1, 1, 5)"


def test_corpus_is_small():
    files = [p for p in (ROOT / "fuzz/corpus").rglob("*") if p.is_file()]
    assert len(files) <= 1500 and sum(p.stat().st_size for p in files) < 1 << 20


# Loads a mutator as afl-fuzz does, and prints what it makes of an input. In a process of its own: the target sets itself up there.
AFL = """
import ctypes, hashlib, pathlib, sys
lib = ctypes.CDLL(sys.argv[1])
lib.afl_custom_init.restype = ctypes.c_void_p
lib.afl_custom_fuzz.restype = ctypes.c_size_t
most, data = int(sys.argv[4]), pathlib.Path(sys.argv[3]).read_bytes()
state = ctypes.c_void_p(lib.afl_custom_init(None, int(sys.argv[2])))
for _ in range(100):
    buf, out = ctypes.create_string_buffer(data, len(data)), ctypes.c_void_p()
    size = lib.afl_custom_fuzz(state, buf, ctypes.c_size_t(len(data)), ctypes.byref(out), None, ctypes.c_size_t(0), ctypes.c_size_t(most))
    print(size, hashlib.sha1(ctypes.string_at(out.value, size)).hexdigest())
lib.afl_custom_deinit(state)
"""


@pytest.mark.parametrize("target", ["calls", "control", "ioctl", "options", "packet", "write"])
def test_mutator_for_afl_makes_other_inputs_by_its_seed_and_keeps_to_their_limit(target):
    seed = max((ROOT / "fuzz/corpus" / target).iterdir(), key=lambda p: p.stat().st_size)

    def made(number, most):
        done = run(sys.executable, "-c", AFL, BUILD / f"fuzz/mutator-{target}.so", number, seed, most)
        assert done.returncode == 0, done.stdout
        return done.stdout.splitlines()

    first = made(1, 1 << 20)
    assert len(set(first)) > 50
    assert made(1, 1 << 20) == first and made(2, 1 << 20) != first
    size = seed.stat().st_size
    assert all(int(line.split()[0]) <= size for line in made(1, size))
