# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
The distribution's own programs, unmodified, run by an ordinary user on the real node, where the daemon's options matter.
tests/distribution runs programs on a daemon without options.
"""
import re
import subprocess
import time

import pytest

from conftest import NAMES, NOBODY, STUCK, environment, wait_for

USER = dict(user=NOBODY, group=NOBODY, extra_groups=[], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
TABLES = ["/proc/net/tcp", "/proc/net/tcp6"]


def run(*args):
    done = subprocess.run(args, env=environment(), timeout=STUCK, **USER)
    assert done.returncode == 0, done.stdout
    return done.stdout


def pingpong(*args):
    command = ["ibv_rc_pingpong", "-g", "0", "-n", "50", *args]
    server = subprocess.Popen(command, env=environment(), **USER)
    try:
        for _ in range(1000):
            time.sleep(0.2)
            # Retry until the server listens.
            client = subprocess.run([*command, "localhost"], env=environment(), timeout=STUCK, **USER)
            if "Couldn't connect" not in client.stdout or server.poll() is not None:
                break
        assert client.returncode == 0, client.stdout
        assert server.wait(STUCK) == 0, server.stdout.read()
    finally:
        server.kill()
    assert "50 iters" in client.stdout
    return client.stdout


@pytest.mark.parametrize("abi", ["ioctl", "write"])
def test_devinfo_and_devices_show_the_device(start, abi):
    d = start("--abi", abi, "--devices", "2", "--ports", "2")
    assert NAMES[0] in run("ibv_devices") and NAMES[1] in run("ibv_devices")
    text = run("ibv_devinfo", "-v", "-d", NAMES[1])
    assert text.count("PORT_ACTIVE (4)") == 2
    assert "num_comp_vectors:" in text
    d.wait_idle()


def test_pingpong_between_two_devices_by_gid(start):
    d = start("--devices", "2")
    server = subprocess.Popen(["ibv_rc_pingpong", "-n", "20", "-d", NAMES[0], "-g", "0"], env=environment(), **USER)
    try:
        # Port 18515 (hexadecimal 4853) is in the table of sockets, in the state LISTEN (0A).
        wait_for("the server", lambda: any(re.search(r":4853 \w+:0000 0A ", open(f).read()) for f in TABLES))
        client = subprocess.run(["ibv_rc_pingpong", "-n", "20", "-d", NAMES[1], "-g", "0", "localhost"], env=environment(),
                                timeout=STUCK, **USER)
        server_text = server.communicate(timeout=STUCK)[0]
    finally:
        server.kill()
    assert client.returncode == 0 and server.returncode == 0, client.stdout + server_text
    d.wait_idle()


def test_polling_needs_no_grant(start):
    start("--grant-fds", "off", "--abi", "write")
    pingpong()


def test_idle_daemon_is_small(start):
    """It has no huge pages: some kernels give one for each buffer of which a page is used."""
    d = start()
    pingpong()
    d.wait_idle()
    status = open(f"/proc/{d.serving}/status").read()
    rss = int(status.split("VmRSS:")[1].split()[0])
    maps = open(f"/proc/{d.serving}/maps").read()
    sanitized = "libasan" in maps or "libtsan" in maps      # the sanitizer's own memory is not the subject
    assert rss < (200 if sanitized else 10) << 10, f"{rss} KiB resident"
    assert "THP_enabled:\t0" in status
