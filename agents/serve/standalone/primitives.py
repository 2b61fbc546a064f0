"""JAX's primitives in JavaScript: a table with one function for each.

A function takes the code so far, the inputs and the equation's parameters and output types; it returns the outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from agents.serve.standalone.values import Code, Index, Stored, Value, literal, plus, strides_of, times


class Shape(NamedTuple):
    """Type of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def size(self) -> int:
        return math.prod(self.shape)


Primitive = Callable[..., "Value | list[Value]"]
PrimitiveT = TypeVar("PrimitiveT", bound=Primitive)
PRIMITIVES: dict[str, Primitive] = {}
MATRIX = 64  # entries of a constant matrix from which the WebAssembly kernel multiplies


def primitive(*names: str) -> Callable[[PrimitiveT], PrimitiveT]:
    def add(function: PrimitiveT) -> PrimitiveT:
        PRIMITIVES.update(dict.fromkeys(names, function))
        return function

    return add


# Numbers


def wrapped(text: str, dtype: np.dtype) -> str:
    """The text of a number, brought into the range or precision of its type."""
    bits = 8 * dtype.itemsize
    if dtype.kind == "f":
        return f"f({text})"
    if dtype.kind == "b" or bits == 32:
        return f"({text})" if dtype.kind == "b" else f"({text}>>>0)" if dtype.kind == "u" else f"({text}|0)"
    return f"({text}&{2**bits - 1})" if dtype.kind == "u" else f"(({text})<<{32 - bits}>>{32 - bits})"


def unsigned(text: str, dtype: np.dtype) -> str:
    return f"({text}>>>0)" if dtype.itemsize == 4 else f"({text}&{2 ** (8 * dtype.itemsize) - 1})"


def shifted(operator: str) -> Callable[..., str]:
    """A shift; JavaScript counts modulo 32, JAX gives 0 (or the sign) for too many bits."""

    def text(a: str, n: str, dtype: np.dtype) -> str:
        bits = 8 * dtype.itemsize
        if operator == ">>":
            return f"({a}>>Math.min({n},31))"
        moved = wrapped(f"{unsigned(a, dtype) if operator == '>>>' else a}{operator}{n}", dtype)
        if n.isdigit():
            return moved if int(n) < bits else "0"
        return f"(({n})>>>0<{bits}?{moved}:0)"

    return text


def product(a: str, b: str, dtype: np.dtype) -> str:
    return wrapped(f"Math.imul({a},{b})" if dtype.kind in "iu" else f"{a}*{b}", dtype)


def logical(operator: str) -> Callable[..., str]:
    return lambda a, b, dtype: f"({a}{operator}{b}>>>0)" if dtype == np.uint32 else f"({a}{operator}{b})"


def compared(operator: str) -> Callable[..., str]:
    return lambda a, b, dtype: f"({a}{operator}{b}?1:0)"


def power(text: str, y: int, dtype: np.dtype) -> str:
    return wrapped(f"Math.pow({text},{y})", dtype)


