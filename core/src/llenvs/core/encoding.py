"""Exact JSON for states and everything in them, without pickle.

Plain data comes back as it was: None, bool, int of any size, float (NaN and infinities included), str, bytes,
bytearray, list, tuple, set, frozenset, dict with any encodable keys, complex, Decimal, Fraction, date, time,
datetime, timedelta, range, numpy arrays and scalars (no object, structured or long double dtype), and the records
of the contract (frozen dataclasses and enums marked with `record` / `record_enum`).

Format: what JSON has, as itself; everything else as an object with one key that starts with ``$``, e.g.
``{"$tuple": [1, 2]}``, ``{"$bytes": "aGk="}``, ``{"$dict": [[1, "a"]]}``, ``{"$State": {"observation": ...}}``.
Decoding runs nothing but the constructors of the marked records, whose fields are checked against their declared
types first, so the text may come from an untrusted client.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import datetime as dt
import importlib
import json
import math
import sys
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, TypeVar

from llenvs.core.errors import EncodingFailed
from llenvs.core.field_types import Check, field_checks
from llenvs.core.frozen_init import frozen_init

T = TypeVar("T")
E = TypeVar("E", bound=type[Enum])

_MAX_DEPTH = 100  # levels of containers; five stack frames each at most, well under Python's limit of 1000
_JSON_INT_LIMIT = 1 << 63  # beyond it other JSON readers round, and Python caps the digits it parses
_NUMPY_KINDS = "biufcSUmM"
_NUMPY_PORTABLE = {"f": 8, "c": 16}  # bytes at most; a long double differs between machines
_LEAVES = frozenset({str, bool, type(None)})

_Path = tuple[Any, Any] | None  # (path of the parent, index or key or field); turned into text on failure alone

_to_text = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode  # json.dumps makes one at each call

# records of states that `import llenvs` leaves out, imported when a text first holds one
_HOME_OF = {"Recipe": "llenvs.core.simulator.recipe", "Turn": "llenvs.core.simulator.recipe"}

_records: dict[str, type] = {}
_enums: dict[str, type[Enum]] = {}
_fields: dict[type, tuple[tuple[str, Any, Any], ...]] = {}
_checks: dict[type, dict[str, tuple[Check, str]]] = {}


def record(cls: type[T]) -> type[T]:
    """Mark a frozen dataclass as encodable, under its class name; with slots it is made faster, too."""
    _claim(cls)
    if hasattr(cls, "__slots__"):
        cls = frozen_init(cls)
    fields = []
    for f in dataclasses.fields(cls):  # type: ignore[arg-type]
        fields.append((f.name, f.default, f.default_factory))
    _records[cls.__name__] = cls
    _fields[cls] = tuple(fields)
    return cls


def record_enum(cls: E) -> E:
    """Mark an enum as encodable, by member name."""
    _claim(cls)
    _enums[cls.__name__] = cls
    return cls


def _claim(cls: type) -> None:
    name = cls.__name__
    if f"${name}" in _decoders:
        raise ValueError(f"a record cannot be called {name}: ${name} is the tag of a plain type")
    taken = _records.get(name) or _enums.get(name)
    if taken is not None and taken.__module__ != cls.__module__:  # the same module again: it was reloaded
        raise ValueError(f"two records are called {name}: {taken.__module__} and {cls.__module__}")


# -- encoding ---------------------------------------------------------------------------------------------


def encode(value: Any) -> Any:
    """`value` as JSON data (dict, list, str, int, float, bool, None).

    Raises:
        EncodingFailed: something in it has no exact form; the message names the path.
    """
    try:
        return _encode(value, None, 0)
    except RecursionError:
        raise EncodingFailed("nested too deeply for the stack that is left") from None


def dumps(value: Any) -> str:
    """`value` as one line of strict JSON text (ASCII).

    Raises:
        EncodingFailed: something in it has no exact form.
    """
    return _to_text(encode(value))


def canonical(value: Any) -> str:
    """Like `dumps`, and the same text for values that differ in the order of their dict keys alone.

    Two values are the same, types included (``1`` is not ``True``, NaN is NaN), exactly when these texts are.

    Raises:
        EncodingFailed: something in it has no exact form.
    """
    return json.dumps(_in_order(encode(value)), separators=(",", ":"), allow_nan=False, sort_keys=True)


def _in_order(data: Any) -> Any:
    if isinstance(data, list):
        return [_in_order(v) for v in data]
    if not isinstance(data, dict):
        return data
    ordered = {k: _in_order(v) for k, v in data.items()}
    if "$dict" in ordered:
        ordered["$dict"].sort(key=_sort_key)
    return ordered


def _sort_key(data: Any) -> str:
    return json.dumps(data, sort_keys=True)


def _encode(value: Any, path: _Path, depth: int) -> Any:
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind is int:
        return value if -_JSON_INT_LIMIT < value < _JSON_INT_LIMIT else {"$int": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if depth > _MAX_DEPTH:
        raise EncodingFailed(f"{_text(path)}: nested deeper than {_MAX_DEPTH} levels (or refers to itself)")
    deeper = depth + 1
    if kind is list:
        return [v if type(v) in _LEAVES else _encode(v, (path, i), deeper) for i, v in enumerate(value)]
    if kind is tuple:
        return {"$tuple": [_encode(v, (path, i), deeper) for i, v in enumerate(value)]}
    if kind is dict:
        if all(type(k) is str and k[:1] != "$" for k in value):
            return {k: v if type(v) in _LEAVES else _encode(v, (path, k), deeper) for k, v in value.items()}
        return {
            "$dict": [[_encode(k, (path, k), deeper), _encode(v, (path, k), deeper)] for k, v in value.items()]
        }
    fields = _fields.get(kind)
    if fields is not None:
        # fields at their default are left out: most are, and they would triple the text
        content = {}
        for name, default, factory in fields:
            v = getattr(value, name)
            if v is default or (factory is dict and type(v) is dict and not v) or _equal_leaf(v, default):
                continue
            content[name] = v if type(v) in _LEAVES else _encode(v, (path, name), deeper)
        return {f"${kind.__name__}": content}
    if isinstance(value, Enum) and _enums.get(kind.__name__) is kind:
        return {f"${kind.__name__}": value.name}
    encoder = _encoders.get(kind)
    if encoder is not None:
        return encoder(value, path, deeper)
    if kind.__module__ == "numpy" and "numpy" in sys.modules:
        return _encode_numpy(value, path)
    raise EncodingFailed(
        f"{_text(path)}: {kind.__module__}.{kind.__qualname__} is no plain data and cannot be part of a state; "
        "use dict, list, tuple, set, str, bytes, numbers, dates or numpy arrays"
    )


def _equal_leaf(value: Any, default: Any) -> bool:
    """Whether both are the same str or number (identity is not enough: 1.0 may be another object)."""
    kind = type(value)
    if kind is not type(default) or kind not in (str, int, float):
        return False
    return repr(value) == repr(default) if kind is float else bool(value == default)


def _text(path: _Path) -> str:
    parts: list[str] = []
    while path is not None:
        path, part = path
        parts.append(f".{part}" if isinstance(part, str) and part.isidentifier() else f"[{part!r}]")
    text = "value" + "".join(reversed(parts))
    return text if len(text) <= 200 else f"{text[:100]} ... {text[-80:]}"


def _encode_set(tag: str) -> Callable[[Any, _Path, int], Any]:
    def encoder(value: Any, path: _Path, depth: int) -> Any:
        # sorted, so that equal sets give equal text in every process
        return {tag: sorted((_encode(v, (path, v), depth) for v in value), key=_sort_key)}

    return encoder


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


_encoders: dict[type, Callable[[Any, _Path, int], Any]] = {
    set: _encode_set("$set"),
    frozenset: _encode_set("$frozenset"),
    bytes: lambda v, p, d: {"$bytes": _b64(v)},
    bytearray: lambda v, p, d: {"$bytearray": _b64(bytes(v))},
    complex: lambda v, p, d: {"$complex": [repr(v.real), repr(v.imag)]},
    Decimal: lambda v, p, d: {"$decimal": str(v)},
    Fraction: lambda v, p, d: {"$fraction": [_encode(v.numerator, p, d), _encode(v.denominator, p, d)]},
    dt.datetime: lambda v, p, d: {"$datetime": _clock(v, p)},
    dt.date: lambda v, p, d: {"$date": v.isoformat()},
    dt.time: lambda v, p, d: {"$time": _clock(v, p)},
    dt.timedelta: lambda v, p, d: {"$timedelta": [v.days, v.seconds, v.microseconds]},
    range: lambda v, p, d: {"$range": [_encode(i, p, d) for i in (v.start, v.stop, v.step)]},
}


def _clock(value: dt.datetime | dt.time, path: _Path) -> Any:
    zone = value.tzinfo
    if zone is not None and type(zone) is not dt.timezone:
        raise EncodingFailed(f"{_text(path)}: a time zone must be None or a datetime.timezone, got {zone!r}")
    # the offset apart: CPython up to 3.13 reads one under a second from ISO text as UTC
    content: dict[str, Any] = {"text": value.replace(tzinfo=None).isoformat(), "fold": value.fold}
    if zone is not None:
        offset = zone.utcoffset(None)
        content["offset"] = [offset.days, offset.seconds, offset.microseconds]
        if zone.tzname(None) != dt.timezone(offset).tzname(None):
            content["zone"] = zone.tzname(None)
    return content


def _encode_numpy(value: Any, path: _Path) -> Any:
    import numpy as np

    # numpy strips trailing NULs of text in arrays, not of text scalars
    if type(value) is np.str_:
        return {"$numpy_str": str(value)}
    if type(value) is np.bytes_:
        return {"$numpy_bytes": _b64(bytes(value))}
    # subclasses of ndarray (matrix, masked array) would come back as something else
    if type(value) is not np.ndarray and not isinstance(value, np.generic):
        raise EncodingFailed(f"{_text(path)}: numpy.{type(value).__qualname__} is no plain data")
    if not _is_portable(value.dtype):
        raise EncodingFailed(f"{_text(path)}: numpy dtype {value.dtype} cannot be part of a state")
    tag = "$ndarray" if isinstance(value, np.ndarray) else "$numpy"
    array = np.asarray(value)
    return {tag: {"dtype": array.dtype.str, "shape": list(array.shape), "data": _b64(array.tobytes(order="C"))}}


def _is_portable(dtype: Any) -> bool:
    return (
        dtype.kind in _NUMPY_KINDS
        and dtype.fields is None
        and dtype.itemsize <= _NUMPY_PORTABLE.get(dtype.kind, dtype.itemsize)
    )


# -- decoding ---------------------------------------------------------------------------------------------


def decode(data: Any) -> Any:
    """The value that `encode` turned into `data`.

    Raises:
        EncodingFailed: `data` is not what `encode` writes.
    """
    try:
        return _decode(data, 0)
    except RecursionError:
        raise EncodingFailed("nested too deeply for the stack that is left") from None


def loads(text: str | bytes) -> Any:
    """The value that `dumps` wrote as `text`.

    Raises:
        EncodingFailed: `text` is not JSON, or not what `dumps` writes.
    """
    try:
        data = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError, TypeError) as error:
        raise EncodingFailed(f"not valid JSON: {error}") from None
    return decode(data)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a key given twice is refused, since readers differ in which one they take."""
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = [k for k, _ in pairs]
        raise EncodingFailed(f"the key {next(k for k in keys if keys.count(k) > 1)!r} occurs twice in an object")
    return made


