# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
What the broker and the engine process say to each other changes with UVD_WIRE_VERSION only: after an upgrade the broker is of the old
program, and takes an engine process of the same version.
"""
import hashlib
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("UVERBSD_BUILD", ROOT / "build")).resolve()
PINNED = ROOT / "tests/broker/wire_version.txt"
WIRE = ROOT / "src/broker/wire.h"
SENT = ["uvd_wire_request", "uvd_wire_answer", "uvd_device_config"]


def code(path):
    return re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)


HEADERS = code(WIRE) + "".join(code(p) for p in sorted((ROOT / "include/uverbsd").glob("*.h")))


def struct(name, seen):
    """The definition of a struct, and those of the structs in it."""
    found = re.search(rf"^struct {name} \{{\n(.*?)^\}}", HEADERS, re.M | re.S)
    if not found or name in seen:
        return
    seen[name] = found[1]
    for inner in re.findall(r"struct (\w+) \w", found[1]):
        struct(inner, seen)


def sizes(folder):
    """The size of each message: the lengths of arrays are in it."""
    source, program = folder / "sizes.c", folder / "sizes"
    source.write_text("#include <stdio.h>\n#include <broker/wire.h>\nint main(void)\n{\n" +
                      "".join(f'printf("%zu ", sizeof(struct {name}));\n' for name in SENT) + "}\n")
    subprocess.run([*os.environ.get("CC", "cc").split(), "-I", ROOT / "src", "-I", ROOT / "include", source, "-o", program], check=True)
    return subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def messages():
    """A digest of all that both processes must understand alike, without the version itself."""
    parts = {}
    for name in SENT:
        struct(name, parts)
    enums = "".join(re.findall(r"^enum.*?^};", code(WIRE), re.M | re.S))
    table = re.search(r"^} ops\[.*?^};", code(ROOT / "src/broker/wire.c"), re.M | re.S)[0]
    text = "".join(name + parts[name] for name in sorted(parts)) + enums + table
    text = re.sub(r"UVD_WIRE_VERSION = \d+", "", text)
    return hashlib.sha256(re.sub(r"\s", "", text).encode()).hexdigest()[:16]


def version():
    return re.search(r"UVD_WIRE_VERSION = (\d+)", code(WIRE))[1]


def test_messages_change_with_the_version_only(tmp_path):
    line = f"version {version()} messages {messages()} sizes {' '.join(sizes(tmp_path))}"
    assert line in PINNED.read_text().splitlines(), f"increment UVD_WIRE_VERSION if {PINNED} has this one, and write `{line}` there"


def test_every_part_counts(monkeypatch):
    before = messages()
    for old, new in (("uint32_t index;", "uint64_t index;"), ("UVD_WIRE_READY,", ""), ("uint8_t lmc,", "uint16_t lmc,")):
        assert old in HEADERS
        with monkeypatch.context() as m:
            m.setattr(f"{__name__}.HEADERS", HEADERS.replace(old, new))
            m.setattr(f"{__name__}.code", lambda path, old=old, new=new: code_of(path).replace(old, new))
            assert messages() != before, old


code_of = code


def test_an_installer_is_told_the_version():
    done = subprocess.run([BUILD / "src/uverbsd", "--internal-facts"], stdout=subprocess.PIPE, text=True, check=True)
    assert f"broker_version {version()}\n" in done.stdout


def test_an_installer_is_told_of_an_adapter():
    """Of the kernel's: one is a link, and uverbsd's overlay has folders."""
    command = """mount -t tmpfs none /sys; mkdir -p /sys/class/infiniband/hfi1_0; "$0" --internal-facts
                 ln -s ../../devices/x /sys/class/infiniband/mlx5_0; "$0" --internal-facts"""
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", command, BUILD / "src/uverbsd"],
                          stdout=subprocess.PIPE, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if line.startswith("adapter")] == ["adapter mlx5_0"]