BINARY: dict[str, Callable[[str, str, np.dtype], str]] = {
    "add": lambda a, b, d: wrapped(f"{a}+{b}", d),
    "sub": lambda a, b, d: wrapped(f"{a}-{b}", d),
    "mul": product,
    "div": lambda a, b, d: wrapped(f"{a}/{b}", d),
    "rem": lambda a, b, d: wrapped(f"{a}%{b}", d),
    "max": lambda a, b, d: f"Math.max({a},{b})",
    "min": lambda a, b, d: f"Math.min({a},{b})",
    "and": logical("&"), "or": logical("|"), "xor": logical("^"),
    "eq": compared("==="), "ne": compared("!=="), "lt": compared("<"), "le": compared("<="), "gt": compared(">"),
    "ge": compared(">="),
    "shift_left": shifted("<<"), "shift_right_logical": shifted(">>>"), "shift_right_arithmetic": shifted(">>"),
    "pow": lambda a, b, d: wrapped(f"Math.pow({a},{b})", d),
    "atan2": lambda a, b, d: wrapped(f"Math.atan2({a},{b})", d),
}  # fmt: skip
UNARY: dict[str, Callable[[str, np.dtype], str]] = {
    "neg": lambda a, d: wrapped(f"-{a}", d),
    "not": lambda a, d: f"({a}^1)" if d.kind == "b" else wrapped(f"~{a}", d),
    "sign": lambda a, d: f"Math.sign({a})",
    "abs": lambda a, d: wrapped(f"Math.abs({a})", d),
    "population_count": lambda a, d: f"bitsIn({unsigned(a, d)})",
    "clz": lambda a, d: f"(Math.clz32({unsigned(a, d)})-{32 - 8 * d.itemsize})",
    "logistic": lambda a, d: f"f(1/(1+Math.exp(-{a})))",
    "rsqrt": lambda a, d: f"f(1/Math.sqrt({a}))",
    "square": lambda a, d: f"squared({a})",
    "is_finite": lambda a, d: f"(Number.isFinite({a})?1:0)",
    "round": lambda a, d: f"roundEven({a})",
    **{name: lambda a, d: a for name in ("copy", "copy_p", "stop_gradient", "optimization_barrier")},
    **{name: lambda a, d, name=name: f"f(Math.{name}({a}))"
       for name in ("exp", "log", "tanh", "sqrt", "log1p", "expm1", "floor", "ceil", "sin", "cos", "tan")},
}  # fmt: skip


def entrywise(text: Callable[..., str]) -> Primitive:
    def primitive(code: Code, inputs: list[Value], params: Any, out: Any) -> Value:
        a = inputs[0]
        return Value(out.shape, out.dtype, lambda idx: text(*(_same(x, out).at(idx) for x in inputs), a.dtype))

    return primitive


def _same(x: Value, out: Any) -> Value:
    """An operand in the shape of the result: scalars and dimensions of 1 repeat."""
    if x.shape == out.shape:
        return x
    single = [n == 1 for n in x.shape]
    index = lambda idx: [0 if one else i for one, i in zip(single, idx[len(idx) - len(single) :], strict=True)]
    return Value(out.shape, x.dtype, lambda idx: x.at(index(idx)))


PRIMITIVES.update({name: entrywise(text) for name, text in (BINARY | UNARY).items()})


@primitive("integer_pow")
def integer_pow(code, inputs, params, out):
    x, y = inputs[0], params["y"]
    return Value(out.shape, out.dtype, lambda idx: power(x.at(idx), y, out.dtype))


@primitive("convert_element_type")
def convert(code, inputs, params, out):
    x, to = inputs[0], out.dtype
    if to == np.bool_:
        change = lambda text: f"({text}!==0?1:0)"
    elif x.dtype == np.bool_ or (x.dtype.kind == to.kind and x.dtype.itemsize <= to.itemsize):
        change = lambda text: text
    else:
        change = lambda text: wrapped(text, to)
    return Value(out.shape, to, lambda idx: change(x.at(idx)))


@primitive("select_n")
def select(code, inputs, params, out):
    which, *cases = (_same(x, out) for x in inputs)

    def at(idx):
        chosen = which.at(idx)
        if len(cases) == 2:
            return f"({chosen}?{cases[1].at(idx)}:{cases[0].at(idx)})"
        tests = "".join(f"{chosen}==={i}?{case.at(idx)}:" for i, case in enumerate(cases[:-1]))
        return f"({tests}{cases[-1].at(idx)})"

    return Value(out.shape, out.dtype, at)


@primitive("clamp")
def clamp(code, inputs, params, out):
    low, x, high = (_same(v, out) for v in inputs)
    return Value(out.shape, out.dtype, lambda idx: f"Math.min(Math.max({x.at(idx)},{low.at(idx)}),{high.at(idx)})")


# Shapes