def _decode(data: Any, depth: int) -> Any:
    kind = type(data)
    if kind is float and not math.isfinite(data):
        raise EncodingFailed("a float that is not finite must be written as $float")
    if kind is not list and kind is not dict:
        if kind in _LEAVES or kind is int or kind is float:
            return data
        raise EncodingFailed(f"{kind.__name__} is no JSON data")
    if depth > _MAX_DEPTH + 2:  # a number in the innermost container may take two levels: $fraction of $int
        raise EncodingFailed(f"nested deeper than {_MAX_DEPTH} levels")
    deeper = depth + 1
    if kind is list:
        return [_decode(v, deeper) for v in data]
    if len(data) == 1:
        ((key, content),) = data.items()
        if key[:1] == "$":
            return _decode_tagged(key, content, deeper)
    elif any(k[:1] == "$" for k in data):
        raise EncodingFailed("a tagged object must have exactly one key, got " + ", ".join(sorted(data)[:5]))
    return {k: _decode(v, deeper) for k, v in data.items()}


def _decode_tagged(tag: str, content: Any, depth: int) -> Any:
    name = tag[1:]
    cls = _records.get(name)
    if cls is None and name in _HOME_OF:
        importlib.import_module(_HOME_OF[name])
        cls = _records[name]
    if cls is not None:
        return _decode_record(cls, content, depth)
    enum = _enums.get(name)
    if enum is not None:
        if not isinstance(content, str) or content not in enum.__members__:
            raise EncodingFailed(f"{tag}: {content!r} is none of {', '.join(enum.__members__)}")
        return enum[content]
    decoder = _decoders.get(tag)
    if decoder is None:
        raise EncodingFailed(f"unknown tag {tag!r}")
    try:
        return decoder(content, depth)
    except (
        TypeError,
        ValueError,
        LookupError,
        ArithmeticError,
        AttributeError,
        ImportError,
        MemoryError,
    ) as error:
        raise EncodingFailed(f"{tag}: {type(error).__name__}: {error}") from None


