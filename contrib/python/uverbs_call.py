# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The calls of an uverbs device, for uverbs.py: the message of a call, methods and commands as functions, and their results."""
import ctypes
import errno
import fcntl
import os
import struct

from uverbs_schema import (ANY, ENDIAN, Struct, address, bytes_of, find_field, flatten, is_memory, name_after, number_of, pack, pack_field,
                           sockaddr, store, unpack)

_IOCTL = 0xc0181b01  # RDMA_VERBS_IOCTL
_HDR, _ATTR = struct.Struct("=HHHHQII"), struct.Struct("=HHHBBQ")
_F_MANDATORY, _F_VALID_OUTPUT = 1, 2
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


class Message:
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
        msg, sent = Message(), []
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
        msg, invoke = Message(), {a.short: a.id for a in self.dev._invoke.children}
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
            if "created" in f and f["name"] in out and ("if" not in f or out[f["if"]["field"]] in f["if"]["values"]):
                # OPEN_QP of an XRC domain creates a QP.
                obj = next((o for o in self.dev._objects.values() if o.id == f["object"]), self.obj)
                out[f["name"]] = self.dev._handle(obj, out[f["name"]])
                out.__dict__["handle"] = out[f["name"]]
        if driver.rstrip(b"\0"):
            out["uhw_out"] = bytes(driver)
        out.__dict__["_keep"] = msg.keep
        return out


class CmCommand(Command):
    """A command of rdma_cm. Arguments are the fields of the kernel's struct, or in_=BYTES for all of it. A socket address is a text
    ("192.0.2.1:7174"), whose size need not be given.
    """

    def __call__(self, in_=None, **args):
        known, msg = self._known(), Message()
        raw = bytearray(bytes_of(self.__name__, in_) if in_ is not None else self._request(known["request"], self._sized(args), msg))
        out = bytearray(self.row.len)
        if "response_at" in known:
            raw[known["response_at"]:known["response_at"] + 8] = address(out).to_bytes(8, ENDIAN)
        try:
            os.write(self.dev.fd, struct.pack("=IHH", self.row.id, len(raw), len(out)) + raw)
        except OSError as e:
            self._fail(e, args)
        other = known.get("other")
        chosen = other and unpack(known["request"], raw)[other["field"]] == other["value"]
        return self._result(other["response"] if chosen else known["response"], out, b"", msg)

    def _sized(self, args):
        """The arguments, and the sizes of the socket addresses in them."""
        sizes = {f["beside"]: len(sockaddr(args[f["name"]])) for f in self._known()["request"]["fields"]
                 if f.get("role") == "sockaddr" and "beside" in f and isinstance(args.get(f["name"]), str)}
        return {**sizes, **args}