def view_of(x: Value, out: Any, offset: Callable[[Sequence[int]], int], strides: Callable, index: Callable) -> Value:
    """`x` seen through other indices: `index` maps an index of the result to one of `x`."""
    if x.const is not None and out.size <= x.size:
        chosen = np.empty(out.shape, x.dtype)
        for idx in np.ndindex(*out.shape):
            chosen[idx] = x.const[tuple(index(idx))]
        return Value(out.shape, out.dtype, lambda idx: x.at(index(idx)), None, chosen)
    if x.stored is None:
        return Value(out.shape, out.dtype, lambda idx: x.at(index(idx)))
    s = x.stored
    stored = Stored(s.name, s.offset + offset(s.strides), tuple(strides(s.strides)))
    return Value(out.shape, out.dtype, lambda idx: x.at(index(idx)), stored)


@primitive("broadcast_in_dim")
def broadcast(code, inputs, params, out):
    x, dims = inputs[0], params["broadcast_dimensions"]
    if out.size > x.size and x.const is None:
        x = code.force(x)
    index = lambda idx: [0 if n == 1 else idx[d] for d, n in zip(dims, x.shape, strict=True)]

    def strides(old):
        new = [0] * len(out.shape)
        for d, n, s in zip(dims, x.shape, old, strict=True):
            new[d] = 0 if n == 1 and out.shape[d] > 1 else s
        return new

    return view_of(x, out, lambda s: 0, strides, index)


@primitive("squeeze", "reshape", "expand_dims")
def reshape(code, inputs, params, out):
    x = inputs[0]
    wide = lambda shape: [(d, n) for d, n in enumerate(shape) if n != 1]
    if [n for _, n in wide(x.shape)] == [n for _, n in wide(out.shape)]:  # only dimensions of 1 come or go
        places = dict(zip((d for d, _ in wide(x.shape)), (d for d, _ in wide(out.shape)), strict=True))
        back = {new: old for old, new in places.items()}
        index = lambda idx: [idx[places[d]] if d in places else 0 for d in range(len(x.shape))]
        strides = lambda old: [old[back[d]] if d in back else 0 for d in range(len(out.shape))]
        return view_of(x, out, lambda s: 0, strides, index)
    x = code.whole(x)
    return code.view(out.shape, out.dtype, Stored(x.place.name, x.place.offset, strides_of(out.shape)))


@primitive("transpose")
def transpose(code, inputs, params, out):
    x, permutation = inputs[0], params["permutation"]
    index = lambda idx: [idx[permutation.index(d)] for d in range(len(x.shape))]
    return view_of(x, out, lambda s: 0, lambda s: [s[d] for d in permutation], index)


@primitive("slice")
def slice_(code, inputs, params, out):
    x, starts = inputs[0], params["start_indices"]
    steps = params["strides"] or [1] * len(starts)
    index = lambda idx: [plus(start, times(i, step)) for i, start, step in zip(idx, starts, steps, strict=True)]
    offset = lambda s: sum(a * b for a, b in zip(starts, s, strict=True))
    return view_of(x, out, offset, lambda s: [a * b for a, b in zip(steps, s, strict=True)], index)


@primitive("rev")
def rev(code, inputs, params, out):
    x, dims = code.force(inputs[0]), params["dimensions"]
    last = lambda d: x.shape[d] - 1
    index = lambda idx: [f"({last(d)}-{i})" if d in dims and isinstance(i, str) else last(d) - i if d in dims else i
                         for d, i in enumerate(idx)]  # fmt: skip
    offset = lambda s: sum(last(d) * s[d] for d in dims)
    return view_of(x, out, offset, lambda s: [-n if d in dims else n for d, n in enumerate(s)], index)


@primitive("iota")
def iota(code, inputs, params, out):
    shape = [n if d == params["dimension"] else 1 for d, n in enumerate(out.shape)]
    known = np.arange(out.shape[params["dimension"]]).reshape(shape)
    return code.constant(np.broadcast_to(known, out.shape).astype(out.dtype))


