"""Converts pure JAX functions to JavaScript over typed arrays.

A function is traced to a jaxpr. Each equation becomes an expression, or a loop where its result is needed more than
once. What depends on constants alone is computed here and now. The result is plain text that Python need not read
again: tables and working arrays in one block of memory, then one function for each function of the program.
"""

from __future__ import annotations

import base64
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core as jex_core

from agents.serve.standalone.primitives import PRIMITIVES, Shape
from agents.serve.standalone.values import TYPED, Code, Tables, Value

LONGEST = 6000  # characters of a function: engines do not optimise very long ones
FOLDED = 64  # entries up to which a constant may grow when it is computed in advance
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
    memory = f"const {{memory, alloc, unpack}} = newMemory({size}), matmul = newMatmul(memory);"
    answer = f"return {{{', '.join(functions)}}};\n}}"
    return "\n".join([RUNTIME, memory, *_tables(tables), *(part.text for part in parts), answer])


BYTES = {kind: np.dtype(name).itemsize for name, kind in TYPED.items()}
RUNTIME = """\
function program(newMemory, newMatmul) {
const f = Math.fround;
const squared = (x) => f(x * x);
const roundEven = (x) => { const r = Math.round(x); return r - x === 0.5 && r % 2 ? r - 1 : r; };
function bitsIn(x) {
  x -= (x >>> 1) & 0x55555555;
  x = (x & 0x33333333) + ((x >>> 2) & 0x33333333);
  return Math.imul((x + (x >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}"""


def _tables(tables: Tables) -> list[str]:
    """Every table as `unpack(base64, kind, length, Type)`, in the smallest kind that holds it exactly."""
    lines = []
    for i, x in enumerate(tables.arrays):
        kind, packed = _packed(x)
        text = base64.b64encode(packed.tobytes()).decode()
        lines.append(f'const T{i} = unpack("{text}", "{kind}", {x.size}, {TYPED[str(x.dtype)]});')
    return lines


def _packed(x: np.ndarray) -> tuple[str, np.ndarray]:
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
        self.code = code = Code(tables, f"_{name}")
        self.line = "an unknown line"  # of the user's code, around the present equation
        jaxpr = closed.jaxpr
        names = [f"a{i}_{name}" for i in range(len(jaxpr.invars))]
        avals = [v.aval for v in jaxpr.invars]
        inputs = [code.argument(n, tuple(x.shape), np.dtype(x.dtype)) for n, x in zip(names, avals, strict=True)]
        outputs = [code.whole(x) if x.shape else x for x in self.run(jaxpr, closed.consts, inputs)]
        results = [x.at(()) if not x.shape else code.part(x) for x in outputs]
        answer = results[0] if len(results) == 1 else f"[{', '.join(results)}]"
        self.text = _assembled(name, code, names, answer)

    def run(self, jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Value]) -> list[Value]:
        """The outputs of a jaxpr."""
        uses, known = _uses(jaxpr), {}

        def bind(var: Any, value: Value) -> None:
            lazy = value.stored is None and value.const is None and not value.at((0,) * len(value.shape)).isidentifier()
            known[var] = self.code.force(value) if lazy and uses.get(var, 0) > 1 else value

        def known_value(atom: Any, x: Any) -> Value:
            return self.code.constant(np.asarray(x, atom.aval.dtype))  # numpy's own constants are wider than JAX's

        def read(atom: Any) -> Value:
            return known_value(atom, atom.val) if isinstance(atom, jex_core.Literal) else known[atom]

        for var, x in zip(jaxpr.constvars, consts, strict=True):
            bind(var, known_value(var, x))
        for var, value in zip(jaxpr.invars, inputs, strict=True):
            bind(var, value)
        for eqn in jaxpr.eqns:
            if any(uses.get(v, 0) for v in eqn.outvars):
                self.line = _line(eqn) or self.line
                try:
                    outs = self.equation(eqn, [read(x) for x in eqn.invars])
                except Unsupported:
                    raise
                except (KeyError, ValueError, NotImplementedError) as error:
                    raise Unsupported(f"{eqn.primitive.name} at {self.line}: {error}") from error
                for var, value in zip(eqn.outvars, outs, strict=True):
                    bind(var, value)
        return [read(x) for x in jaxpr.outvars]

    def equation(self, eqn: Any, inputs: list[Value]) -> list[Value]:
        name, params = eqn.primitive.name, eqn.params
        outs = [Shape(tuple(v.aval.shape), np.dtype(v.aval.dtype)) for v in eqn.outvars]
        if name in CALLS:
            inner = params.get("jaxpr") or params.get("call_jaxpr") or params["fun_jaxpr"]
            return self.run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), inputs)
        if name == "platform_index":
            platforms = params["platforms"]
            return [self.code.constant(np.array(platforms.index(None), np.int32))]
        if name in ("cond", "while", "scan"):
            return getattr(self, f"_{name}")(params, inputs, outs)
        if name not in PRIMITIVES:
            raise Unsupported(f"expected a primitive that can be converted, got {name} at {self.line}")
        known = [x.const for x in inputs if x.const is not None]
        if known and len(known) == len(inputs) and sum(o.size for o in outs) <= max(FOLDED, *(x.size for x in known)):
            with jax.ensure_compile_time_eval():
                found = eqn.primitive.bind(*known, **params)
            found = found if eqn.primitive.multiple_results else [found]
            return [self.code.constant(np.asarray(x)) for x in found]
        function = PRIMITIVES[name]
        options = {"kind": name} if "kind" in inspect.signature(function).parameters else {}
        result = function(self.code, inputs, params, outs if eqn.primitive.multiple_results else outs[0], **options)
        return result if isinstance(result, list) else [result]

    # Control flow. What goes in is computed before, so that no branch computes what another one needs.

    def _targets(self, outs: Sequence[Any]) -> list[Value]:
        """Variables and arrays to assign results to."""
        targets = []
        for out in outs:
            if out.shape:
                targets.append(self.code.empty(out.shape, out.dtype))
                continue
            name = self.code.name("w")
            self.code.put(f"let {name};")
            targets.append(Value((), out.dtype, lambda idx, name=name: name))
        return targets

    def _assign(self, targets: Sequence[Value], values: Sequence[Value]) -> None:
        """All at once: new values are complete before the first is assigned."""
        code = self.code
        values = [code.force(x) if x.shape else code.local((), x.dtype, x.at(())) for x in values]
        for target, value in zip(targets, values, strict=True):
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
        carry, ys = self._targets(outs[:of_carry]), [self.code.empty(o.shape, o.dtype) for o in outs[of_carry:]]
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