def _decode_record(cls: type, content: Any, depth: int) -> Any:
    tag = f"${cls.__name__}"
    if not isinstance(content, dict):
        raise EncodingFailed(f"{tag} needs an object, got {type(content).__name__}")
    checks = _checks.get(cls)
    if checks is None:
        checks = _checks[cls] = field_checks(cls)
    values = {}
    for name, data in content.items():
        if name not in checks:
            raise EncodingFailed(f"{tag} has no field {name!r}; it has: {', '.join(checks)}")
        values[name] = value = _decode(data, depth)
        fits, wanted = checks[name]
        if not fits(value):
            raise EncodingFailed(f"{tag}.{name} must be {wanted}, got {type(value).__name__}")
    try:
        return cls(**values)
    except (TypeError, ValueError, AttributeError) as error:
        raise EncodingFailed(f"{tag}: {error}") from None


def _items(content: Any, depth: int) -> list[Any]:
    if not isinstance(content, list):
        raise TypeError(f"expected a list, got {type(content).__name__}")
    return [_decode(v, depth) for v in content]


def _decode_dict(content: Any, depth: int) -> dict[Any, Any]:
    if not isinstance(content, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in content):
        raise TypeError("expected a list of [key, value] lists")
    made = {_decode(k, depth): _decode(v, depth) for k, v in content}
    if len(made) != len(content):
        raise ValueError("a key occurs twice")
    return made