@primitive("split")
def split(code, inputs, params, outs):
    parts, start, axis = [], 0, params["axis"]
    x = code.force(inputs[0])
    for size, out in zip(params["sizes"], outs, strict=True):
        starts = [start if d == axis else 0 for d in range(len(x.shape))]
        parts.append(slice_(code, [x], {"start_indices": starts, "strides": None}, out))
        start += size
    return parts


def region(code: Code, whole: Value, starts: Sequence[Index], shape: Sequence[int], steps: Sequence[int]) -> Value:
    """A part of a stored array, to write into."""
    s = whole.place

    def at(idx):
        places = [plus(a, times(i, k)) for a, i, k in zip(starts, idx, steps, strict=True)]
        return f"{s.name}[{plus(s.offset, *map(times, places, s.strides))}]"

    known = not any(isinstance(a, str) for a in starts)
    offset = s.offset + sum(int(a) * n for a, n in zip(starts, s.strides, strict=True) if not isinstance(a, str))
    stored = Stored(s.name, offset, tuple(a * b for a, b in zip(steps, s.strides, strict=True)))
    return Value(tuple(shape), whole.dtype, at, stored if known else None)


@primitive("concatenate", "stack")
def concatenate(code, inputs, params, out):
    axis = params.get("dimension", params.get("axis"))
    if len(out.shape) > len(inputs[0].shape):  # a stack
        shape = [n for d, n in enumerate(out.shape) if d != axis]
        inputs = [Value((*shape[:axis], 1, *shape[axis:]), x.dtype,
                        lambda idx, x=x: x.at([*idx[:axis], *idx[axis + 1 :]])) for x in inputs]  # fmt: skip
    target, start = code.empty(out.shape, out.dtype), 0
    for x in inputs:
        starts = [start if d == axis else 0 for d in range(len(out.shape))]
        code.write(x, region(code, target, starts, x.shape, [1] * len(starts)))
        start += x.shape[axis]
    return target


@primitive("pad")
def pad(code, inputs, params, out):
    x, value = inputs
    config = params["padding_config"]
    if any(low < 0 or high < 0 for low, high, _ in config):  # cut first, then pad
        cut = [(max(-low, 0), n - max(-high, 0)) for (low, high, _), n in zip(config, x.shape, strict=True)]
        shape = tuple(b - a for a, b in cut)
        x, old = Value(shape, x.dtype, lambda idx: old.at([plus(i, a) for i, (a, _) in zip(idx, cut, strict=True)])), x
        config = [(max(low, 0), max(high, 0), inner) for low, high, inner in config]
    target = code.empty(out.shape, out.dtype)
    code.put(f"{target.place.name}.fill({value.at(())});")
    steps = [inner + 1 for *_, inner in config]
    code.write(x, region(code, target, [low for low, *_ in config], x.shape, steps))
    return target


# Reading and writing where the program says


def clipped(text: str, most: int) -> Index:
    return 0 if most == 0 else f"Math.min(Math.max({text},0),{most})"


def starts_of(code: Code, indices: list[Value], shape: Sequence[int], sizes: Sequence[int]) -> list[Index]:
    texts = [clipped(i.at(()), n - k) for i, n, k in zip(indices, shape, sizes, strict=True)]
    return [t if isinstance(t, int) else code.local((), np.dtype("int32"), t).at(()) for t in texts]


@primitive("dynamic_slice")
def dynamic_slice(code, inputs, params, out):
    x = code.force(inputs[0])
    starts = starts_of(code, inputs[1:], x.shape, out.shape)
    return Value(out.shape, out.dtype, lambda idx: x.at([plus(a, i) for a, i in zip(starts, idx, strict=True)]))


