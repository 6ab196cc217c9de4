# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A client of rdma_cm, in Python, for the tests of that node."""
from conftest import UVERBSCTL

PYTHON = "/usr/bin/python3"

# A client: commands of rdma/rdma_user_cm.h, by write(). RESOLVE_ADDR of a new identifier makes one event. Each command returns its
# result, or the name of its errno.
CLIENT = """
import ctypes, errno, fcntl, json, mmap, os, select, signal, socket, struct, subprocess, sys, threading, time

NODE = "/dev/infiniband/rdma_cm"
libc = ctypes.CDLL(None, use_errno=True)
CREATE_ID, DESTROY_ID, GET_EVENT, MIGRATE_ID, RESOLVE_ADDR = 0, 1, 12, 18, 21

def result(ret):
    return ret if ret >= 0 else errno.errorcode.get(ctypes.get_errno(), ctypes.get_errno())

def packed(number, body, out=0):
    return struct.pack("<IHH", number, len(body), out) + body

def command(fd, number, body, out=0):
    text = packed(number, body, out)
    return result(libc.write(fd, text, len(text)))

def create(fd, uid=7):
    number = ctypes.c_uint32()
    command(fd, CREATE_ID, struct.pack("<QQHB5x", uid, ctypes.addressof(number), 0x106, 2), 4)
    return number.value

def resolve(fd, number):
    to = struct.pack("<H2s4s120x", socket.AF_INET, b"", socket.inet_aton("127.0.0.1"))
    return command(fd, RESOLVE_ADDR, struct.pack("<IIHHI128x", number, 2000, 0, 16, 0) + to)

def event(fd, uid=7):
    return resolve(fd, create(fd, uid))

def destroy(fd, number):
    return command(fd, DESTROY_ID, struct.pack("<QII", ctypes.addressof(ctypes.create_string_buffer(4)), number, 0), 4)

def migrate(fd, number, other):
    return command(fd, MIGRATE_ID, struct.pack("<QIi", ctypes.addressof(ctypes.create_string_buffer(4)), number, other), 4)

def get(fd):
    "The uid of the next event."
    got = ctypes.create_string_buffer(336)
    ret = command(fd, GET_EVENT, struct.pack("<Q", ctypes.addressof(got)), len(got))
    return struct.unpack_from("<Q", got)[0] if ret == 16 else ret

def opened(flags=0):
    return os.open(NODE, os.O_RDWR | os.O_CLOEXEC | flags)

def held(resource):
    "What the user holds of a resource."
    told = subprocess.run([sys.argv[1], "status", "--accounts", "--json"], stdout=subprocess.PIPE, check=True).stdout
    return sum(a["used"] for a in json.loads(told)["accounts"] if a["resource"] == resource and "device" not in a)

def until(what):
    end = time.monotonic() + 300
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
    assert what()

class Waiter(threading.Thread):
    "A thread that waits in GET_EVENT."
    def __init__(self, fd):
        super().__init__(daemon=True)
        self.fd, self.got = fd, None
        self.start()
    def run(self):
        self.got = get(self.fd)
    def end(self):
        self.join(300)
        return self.got

def parked(num):
    until(lambda: held("parked") == num)

def signalled(call, *args):
    "Calls it while the process gets SIGUSR1 again and again."
    done = threading.Event()
    def send():
        while not done.wait(0.05):
            os.kill(os.getpid(), signal.SIGUSR1)
    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    got = call(*args)
    done.set()
    sender.join()
    return got
"""


def client(run, program, options=(), stderr="", **kw):
    r = run(PYTHON, "-c", CLIENT + program, UVERBSCTL, options=[*options, "--limit-root", "yes"], **kw)
    assert r.returncode == 0 and (r.stderr == stderr if isinstance(stderr, str) else stderr(r.stderr)), r
    return r.stdout
