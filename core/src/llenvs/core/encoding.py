"""Exact JSON for states and everything in them, without pickle.

Plain data comes back as it was: None, bool, int of any size, float (NaN and infinities included), str, bytes,
bytearray, list, tuple, set, frozenset, dict with any encodable keys, complex, Decimal, Fraction, date, time,
datetime, timedelta, range, numpy arrays and scalars (no object dtype), and the records of the contract
(frozen dataclasses and enums marked with `record` / `record_enum`).

Format: what JSON has, as itself; everything else as an object with one key that starts with ``$``, e.g.
``{"$tuple": [1, 2]}``, ``{"$bytes": "aGk="}``, ``{"$dict": [[1, "a"]]}``, ``{"$State": {"observation": ...}}``.
Decoding runs nothing but the constructors of the marked records, so the text may come from an untrusted client.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import datetime as dt
import json
import math
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from enum import Enum
from fractions import Fraction
from typing import Any, TypeVar

from llenvs.core.errors import EncodingFailed

T = TypeVar("T")
E = TypeVar("E", bound=type[Enum])

_MAX_DEPTH = 200
_JSON_INT_LIMIT = 1 << 63  # beyond it other JSON readers round, and Python caps the digits it parses
_NUMPY_KINDS = "biufcSUmM?"

_records: dict[str, type] = {}
_enums: dict[str, type[Enum]] = {}
_fields: dict[type, tuple[tuple[str, Any, Any], ...]] = {}


def record(cls: type[T]) -> type[T]:
    """Mark a frozen dataclass as encodable, under its class name."""
    _claim(cls)
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
    taken = _records.get(name) or _enums.get(name)
    # slots=True makes dataclass build the class twice under one name and module
    if taken is not None and taken.__module__ != cls.__module__:
        raise ValueError(f"two records are called {name}: {taken.__module__} and {cls.__module__}")


# -- encoding ---------------------------------------------------------------------------------------------


def encode(value: Any) -> Any:
    """`value` as JSON data (dict, list, str, int, float, bool, None).

    Raises:
        EncodingFailed: something in it has no exact form; the message names the path.
    """
    return _encode(value, "value", 0)


def dumps(value: Any) -> str:
    """`value` as one line of strict JSON text (ASCII).

    Raises:
        EncodingFailed: something in it has no exact form.
    """
    return json.dumps(encode(value), separators=(",", ":"), allow_nan=False)


def _encode(value: Any, path: str, depth: int) -> Any:
    kind = type(value)
    if value is None or kind is str or kind is bool:
        return value
    if kind is int:
        return value if -_JSON_INT_LIMIT < value < _JSON_INT_LIMIT else {"$int": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if depth > _MAX_DEPTH:
        raise EncodingFailed(f"{path}: nested deeper than {_MAX_DEPTH} levels (or refers to itself)")
    deeper = depth + 1
    if kind is list:
        return [_encode(v, f"{path}[{i}]", deeper) for i, v in enumerate(value)]
    if kind is tuple:
        return {"$tuple": [_encode(v, f"{path}[{i}]", deeper) for i, v in enumerate(value)]}
    if kind is dict:
        if all(type(k) is str and k[:1] != "$" for k in value):
            return {k: _encode(v, f"{path}.{k}", deeper) for k, v in value.items()}
        return {
            "$dict": [
                [_encode(k, f"{path} key {k!r}", deeper), _encode(v, f"{path}[{k!r}]", deeper)]
                for k, v in value.items()
            ]
        }
    fields = _fields.get(kind)
    if fields is not None:
        # fields at their default are left out: most are, and they would triple the text
        content = {}
        for name, default, factory in fields:
            v = getattr(value, name)
            if v is default or (factory is dict and type(v) is dict and not v):
                continue
            content[name] = _encode(v, f"{path}.{name}", deeper)
        return {f"${kind.__name__}": content}
    if isinstance(value, Enum) and kind.__name__ in _enums:
        return {f"${kind.__name__}": value.name}
    encoder = _encoders.get(kind)
    if encoder is not None:
        return encoder(value, path, deeper)
    if kind.__module__ == "numpy" and "numpy" in sys.modules:
        return _encode_numpy(value, path)
    raise EncodingFailed(
        f"{path}: {kind.__module__}.{kind.__qualname__} is no plain data and cannot be part of a state; "
        "use dict, list, tuple, set, str, bytes, numbers, dates or numpy arrays"
    )


def _encode_set(tag: str) -> Callable[[Any, str, int], Any]:
    def encoder(value: Any, path: str, depth: int) -> Any:
        items = [_encode(v, f"{path} item", depth) for v in value]
        # sorted, so that equal sets give equal text in every process
        return {tag: sorted(items, key=lambda i: json.dumps(i, sort_keys=True))}

    return encoder


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


_encoders: dict[type, Callable[[Any, str, int], Any]] = {
    set: _encode_set("$set"),
    frozenset: _encode_set("$frozenset"),
    bytes: lambda v, p, d: {"$bytes": _b64(v)},
    bytearray: lambda v, p, d: {"$bytearray": _b64(bytes(v))},
    complex: lambda v, p, d: {"$complex": [repr(v.real), repr(v.imag)]},
    Decimal: lambda v, p, d: {"$decimal": str(v)},
    Fraction: lambda v, p, d: {"$fraction": [_encode(v.numerator, p, d), _encode(v.denominator, p, d)]},
    dt.datetime: lambda v, p, d: {"$datetime": _isoformat(v, p)},
    dt.date: lambda v, p, d: {"$date": v.isoformat()},
    dt.time: lambda v, p, d: {"$time": _isoformat(v, p)},
    dt.timedelta: lambda v, p, d: {"$timedelta": [v.days, v.seconds, v.microseconds]},
    range: lambda v, p, d: {"$range": [_encode(i, p, d) for i in (v.start, v.stop, v.step)]},
}


def _isoformat(value: dt.datetime | dt.time, path: str) -> Any:
    zone = value.tzinfo
    if zone is not None and type(zone) is not dt.timezone:
        raise EncodingFailed(f"{path}: a time zone must be None or a datetime.timezone, got {zone!r}")
    return {"text": value.isoformat(), "fold": value.fold}


def _encode_numpy(value: Any, path: str) -> Any:
    import numpy as np

    if not isinstance(value, np.ndarray | np.generic):
        raise EncodingFailed(f"{path}: {type(value).__qualname__} is no plain data")
    if value.dtype.kind not in _NUMPY_KINDS or value.dtype.fields is not None:
        raise EncodingFailed(f"{path}: numpy dtype {value.dtype} cannot be part of a state")
    tag = "$ndarray" if isinstance(value, np.ndarray) else "$numpy"
    array = np.asarray(value)
    return {tag: {"dtype": array.dtype.str, "shape": list(array.shape), "data": _b64(array.tobytes(order="C"))}}


# -- decoding ---------------------------------------------------------------------------------------------


def decode(data: Any) -> Any:
    """The value that `encode` turned into `data`.

    Raises:
        EncodingFailed: `data` is not what `encode` writes.
    """
    return _decode(data, 0)


def loads(text: str | bytes) -> Any:
    """The value that `dumps` wrote as `text`.

    Raises:
        EncodingFailed: `text` is not JSON, or not what `dumps` writes.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EncodingFailed(f"not valid JSON: {error}") from None
    return decode(data)