@primitive("dynamic_update_slice")
def dynamic_update_slice(code, inputs, params, out):
    x, update, *indices = inputs
    starts = starts_of(code, indices, x.shape, update.shape)
    target = code.empty(out.shape, out.dtype)
    code.write(x, target)
    code.write(update, region(code, target, starts, update.shape, [1] * len(starts)))
    return target


@primitive("gather")
def gather(code, inputs, params, out):
    x, indices = (code.force(v) for v in inputs)
    d, sizes, mode = params["dimension_numbers"], params["slice_sizes"], params["mode"]
    batch = [i for i in range(len(out.shape)) if i not in d.offset_dims]
    window = [i for i in range(len(x.shape)) if i not in (*d.collapsed_slice_dims, *d.operand_batching_dims)]
    fill = params.get("fill_value")
    if fill is None:
        fill = {"f": np.nan, "b": 1}.get(out.dtype.kind)
    if fill is None:  # as in JAX: the lowest number, or the highest without a sign
        fill = np.iinfo(out.dtype).min if out.dtype.kind == "i" else np.iinfo(out.dtype).max
    modes = jax.lax.GatherScatterMode
    in_bounds, filled = mode == modes.PROMISE_IN_BOUNDS, mode == modes.FILL_OR_DROP

    def at(idx):
        where: list[Index] = [idx[i] for i in batch]
        inside: list[Index] = [0] * len(x.shape)
        for i, dim in zip(d.offset_dims, window, strict=True):
            inside[dim] = idx[i]
        for dim, here in zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True):
            inside[dim] = where[here]
        tests = []
        for k, dim in enumerate(d.start_index_map):
            text, most = indices.at([*where, k]), x.shape[dim] - sizes[dim]
            if filled:
                tests.append(f"{text}>={0}&&{text}<={most}")
            inside[dim] = plus(inside[dim], text if in_bounds else clipped(text, most))
        found = x.at(inside)
        return f"({'&&'.join(tests)}?{found}:{literal(fill, out.dtype)})" if tests else found

    return Value(out.shape, out.dtype, at)


@primitive("scatter", "scatter-add", "scatter-max", "scatter-min")
def scatter(code, inputs, params, out, kind="scatter"):
    if params["mode"] == jax.lax.GatherScatterMode.CLIP:
        raise ValueError("expected a scatter that drops what is out of bounds, got mode='clip'")
    x, indices, updates = inputs[0], *(code.force(v) for v in inputs[1:])
    d = params["dimension_numbers"]
    target = code.empty(out.shape, out.dtype)
    code.write(x, target)
    rest = [i for i in range(len(updates.shape)) if i not in d.update_window_dims]
    window = [i for i in range(len(x.shape)) if i not in (*d.inserted_window_dims, *d.operand_batching_dims)]

    def body(idx):
        where: list[Index] = [idx[i] for i in rest]
        place: list[Index] = [0] * len(x.shape)
        for i, dim in zip(d.update_window_dims, window, strict=True):
            place[dim] = idx[i]
        for dim, here in zip(d.operand_batching_dims, d.scatter_indices_batching_dims, strict=True):
            place[dim] = where[here]
        for k, dim in enumerate(d.scatter_dims_to_operand_dims):
            place[dim] = plus(place[dim], indices.at([*where, k]))
        inside = "&&".join(f"{p}>=0&&{p}<{n}" for p, n in zip(place, x.shape, strict=True))
        new = updates.at(idx)
        if kind != "scatter":
            new = BINARY[kind.removeprefix("scatter-")](target.at(place), new, out.dtype)
        code.put(f"if ({inside}) {target.at(place)} = {new};")

    code.loop(updates.shape, body)
    return target


# Sums and their like


