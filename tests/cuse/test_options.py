# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The command line and the INI file. Only the last test starts a daemon with nodes."""
import subprocess

import pytest

from conftest import BUILD, STUCK


def uverbsd(*options):
    return subprocess.run([BUILD / "src" / "uverbsd", *options], text=True, timeout=STUCK, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)


@pytest.mark.parametrize("options, words", [
    (["--devices", "0"], "--devices: `0` is not from 1 to 64"),
    (["--devices", "two"], "`two` is not a number"),
    (["--mode", "0888"], "--mode: `0888` is not a number"),
    (["--mtu", "1500"], "--mtu: `1500` is none of: 256 512 1024 2048 4096"),
    (["--abi", "netlink"], "`netlink` is none of: ioctl write"),
    (["--lid", "0xc000"], "--lid: `0xc000` is not from 1 to 49151"),
    (["--lid", "0xbfff", "--devices", "2"], "is too large"),
    (["--guid", "-1:0:0:0"], "is not a GUID such as"), (["--gid", "10.0.0.1"], "is not a GID such as fe80::"),
    (["--backend", "mlx5"], "`mlx5` is no backend"),
    (["--persona", "mlx5"], "`mlx5` is no persona"),
    (["--persona", "rxe", "--separate", "no"], "persona rxe maps queues, which needs two processes"),
    (["--personas", "hfi1,mlx5"], "--personas: `mlx5` is no persona"),
    (["--name", "same", "--devices", "2"], "two devices have the name same"),
    (["--config", "/nonexistent"], "/nonexistent: ENOENT"),
    (["--limit-files", "-1"], "--limit-files: `-1` is not from 0"),
    (["--limit-root", "maybe"], "--limit-root: `maybe` is none of: yes no"),
    (["--join", "x"], "unknown option"),
    (["program"], "unexpected argument `program`"),
])
def test_bad_option_is_told_and_exits_2(options, words):
    done = uverbsd(*options)
    assert done.returncode == 2 and words in done.stderr, done.stderr


@pytest.mark.parametrize("text, words", [
    ("[uverbsd]\ncolour = red\n", ":2: unknown key `colour`"),
    ("[uverbsd]\n\nmtu = 1500\n", ":3: mtu: `1500` is none of"),
    ("[device 0]\nworkers = 3\n", ":2: `workers` belongs in [uverbsd]"),
    ("[port 0.1]\nports = 2\n", ":2: `ports` belongs in [device 0]"),
    ("[port 0.2]\nlid = 2\n", ":2: device 0 has no port 2"),
    ("[uverbsd]\ndevices = 1\n[device 1]\nlid = 2\n", ":4: there is no device 1"),
    ("[port 0.0]\nlid = 2\n", ":2: [port 0.0] is not a section"),
    ("[limits]\ncolour = 3\n", ":2: unknown key `limit-colour`"),
    ("[limits]\ndevices = 3\n", ":2: unknown key `limit-devices`"),
    ("[limits]\nfiles = many\n", ":2: limit-files: `many` is not a number"),
    ("[device 0]\nlimit-files = 3\n", ":2: `limit-files` belongs in [limits]"),
    ("[elsewhere]\nlid = 2\n", ":2: [elsewhere] is not a section"),
    ("[uverbsd]\nlid\n", ":2: is neither [section] nor key = value"),
    ("[uverbsd]\nlid = " + "1" * 300 + "\n", ":2: the line is too long"),
    ("[uverbsd]\nconfig = other\n", ":2: unknown key `config`"),
    ("[uverbsd]\ninternal-engine = yes\n", ":2: unknown key `internal-engine`"),
])
def test_bad_line_of_the_file_is_told_with_its_number_and_exits_2(tmp_path, text, words):
    path = tmp_path / "uverbsd.conf"
    path.write_text(text)
    done = uverbsd("--config", path)
    assert done.returncode == 2 and f"{path}{words}" in done.stderr, done.stderr


def test_help_names_every_option_and_its_default():
    done = uverbsd("--help=all")
    assert done.returncode == 0
    text = " ".join(done.stdout.split())  # wherever its lines end
    for word in ["--devices N", "--grant-fds HOW", "--mtu BYTES", "--max-qp N", "--limit-files N", "(default: /run/uverbsd/control)"]:
        assert word in text
    assert "--join" not in done.stdout and "--internal" not in done.stdout


def test_file_describes_devices_and_the_command_line_wins(start, tmp_path):
    path = tmp_path / "uverbsd.conf"
    path.write_text("[uverbsd]\nbackend = null\nabi = write\nports = 2\nlid = 10\n"
                    "[device 1]\nname = other\nlid = 77\n  number = 9\n[port 1.2]\nstate = down\n")
    d = start("--config", path, "--abi", "ioctl", "--mtu", "1024")
    assert d.nodes == ["/dev/infiniband/uverbs0", "/dev/infiniband/uverbs9"]
    first, second = d.status()["devices"]
    assert (first["device"], second["device"]) == ("hfi1_0", "other")
    assert first["backend"] == second["backend"] == "null" and first["abi"] == "ioctl"
    ports = subprocess.run(["ibv_devinfo", "-d", "other"], env={"SYSFS_PATH": "/run/uverbsd/sysfs", "PATH": "/usr/bin"},
                           stdout=subprocess.PIPE, text=True, timeout=STUCK).stdout
    assert "port_lid:\t\t77" in ports and "port_lid:\t\t78" in ports
    assert "PORT_DOWN" in ports and ports.count("active_mtu:\t\t1024") == 2
