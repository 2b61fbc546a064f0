"""Functions as ONNX graphs: JAX traces a function of a batch, and every primitive becomes one or two ONNX operators.

It knows the primitives of networks only. jax2onnx knows far more of them, but requires much newer packages than
ripzero.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import onnx  # pyright: ignore[reportMissingImports] it is an extra
from jax.extend import core as jex_core
from onnx import TensorProto, helper, numpy_helper  # pyright: ignore[reportMissingImports]

OPSET = 18
BATCH = "b"  # the symbol of the leading dimension
LAST, FIRST = np.iinfo(np.int64).max, np.iinfo(np.int64).min  # ends of a slice that reaches the edge

Sizes = tuple[int | str, ...]  # a dimension that depends on the batch is text


class Tensor(NamedTuple):
    """A tensor of the graph. Where JAX repeats entries along a dimension it may still have one: most operators repeat
    them by themselves."""

    name: str
    sizes: Sizes


def sizes_of(x: Any) -> Sizes:
    """The shape of a traced array."""
    return tuple(d if isinstance(d, int) else str(d) for d in x.aval.shape)


def model(function: Callable[[Any], Any], shape: tuple[int, ...], names: Sequence[str]) -> bytes:
    """The ONNX model of a function of float32[b, *shape] that returns arrays float32[b, ...], for any b.

    Args:
        function: what to export.
        shape: of one row of its argument.
        names: of the argument, then of the results.

    Raises:
        ValueError: the function uses a primitive that is not known.
    """
    (batch,) = jax.export.symbolic_shape(BATCH)
    closed = jax.make_jaxpr(function)(jax.ShapeDtypeStruct((batch, *shape), jnp.float32))
    graph, variables = Graph(names[0]), [*closed.jaxpr.invars, *closed.jaxpr.outvars]
    results = graph.run(closed.jaxpr, closed.consts, [Tensor(names[0], (BATCH, *shape))])
    for x, result, name in zip(closed.jaxpr.outvars, results, names[1:], strict=True):
        graph.nodes.append(helper.make_node("Identity", [graph.whole(result, sizes_of(x))], [name]))
    declared = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes_of(x))
        for name, x in zip(names, variables, strict=True)
    ]
    opsets = [helper.make_opsetid("", OPSET)]
    made = helper.make_graph(graph.nodes, "network", declared[:1], declared[1:], graph.constants)
    found = helper.make_model(made, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))
    onnx.checker.check_model(found, full_check=True)
    return found.SerializeToString()


class Graph:
    """A graph while it is written."""

    def __init__(self, argument: str):
        self.argument = argument  # its first dimension is the batch
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, x: Any) -> Tensor:
        self.constants.append(numpy_helper.from_array(np.array(x), f"c{len(self.constants)}"))
        return Tensor(self.constants[-1].name, np.shape(x))

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64)).name

    def many(self, operator: str, *inputs: str, count: int, **attributes: Any) -> list[str]:
        """The names of an operator's results."""
        names = [f"n{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names

    def one(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.many(operator, *inputs, count=1, **attributes)[0]

    def slice(self, x: str, *numbers: Sequence[int]) -> str:
        """Of the starts, ends, axes and steps `numbers`."""
        return self.one("Slice", x, *(self.ints(*row) for row in numbers))

    def shaped(self, name: str, sizes: Sizes) -> str:
        return self.one("Reshape", name, self.ints(*(d if isinstance(d, int) else -1 for d in sizes)))

    def whole(self, x: Tensor, sizes: Sizes) -> str:
        """The tensor with all entries that JAX has there."""
        if x.sizes == sizes:
            return x.name
        if not {d for d in sizes if isinstance(d, str)} <= {BATCH}:
            raise ValueError(f"expected an array with the batch as a dimension, got the shape {sizes}")
        lengths = [self.ints(d) if isinstance(d, int) else self.one("Shape", self.argument, end=1) for d in sizes]
        return self.one("Expand", x.name, self.one("Concat", *lengths, axis=0))

    def run(self, jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Tensor]) -> list[Tensor]:
        """The results of a jaxpr."""
        known = dict(zip(jaxpr.invars, inputs, strict=True))
        known |= {var: self.constant(x) for var, x in zip(jaxpr.constvars, consts, strict=True)}
        literal = lambda x: self.constant(np.asarray(x.val, x.aval.dtype))
        read = lambda x: literal(x) if isinstance(x, jex_core.Literal) else known[x]
        for eqn in jaxpr.eqns:
            known.update(zip(eqn.outvars, self.equation(eqn, [read(x) for x in eqn.invars]), strict=True))
        return [read(x) for x in jaxpr.outvars]

    def equation(self, eqn: Any, inputs: list[Tensor]) -> list[Tensor]:
        name, params, outs = eqn.primitive.name, eqn.params, [sizes_of(x) for x in eqn.outvars]
        if name == "platform_index":  # only chooses between the branches of the next equation
            return [Tensor("", ())]
        if name == "cond" and params.get("branches_platforms"):
            branch = params["branches"][params["branches_platforms"].index(None)]
            return self.run(branch.jaxpr, branch.consts, inputs[1:])
        if name in CALLS:
            inner = next(params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in params)
            return self.run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), inputs)
        if name in ENTRYWISE:
            rows = [(1,) * (len(outs[0]) - len(x.sizes)) + x.sizes for x in inputs]
            repeated = tuple(next((d for d in sizes if d != 1), 1) for sizes in zip(*rows, strict=True))
            return [Tensor(ENTRYWISE[name](self, *(x.name for x in inputs)), repeated)]
        if name == "broadcast_in_dim":  # to be repeated later, where an operator does not do so
            (x,) = inputs
            among = dict(zip(params["broadcast_dimensions"], x.sizes, strict=True))
            sizes = tuple(among.get(d, 1) for d in range(len(outs[0])))
            return [Tensor(self.shaped(x.name, sizes), sizes)]
        if name not in PRIMITIVES:
            raise ValueError(f"expected a network without the primitive {name}, which the ONNX export does not know")
        texts = [self.whole(x, sizes_of(v)) for x, v in zip(inputs, eqn.invars, strict=True)]
        results = PRIMITIVES[name](self, texts, params, [sizes_of(x) for x in eqn.invars], outs)
        return [Tensor(*x) for x in zip([results] if isinstance(results, str) else results, outs, strict=True)]