FOLDS: dict[str, Callable[[np.dtype], tuple[str, Callable[[str, str], str]]]] = {
    "reduce_sum": lambda d: ("0", lambda a, b: wrapped(f"{a}+{b}", d)),
    "reduce_prod": lambda d: ("1", lambda a, b: product(a, b, d)),
    "reduce_max": lambda d: (_least(d), lambda a, b: f"Math.max({a},{b})"),
    "reduce_min": lambda d: (_most(d), lambda a, b: f"Math.min({a},{b})"),
    "reduce_or": lambda d: ("0", lambda a, b: f"({a}|{b})"),
    "reduce_and": lambda d: ("1" if d.kind == "b" else "-1", lambda a, b: f"({a}&{b})"),
    "reduce_xor": lambda d: ("0", lambda a, b: f"({a}^{b})"),
}


def _least(d: np.dtype) -> str:
    return "-Infinity" if d.kind == "f" else "0" if d.kind in "bu" else str(np.iinfo(d).min)


def _most(d: np.dtype) -> str:
    return "Infinity" if d.kind == "f" else "1" if d.kind == "b" else str(np.iinfo(d).max)


def fold(name: str) -> Primitive:
    def primitive(code: Code, inputs: list[Value], params: Any, out: Any) -> Value:
        x, axes = inputs[0], params["axes"]
        start, join = FOLDS[name](x.dtype)
        kept = [d for d in range(len(x.shape)) if d not in axes]
        target = code.empty(out.shape, out.dtype) if out.shape else None

        def body(outer):
            total = code.name("s")
            code.put(f"let {total} = {start};")

            def add(inner):
                idx: list[Index] = [0] * len(x.shape)
                for d, i in zip((*kept, *axes), (*outer, *inner), strict=True):
                    idx[d] = i
                code.put(f"{total} = {join(total, x.at(idx))};")

            code.loop([x.shape[d] for d in axes], add)
            if target is not None:
                code.put(f"{target.at(outer)} = {total};")
            return total

        if target is None:
            total = body(())
            return Value((), out.dtype, lambda idx: total)
        code.loop(out.shape, lambda idx: code.put(code.inside(lambda: body(idx))))
        return target

    return primitive


PRIMITIVES.update({name: fold(name) for name in FOLDS})


@primitive("argmax", "argmin")
def argmax(code, inputs, params, out, kind="argmax"):
    x, (axis,) = code.force(inputs[0]), params["axes"]
    target = code.empty(out.shape, out.dtype)

    def body(outer):
        here = lambda i: x.at([*outer[:axis], i, *outer[axis:]])
        best = code.name("n")
        code.put(f"let {best} = 0;")
        sign = ">" if kind == "argmax" else "<"
        code.loop([x.shape[axis]], lambda i: code.put(f"if ({here(i[0])} {sign} {here(best)}) {best} = {i[0]};"))
        code.put(f"{target.at(outer)} = {best};")

    code.loop(out.shape, lambda idx: code.put(code.inside(lambda: body(idx))))
    return target


RUNNING = {"cumsum": "add", "cummax": "max", "cummin": "min", "cumprod": "mul"}


@primitive(*RUNNING)
def running(code, inputs, params, out, kind="cumsum"):
    x, axis, join = code.force(inputs[0]), params["axis"], BINARY[RUNNING[kind]]
    target, last = code.empty(out.shape, out.dtype), x.shape[params["axis"]] - 1

    def body(idx):
        i = idx[axis]
        place = [*idx[:axis], (f"({last}-{i})" if isinstance(i, str) else last - i) if params["reverse"] else i,
                 *idx[axis + 1 :]]  # fmt: skip
        back = [*idx[:axis], f"({last}-{i}+1)" if params["reverse"] else f"({i}-1)", *idx[axis + 1 :]]
        code.put(f"{target.at(place)} = {i}>0 ? {join(target.at(back), x.at(place), out.dtype)} : {x.at(place)};")

    code.loop(x.shape, body)
    return target


