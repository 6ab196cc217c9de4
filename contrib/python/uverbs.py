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
import ctypes
import errno
import fcntl
import json
import os
import pathlib
import re
import socket
import struct

from uverbs_schema import (ANY, ENDIAN, ROLE, ROW, Row, Struct, Value, address, build, bytes_of, find_field, flatten, is_memory, name_after,
                           number_of, pack, pack_field, plain_method, rows_of_json, short_object, store, told, unpack)

__all__ = ["open", "Device", "Result", "Handle", "Value", "address", "devices"]

_IOCTL = 0xc0181b01  # RDMA_VERBS_IOCTL
_HDR, _ATTR = struct.Struct("=HHHHQII"), struct.Struct("=HHHBBQ")
_F_MANDATORY, _F_VALID_OUTPUT = 1, 2
_TREE_OBJECT = _TREE_METHOD = _TREE_ATTR = 0x1040
_TREE_ROLES = 0x1041
_DRIVERS = 15, 14  # hfi1, rxe: a wrong driver_id is logged by the device, so the likely ones come first
_UHW_OUT, _ANY_OUT = 64, 4096  # sizes of outputs that have no size of their own
# ---- results ---------------------------------------------------------------------------------------------------------


class Handle:
    """An object of the device: a handle, or a file descriptor. It can be passed where the object is wanted, and is an int."""

    def __init__(self, dev, obj, number):
        self.dev, self.object, self.number = dev, obj, number

    def __index__(self):
        if self.number is None:
            raise ValueError(f"the {self.object.short} is destroyed")
        return self.number

    __int__ = __index__

    def fileno(self):
        """The descriptor of an object that is one, for select() and the like."""
        if self.object.type != "FD":
            raise OSError(errno.EBADF, f"{self.object.short} is no file descriptor")
        return self.number

    def __eq__(self, other):
        return self.number == other.number and self.object is other.object if isinstance(other, Handle) else self.number == other

    def __hash__(self):
        return hash(self.number)

    def __repr__(self):
        return f"<{self.object.short} {self.number}>"

    def destroy(self):
        """Destroys the object, or closes its descriptor. At most once: later calls do nothing."""
        if self.number is None:
            return
        if self.object.type == "FD":
            os.close(self.number)
        else:
            self.dev._destroy(self)
        self.number = None

    close = destroy

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()