def entrywise(operator: str) -> Callable[..., str]:
    return lambda graph, *xs: graph.one(operator, *xs)


CALLS = ("jit", "pjit", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "closed_call")
SAME_NAME = ("add", "sub", "mul", "div", "max", "min", "neg", "exp", "log", "sqrt", "tanh", "abs")
ENTRYWISE: dict[str, Callable[..., str]] = {
    "rsqrt": lambda graph, x: graph.one("Reciprocal", graph.one("Sqrt", x)),
    "square": lambda graph, x: graph.one("Mul", x, x),
    "logistic": entrywise("Sigmoid"),
    **{name: entrywise(name.capitalize()) for name in SAME_NAME},
}


# Other primitives: functions of the graph, the names of the inputs, the parameters, the sizes of the inputs and of the
# results. They return the name of the result, or a list of names.


def sliced(graph: Graph, xs: list[str], p: Any, ins: list[Sizes], outs: list[Sizes]) -> str:
    axes = [d for d, size in enumerate(ins[0]) if isinstance(size, int)]  # of the batch everything is read
    numbers = [p["start_indices"], p["limit_indices"], p["strides"] or [1] * len(ins[0])]
    starts, ends, steps = ([row[d] for d in axes] for row in numbers)
    return graph.slice(xs[0], starts, ends, axes, steps)


def reverse(graph: Graph, xs: list[str], p: Any, ins: list[Sizes], outs: list[Sizes]) -> str:
    count = len(p["dimensions"])
    return graph.slice(xs[0], [LAST] * count, [FIRST] * count, p["dimensions"], [-1] * count)


def pad(graph: Graph, xs: list[str], p: Any, ins: list[Sizes], outs: list[Sizes]) -> str:
    lows, highs, gaps = zip(*p["padding_config"], strict=True)
    if any(gaps):
        raise ValueError(f"expected padding at the edges only, got gaps {gaps}")
    return graph.one("Pad", xs[0], graph.ints(*lows, *highs), xs[1])


