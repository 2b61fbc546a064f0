"""Arrays while a program is converted: expressions of their entries, tables, and the code written so far.

An index is a Python int where it is known, otherwise the text of a JavaScript expression.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

Index = int | str

NUMBERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32")
TYPED = {"bool": "Uint8Array"} | {name: f"{name.capitalize()}Array" for name in NUMBERS}
LITTLE = 4  # entries that are written out one by one instead of in a loop


@dataclasses.dataclass(frozen=True)
class Shape:
    """Type of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class Stored:
    """Where the entries of an array lie: in the typed array `name`, at offset + the sum of index times stride."""

    name: str
    offset: int
    strides: tuple[int, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Value(Shape):
    """An array of the program. `at` gives the expression of one entry; `stored` and `const` are set where known.

    A value that is neither is computed wherever it is read, so that chains of operations become one loop.
    """

    at: Callable[[Sequence[Index]], str]
    stored: Stored | None = None
    const: np.ndarray | None = None

    @property
    def place(self) -> Stored:
        """`stored`, of an array that is."""
        assert self.stored is not None
        return self.stored

    @property
    def contiguous(self) -> bool:
        rows = strides_of(self.shape)
        return self.stored is not None and all(
            n == 1 or a == b for n, a, b in zip(self.shape, self.stored.strides, rows, strict=True)
        )


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides, in entries."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def times(i: Index, k: int) -> Index:
    if not isinstance(i, str) or k == 0:
        return int(i) * k if k else 0
    return i if k == 1 else f"({i})*{k}" if "+" in i else f"{i}*{k}"


def plus(*terms: Index) -> Index:
    known = sum(int(t) for t in terms if not isinstance(t, str))
    texts = [t for t in terms if isinstance(t, str)]
    return "+".join([*texts, *([str(known)] if known else [])]) if texts else known


def scalar(text: str, dtype: np.dtype) -> Value:
    """A scalar."""
    return Value((), dtype, lambda idx: text)


def literal(x: float, dtype: np.dtype) -> str:
    """A number as JavaScript; negative ones in brackets."""
    text = repr(float(x)).removesuffix(".0") if dtype.kind == "f" else str(int(x))
    text = text.replace("nan", "NaN").replace("inf", "Infinity")
    return f"({text})" if text.startswith("-") else text


def affine(x: np.ndarray) -> tuple[int, list[int]] | None:
    """The start and steps of an integer array whose entries are a sum of a multiple of each index, else None."""
    if x.dtype.kind not in "iu":
        return None
    start = int(x.flat[0]) if x.size else 0
    steps = [int(np.take(x, 1, axis).flat[0]) - start if n > 1 and x.size else 0 for axis, n in enumerate(x.shape)]
    told = start + sum(np.arange(n).reshape(-1, *[1] * (x.ndim - a - 1)) * steps[a] for a, n in enumerate(x.shape))
    return (start, steps) if (np.broadcast_to(told, x.shape) == x).all() else None


class Tables:
    """Constants of all functions, each kept once; `names` maps an array's bytes to its JavaScript name."""

    def __init__(self):
        self.names: dict[tuple[bytes, str], str] = {}
        self.arrays: list[np.ndarray] = []

    def add(self, x: np.ndarray) -> str:
        x = np.ascontiguousarray(x)
        key = x.tobytes(), TYPED[str(x.dtype)]
        if key not in self.names:
            self.names[key] = f"T{len(self.arrays)}"
            self.arrays.append(x)
        return self.names[key]


class Code:
    """The JavaScript of one function, and the typed arrays that it works in.

    `inline(function, inputs)` gives the outputs of a JAX function.
    """

    def __init__(self, tables: Tables, prefix: str, inline: Callable[..., list[Value]]):
        self.tables, self.prefix, self.inline = tables, prefix, inline
        self.lines: list[str] = []
        self.lengths: dict[str, int] = {}  # of the typed arrays that the function is given or has
        self.buffers: list[tuple[str, str, int]] = []  # name, type and length of its own
        self._names = 0

    def name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}{self.prefix}"

    def put(self, line: str) -> None:
        self.lines.append(line)

    def inside(self, body: Callable[[], object]) -> str:
        """The lines that `body` writes, as a block."""
        outer, self.lines = self.lines, []
        body()
        block, self.lines = self.lines, outer
        return "{\n" + "\n".join(block) + "\n}"

    def constant(self, x: np.ndarray) -> Value:
        """A known array: written as a number or a sum of indices if it is one, otherwise as a table."""
        x = np.asarray(x)
        if x.size and (x == x.flat[0]).all():
            text = literal(x.flat[0], x.dtype)
            return Value(x.shape, x.dtype, lambda idx: text, const=x)
        known = affine(x)
        if known is None:
            return Value(x.shape, x.dtype, lambda idx: self.table(x).at(idx), const=x)
        return Value(x.shape, x.dtype, lambda idx: f"({plus(known[0], *map(times, idx, known[1]))})", const=x)

    def table(self, x: np.ndarray) -> Value:
        return self.view(x.shape, x.dtype, self.tables.add(x))

    def view(self, shape: Sequence[int], dtype: np.dtype, name: str, start: int = 0, strides=None) -> Value:
        """The entries of a typed array from `start` on, in rows or with other strides."""
        stored = Stored(name, start, strides_of(shape) if strides is None else tuple(strides))
        at = lambda idx: f"{name}[{plus(start, *map(times, idx, stored.strides))}]"
        return Value(tuple(shape), np.dtype(dtype), at, stored)

    def array(self, name: str, out: Shape) -> Value:
        """The typed array that a variable holds."""
        self.lengths[name] = out.size
        return self.view(out.shape, out.dtype, name)

    def empty(self, out: Shape) -> Value:
        """A new typed array."""
        name = self.name("b")
        self.buffers.append((name, TYPED[str(out.dtype)], out.size))
        return self.array(name, out)

    def local(self, dtype: np.dtype, text: str) -> Value:
        """A number in a local variable."""
        name = self.name("v")
        self.put(f"const {name} = {text};")
        return scalar(name, dtype)

    def loop(self, shape: Sequence[int], body: Callable[[tuple[Index, ...]], None]) -> None:
        """`body(index)` for every index of `shape`."""
        if math.prod(shape) <= LITTLE:
            for idx in np.ndindex(*shape):
                body(idx)
            return
        names: list[Index] = [0 if n == 1 else self.name("i") for n in shape]
        heads = [f"for (let {i} = 0; {i} < {n}; {i}++)" for i, n in zip(names, shape, strict=True) if n > 1]
        self.put(" ".join(heads) + " " + self.inside(lambda: body(tuple(names))))

    def write(self, value: Value, target: Value) -> None:
        """Computes all entries of `value` into `target`, a stored array or a part of one, of the same shape."""
        if value.contiguous and target.contiguous and value.size > LITTLE and value.dtype == target.dtype:
            self.put(f"{target.place.name}.set({self.part(value)}, {target.place.offset});")
        else:
            self.loop(value.shape, lambda idx: self.put(f"{target.at(idx)} = {value.at(idx)};"))

    def part(self, value: Value) -> str:
        """The entries of a contiguous array as a typed array."""
        name, start = value.place.name, value.place.offset
        return name if self.lengths.get(name) == value.size else f"{name}.subarray({start}, {start + value.size})"

    def copy(self, value: Value) -> Value:
        """The value in a new typed array."""
        target = self.empty(value)
        self.write(value, target)
        return target

    def force(self, value: Value) -> Value:
        """The value, computed now: a table, a typed array, or a number in a variable."""
        if value.stored is not None or (value.const is not None and not value.shape):
            return value
        if value.const is not None:
            return self.table(value.const)
        return self.copy(value) if value.shape else self.local(value.dtype, value.at(()))

    def whole(self, value: Value) -> Value:
        """The value as a contiguous typed array."""
        value = self.force(value)
        return value if value.contiguous else self.copy(value)
