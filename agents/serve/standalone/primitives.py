"""JAX's primitives in JavaScript: a table with one function for each.

A function takes the code so far, the inputs and the equation's parameters and output types; it returns the outputs.
Many primitives are written in others, as JAX functions.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from agents.serve.standalone.values import Code, Index, Shape, Value, affine, literal, plus, scalar, times

Values = Value | list[Value]
Primitive = Callable[..., Values]
PRIMITIVES: dict[str, Primitive] = {}
MATRIX = 64  # entries of a constant matrix from which the WebAssembly kernel multiplies
MODES = lax.GatherScatterMode


def primitive(name: str) -> Callable[[Primitive], Primitive]:
    def add(function: Primitive) -> Primitive:
        PRIMITIVES[name] = function
        return function

    return add


# Numbers


def wrapped(text: str, d: np.dtype) -> str:
    """The text of a number, brought into the range or precision of its type."""
    bits = 8 * d.itemsize
    if d.kind in "fb":
        return f"f({text})" if d.kind == "f" else f"({text})"
    if d.kind == "u":
        return unsigned(f"({text})", d)
    return f"({text}|0)" if bits == 32 else f"(({text})<<{32 - bits}>>{32 - bits})"


def unsigned(text: str, d: np.dtype) -> str:
    return f"({text}>>>0)" if d.itemsize == 4 else f"({text}&{2 ** (8 * d.itemsize) - 1})"


def product(a: str, b: str, d: np.dtype) -> str:
    return wrapped(f"Math.imul({a},{b})" if d.kind in "iu" else f"{a}*{b}", d)


def arithmetic(sign: str) -> Callable[..., str]:
    return lambda a, b, d: wrapped(f"{a}{sign}{b}", d)


def compared(sign: str) -> Callable[..., str]:
    return lambda a, b, d: f"({a}{sign}{b}?1:0)"


def called(name: str) -> Callable[..., str]:
    return lambda *texts: wrapped(f"{name}({','.join(texts[:-1])})", texts[-1])


def shifted(sign: str) -> Callable[..., str]:
    """JavaScript counts shifts modulo 32, JAX gives 0 for too many bits."""

    def text(a: str, n: str, d: np.dtype) -> str:
        bits = unsigned(a, d) if sign == ">>>" else a
        return f"(({n})>>>0<{8 * d.itemsize}?{wrapped(f'{bits}{sign}({n})', d)}:0)"

    return text


ENTRYWISE: dict[str, Callable[..., str]] = {
    "add": arithmetic("+"), "sub": arithmetic("-"), "mul": product, "div": arithmetic("/"), "rem": arithmetic("%"),
    "max": called("Math.max"), "min": called("Math.min"), "pow": called("Math.pow"), "atan2": called("Math.atan2"),
    "and": arithmetic("&"), "or": arithmetic("|"), "xor": arithmetic("^"),
    "eq": compared("==="), "ne": compared("!=="), "lt": compared("<"), "le": compared("<="), "gt": compared(">"),
    "ge": compared(">="),
    "shift_left": shifted("<<"), "shift_right_logical": shifted(">>>"),
    "shift_right_arithmetic": lambda a, n, d: f"({a}>>Math.min({n},31))",
    "neg": lambda a, d: wrapped(f"-{a}", d),
    "not": lambda a, d: f"({a}^1)" if d.kind == "b" else wrapped(f"~{a}", d),
    "abs": called("Math.abs"), "sign": called("Math.sign"),
    "population_count": lambda a, d: f"bitsIn({unsigned(a, d)})",
    "clz": lambda a, d: f"(Math.clz32({unsigned(a, d)})-{32 - 8 * d.itemsize})",
    "is_finite": lambda a, d: f"(Number.isFinite({a})?1:0)",
    **{name: lambda a, d: a for name in ("copy", "copy_p", "stop_gradient", "optimization_barrier")},
    **{name: called(f"Math.{name}") for name in ("exp", "log", "tanh", "sqrt", "log1p", "expm1", "floor", "ceil",
                                                 "sin", "cos", "tan")},
}  # fmt: skip


def entrywise(text: Callable[..., str]) -> Primitive:
    """An operation of entry with entry; scalars and dimensions of 1 repeat."""
    index = lambda x, idx: [0 if n == 1 else i for n, i in zip(x.shape, idx[len(idx) - len(x.shape) :], strict=True)]

    def apply(code: Code, inputs: list[Value], params: Any, out: Shape) -> Value:
        at = lambda idx: text(*(x.at(index(x, idx)) for x in inputs), inputs[0].dtype)
        return Value(out.shape, out.dtype, at)

    return apply


PRIMITIVES.update({name: entrywise(text) for name, text in ENTRYWISE.items()})
PRIMITIVES["device_put"] = lambda code, inputs, params, out: inputs


@primitive("convert_element_type")
def convert_type(code: Code, inputs: list[Value], params: Any, out: Shape) -> Values:
    (x,), to = inputs, out.dtype
    same = x.dtype == np.bool_ or (x.dtype.kind == to.kind and x.dtype.itemsize <= to.itemsize)
    if to == np.bool_:
        change = lambda a, d: f"({a}!==0?1:0)"
    elif x.dtype.kind == "f" and to.kind in "iu":  # numbers out of range become the nearest one
        least, most = np.iinfo(to).min, np.iinfo(to).max
        change = lambda a, d: wrapped(f"Math.min(Math.max({a},{least}),{most})", to)
    else:
        change = lambda a, d: a if same else wrapped(a, to)
    return entrywise(change)(code, inputs, params, out)


@primitive("round")
def rounded(code: Code, inputs: list[Value], params: Any, out: Shape) -> Values:
    even = params["rounding_method"] == lax.RoundingMethod.TO_NEAREST_EVEN
    return entrywise(called("roundEven" if even else "roundAway"))(code, inputs, params, out)


@primitive("select_n")
def select(code: Code, inputs: list[Value], params: Any, out: Shape) -> Values:
    def text(which: str, *cases: str) -> str:
        if len(cases) == 3:  # two, and the type
            return f"({which}?{cases[1]}:{cases[0]})"
        return "(" + "".join(f"{which}==={i}?{case}:" for i, case in enumerate(cases[:-2])) + f"{cases[-2]})"

    return entrywise(text)(code, inputs, params, out)


# Entries that move. A function gives the flat index, among the operand's entries, of every entry of the result.

MOVES: dict[str, Callable[[np.ndarray, Any, Shape], np.ndarray]] = {
    **{name: lambda i, p, out: i.reshape(out.shape) for name in ("reshape", "squeeze", "expand_dims")},
    "transpose": lambda i, p, out: i.transpose(p["permutation"]),
    "rev": lambda i, p, out: np.flip(i, p["dimensions"]),
    "slice": lambda i, p, out: i[
        tuple(map(slice, p["start_indices"], p["limit_indices"], p["strides"] or [1] * i.ndim))
    ],
    "broadcast_in_dim": lambda i, p, out: np.broadcast_to(
        np.expand_dims(i, [d for d in range(len(out.shape)) if d not in p["broadcast_dimensions"]]), out.shape
    ),
}


def moving(index: Callable[[np.ndarray, Any, Shape], np.ndarray]) -> Primitive:
    def apply(code: Code, inputs: list[Value], params: Any, out: Shape) -> Value:
        x = code.force(inputs[0]) if out.size > inputs[0].size and inputs[0].const is None else inputs[0]
        return moved(code, x, index(places(x.shape), params, out))

    return apply


PRIMITIVES.update({name: moving(index) for name, index in MOVES.items()})


def places(shape: Sequence[int]) -> np.ndarray:
    """The flat index of every entry."""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape)


def moved(code: Code, x: Value, index: np.ndarray) -> Value:
    """The entries of `x` with these flat indices, in the shape of `index`; a view if they lie regularly."""
    parts = [affine(part) for part in np.unravel_index(index, x.shape)] if x.shape else []
    if None in parts:  # dimensions merge or part
        x = code.whole(x)
        x = code.view((x.size,), x.dtype, x.place.name, x.place.offset)
        parts = [affine(index)]
    known = [part for part in parts if part is not None]
    assert len(known) == len(x.shape)
    at = lambda idx: x.at([plus(start, *map(times, idx, steps)) for start, steps in known])
    const = x.const.ravel()[index] if x.const is not None and index.size <= x.size else None
    if x.stored is None:
        return Value(index.shape, x.dtype, at, const=const)
    strides = x.stored.strides
    start = x.stored.offset + sum(a * n for (a, _), n in zip(known, strides, strict=True))
    steps = [sum(k[d] * n for (_, k), n in zip(known, strides, strict=True)) for d in range(index.ndim)]
    return code.view(index.shape, x.dtype, x.stored.name, start, steps)


def put(code: Code, x: Value, target: Value, index: np.ndarray) -> None:
    """Writes the entries of `x` to those of a new array with these flat indices, which lie regularly."""
    code.write(x, moved(code, target, index))


@primitive("concatenate")
def concatenate(code: Code, inputs: list[Value], params: Any, out: Shape) -> Value:
    target, axis = code.empty(out), params["dimension"]
    ends = np.cumsum([x.shape[axis] for x in inputs])[:-1]
    for x, index in zip(inputs, np.split(places(out.shape), ends, axis), strict=True):
        put(code, x, target, index)
    return target


@primitive("pad")
def pad(code: Code, inputs: list[Value], params: Any, out: Shape) -> Value:
    (x, value), target = inputs, code.empty(out)
    code.put(f"{target.place.name}.fill({value.at(())});")
    to = [low + (gap + 1) * np.arange(n) for (low, _, gap), n in zip(params["padding_config"], x.shape, strict=True)]
    kept = [(i >= 0) & (i < n) for i, n in zip(to, out.shape, strict=True)]
    x = moved(code, x, places(x.shape)[np.ix_(*kept)])
    put(code, x, target, places(out.shape)[np.ix_(*(i[k] for i, k in zip(to, kept, strict=True)))])
    return target


# Reading and writing where the program says


def clipped(text: str, most: int) -> Index:
    return f"Math.min(Math.max({text},0),{most})" if most else 0


def window(code: Code, x: Value, indices: list[Value], sizes: Shape) -> Value:
    """A part of a stored array, from indices on that are moved inside."""
    texts = [clipped(i.at(()), n - k) for i, n, k in zip(indices, x.shape, sizes.shape, strict=True)]
    starts = [text if text == 0 else code.local(np.dtype(np.int32), str(text)).at(()) for text in texts]
    return Value(sizes.shape, x.dtype, lambda idx: x.at([plus(a, i) for a, i in zip(starts, idx, strict=True)]))


@primitive("dynamic_slice")
def dynamic_slice(code: Code, inputs: list[Value], params: Any, out: Shape) -> Value:
    return window(code, code.force(inputs[0]), inputs[1:], out)


@primitive("dynamic_update_slice")
def dynamic_update_slice(code: Code, inputs: list[Value], params: Any, out: Shape) -> Value:
    x, update, *indices = inputs
    target = code.copy(x)
    code.write(update, window(code, target, indices, update))
    return target


@primitive("gather")
def gather(code: Code, inputs: list[Value], params: Any, out: Shape) -> Value:
    x, indices = (code.force(v) for v in inputs)
    d, sizes, mode, fill = params["dimension_numbers"], params["slice_sizes"], params["mode"], params.get("fill_value")
    if fill is None:  # as in JAX: the lowest number, or the highest without a sign
        fill = (
            np.nan if out.dtype.kind == "f" else lowest(out.dtype) if out.dtype.kind == "i" else max_of_type(out.dtype)
        )
    dims = (d.offset_dims, d.collapsed_slice_dims, d.operand_batching_dims, d.start_indices_batching_dims)

    def at(idx: Sequence[Index]) -> str:
        where, place = split_index(idx, len(x.shape), *dims)
        starts = [(dim, indices.at([*where, k]), x.shape[dim] - sizes[dim]) for k, dim in enumerate(d.start_index_map)]
        for dim, text, most in starts:
            place[dim] = plus(place[dim], text if mode == MODES.PROMISE_IN_BOUNDS else clipped(text, most))
        tests = "&&".join(f"{text}>=0&&{text}<={most}" for _, text, most in starts)
        checked = tests and mode == MODES.FILL_OR_DROP
        return f"({tests}?{x.at(place)}:{literal(fill, out.dtype)})" if checked else x.at(place)

    return Value(out.shape, out.dtype, at)


def split_index(idx, rank, inner, absent, batch, batch_of) -> tuple[list[Index], list[Index]]:
    """An index of gathered or scattered windows as the index of the window, and that of the entry within it."""
    where, place = [i for d, i in enumerate(idx) if d not in inner], [0] * rank
    for d, dim in zip(inner, (dim for dim in range(rank) if dim not in (*absent, *batch)), strict=True):
        place[dim] = idx[d]
    for dim, d in zip(batch, batch_of, strict=True):
        place[dim] = where[d]
    return where, place


def scattering(join: Callable[..., str]) -> Primitive:
    def apply(code: Code, inputs: list[Value], params: Any, out: Shape) -> Value:
        if params["mode"] == MODES.CLIP:
            raise ValueError("expected a scatter that drops what is out of bounds, got mode='clip'")
        target, indices, updates = code.copy(inputs[0]), *(code.force(v) for v in inputs[1:])
        d = params["dimension_numbers"]
        batch = d.operand_batching_dims, d.scatter_indices_batching_dims

        def body(idx: Sequence[Index]) -> None:
            where, place = split_index(idx, len(out.shape), d.update_window_dims, d.inserted_window_dims, *batch)
            for k, dim in enumerate(d.scatter_dims_to_operand_dims):
                place[dim] = plus(place[dim], indices.at([*where, k]))
            inside = "&&".join(f"{p}>=0&&{p}<{n}" for p, n in zip(place, out.shape, strict=True))
            code.put(f"if ({inside}) {target.at(place)} = {join(target.at(place), updates.at(idx), out.dtype)};")

        code.loop(updates.shape, body)
        return target

    return apply


PRIMITIVES["scatter"] = scattering(lambda old, new, d: new)
PRIMITIVES.update({f"scatter-{name}": scattering(ENTRYWISE[name]) for name in ("add", "mul", "max", "min")})


# Sums and their like


def lowest(d: np.dtype) -> float:
    return -np.inf if d.kind == "f" else 0 if d.kind == "b" else np.iinfo(d).min


def max_of_type(d: np.dtype) -> float:
    return np.inf if d.kind == "f" else 1 if d.kind == "b" else np.iinfo(d).max


def folding(join: Callable[..., str], start: Callable[[np.dtype], float]) -> Primitive:
    def apply(code: Code, inputs: list[Value], params: Any, out: Shape) -> Value:
        (x,), axes = inputs, params["axes"]
        order = np.argsort([d for d in range(len(x.shape)) if d not in axes] + list(axes))

        def total(outer: Sequence[Index]) -> str:
            name = code.name("s")
            code.put(f"let {name} = {literal(start(x.dtype), x.dtype)};")
            entry = lambda inner: x.at([(*outer, *inner)[i] for i in order])
            add = lambda inner: code.put(f"{name} = {join(name, entry(inner), x.dtype)};")
            code.loop([x.shape[d] for d in axes], add)
            return name

        if not out.shape:
            return scalar(total(()), out.dtype)
        target = code.empty(out)
        body = lambda idx: code.put(f"{target.at(idx)} = {total(idx)};")
        code.loop(out.shape, lambda idx: code.put(code.inside(lambda: body(idx))))
        return target

    return apply


PRIMITIVES.update({
    f"reduce_{name}": folding(ENTRYWISE[join], start) for name, join, start in (
        ("sum", "add", lambda d: 0), ("prod", "mul", lambda d: 1), ("max", "max", lowest), ("min", "min", max_of_type),
        ("or", "or", lambda d: 0), ("xor", "xor", lambda d: 0),
        ("and", "and", lambda d: -1 if d.kind == "i" else max_of_type(d)),
    )
})  # fmt: skip


@primitive("reduce")
def reduce_together(code: Code, inputs: list[Value], params: Any, out: Shape) -> Values:
    """Several arrays that an operation joins at once."""
    half, axes = len(inputs) // 2, params["dimensions"]
    arrays, starts, shape = inputs[:half], inputs[half:], inputs[0].shape
    order = np.argsort([d for d in range(len(shape)) if d not in axes] + list(axes))
    join = jex_core.jaxpr_as_fun(params["jaxpr"])
    targets = [code.empty(Shape(out.shape, x.dtype)) for x in arrays]

    def assign(targets: Sequence[Value], values: Sequence[Value], at: Sequence[Index] = (), sign: str = "") -> None:
        for target, value in zip(targets, values, strict=True):
            code.put(f"{sign}{target.at(at)} = {value.at(())};")

    def body(outer: Sequence[Index]) -> None:
        totals = [scalar(code.name("s"), x.dtype) for x in arrays]
        assign(totals, starts, sign="let ")

        def add(inner: Sequence[Index]) -> None:
            entries = [scalar(x.at([(*outer, *inner)[i] for i in order]), x.dtype) for x in arrays]
            assign(totals, [code.local(x.dtype, x.at(())) for x in code.inline(join, [*totals, *entries])])

        code.loop([shape[d] for d in axes], add)
        assign(targets, totals, outer)

    code.loop(out.shape, lambda outer: code.put(code.inside(lambda: body(outer))))
    return targets


# Matrices


@primitive("dot_general")
def dot_general(code: Code, inputs: list[Value], params: Any, out: Shape) -> Value:
    a, b = inputs
    (ca, cb), (ba, _) = params["dimension_numbers"]
    plain = (tuple(ca), tuple(cb), tuple(ba)) == ((len(a.shape) - 1,), (0,), ())
    floats = {a.dtype, b.dtype, out.dtype} == {np.dtype(np.float32)}
    if plain and b.const is not None and b.const.ndim == 2 and b.size >= MATRIX and floats:
        return matrix_product(code, code.whole(a), b.const, out)
    (result,) = code.inline(lambda a, b: products(a, b, params["dimension_numbers"], out.dtype), inputs)
    return result


def products(a: jax.Array, b: jax.Array, dimensions: Any, dtype: np.dtype) -> jax.Array:
    """dot_general as a sum of products."""
    (ca, cb), (ba, bb) = dimensions
    fa, fb = ([d for d in range(x.ndim) if d not in (*c, *p)] for x, c, p in ((a, ca, ba), (b, cb, bb)))
    a = lax.expand_dims(jnp.transpose(a, [*ba, *fa, *ca]), range(len(ba) + len(fa), len(ba) + len(fa) + len(fb)))
    b = lax.expand_dims(jnp.transpose(b, [*bb, *fb, *cb]), range(len(bb), len(bb) + len(fa)))
    return (a.astype(dtype) * b.astype(dtype)).sum(tuple(range(a.ndim - len(ca), a.ndim)), dtype=dtype)


def matrix_product(code: Code, a: Value, b: np.ndarray, out: Shape) -> Value:
    """`a` [..., K] times the constant matrix `b` [K, N], whose columns are filled up to a multiple of 4."""
    k, n = b.shape
    wide = -(-n // 4) * 4
    table = code.tables.add(np.pad(b, ((0, 0), (0, wide - n))).astype(np.float32))
    if a.place.name not in (name for name, *_ in code.buffers):  # the kernel reads working memory only
        a = code.copy(a)
    target = code.empty(Shape((*out.shape[:-1], wide), out.dtype))
    code.put(f"matmul({code.part(a)}, {table}, {target.place.name}, {a.size // k}, {k}, {wide});")
    return code.view(out.shape, out.dtype, target.place.name, 0, target.place.strides)


@primitive("conv_general_dilated")
def convolution(code: Code, inputs: list[Value], params: Any, out: Shape) -> Value:
    """A 2-dimensional convolution in the layout NHWC, as a product of all windows with the kernel."""
    x, kernel = code.force(inputs[0]), inputs[1].const
    d = params["dimension_numbers"]
    plain = (params["window_strides"], params["lhs_dilation"], params["rhs_dilation"], params["feature_group_count"])
    layout = (tuple(d.lhs_spec), tuple(d.rhs_spec), tuple(d.out_spec))
    if plain != ((1, 1), (1, 1), (1, 1), 1) or layout != ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)) or kernel is None:
        raise ValueError("expected a constant kernel, the layout NHWC, stride 1 and no dilation")
    high, wide, deep, _ = kernel.shape
    (x,) = code.inline(lambda x: jnp.pad(x, ((0, 0), *params["padding"], (0, 0))), [x])
    # The columns and channels of a window's row lie next to each other.
    s = code.whole(x).place
    rows = (*out.shape[:3], high, wide * deep)
    windows = code.copy(code.view(rows, x.dtype, s.name, s.offset, (*s.strides[:3], s.strides[1], 1)))
    flat = moved(code, windows, places((*out.shape[:3], high * wide * deep)))
    if x.dtype == np.float32:
        return matrix_product(code, flat, kernel.reshape(-1, out.shape[3]), out)
    table = jnp.asarray(kernel.reshape(-1, out.shape[3]))
    (result,) = code.inline(lambda flat: products(flat, table, (((3,), (0,)), ((), ())), out.dtype), [flat])
    return result


# Primitives written in others


def running(join: Callable[..., Any], start: Callable[..., Any]) -> Callable[..., Any]:
    def function(x: jax.Array, axis: int, reverse: bool) -> jax.Array:
        rows = jnp.moveaxis(x, axis, 0)
        both = lambda total, row: (join(total, row),) * 2
        return jnp.moveaxis(lax.scan(both, start(rows[-1 if reverse else 0]), rows, reverse=reverse)[1], 0, axis)

    return function


def first(extreme: Callable[..., Any]) -> Callable[..., Any]:
    def function(x: jax.Array, axes: Sequence[int], index_dtype: Any) -> jax.Array:
        (axis,) = axes
        found = x == extreme(x, axis, keepdims=True)
        return jnp.where(found, lax.broadcasted_iota(index_dtype, x.shape, axis), x.shape[axis]).min(axis)

    return function


def tiled(x: jax.Array, reps: Sequence[int]) -> jax.Array:
    apart = [n for pair in zip(reps, x.shape, strict=True) for n in pair]
    return lax.broadcast_in_dim(x, apart, range(1, 2 * x.ndim, 2)).reshape(np.multiply(reps, x.shape))


IN_OTHERS: dict[str, Callable[..., Any]] = {
    "clamp": lambda low, x, high: jnp.minimum(jnp.maximum(x, low), high),
    "square": lambda x: x * x,
    "logistic": lambda x, **_: 1 / (1 + lax.exp(-x)),
    "rsqrt": lambda x, **_: 1 / lax.sqrt(x),
    "integer_pow": lambda x, y: functools.reduce(operator.mul, [x if y > 0 else 1 / x] * abs(y), jnp.ones_like(x)),
    "split": lambda x, sizes, axis: [
        lax.slice_in_dim(x, end - size, end, axis=axis) for size, end in zip(sizes, np.cumsum(sizes), strict=True)
    ],
    "tile": tiled,
    "stack": lambda *xs, axis: lax.concatenate([jnp.expand_dims(x, axis) for x in xs], axis),
    "argmax": first(jnp.max), "argmin": first(jnp.min),
    "cumsum": running(lax.add, jnp.zeros_like), "cumprod": running(lax.mul, jnp.ones_like),
    "cummax": running(lax.max, lambda x: x), "cummin": running(lax.min, lambda x: x),
}  # fmt: skip


def inlined(function: Callable[..., Any]) -> Primitive:
    def apply(code: Code, inputs: list[Value], params: Any, out: Any) -> list[Value]:
        return code.inline(lambda *xs: function(*xs, **params), inputs)

    return apply


PRIMITIVES.update({name: inlined(function) for name, function in IN_OTHERS.items()})