def gather(graph: Graph, xs: list[str], p: Any, ins: list[Sizes], outs: list[Sizes]) -> str:
    d, (axis, *more) = p["dimension_numbers"], p["dimension_numbers"].collapsed_slice_dims
    others = tuple(i for i in range(len(ins[0])) if i != axis)
    if more or (d.offset_dims, d.start_index_map, len(ins[1])) != (others, (axis,), 2):
        raise ValueError(f"expected a gather of entries along one axis, got {d}")
    places = graph.one("Cast", graph.one("Squeeze", xs[1], graph.ints(-1)), to=TensorProto.INT64)
    return graph.one("Gather", xs[0], places, axis=int(axis))


def stack(graph: Graph, xs: list[str], p: Any, ins: list[Sizes], outs: list[Sizes]) -> str:
    return graph.one("Concat", *(graph.one("Unsqueeze", x, graph.ints(p["axis"])) for x in xs), axis=p["axis"])


def dot_general(graph: Graph, xs: list[str], p: Any, ins: list[Sizes], outs: list[Sizes]) -> str:
    (ca, cb), (ba, bb) = p["dimension_numbers"]
    a, b = string.ascii_lowercase[: len(ins[0])], list(string.ascii_uppercase[: len(ins[1])])
    for i, j in zip((*ba, *ca), (*bb, *cb), strict=True):
        b[j] = a[i]
    if b == [a[-1], "B"] and not ba:  # rows times a matrix
        return graph.one("MatMul", *xs)
    result = [a[i] for i in ba] + [x for x in (*a, *b) if (x in a) != (x in b)]
    return graph.one("Einsum", *xs, equation=f"{a},{''.join(b)}->{''.join(result)}")


def convolution(graph: Graph, xs: list[str], p: Any, ins: list[Sizes], outs: list[Sizes]) -> str:
    if set(p["lhs_dilation"]) | {p["batch_group_count"]} != {1}:
        raise ValueError("expected a convolution without gaps in its input and without groups of the batch")
    d, (lows, highs) = p["dimension_numbers"], zip(*p["padding"], strict=True)
    x, kernel = (graph.one("Transpose", x, perm=spec) for x, spec in zip(xs, (d.lhs_spec, d.rhs_spec), strict=True))
    given = {"strides": p["window_strides"], "dilations": p["rhs_dilation"], "group": p["feature_group_count"]}
    y = graph.one("Conv", x, kernel, pads=[*lows, *highs], **given)
    return graph.one("Transpose", y, perm=np.argsort(d.out_spec).tolist())


def in_shape(graph: Graph, xs: list[str], p: Any, ins: list[Sizes], outs: list[Sizes]) -> str:
    return graph.shaped(xs[0], outs[0])


def reducing(operator: str) -> Callable[..., str]:
    return lambda graph, xs, p, ins, outs: graph.one(operator, xs[0], graph.ints(*p["axes"]), keepdims=0)


PRIMITIVES: dict[str, Callable[..., str | list[str]]] = {
    "reshape": in_shape, "squeeze": in_shape, "expand_dims": in_shape,
    "transpose": lambda graph, xs, p, *_: graph.one("Transpose", *xs, perm=p["permutation"]),
    "concatenate": lambda graph, xs, p, *_: graph.one("Concat", *xs, axis=p["dimension"]),
    "split": lambda graph, xs, p, _, outs: graph.many(
        "Split", *xs, graph.ints(*p["sizes"]), count=len(outs), axis=p["axis"]
    ),
    "convert_element_type": lambda graph, xs, p, *_: graph.one(
        "Cast", *xs, to=helper.np_dtype_to_tensor_dtype(np.dtype(p["new_dtype"]))
    ),
    "slice": sliced, "rev": reverse, "pad": pad, "stack": stack, "gather": gather,
    "reduce_sum": reducing("ReduceSum"), "reduce_max": reducing("ReduceMax"),
    "dot_general": dot_general, "conv_general_dilated": convolution,
}  # fmt: skip