class Result(Struct):
    """What a call returned, by short names. `handle` is the object that it created. As a context manager it destroys that."""

    handle = None

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return super().__getattr__(name)

    def __index__(self):
        if self.handle is None:
            raise TypeError("the call created no object")
        return int(self.handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.handle is not None:
            self.handle.destroy()


def _object_of(value):
    """The Handle in a value, or None."""
    return value.handle if isinstance(value, Result) else value if isinstance(value, Handle) else None


# ---- a call ----------------------------------------------------------------------------------------------------------


class _Message:
    """An RDMA_VERBS_IOCTL: its attributes, and the memory behind them."""

    def __init__(self):
        self.attrs, self.keep = [], []

    def add(self, id_, length=0, data=0, elem=0, mandatory=True):
        self.attrs.append((id_, length, _F_MANDATORY if mandatory else 0, elem, 0, data & (1 << 64) - 1))
        return len(self.attrs) - 1

    def add_bytes(self, id_, raw, elem=0, mandatory=True):
        """Up to 8 bytes are in the attribute itself."""
        if len(raw) <= 8:
            return self.add(id_, len(raw), int.from_bytes(raw.ljust(8, b"\0"), ENDIAN), elem, mandatory)
        if len(raw) >= 1 << 16:
            raise ValueError(f"{len(raw)} bytes are more than an attribute can have")
        self.keep.append(ctypes.create_string_buffer(bytes(raw), len(raw)))
        return self.add(id_, len(raw), ctypes.addressof(self.keep[-1]), elem, mandatory)

    def add_output(self, id_, buffer, length, mandatory=True):
        if length >= 1 << 16:
            raise ValueError(f"{length} bytes are more than an attribute can have")
        self.keep.append(buffer)
        return self.add(id_, length, address(buffer) if length else 0, mandatory=mandatory)

    def send(self, fd, driver, obj, method):
        """Returns the attributes as the device left them: (id, len, flags, elem, 0, data)."""
        size = _HDR.size + len(self.attrs) * _ATTR.size
        raw = bytearray(_HDR.pack(size, obj, method, len(self.attrs), 0, driver, 0))
        for a in self.attrs:
            raw += _ATTR.pack(*a)
        fcntl.ioctl(fd, _IOCTL, raw, True)
        return list(_ATTR.iter_unpack(raw[_HDR.size:]))


def _shown(args):
    """Arguments, for a message: handles instead of results, and no long bytes."""
    args = {k: _object_of(v) or v for k, v in args.items()}
    return ", ".join(f"{k}={'<%d bytes>' % len(v) if isinstance(v, (bytes, bytearray)) and len(v) > 16 else repr(v)}"
                     for k, v in args.items())


class _Call:
    """A method or a command of a device, to be called with keyword arguments."""

    def __init__(self, dev, obj, row):
        self.dev, self.obj, self.row = dev, obj, row
        self.__name__, self.__doc__ = f"{obj.short}.{row.short}", self._describe()

    def __repr__(self):
        return f"<{self.row.kind} {self.__name__}>"

    def _fail(self, e, args, hints=()):
        hint = "".join(f"; {h}" for h in hints)
        raise OSError(e.errno, f"{os.strerror(e.errno)}: {self.__name__}({_shown(args)}){hint}") from None


class Method(_Call):
    """A method. Arguments are its attributes, by short or full name; None leaves an attribute out."""

    def _describe(self):
        return "\n".join([self.row.name] + [
            f"  {a.short}: {a.type}{' ' + a.access if a.type in ('IDR', 'FD', 'IDRS_ARRAY') else ''}{', mandatory' * a.mandatory}"
            for a in self.row.children])

    def _attr(self, name):
        for a in self.row.children:
            if name.upper() in (a.name, a.short.upper(), name_after(a.name, "UVERBS_ATTR_", "UVERBSD_ATTR_")):
                return a
        raise TypeError(f"{self.__name__} has no attribute {name}: there are {', '.join(a.short for a in self.row.children)}")

    def __call__(self, **args):
        given = {}
        for name, value in args.items():
            attr = self._attr(name)
            if attr.id in given:
                raise TypeError(f"{self.__name__}: {attr.short} is given twice")
            given[attr.id] = value
        self.dev._ensure_context(self.row)
        msg, sent = _Message(), []
        creates = any(_is_new(a) for a in self.row.children)
        for attr in self.row.children:
            index = self._add(msg, attr, given, creates)
            if index is not None:
                sent.append((attr, index, msg.keep[-1] if attr.type == "PTR_OUT" else None))
        try:
            back = msg.send(self.dev.fd, self.dev.driver_id, self.obj.id, self.row.id)
        except OSError as e:
            self._fail(e, args, self._hints(msg, sent, given))
        return self._result(back, sent, given, msg)

    def _hints(self, msg, sent, given):
        """What the tree says is wrong with the attributes."""
        for a in self.row.children:
            if a.mandatory and given.get(a.id, 0) is None:
                yield f"{a.short} is mandatory"
        for a, index, _ in sent:
            length = msg.attrs[index][1]
            if a.type in ("PTR_IN", "PTR_OUT") and (length < a.min_len or a.type == "PTR_IN" and length > a.len):
                yield f"{a.short} has {length} bytes, and the device wants {a.min_len}" + \
                    (" or more" if a.len == ANY else f" to {a.len}" if a.len > a.min_len else "")

    def _add(self, msg, attr, given, creates):
        what, value = f"{self.__name__}: {attr.short}", given.get(attr.id)
        if attr.id in given and value is None:
            return None
        if value is None:
            is_number = attr.type in ("CONST", "FLAGS") or attr.type == "PTR_IN" and attr.len in (1, 2, 4, 8)
            if attr.type == "PTR_OUT" and (not attr.udata or creates):
                value = attr.len if attr.len != ANY else _UHW_OUT if attr.udata else _ANY_OUT
            elif _is_new(attr) or attr.mandatory and is_number:
                value = 0
            elif attr.mandatory:
                raise TypeError(f"{what} is missing: it is mandatory (None calls without it)")
            else:
                return None
        return getattr(self, "_add_" + attr.type)(msg, attr, what, value, attr.mandatory or attr.id in given)

    def _add_PTR_IN(self, msg, attr, what, value, mandatory):
        known = attr.known()
        values = [value] if isinstance(value, dict) and not isinstance(value, Result) else value
        if isinstance(values, list) and values and isinstance(values[0], dict):
            if "fields" not in known:
                raise TypeError(f"{what}: its fields are not known: bytes are wanted")
            raw = b"".join(pack(what, known, v) for v in values)
        elif attr.len in (1, 2, 4, 8) and not isinstance(value, (bytes, list, tuple)):
            raw = number_of(what, value, attr.len, known.get("enum")).to_bytes(attr.len, ENDIAN)
            msg.keep.append(value)
        else:
            raw = bytes_of(what, value)
        return msg.add_bytes(attr.id, raw, mandatory=mandatory)

    def _add_CONST(self, msg, attr, what, value, mandatory):
        enum = attr.known().get("enum")
        return msg.add(attr.id, 8, number_of(what, value, 8, enum), mandatory=mandatory)

    _add_FLAGS = _add_CONST

    def _add_IDR(self, msg, attr, what, value, mandatory):
        handle = _object_of(value)
        if handle is not None and attr.type != "RAW_FD" and attr.target not in (ANY, handle.object.id):
            wanted = next((o.short for o in self.dev._objects.values() if o.id == attr.target), f"object {attr.target:#x}")
            raise TypeError(f"{what}: a {wanted} is wanted, not {handle}")
        if handle is None and attr.type != "IDR" and hasattr(value, "fileno"):
            value = value.fileno()
        return msg.add(attr.id, 0, number_of(what, value, 4), mandatory=mandatory)

    _add_FD = _add_RAW_FD = _add_IDR

    def _add_IDRS_ARRAY(self, msg, attr, what, value, mandatory):
        return msg.add_bytes(attr.id, bytes_of(what, list(value)), mandatory=mandatory)

    def _add_ENUM_IN(self, msg, attr, what, value, mandatory):
        element, raw = value if isinstance(value, tuple) else (value, b"")
        if isinstance(element, str):
            ids = {e.name.upper(): e.id for e in attr.children}
            if element.upper() not in ids:
                raise ValueError(f"{what}: there is no {element!r}: it is one of {', '.join(ids)}")
            element = ids[element.upper()]
        return msg.add_bytes(attr.id, bytes_of(what, raw), number_of(what, element, 1), mandatory)

    def _add_PTR_OUT(self, msg, attr, what, value, mandatory):
        if is_memory(value):
            return msg.add_output(attr.id, value, memoryview(value).nbytes, mandatory)
        size = number_of(what, value, 2)
        return msg.add_output(attr.id, bytearray(size), size, mandatory)

    def _result(self, back, sent, given, msg):
        out = Result()
        for attr, index, buffer in sent:
            _, _, flags, _, _, data = back[index]
            if _is_new(attr):
                obj = next((o for o in self.dev._objects.values() if o.id == attr.target), self.obj)
                out[attr.short] = self.dev._handle(obj, data & 0xffffffff)
                out.__dict__["handle"] = out[attr.short]
            elif buffer is not None and flags & _F_VALID_OUTPUT:
                output = self._output(attr, memoryview(buffer).cast("B"), attr.id in given)
                if output != b"":
                    out[attr.short] = output
        out.__dict__["_keep"] = msg.keep  # memory that the object may use
        return out

    @staticmethod
    def _output(attr, data, whole):
        known = attr.known()
        if "fields" in known:
            return unpack(known, data)
        if len(data) in (1, 2, 4, 8):
            return int.from_bytes(data, ENDIAN)
        raw = bytes(data)
        return raw if whole or attr.len != ANY else raw[:max(attr.min_len, (len(raw.rstrip(b"\0")) + 3) // 4 * 4)]


def _is_new(attr):
    return attr.type in ("IDR", "FD") and attr.access == "NEW"


def _counter(of, array):
    """The field of a struct that counts the elements of an array."""
    return next(f for f in of["fields"] if f.get("role") == "count" and f["array"] == array)


class Command(_Call):
    """A write() command, called by INVOKE_WRITE. Arguments are the fields of the kernel's struct, or in_=BYTES for all of it.

    A struct in it is a dict (dest={"dlid": 1}), or dest__dlid=1, or the end of the name if only one field has it. A flexible
    array is a list of dicts: send_wr=[{"opcode": "SEND", "sge": [{"addr": buffer, "length": 8, "lkey": 1}]}].
    """

    def _known(self):
        return self.row.known()

    def _describe(self):
        of = self._known()["request"]
        tail = [f"  {of['tail']}: a list"] if "tail" in of else []
        return "\n".join([self.row.name, *("  " + f["name"] for f in of["fields"]), *tail])

    def __call__(self, in_=None, uhw_in=None, uhw_out=None, **args):
        self.dev._ensure_context(self.row)
        request, response = self._known()["request"], self._known()["response"]
        msg, invoke = _Message(), {a.short: a.id for a in self.dev._invoke.children}
        raw = bytes_of(self.__name__, in_) if in_ is not None else self._request(request, dict(args), msg)
        msg.add(invoke["cmd"], 8, self.row.id | (1 << 31) * self.row.extended)
        msg.add_bytes(invoke["core_in"], raw)
        size = self.row.len + self._elements(response, raw)
        core, creates = bytearray(size), any("created" in f for f in response["fields"])
        core_at = msg.add_output(invoke["core_out"], core, size) if size else None
        driver = bytearray(uhw_out if uhw_out is not None else _UHW_OUT if self.row.udata and creates else 0)
        if uhw_in is not None:
            msg.add_bytes(invoke["uhw_in"], bytes_of(self.__name__ + ": uhw_in", uhw_in))
        if driver:
            msg.add_output(invoke["uhw_out"], driver, len(driver), mandatory=uhw_out is not None)
        try:
            msg.send(self.dev.fd, self.dev.driver_id, self.dev._device.id, self.dev._invoke.id)
        except OSError as e:
            self._fail(e, args)
        return self._result(response, core if core_at is not None else b"", driver, msg)

    def _elements(self, response, raw):
        """How many bytes a flexible array needs. The device returns as many as the request asks for, whatever the room."""
        if "element" not in response:
            return 0
        most = _counter(self._known()["request"], response["tail"])
        number = int.from_bytes(raw[most["at"]:most["at"] + most["size"]], ENDIAN)
        if number > 1024:
            raise ValueError(f"{self.__name__}: {most['name']}: {number} is above 1024, the most completions of one call")
        return response["element"]["size"] * number

    def _request(self, of, args, msg):
        what, elements = self.__name__, args.pop(of.get("tail"), None)
        data, counts = bytearray(max(of["size"], self.row.min_len)), {}
        tail = b""
        if elements is not None:
            tail, counts = self._tail(of, elements)
        for name, value in [*counts.items(), *flatten(args)]:
            pack_field(what, find_field(what, of, name), value, data)
            msg.keep.append(value)
        given = {find_field(what, of, n)["name"] for n, _ in flatten(args)}
        for f in of["fields"]:
            if "none" in f and f["name"] not in given:
                pack_field(what, f, -1, data)
        # An extended request is as long as its fields need: an older kernel has a shorter one.
        last = max((f["at"] + f["size"] * f.get("count", 1) for f in of["fields"] if f["name"] in given), default=0)
        return bytes(data[:of["size"]]) + tail if tail else bytes(data[:max(self.row.min_len, last)])

    def _tail(self, of, elements):
        """The bytes of a flexible array, and the fields that count it."""
        what, sges, raw = f"{self.__name__}: {of['tail']}", [], b""
        sge = store()["fields"]["attributes"]["UVERBS_ATTR_ADVISE_MR_SGE_LIST"]
        if "element" in of:
            inner = next((f for f in of["element"]["fields"] if f.get("role") == "count"), None)
            for e in elements:
                e = dict(e)
                mine = e.pop(inner["array"], ()) if inner else ()
                sges += [pack(f"{what}.{inner['array']}", sge, s) for s in mine]
                raw += pack(what, of["element"], {**({inner["name"]: len(mine)} if inner else {}), **e})
        elif of["tail_role"] != "specs":
            raw = bytes_of(what, list(elements))
        else:
            for name, fields in elements:
                spec = store()["fields"]["specs"][name.upper()]
                raw += pack(what, spec, {"type": spec["type"], "size": spec["size"], **fields})
        values = {"count": len(elements), "log": len(elements).bit_length() - 1, "bytes_of": len(raw),
                  "size": of.get("element", {}).get("size", 0)}
        counts = {f["name"]: values[f["role"]] if f["array"] == of["tail"] else len(sges) for f in of["fields"] if "array" in f}
        return raw + b"".join(sges), counts

    def _result(self, of, core, driver, msg):
        out = Result(unpack(of, core))
        if core and not of["fields"]:
            out["resp"] = bytes(core)
        if "element" in of:
            size, at = of["element"]["size"], of["size"]
            num = out.get(_counter(of, of["tail"])["name"], 0)
            out[of["tail"]] = [unpack(of["element"], core[at + i * size:at + (i + 1) * size]) for i in range(num)]
        for f in of["fields"]:
            if "created" in f and f["name"] in out:
                # OPEN_QP of an XRC domain creates a QP.
                obj = next((o for o in self.dev._objects.values() if o.id == f["object"]), self.obj)
                out[f["name"]] = self.dev._handle(obj, out[f["name"]])
                out.__dict__["handle"] = out[f["name"]]
        if driver.rstrip(b"\0"):
            out["uhw_out"] = bytes(driver)
        out.__dict__["_keep"] = msg.keep
        return out


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
                return (Method if row.kind == "method" else Command)(self._dev, obj, row)
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
        msg = _Message()
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
    """Opens a device: "rxe0", "uverbs0", the path of its node, or (None) the only one."""
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
