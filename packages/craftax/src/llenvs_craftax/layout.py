"""The upstream's state as one row of bytes: exact, small, and passed to the compiled step as one argument.

The state is a tree of 49 (Classic) or 84 arrays. To hand over and take back each of them costs more than the step
itself, so the compiled programs take and give one array of bytes: the large arrays first, each a section of its
own, then all small ones as the section `REST`, in the order of the upstream's tree. Numbers are little-endian. The
two maps of blocks and items, whose numbers are small, are stored as one byte a tile, and the map of creatures as
one bit.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

REST = "rest"
"""The section of all small arrays."""
_LARGE = 2048  # bytes from which an array is a section of its own
_NARROWED = ("map", "item_map")
_BITS = ("mob_map",)


@dataclass(frozen=True, slots=True)
class Leaf:
    """One array of the state: its dotted name, its type and shape upstream, and where it stands."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def stored(self) -> tuple[str, tuple[int, ...]]:
        """Type and shape in the row of bytes."""
        if self.name in _BITS:
            return "|u1", (-(-math.prod(self.shape) // 8),)
        return ("|u1" if self.name in _NARROWED or self.dtype == "|b1" else self.dtype), self.shape

    @property
    def size(self) -> int:
        """Bytes."""
        dtype, shape = self.stored
        return math.prod(shape) * np.dtype(dtype).itemsize

    def pack(self, value: Any) -> Any:
        """`value`, in the upstream's type, as a row of bytes. Traced by JAX."""
        import jax.numpy as jnp
        from jax import lax

        if self.name in _BITS:
            return jnp.packbits(value.reshape(-1), bitorder="little")
        if self.stored[0] == "|u1":
            return value.astype(jnp.uint8).reshape(-1)
        return lax.bitcast_convert_type(value, jnp.uint8).reshape(-1)

    def unpack(self, row: Any) -> Any:
        """The array that `pack` made `row` of. Traced by JAX."""
        import jax.numpy as jnp
        from jax import lax

        if self.name in _BITS:
            return jnp.unpackbits(row, count=math.prod(self.shape), bitorder="little").reshape(self.shape) != 0
        if self.dtype == "|b1":
            return (row != 0).reshape(self.shape)
        if self.stored[0] == "|u1":
            return row.astype(self.dtype).reshape(self.shape)
        width = np.dtype(self.dtype).itemsize
        return lax.bitcast_convert_type(row.reshape(*self.shape, width), np.dtype(self.dtype))

    def read(self, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The array in the upstream's type; `value` is the field of a record."""
        if self.name in _BITS:
            bits = np.unpackbits(value, count=math.prod(self.shape), bitorder="little")
            return bits.reshape(self.shape).astype(self.dtype)
        return np.array(value, dtype=self.dtype)


@dataclass(frozen=True)
class Layout:
    """Where each array of a game's state stands in its row of bytes.

    Attributes:
        leaves: in the order of the upstream's tree.
        sections: name to first byte and the byte after the last, in order.
        size: bytes of a state.
    """

    leaves: tuple[Leaf, ...]
    sections: Mapping[str, tuple[int, int]]
    size: int

    @classmethod
    def of(cls, arrays: Sequence[tuple[str, str, tuple[int, ...]]]) -> Layout:
        """The layout of arrays with these names, types (as numpy writes them) and shapes."""
        bare = [Leaf(name, dtype, shape, 0) for name, dtype, shape in arrays]
        offsets: dict[str, int] = {}
        sections: dict[str, tuple[int, int]] = {}
        end = 0
        for leaf in bare:
            if leaf.size >= _LARGE:
                offsets[leaf.name], end = end, end + leaf.size
                sections[leaf.name] = (offsets[leaf.name], end)
        start = end
        for leaf in bare:
            if leaf.size < _LARGE:
                offsets[leaf.name], end = end, end + leaf.size
        sections[REST] = (start, end)
        leaves = tuple(Leaf(leaf.name, leaf.dtype, leaf.shape, offsets[leaf.name]) for leaf in bare)
        return cls(leaves, sections, end)

    @cached_property
    def digest(self) -> str:
        """Eight hexadecimal digits that tell layouts apart."""
        text = repr([(leaf.name, leaf.dtype, leaf.shape) for leaf in self.leaves])
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """A numpy record over the bytes of a state, with the dotted names as fields."""
        return np.dtype(
            {
                "names": [leaf.name for leaf in self.leaves],
                "formats": [leaf.stored for leaf in self.leaves],
                "offsets": [leaf.offset for leaf in self.leaves],
                "itemsize": self.size,
            }
        )

    def record(self, raw: np.ndarray[Any, Any]) -> Any:
        """The state in the first `size` bytes of `raw`, not copied, by names: ``record["inventory.wood"]``."""
        return raw[: self.size].view(self.dtype)[0]

    def pack(self, leaves: Sequence[Any]) -> Any:
        """The row of bytes of the state with these arrays. Traced by JAX."""
        import jax.numpy as jnp

        rows = [
            # the upstream leaves some as Python's numbers
            (leaf.offset, leaf.pack(jnp.asarray(value, leaf.dtype)))
            for leaf, value in zip(self.leaves, leaves, strict=True)
        ]
        return jnp.concatenate([row for _, row in sorted(rows, key=lambda each: each[0])])

    def unpack(self, row: Any) -> list[Any]:
        """The arrays in `row`, as `pack` wrote it. Traced by JAX."""
        return [leaf.unpack(row[leaf.offset : leaf.offset + leaf.size]) for leaf in self.leaves]