def _decode_set(content: Any, depth: int) -> frozenset[Any]:
    items = _items(content, depth)
    made = frozenset(items)
    if len(made) != len(items):
        raise ValueError("an item occurs twice")
    return made


def _str(content: Any) -> str:
    if not isinstance(content, str):
        raise TypeError(f"expected text, got {type(content).__name__}")
    return content


def _integers(content: Any, depth: int, count: int) -> list[int]:
    items = _items(content, depth)
    if len(items) != count or any(type(i) is not int for i in items):
        raise TypeError(f"expected {count} integers")
    return items


def _unb64(content: Any) -> bytes:
    try:
        return base64.b64decode(_str(content), validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from None


def _decode_float(content: Any, depth: int) -> float:
    if content not in ("nan", "inf", "-inf"):
        raise ValueError(f"must be nan, inf or -inf, got {content!r}")
    return float(content)


def _decode_complex(content: Any, depth: int) -> complex:
    real, imaginary = _items(content, depth)
    return complex(float(_str(real)), float(_str(imaginary)))


def _decode_datetime(content: Any, depth: int) -> dt.datetime:
    return _zoned(dt.datetime.fromisoformat(content["text"]).replace(fold=content["fold"]), content)


def _decode_time(content: Any, depth: int) -> dt.time:
    return _zoned(dt.time.fromisoformat(content["text"]).replace(fold=content["fold"]), content)


Clock = TypeVar("Clock", dt.datetime, dt.time)


def _zoned(value: Clock, content: Any) -> Clock:
    if value.tzinfo is not None:
        raise ValueError("the offset must be given apart")
    if "offset" not in content:
        return value
    offset = dt.timedelta(*_integers(content["offset"], 0, 3))
    name = content.get("zone")
    zone = dt.timezone(offset) if name is None else dt.timezone(offset, _str(name))
    return value.replace(tzinfo=zone)


def _decode_ndarray(content: Any, depth: int) -> Any:
    import numpy as np

    name, shape, data = _str(content["dtype"]), content["shape"], _unb64(content["data"])
    dtype = np.dtype(name)
    if not _is_portable(dtype) or dtype.str != name:
        raise ValueError(f"numpy dtype {name!r} cannot be part of a state")
    if not isinstance(shape, list) or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError("shape must be a list of integers that are not negative")
    if math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"shape {shape} of {name} does not fit {len(data)} bytes")
    flat = np.frombuffer(data, dtype=dtype) if data else np.empty(0, dtype=dtype)
    if dtype.kind == "U" and np.any(np.frombuffer(data, dtype=f"{dtype.byteorder}u4") > sys.maxunicode):
        raise ValueError("text with code points that do not exist")  # numpy would make impossible strings of them
    return flat.reshape(shape).copy()


