# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Calls the methods and write() commands of an uverbs device by name.

    import uverbs
    with uverbs.open("rxe0") as dev:
        pd = dev.PD.ALLOC_PD()                      # a write() command, by INVOKE_WRITE
        cq = dev.CQ.CREATE(cqe=16)                  # a method: RDMA_VERBS_IOCTL
        print(cq.handle, cq.resp_cqe)
        dev.CQ.DESTROY(handle=cq)

The names come from the parse tree of the device, so plug-ins need no change here. Only uverbsd's devices tell their tree; for
the kernel's own ones uverbs.json, beside this file, has the kernel's names. docs/python.md has worked examples.

Needs Python 3.9, and nothing else.
"""
import contextlib
import errno
import json
import os
import pathlib
import re
import socket
import struct

from uverbs_call import CmCommand, Command, Handle, Message, Method, Result
from uverbs_schema import ROLE, ROW, Row, Value, address, build, name_after, plain_method, rows_of_json, short_object, store, told

__all__ = ["open", "Device", "ConnectionManager", "Result", "Handle", "Value", "address", "devices"]

_TREE_OBJECT = _TREE_METHOD = _TREE_ATTR = 0x1040
_TREE_ROLES = 0x1041
_DRIVERS = 15, 14  # hfi1, rxe: a wrong driver_id is logged by the device, so the likely ones come first

# ---- the device ------------------------------------------------------------------------------------------------------


class _Calls:
    """The methods and commands of an object; or, of dev.write, all commands."""

    def __init__(self, dev, name, calls):
        self._dev, self._name, self._calls = dev, name, calls

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        for obj, row in self._calls:
            if name.upper() in (row.name, row.short, plain_method(row), name_after(row.name, "IB_USER_VERBS_")):
                return (Method if row.kind == "method" else self._dev._command)(self._dev, obj, row)
        raise AttributeError(f"{self._name} has no method {name}: there are {', '.join(self.__dir__())}")

    def __dir__(self):
        names = []
        for _, row in self._calls:
            names.append(row.short if row.short not in names else name_after(row.name, "IB_USER_VERBS_"))
        return names

    def __repr__(self):
        return f"<{self._name}: {', '.join(dir(self))}>"


class Device:
    """An open file of a device. dev.OBJECT.METHOD(attribute=value) calls a method, dev.write.COMMAND(field=value) a command."""

    _command = Command

    def __init__(self, path, context=True, name=""):
        """Opens a node. context: GET_CONTEXT is called before the first call that needs it. name: rxe0, if it is known."""
        self.path, self.fd, self.has_context = path, os.open(path, os.O_RDWR | os.O_CLOEXEC), not context
        self._drivers = _DRIVERS[::-1] if name.startswith("rxe") else _DRIVERS
        try:
            self.tells_tree = self._learn()
        except BaseException:
            os.close(self.fd)
            raise

    def _query(self, driver, first, method=_TREE_METHOD, size=ROW.size):
        rows, num, total = bytearray(64 * size), bytearray(4), bytearray(4)
        msg = Message()
        msg.add_bytes(_TREE_ATTR, struct.pack("=I", first))
        msg.add_bytes(_TREE_ATTR + 1, struct.pack("=I", size))
        for i, buffer in enumerate((rows, num, total)):
            msg.add_output(_TREE_ATTR + 2 + i, buffer, len(buffer))
        msg.send(self.fd, driver, _TREE_OBJECT, method)
        count = struct.unpack("=I", num)[0]
        return [rows[i * size:(i + 1) * size] for i in range(count)], struct.unpack("=I", total)[0]

    def _query_all(self, driver, rows, total, *what):
        while len(rows) < total:
            more, total = self._query(driver, len(rows), *what)
            if not more:
                break
            rows += more
        return rows

    def _roles(self):
        """What the device tells of the fields of its plug-ins' calls. An older one tells nothing."""
        what = _TREE_ROLES, ROLE.size
        try:
            rows, total = self._query(self.driver_id, 0, *what)
        except OSError as e:
            if e.errno != errno.EPROTONOSUPPORT:
                raise
            return {}
        return told(self._query_all(self.driver_id, rows, total, *what))

    def _learn(self):
        """Reads the tree of the device, or takes the stored one if it tells none. The driver_id is found by trying."""
        for driver in (*self._drivers, *range(256)):
            try:
                rows, total = self._query(driver, 0)
            except OSError as e:
                if e.errno == errno.EINVAL:
                    continue
                if e.errno == errno.ENOTTY:
                    raise OSError(e.errno, f"{self.path}: it has no ioctl (a device with --abi write), or is no uverbs device") from None
                if e.errno != errno.EPROTONOSUPPORT:
                    raise
                self.driver_id = driver
                stored = store()["trees"]
                self._set(rows_of_json(stored.get(str(driver), stored[str(_DRIVERS[0])])))
                return False
            self.driver_id = driver
            rows = [Row.of_device(r) for r in self._query_all(driver, rows, total)]
            roles = self._roles()
            for row in rows:
                row.told = roles.get(row.key())
            self._set(rows)
            return True
        raise OSError(errno.EINVAL, f"{self.path}: no driver_id is the device's")

    def _set(self, rows):
        self._objects = build(rows)
        self._device = self._objects["DEVICE"]
        self._invoke = next(r for r in self._device.children if r.name == "UVERBS_METHOD_INVOKE_WRITE")

    def _ensure_context(self, row):
        is_it = row.name.endswith("_GET_CONTEXT")
        if self.has_context or row.object == _TREE_OBJECT:
            return
        self.has_context = True
        if is_it:
            return
        try:
            self.DEVICE.GET_CONTEXT()
        except OSError as e:
            self.has_context = False
            if e.errno != errno.EPROTONOSUPPORT:
                raise
            self.has_context = True
            self.write.GET_CONTEXT()  # a kernel before the method

    def learn(self):
        """Reads the tree again: a context with User Capabilities has a larger one."""
        self.tells_tree = self._learn()

    def _handle(self, obj, number):
        return Handle(self, obj, number)

    def _destroy(self, handle):
        for row in handle.object.children:
            if row.kind == "method" and any(a.type == "IDR" and a.access == "DESTROY" for a in row.children):
                attr = next(a for a in row.children if a.access == "DESTROY" and a.type == "IDR")
                return Method(self, handle.object, row)(**{attr.short: handle})
        raise OSError(errno.EPROTONOSUPPORT, f"{handle.object.short} has no method that destroys it")

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "write":
            return _Calls(self, "write", [(o, r) for o in self._objects.values() for r in o.children if r.kind == "command"])
        obj = self._objects.get(short_object(name).upper())
        if obj is None:
            raise AttributeError(f"{self.path} has no object {name}: there are {', '.join(self._objects)}")
        return _Calls(self, obj.short, [(obj, r) for r in obj.children])

    def __dir__(self):
        return [*super().__dir__(), "write", *self._objects]

    def __repr__(self):
        return f"<Device {self.path}>"

    def fileno(self):
        return self.fd

    def close(self):
        """Closes the file. The device destroys all that was created by it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class ConnectionManager(Device):
    """An open file of /dev/infiniband/rdma_cm. cm.CM_ID.COMMAND(field=value) calls a command. A GET_EVENT waits; select.poll() tells
    when there is an event."""

    _command = CmCommand

    def __init__(self, path):
        self.path, self.fd, self.has_context, self.tells_tree = path, os.open(path, os.O_RDWR | os.O_CLOEXEC), True, False
        self._objects = build(rows_of_json(store()["rdma_cm"]))

    def learn(self):
        """The commands are the same on each node."""

    def _destroy(self, handle):
        command = self.CM_MCAST.LEAVE_MCAST if handle.object.short == "CM_MCAST" else self.CM_ID.DESTROY_ID
        return command(id=handle)


def _sysfs_nodes(sysfs):
    """(node, name of the device) of each device below a sysfs directory."""
    for path in sorted(pathlib.Path(sysfs, "class/infiniband_verbs").glob("uverbs*/ibdev")):
        yield path.parent.name, path.read_text().strip()


def _daemon_sysfs():
    """The sysfs directory that a uverbsd publishes, if one is running."""
    with contextlib.suppress(OSError, ValueError, KeyError), socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(os.environ.get("UVERBSD_CONTROL") or "/run/uverbsd/control")
        s.sendall(b"status\n")
        yield json.loads(s.makefile().readline())["sysfs"]


def devices():
    """The nodes of all devices by their names: {"rxe0": "/dev/infiniband/uverbs0"}."""
    for sysfs in [os.environ.get("SYSFS_PATH") or "/sys", *_daemon_sysfs()]:
        found = {name: "/dev/infiniband/" + node for node, name in _sysfs_nodes(sysfs)}
        if found:
            return found
    return {}


def open(name=None, context=True):
    """Opens a device: "rxe0", "uverbs0", the path of its node, or (None) the only one; or "rdma_cm"."""
    if name and name.rpartition("/")[2] == "rdma_cm":
        return ConnectionManager(name if "/" in name else "/dev/infiniband/rdma_cm")
    if name and "/" in name:
        return Device(name, context)
    if name and re.fullmatch(r"uverbs\d+", name):
        return Device("/dev/infiniband/" + name, context)
    found = devices()
    if name is None and len(found) > 1:
        raise OSError(errno.ENODEV, f"there are several devices: {', '.join(found)}")
    if name is None and found:
        name = next(iter(found))
    if name not in found:
        raise OSError(errno.ENODEV, f"there is no device {name or ''}: there are {', '.join(found) or 'none'}")
    return Device(found[name], context, name)
