"""Converts pure JAX functions to JavaScript over typed arrays.

A function is traced to a jaxpr. Each equation becomes an expression, or a loop where its result is needed more than
once. What depends on constants alone is computed here and now. The result is plain text that Python need not read
again: tables and working arrays in one block of memory, then one function for each function of the program.
"""

from __future__ import annotations

import base64
import collections
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core as jex_core

from agents.serve.standalone.primitives import PRIMITIVES
from agents.serve.standalone.values import TYPED, Code, Shape, Tables, Value, scalar

LONGEST_FUNCTION = 6000  # characters of a function: engines do not optimise very long ones
FOLDED = 64  # entries up to which a constant may grow when it is computed in advance
BYTES = {kind: np.dtype(name).itemsize for name, kind in TYPED.items()}
DECLARED = re.compile(r"^(?:const|let) (\w+)(;| =)")
CALLS = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat", "checkpoint",
         "custom_vjp_call_jaxpr")  # fmt: skip


class Unsupported(ValueError):
    """A function uses what cannot be converted."""


def convert(functions: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]) -> str:
    """JavaScript of the functions, each given with example arguments.

    A converted function takes and returns the leaves of its arguments in order: numbers for scalars, typed arrays
    otherwise, in an array if there are several results. Results are views into working memory, valid until the next
    call. The text is a JavaScript function `program(newMemory, newMatmul)` that returns an object of the functions;
    runtime.js has both arguments.

    Raises:
        Unsupported: a primitive is unknown; the message names it and its line.
    """
    tables = Tables()
    parts = [_Function(name, jax.make_jaxpr(f)(*arguments), tables) for name, (f, arguments) in functions.items()]
    arrays = [(TYPED[str(x.dtype)], x.size) for x in tables.arrays]
    arrays += [(kind, n) for part in parts for _, kind, n in part.code.buffers]
    size = sum(-(-n * BYTES[kind] // 16) * 16 for kind, n in arrays)
    head = f"function program(newMemory, newMatmul) {{\nconst {{memory, alloc, unpack}} = newMemory({size}), "
    answer = f"return {{{', '.join(functions)}}};\n}}"
    texts = [*_tables(tables), *(part.text for part in parts), answer]
    return "\n".join([f"{head}matmul = newMatmul(memory);", *texts])


def _tables(tables: Tables) -> list[str]:
    """Every table as `unpack(base64, kind, length, Type)`, in the smallest kind that holds it exactly."""
    lines = []
    for i, x in enumerate(tables.arrays):
        kind, packed = _packed_array(x)
        text = base64.b64encode(packed.tobytes()).decode()
        lines.append(f'const T{i} = unpack("{text}", "{kind}", {x.size}, {TYPED[str(x.dtype)]});')
    return lines


def _packed_array(x: np.ndarray) -> tuple[str, np.ndarray]:
    flat = x.ravel()
    if flat.dtype == bool or (flat.dtype.kind in "iu" and ((flat == 0) | (flat == 1)).all()):
        return "bits", np.packbits(flat.astype(bool), bitorder="little")
    if flat.dtype.kind == "f":
        with np.errstate(over="ignore"):
            half = flat.astype(np.float16)
        return ("half", half) if (half.astype(flat.dtype) == flat).all() else ("Float32Array", flat)
    for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32"):
        small = flat.astype(name)
        if (small.astype(np.int64) == flat.astype(np.int64)).all():
            return TYPED[name], small
    raise AssertionError(flat.dtype)


class _Function:
    """One function on its way to JavaScript; `text` is the result."""

    def __init__(self, name: str, closed: Any, tables: Tables):
        self.code = code = Code(tables, f"_{name}", self.inline)
        self.line = "an unknown line"  # of the user's code, around the present equation
        names = [f"a{i}_{name}" for i in range(len(closed.jaxpr.invars))]
        types = _types(closed.jaxpr.invars)
        inputs = [code.array(n, x) if x.shape else scalar(n, x.dtype) for n, x in zip(names, types, strict=True)]
        outputs = self.run(closed.jaxpr, closed.consts, inputs)
        results = [code.part(code.whole(x)) if x.shape else x.at(()) for x in outputs]
        answer = results[0] if len(results) == 1 else f"[{', '.join(results)}]"
        self.text = _assembled(name, code, names, answer)

    def inline(self, function: Callable[..., Any], inputs: Sequence[Value]) -> list[Value]:
        """The outputs of a JAX function."""
        closed = jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inputs))
        return self.run(closed.jaxpr, closed.consts, inputs)

    def run(self, jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Value]) -> list[Value]:
        """The outputs of a jaxpr."""
        uses, known = _uses(jaxpr), {}
        constant = lambda var, x: self.code.constant(np.asarray(x, var.aval.dtype))  # numpy's are wider than JAX's
        read = lambda x: constant(x, x.val) if isinstance(x, jex_core.Literal) else known[x]

        def bind(var: Any, value: Value) -> None:
            lazy = value.stored is None and value.const is None and not value.at((0,) * len(value.shape)).isidentifier()
            known[var] = self.code.force(value) if lazy and uses[var] > 1 else value

        for var, x in zip(jaxpr.constvars, consts, strict=True):
            bind(var, constant(var, x))
        for var, value in zip(jaxpr.invars, inputs, strict=True):
            bind(var, value)
        for eqn in jaxpr.eqns:
            if any(uses[v] for v in eqn.outvars):
                self.line = _line(eqn) or self.line
                try:
                    outs = self.equation(eqn, [read(x) for x in eqn.invars])
                except (KeyError, NotImplementedError, TypeError, ValueError) as error:
                    if isinstance(error, Unsupported):
                        raise
                    raise Unsupported(f"{eqn.primitive.name} at {self.line}: {error}") from error
                for var, value in zip(eqn.outvars, outs, strict=True):
                    bind(var, value)
        return [read(x) for x in jaxpr.outvars]

    def equation(self, eqn: Any, inputs: list[Value]) -> list[Value]:
        name, params, outs = eqn.primitive.name, eqn.params, _types(eqn.outvars)
        if name in CALLS:
            inner = params.get("jaxpr") or params.get("call_jaxpr") or params["fun_jaxpr"]
            return self.run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), inputs)
        if name == "platform_index":
            return [self.code.constant(np.array(params["platforms"].index(None), np.int32))]
        if name in ("cond", "while", "scan"):
            return getattr(self, f"_{name}")(params, inputs, outs)
        if name not in PRIMITIVES and name != "iota":
            raise Unsupported(f"expected a primitive that can be converted, got {name} at {self.line}")
        known = [x.const for x in inputs if x.const is not None]
        largest = max([FOLDED, *(x.size for x in known)])
        # Products of constants are kernels, which have to be constant however large they are.
        grown = 0 if name == "dot_general" else sum(out.size for out in outs)
        if not inputs or (len(known) == len(inputs) and grown <= largest):
            with jax.ensure_compile_time_eval():
                found = eqn.primitive.bind(*known, **params)
            return [self.code.constant(np.asarray(x)) for x in (found if eqn.primitive.multiple_results else [found])]
        result = PRIMITIVES[name](self.code, inputs, params, outs[0])
        return result if isinstance(result, list) else [result]

    # Control flow. What goes in is computed before, so that no branch computes what another one needs.

    def _targets(self, outs: Sequence[Shape]) -> list[Value]:
        """Variables and arrays to assign results to."""
        names = ["" if out.shape else self.code.name("w") for out in outs]
        for name in filter(None, names):
            self.code.put(f"let {name};")
        return [scalar(n, out.dtype) if n else self.code.empty(out) for n, out in zip(names, outs, strict=True)]

    def _assign(self, targets: Sequence[Value], values: Sequence[Value]) -> None:
        """All at once: new values are complete, and no part of a target, before the first is assigned."""
        code, written = self.code, {target.place.name for target in targets if target.shape}
        pairs = [(t, x) for t, x in zip(targets, values, strict=True) if t.stored is None or t.stored != x.stored]
        part = lambda x: x.stored is not None and x.stored.name in written
        ready = [code.copy(x) if part(x) else code.force(x) if x.shape else code.local(x.dtype, x.at(()))
                 for _, x in pairs]  # fmt: skip
        for (target, _), value in zip(pairs, ready, strict=True):
            code.write(value, target) if target.shape else code.put(f"{target.at(())} = {value.at(())};")

    def _cond(self, params: Any, inputs: list[Value], outs: Sequence[Any]) -> list[Value]:
        index, *operands = inputs
        branches = params["branches"]
        if index.const is not None:
            branch = branches[int(np.clip(index.const, 0, len(branches) - 1))]
            return self.run(branch.jaxpr, branch.consts, operands)
        operands = [self.code.force(x) for x in operands]
        targets, which = self._targets(outs), self.code.force(index)
        for i, branch in enumerate(branches):
            body = lambda branch=branch: self._assign(targets, self.run(branch.jaxpr, branch.consts, operands))
            last = i == len(branches) - 1
            test = "" if last else f"if ({which.at(())} {'<=' if i == 0 else '==='} {i}) "
            self.code.put(f"{'' if i == 0 else 'else '}{test}{self.code.inside(body)}")
        return targets

    def _while(self, params: Any, inputs: list[Value], outs: Sequence[Any]) -> list[Value]:
        test, body = params["cond_jaxpr"], params["body_jaxpr"]
        inputs = [self.code.force(x) for x in inputs]
        of_test, of_body = params["cond_nconsts"], params["body_nconsts"]
        start = inputs[of_test + of_body :]
        carry = self._targets(outs)
        self._assign(carry, start)

        def turn():
            (goes_on,) = self.run(test.jaxpr, test.consts, [*inputs[:of_test], *carry])
            self.code.put(f"if (!{goes_on.at(())}) break;")
            self._assign(carry, self.run(body.jaxpr, body.consts, [*inputs[of_test : of_test + of_body], *carry]))

        self.code.put(f"for (;;) {self.code.inside(turn)}")
        return carry

    def _scan(self, params: Any, inputs: list[Value], outs: Sequence[Any]) -> list[Value]:
        of_consts, of_carry, length = params["num_consts"], params["num_carry"], params["length"]
        inputs = [self.code.force(x) for x in inputs]
        consts, start, xs = inputs[:of_consts], inputs[of_consts : of_consts + of_carry], inputs[of_consts + of_carry :]
        carry, ys = self._targets(outs[:of_carry]), [self.code.empty(out) for out in outs[of_carry:]]
        self._assign(carry, start)
        i = self.code.name("t")
        row = lambda x: Value(x.shape[1:], x.dtype, lambda idx: x.at([i, *idx]))

        def turn():
            jaxpr = params["jaxpr"]
            found = self.run(jaxpr.jaxpr, jaxpr.consts, [*consts, *carry, *map(row, xs)])
            for y, x in zip(ys, found[of_carry:], strict=True):
                self.code.loop(x.shape, lambda idx, y=y, x=x: self.code.put(f"{row(y).at(idx)} = {x.at(idx)};"))
            self._assign(carry, found[:of_carry])

        order = f"{i} = {length - 1}; {i} >= 0; {i}--" if params["reverse"] else f"{i} = 0; {i} < {length}; {i}++"
        self.code.put(f"for (let {order}) {self.code.inside(turn)}")
        return [*carry, *ys]


