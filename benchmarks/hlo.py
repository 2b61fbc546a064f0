"""Reads the text of an optimised program: cycles that a TPU's compiler estimates, or kernels that a GPU launches."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any, NamedTuple

PRODUCT = re.compile(r" (convolution|dot)\(")
OPERATION = re.compile(r"[\]})] ([a-z][\w-]*)\(")  # after the type of its result
MESSAGE = re.compile(r"= (.*?) (all-\w+|reduce-scatter|collective-\w+)(?:-start)?\(")
SIZES = {"f32": 4, "s32": 4, "u32": 4, "pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2}  # bytes
# Operations that launch no kernel of their own.
FREE = frozenset(
    {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "conditional", "call", "after-all"}
)


class Cost(NamedTuple):
    """Estimated cycles, those of convolutions and matrix products, the most expensive other operation, the slices read
    by gathers, which have no estimate, and how many scatters and loops of unknown length there are."""

    cycles: int = 0
    products: int = 0
    other: tuple[int, str] = 0, ""
    gathered: int = 0
    scatters: int = 0
    unknown: int = 0

    def plus(self, more: Cost, times: int = 1) -> Cost:
        other = times * more.other[0], more.other[1]
        return Cost(
            self.cycles + times * more.cycles,
            self.products + times * more.products,
            max(self.other, other),
            self.gathered + times * more.gathered,
            self.scatters + more.scatters,
            self.unknown + more.unknown,
        )


class Kernels(NamedTuple):
    """Kernels of a GPU by their purpose, and what the host has to ask for while they run."""

    network: int = 0
    descent: int = 0  # in the loop that follows the paths of a search
    other: int = 0
    unknown: int = 0  # loops of unknown length: after each round the host asks whether to go on
    branches: int = 0  # conditionals: the host asks which branch to run

    def plus(self, more: Kernels, times: int = 1) -> Kernels:
        return Kernels(
            self.network + times * more.network,
            self.descent + times * more.descent,
            self.other + times * more.other,
            self.unknown + more.unknown,
            self.branches + more.branches,
        )


@dataclasses.dataclass(frozen=True)
class Loop:
    """A loop of a program: its depth, its rounds if the compiler knows them, the cost of one round, the function that
    it is written in, if the text tells, and the computation of one round."""

    depth: int
    rounds: int | None
    cost: Any
    function: str = ""
    body: str = ""


TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")  # at the head of a text, rows "number value"


class Program:
    """The text of an optimised program, by computation."""

    def __init__(self, text: str):
        self.lines: dict[str, list[str]] = {}
        self.tables: dict[str, dict[str, str]] = {name: {} for name in TABLES}
        self.entry, name, table = "", "", ""
        for line in re.sub(r"/\*.*?\*/", "", text).splitlines():
            head = re.match(r"(ENTRY )?%?([\w.-]+) \(.*\{$", line)
            if head:
                name = head[2]
                self.lines[name] = []
                self.entry = name if head[1] else self.entry
            elif name:
                self.lines[name].append(line)
            elif line in ("", *TABLES):
                table = line
            elif table:
                number, _, value = line.partition(" ")
                self.tables[table][number] = value.strip('"')

    def cost(self, name: str, depth: int = 0) -> tuple[Cost, list[Loop]]:
        """The cost of one run of a computation, and its loops in order, outer ones first."""
        total, loops = Cost(), []
        for line in self.lines[name]:
            total = total.plus(Cost(scatters=self.scatters(line)))
            if " while(" in line:
                inner, below = self.cost(called(line, "body"), depth + 1)
                count = self.rounds_of(line)
                loops += [Loop(depth, count, inner, self.function(line), called(line, "body")), *below]
                total = total.plus(inner, 1 if count is None else count).plus(Cost(unknown=count is None))
            elif " conditional(" in line:  # the costliest branch
                inner, below = max((self.cost(x, depth) for x in branches(line)), key=lambda found: found[0].cycles)
                total, loops = total.plus(inner), loops + below
            elif cycles := re.search(r'"estimated_cycles":"(\d+)"', line):
                product = PRODUCT.search(line) or (" fusion(" in line and self.multiplies(called(line, "calls")))
                each = int(cycles[1])
                total = total.plus(Cost(each, each) if product else Cost(each, 0, (each, label(line))))
            elif " fusion(" in line:
                total = total.plus(Cost(gathered=self.gathered(called(line, "calls"))))
        return total, loops

    def kernels(self, name: str, network: str, depth: int = 0) -> tuple[Kernels, list[Loop]]:
        """The kernels of one run of a computation, and its loops in order, outer ones first. A loop of unknown length
        counts once. `network` is in the names of all operations of the network."""
        total, loops = Kernels(), []
        for line in self.lines[name]:
            operation = OPERATION.search(line)
            if " while(" in line:
                inner, below = self.kernels(called(line, "body"), network, depth + 1)
                function, rounds = self.function(line), self.rounds_of(line)
                if rounds is None:  # only then does the GPU compute whether to go on
                    inner = inner.plus(self.kernels(called(line, "condition"), network)[0])
                if function == "descend":
                    inner = inner._replace(descent=sum(inner[:3]), network=0, other=0)
                loops += [Loop(depth, rounds, inner, function, called(line, "body")), *below]
                total = total.plus(inner, 1 if rounds is None else rounds).plus(Kernels(unknown=rounds is None))
            elif " conditional(" in line:  # the branch with the most kernels
                inner, below = max(
                    (self.kernels(x, network, depth) for x in branches(line)), key=lambda x: sum(x[0][:3])
                )
                total, loops = total.plus(inner).plus(Kernels(branches=1)), loops + below
            elif " call(" in line:
                inner, below = self.kernels(called(line, "to_apply"), network, depth)
                total, loops = total.plus(inner), loops + below
            elif operation and operation[1] not in FREE and not operation[1].endswith("-done"):
                total = total.plus(Kernels(network=1) if network in line else Kernels(other=1))
        return total, loops

    def messages(self, name: str) -> tuple[int, int]:
        """Operations between devices in one run of a computation, and the bytes that they return. A loop of unknown
        length counts once, and of a conditional the branch with the most bytes."""
        number, size = 0, 0
        for line in self.lines[name]:
            inside, times = [], 1
            if " while(" in line:
                inside, times = [called(line, "body")], self.rounds_of(line) or 1
            elif " conditional(" in line:
                inside = [max(branches(line), key=lambda branch: self.messages(branch)[1])]
            elif " fusion(" in line:
                inside = [called(line, "calls")]
            elif " call(" in line:
                inside = [called(line, "to_apply")]
            found = MESSAGE.search(line)
            parts = [(1, message_bytes(found[1]))] if found else [self.messages(x) for x in inside]
            number += times * sum(x for x, _ in parts)
            size += times * sum(x for _, x in parts)
        return number, size

    def function(self, line: str) -> str:
        """The function that an operation is written in, without those around it; empty if the text does not tell."""
        frame = re.search(r"stack_frame_id=(\d+)", line)
        entry = self.tables["StackFrames"].get(frame[1], "") if frame else ""
        for table, role in (("FileLocations", "file_location_id"), ("FunctionNames", "function_name_id")):
            number = re.search(rf"{role}=(\d+)", entry)
            entry = self.tables[table].get(number[1], "") if number else ""
        return entry.rpartition(".")[2]

    def gathered(self, name: str) -> int:
        """The slices that the gathers of a fused computation read."""
        numbers = lambda text: math.prod(int(x) for x in text.split(",") if x)
        found = (re.search(r" = \w+\[([\d,]*)\]\S* gather\(.*slice_sizes=\{([\d,]*)\}", x) for x in self.lines[name])
        return sum(numbers(x[1]) // numbers(x[2]) for x in found if x)

    def scatters(self, line: str) -> int:
        """The scatters of an operation: itself, or those fused in it."""
        if " fusion(" in line:
            return sum(map(self.scatters, self.lines[called(line, "calls")]))
        return int(" scatter(" in line)

    def rounds_of(self, line: str) -> int | None:
        """The rounds of a loop: the number that its compiler noted, or that to which it counts from zero; else None."""
        noted = re.search(r'"known_trip_count":\{"n":"(\d+)"', line)
        if noted:
            return int(noted[1])
        text = "\n".join(self.lines[called(line, "condition")])
        limits = re.findall(r" s32\[\]\S* constant\((\d+)\)", text)
        counts = re.search(r"ROOT [^\n]* compare\([^\n]*direction=LT", text)
        return int(limits[0]) if counts and len(limits) == 1 else None

    def multiplies(self, name: str) -> bool:
        """Whether a fused computation holds a convolution or a matrix product."""
        return any(
            PRODUCT.search(line) or (" fusion(" in line and self.multiplies(called(line, "calls")))
            for line in self.lines[name]
        )


def branches(line: str) -> list[str]:
    """The computations of a conditional."""
    found = re.search(r"branch_computations=\{(.*?)\}", line)
    if found:
        return [name.strip("%") for name in found[1].split(", ")]
    return [called(line, f"{x}_computation") for x in ("true", "false")]


def message_bytes(result: str) -> int:
    """Bytes of the type of a result."""
    shapes = re.findall(r"(\w+)\[([\d,]*)\]", result)
    return sum(SIZES[kind] * math.prod(int(x) for x in dims.split(",") if x) for kind, dims in shapes)


def called(line: str, role: str) -> str:
    found = re.search(rf"{role}=%?([\w.-]+)", line)
    assert found is not None, line
    return found[1]


def label(line: str) -> str:
    """Result and origin of an operation: its type and the last two parts of its name in JAX."""
    result, name = re.search(r" = \(?(\w+\[[\d,]*\])", line), re.search(r'op_name="([^"]*)"', line)
    return f"{result[1] if result else ''} {'/'.join(name[1].split('/')[-2:]) if name else ''}"
