# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two network namespaces with a link between them, and programs of the distribution at both ends."""
import concurrent.futures
import ctypes
import os
import pathlib
import re
import socket
import subprocess
import time

STUCK = 300  # seconds
ADDRESSES = (("10.98.0.1", "fd98::1"), ("10.98.0.2", "fd98::2"))  # of the two ends
NOBODY = ("setpriv", "--reuid=65534", "--regid=65533", "--clear-groups", "--bounding-set=-all", "--")
WRONG = re.compile(r"(?i)invalid data|(?<!filter )(?<!retry)\b(fail|failed|failure)\b|error|differ|mismatch")


def shell(*words):
    subprocess.run(words, check=True)


class Net:
    """first_is_ours: the first end is the namespace in which the tests run, for a device of the kernel."""

    def __init__(self, mtu=1500, first_is_ours=False):
        self.holders = [None if first_is_ours and end == 0 else
                        subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE)
                        for end in (0, 1)]
        for holder in filter(None, self.holders):
            holder.stdout.readline()
        # From within: several processes of pytest make such a link at the same time.
        shell(*self.enter(0), "ip", "link", "add", "wire0", "type", "veth", "peer", "name", "wire1", "netns", str(self.holders[1].pid))
        for end, (four, six) in enumerate(ADDRESSES):
            shell(*self.enter(end), "ip", "link", "set", "lo", "up")
            shell(*self.enter(end), "ip", "link", "set", f"wire{end}", "mtu", str(mtu), "up")
            shell(*self.enter(end), "ip", "addr", "add", f"{four}/24", "dev", f"wire{end}")
            shell(*self.enter(end), "ip", "addr", "add", f"{six}/64", "dev", f"wire{end}", "nodad")
        for end in (0, 1):
            for address in ADDRESSES[1 - end]:
                self.reach(end, address)

    def reach(self, end, address):
        """
        Connects to an address of the other end, which leaves neighbours at both ends. The kernel's rxe looks for a neighbour with
        the interface's link-local address and gives up after a second, but that address is tentative in the link's first seconds.
        """
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with self.socket_at(1 - end, family) as there, self.socket_at(end, family) as here:
            there.bind((address, 0))
            there.listen()
            here.settimeout(STUCK)
            here.connect(there.getsockname())

    def socket_at(self, end, family):
        def made():  # by a thread that ends in that namespace
            pid = self.holders[end].pid if self.holders[end] else os.getpid()
            with open(f"/proc/{pid}/ns/net", "rb") as namespace:
                if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0):
                    raise OSError(ctypes.get_errno(), "setns")
            return socket.socket(family)
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            return thread.submit(made).result()

    def enter(self, end):
        return ("nsenter", "-t", str(self.holders[end].pid), "-n") if self.holders[end] else ()

    def trouble(self, end, *netem):
        """What the link does to packets that leave this end: arguments of `tc qdisc replace ... netem`."""
        shell(*self.enter(end), "tc", "qdisc", "replace", "dev", f"wire{end}", "root", "netem", *netem)

    def listens(self, end, port):
        pid = self.holders[end].pid if self.holders[end] else "self"
        return any(f":{port:04X} " in line and " 0A " in line
                   for name in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/{pid}/net/{name}").read_text().splitlines())

    def pair(self, server, client, program, server_end=0, client_end=None, port=18515):
        """Runs both sides of a program; `server` and `client` are what comes before it. Returns the client's output."""
        other = 1 - server_end if client_end is None else client_end
        with subprocess.Popen([*self.enter(server_end), *server, *program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as serving:
            end = time.monotonic() + STUCK
            while not self.listens(server_end, port) and serving.poll() is None and time.monotonic() < end:
                time.sleep(0.02)
            done = subprocess.run([*self.enter(other), *client, *program, ADDRESSES[server_end][0]], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=STUCK, check=False)
            if done.returncode:
                serving.kill()
            said = serving.communicate(timeout=STUCK)[0]
        assert done.returncode == 0 and serving.returncode == 0, f"{done.stdout}\n--- server:\n{said}"
        assert not WRONG.search(done.stdout + said), f"{done.stdout}\n--- server:\n{said}"
        return done.stdout

    def close(self):
        subprocess.run([*self.enter(0), "ip", "link", "delete", "wire0"], check=False)
        for holder in filter(None, self.holders):
            holder.kill()
            holder.wait()