def _types(variables: Sequence[Any]) -> list[Shape]:
    return [Shape(tuple(v.aval.shape), np.dtype(v.aval.dtype)) for v in variables]


def _uses(jaxpr: Any) -> collections.Counter[Any]:
    """How often each variable is read by what the outputs need."""
    uses = collections.Counter(x for x in jaxpr.outvars if not isinstance(x, jex_core.Literal))
    for eqn in reversed(jaxpr.eqns):
        if any(uses[v] for v in eqn.outvars):
            uses.update(x for x in eqn.invars if not isinstance(x, jex_core.Literal))
    return uses


def _line(eqn: Any) -> str | None:
    """File and line of the user's code that made an equation, if it is known."""
    traceback = eqn.source_info.traceback
    frames = [x for x in (traceback.frames if traceback else ()) if "/jax/" not in x.file_name]
    own = frames and "/standalone/" not in frames[0].file_name
    return f"{frames[0].file_name}:{frames[0].line_num}" if own else None


def _assembled(name: str, code: Code, arguments: list[str], answer: str) -> str:
    """The function, in pieces that engines still optimise. Variables that several pieces need are shared."""
    pieces: list[list[str]] = [[]]
    for line in code.lines:
        if sum(map(len, pieces[-1])) + len(line) > LONGEST_FUNCTION and pieces[-1] and not line.startswith("else"):
            pieces.append([])
        pieces[-1].append(line)
    buffers = [f"const {b} = alloc({kind}, {n});" for b, kind, n in code.buffers]
    head = f"function {name}({', '.join(arguments)}) {{"
    if len(pieces) == 1:
        return "\n".join([*buffers, head, *pieces[0], f"return {answer};", "}"])
    words = [set(re.findall(r"\w+", "\n".join(piece))) for piece in [*pieces, [answer]]]
    declared = [match[1] for line in code.lines if (match := DECLARED.match(line))]
    shared = {v for v in declared if sum(v in own for own in words) > 1}
    lines = [*buffers, *(f"let {v};" for v in declared if v in shared)]
    for i, piece in enumerate(pieces):
        body = [
            DECLARED.sub(lambda m: m[0] if m[1] not in shared else "" if m[2] == ";" else f"{m[1]} =", x) for x in piece
        ]
        lines += [f"function {name}_{i}({', '.join(arguments)}) {{", *body, "}"]
    lines += [head, *(f"{name}_{i}({', '.join(arguments)});" for i in range(len(pieces))), f"return {answer};", "}"]
    return "\n".join(lines)
