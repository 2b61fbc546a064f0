"""Budget and inputs of the fuzz targets.

A fixed budget runs with the integration tests, the same inputs every time. FUZZ_EXAMPLES=100000 tries that many new
inputs of every target instead.
"""

from __future__ import annotations

import os

import hypothesis
import hypothesis.strategies as st

EXAMPLES = os.environ.get("FUZZ_EXAMPLES")


def budget(examples: int) -> hypothesis.settings:
    """Settings for a target that tries `examples` inputs in a plain run."""
    return hypothesis.settings(
        max_examples=int(EXAMPLES or examples),
        derandomize=EXAMPLES is None,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


MARKUP = st.sampled_from(["[/]", "[/b]", "[bold]", "[b", "[red on nothing]x", "[link=", r"\[", ":smile:", "[@click=f]"])
TEXT = st.text(max_size=30) | MARKUP
NUMBERS = st.sampled_from(["nan", "inf", "-inf", "1e999", "-1", "0", "1", "-0.0", "9" * 23, "1.5", "²", "0x1"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """The bytes with some of them changed, cut out, repeated or put in."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at, upto = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        way = draw(st.sampled_from(["put", "cut", "repeat", "set"]))
        if way == "cut":
            del data[at:upto]
        elif way == "repeat":
            data[at:at] = data[at : min(upto, at + 64)]
        else:
            new = draw(st.binary(min_size=1, max_size=8))
            data[at : at + (len(new) if way == "set" else 0)] = new
    return bytes(data)


@st.composite
def mutated(draw: st.DrawFn, record: dict) -> object:
    """A JSON record with a few of its values, at any depth, replaced, removed or turned into another type."""
    found = json_copy(record)
    for _ in range(draw(st.integers(1, 3))):
        holder: object = found
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))  # pyright: ignore
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            inside = holder[key]  # pyright: ignore
            if isinstance(inside, dict | list) and inside and draw(st.booleans()):
                holder = inside
                continue
            near = [inside + 1, float(inside), bool(inside), -inside] if isinstance(inside, int) else [None, [], "x", 0]
            way = draw(st.sampled_from(["near", "any", "remove"]))
            if way == "remove":
                del holder[key]  # pyright: ignore
            else:
                holder[key] = draw(st.sampled_from(near) if way == "near" else JSON)  # pyright: ignore
            break
    return found


def json_copy(value):
    if isinstance(value, dict):
        return {k: json_copy(v) for k, v in value.items()}
    return [json_copy(v) for v in value] if isinstance(value, list) else value