def _decode(data: Any, depth: int) -> Any:
    if depth > 2 * _MAX_DEPTH + 4:
        raise EncodingFailed(f"nested deeper than {_MAX_DEPTH} levels")
    if isinstance(data, list):
        return [_decode(v, depth + 1) for v in data]
    if not isinstance(data, dict):
        return data
    if len(data) == 1:
        ((key, content),) = data.items()
        if key[:1] == "$":
            return _decode_tagged(key, content, depth + 1)
    elif any(k[:1] == "$" for k in data):
        raise EncodingFailed("a tagged object must have exactly one key, got " + ", ".join(sorted(data)[:5]))
    return {k: _decode(v, depth + 1) for k, v in data.items()}


def _decode_tagged(tag: str, content: Any, depth: int) -> Any:
    name = tag[1:]
    cls = _records.get(name)
    if cls is not None:
        if not isinstance(content, dict):
            raise EncodingFailed(f"{tag} needs an object, got {type(content).__name__}")
        known = {f[0] for f in _fields[cls]}
        unknown = sorted(set(content) - known)
        if unknown:
            raise EncodingFailed(f"{tag} has no field {unknown[0]!r}; it has: {', '.join(sorted(known))}")
        values = {k: _decode(v, depth + 1) for k, v in content.items()}
        try:
            return cls(**values)
        except (TypeError, ValueError, AttributeError) as error:
            raise EncodingFailed(f"{tag}: {error}") from None
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
    except EncodingFailed:
        raise
    except (
        TypeError,
        ValueError,
        KeyError,
        ArithmeticError,
        InvalidOperation,
        AttributeError,
        ImportError,
        MemoryError,
    ) as error:
        raise EncodingFailed(f"{tag}: {type(error).__name__}: {error}") from None