def _uses(jaxpr: Any) -> dict[Any, int]:
    """How often each variable is read by what the outputs need."""
    uses: dict[Any, int] = {}
    count = lambda atoms: [
        uses.__setitem__(x, uses.get(x, 0) + 1) for x in atoms if not isinstance(x, jex_core.Literal)
    ]
    count(jaxpr.outvars)
    for eqn in reversed(jaxpr.eqns):
        if any(uses.get(v, 0) for v in eqn.outvars):
            count(eqn.invars)
    return uses


def _line(eqn: Any) -> str | None:
    """File and line of the user's code that made an equation, if it is known."""
    traceback = eqn.source_info.traceback
    frames = [] if traceback is None else traceback.frames
    own = [x for x in frames if "/jax/" not in x.file_name and "/standalone/" not in x.file_name]
    return f"{own[0].file_name}:{own[0].line_num}" if own else None


def _assembled(name: str, code: Code, arguments: list[str], answer: str) -> str:
    """The function, in pieces that engines still optimise. Variables that several pieces need are shared."""
    pieces: list[list[str]] = [[]]
    for line in code.lines:
        if sum(map(len, pieces[-1])) + len(line) > LONGEST and pieces[-1] and not line.startswith("else"):
            pieces.append([])
        pieces[-1].append(line)
    buffers = [f"const {b} = alloc({kind}, {n});" for b, kind, n in code.buffers]
    head = f"function {name}({', '.join(arguments)}) {{"
    if len(pieces) == 1:
        return "\n".join([*buffers, head, *pieces[0], f"return {answer};", "}"])
    declared = [{name for name in map(_declared, piece) if name} for piece in pieces]
    texts = ["\n".join(piece) for piece in pieces]
    words = [_words(text) for text in [*texts, answer]]
    shared = {v for i, own in enumerate(declared) for v in own if any(v in later for later in words[i + 1 :])}
    lines = [*buffers, *(f"let {v};" for v in sorted(shared))]
    for i, piece in enumerate(pieces):
        body = [_undeclared(line, shared) for line in piece]
        lines += [f"function {name}_{i}({', '.join(arguments)}) {{", *body, "}"]
    lines += [head, *(f"{name}_{i}({', '.join(arguments)});" for i in range(len(pieces))), f"return {answer};", "}"]
    return "\n".join(lines)


def _declared(line: str) -> str | None:
    start = line.split(" ", 2)
    return start[1].rstrip(";") if start[0] in ("const", "let") else None


def _undeclared(line: str, shared: set[str]) -> str:
    if _declared(line) not in shared:
        return line
    return "" if line.startswith("let") and "=" not in line else line.split(" ", 1)[1]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))