@primitive("dot_general")
def dot_general(code, inputs, params, out):
    a, b = inputs
    (ca, cb), (ba, bb) = params["dimension_numbers"]
    plain = (tuple(ca), tuple(cb), tuple(ba)) == ((len(a.shape) - 1,), (0,), ())
    if plain and b.const is not None and b.const.ndim == 2 and b.size >= MATRIX and out.dtype == np.float32:
        return matrix_product(code, code.whole(a), b.const, out)
    a, b = code.force(a), code.force(b)
    fa = [d for d in range(len(a.shape)) if d not in (*ca, *ba)]
    fb = [d for d in range(len(b.shape)) if d not in (*cb, *bb)]
    shape = [*(a.shape[d] for d in (*ba, *fa)), *(b.shape[d] for d in fb), *(a.shape[d] for d in ca)]

    def at(idx):
        batch, left = idx[: len(ba)], idx[len(ba) : len(ba) + len(fa)]
        right, summed = idx[len(ba) + len(fa) : len(idx) - len(ca)], idx[len(idx) - len(ca) :]
        ia, ib = [0] * len(a.shape), [0] * len(b.shape)
        for d, i in zip((*ba, *fa, *ca), (*batch, *left, *summed), strict=True):
            ia[d] = i
        for d, i in zip((*bb, *fb, *cb), (*batch, *right, *summed), strict=True):
            ib[d] = i
        return product(a.at(ia), b.at(ib), out.dtype)

    terms = Value(tuple(shape), out.dtype, at)
    return fold("reduce_sum")(code, [terms], {"axes": tuple(range(len(shape) - len(ca), len(shape)))}, out)


def matrix_product(code: Code, a: Value, b: np.ndarray, out: Any) -> Value:
    """`a` [..., K] times the constant matrix `b` [K, N], whose columns are filled up to a multiple of 4."""
    k, n = b.shape
    wide = -(-n // 4) * 4
    table = code.tables.add(np.pad(b, ((0, 0), (0, wide - n))).astype(np.float32))
    if code.is_argument(a):  # the kernel reads working memory only
        own = code.empty(a.shape, a.dtype)
        code.write(a, own)
        a = own
    target = code.empty((*out.shape[:-1], wide), out.dtype)
    rows = a.size // k
    code.put(f"matmul({code.part(a)}, {table}, {target.place.name}, {rows}, {k}, {wide});")
    return code.view(out.shape, out.dtype, Stored(target.place.name, 0, target.place.strides))


@primitive("conv_general_dilated")
def convolution(code, inputs, params, out):
    """A 2-dimensional convolution in the layout NHWC, as a product of all windows with the kernel."""
    x, kernel = code.force(inputs[0]), inputs[1]
    d = params["dimension_numbers"]
    plain = (params["window_strides"], params["lhs_dilation"], params["rhs_dilation"], params["feature_group_count"])
    layout = (tuple(d.lhs_spec), tuple(d.rhs_spec), tuple(d.out_spec))
    if plain != ((1, 1), (1, 1), (1, 1), 1) or layout != ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)):
        raise ValueError("convolutions need the layout NHWC, stride 1 and no dilation")
    if kernel.const is None:
        raise ValueError("the kernel of a convolution has to be constant")
    high, wide, deep, _ = kernel.const.shape
    padding = [(0, 0, 0), *((*p, 0) for p in params["padding"]), (0, 0, 0)]
    around = [n + low + high_ for n, (low, high_, _) in zip(x.shape, padding, strict=True)]
    zero = code.constant(np.zeros((), x.dtype))
    x = pad(code, [x, zero], {"padding_config": padding}, Shape(tuple(around), x.dtype))
    # The columns and channels of a window's row lie next to each other.
    rows = code.view((*out.shape[:3], high, wide * deep), x.dtype,
                     Stored(x.place.name, 0, (*x.place.strides[:3], x.place.strides[1], 1)))  # fmt: skip
    windows = code.empty(rows.shape, x.dtype)
    code.write(rows, windows)
    flat = Shape((*out.shape[:3], high * wide * deep), x.dtype)
    return matrix_product(code, reshape(code, [windows], {}, flat), kernel.const.reshape(-1, out.shape[3]), out)