def _decode_scalar(content: Any, depth: int) -> Any:
    if content["shape"] != []:
        raise ValueError("a numpy scalar has shape []")
    return _decode_ndarray(content, depth)[()]


def _decode_numpy_str(content: Any, depth: int) -> Any:
    import numpy as np

    return np.str_(_str(content))


def _decode_numpy_bytes(content: Any, depth: int) -> Any:
    import numpy as np

    return np.bytes_(_unb64(content))


_decoders: dict[str, Callable[[Any, int], Any]] = {
    "$int": lambda c, d: int(_str(c), 16),
    "$float": _decode_float,
    "$tuple": lambda c, d: tuple(_items(c, d)),
    "$set": lambda c, d: set(_decode_set(c, d)),
    "$frozenset": _decode_set,
    "$dict": _decode_dict,
    "$bytes": lambda c, d: _unb64(c),
    "$bytearray": lambda c, d: bytearray(_unb64(c)),
    "$complex": _decode_complex,
    "$decimal": lambda c, d: Decimal(_str(c)),
    "$fraction": lambda c, d: Fraction(*_integers(c, d, 2)),
    "$datetime": _decode_datetime,
    "$date": lambda c, d: dt.date.fromisoformat(c),
    "$time": _decode_time,
    "$timedelta": lambda c, d: dt.timedelta(*_integers(c, d, 3)),
    "$range": lambda c, d: range(*_integers(c, d, 3)),
    "$ndarray": _decode_ndarray,
    "$numpy": _decode_scalar,
    "$numpy_str": _decode_numpy_str,
    "$numpy_bytes": _decode_numpy_bytes,
}