def _items(content: Any, depth: int) -> list[Any]:
    if not isinstance(content, list):
        raise EncodingFailed(f"expected a list, got {type(content).__name__}")
    return [_decode(v, depth) for v in content]


def _decode_dict(content: Any, depth: int) -> dict[Any, Any]:
    return {_decode(k, depth): _decode(v, depth) for k, v in content}


def _unb64(content: Any) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, TypeError) as error:
        raise EncodingFailed(f"not base64: {error}") from None


def _decode_float(content: Any, depth: int) -> float:
    if content not in ("nan", "inf", "-inf"):
        raise EncodingFailed(f"$float must be nan, inf or -inf, got {content!r}")
    return float(content)


def _decode_int(content: Any, depth: int) -> int:
    if not isinstance(content, str):
        raise EncodingFailed("$int needs hexadecimal text")
    return int(content, 16)


def _decode_datetime(content: Any, depth: int) -> dt.datetime:
    return dt.datetime.fromisoformat(content["text"]).replace(fold=content["fold"])


def _decode_time(content: Any, depth: int) -> dt.time:
    return dt.time.fromisoformat(content["text"]).replace(fold=content["fold"])


def _decode_ndarray(content: Mapping[str, Any], depth: int) -> Any:
    import numpy as np

    dtype = np.dtype(content["dtype"])
    if dtype.kind not in _NUMPY_KINDS or dtype.fields is not None:
        raise EncodingFailed(f"numpy dtype {dtype} cannot be part of a state")
    return np.frombuffer(_unb64(content["data"]), dtype=dtype).reshape(content["shape"]).copy()


_decoders: dict[str, Callable[[Any, int], Any]] = {
    "$int": _decode_int,
    "$float": _decode_float,
    "$tuple": lambda c, d: tuple(_items(c, d)),
    "$set": lambda c, d: set(_items(c, d)),
    "$frozenset": lambda c, d: frozenset(_items(c, d)),
    "$dict": _decode_dict,
    "$bytes": lambda c, d: _unb64(c),
    "$bytearray": lambda c, d: bytearray(_unb64(c)),
    "$complex": lambda c, d: complex(float(c[0]), float(c[1])),
    "$decimal": lambda c, d: Decimal(c),
    "$fraction": lambda c, d: Fraction(*_items(c, d)),
    "$datetime": _decode_datetime,
    "$date": lambda c, d: dt.date.fromisoformat(c),
    "$time": _decode_time,
    "$timedelta": lambda c, d: dt.timedelta(*_items(c, d)),
    "$range": lambda c, d: range(*_items(c, d)),
    "$ndarray": _decode_ndarray,
    "$numpy": lambda c, d: _decode_ndarray(c, d)[()],
}
