"""The matrix product of a page's network in WebAssembly SIMD, assembled here: `matmul(a, b, c, m, k, n)`.

C [m, n] = A [m, k] B [k, n] in float32, row by row in the imported memory; a, b and c are byte addresses, n is a
multiple of 4. Sums are kept in registers: 6 rows by 8 columns at a time, which fills 15 of the 16 registers of x86.
Opcodes are those of the WebAssembly core specification 2.0, chapter 5, "Binary format".
"""

from __future__ import annotations

from collections.abc import Callable

I32, V128 = 0x7F, 0x7B
TALL, WIDE = 6, 2  # rows, and vectors of 4 columns, of the largest tile


def leb128(n: int) -> bytes:
    """LEB128 of a non-negative number, with room for a sign."""
    out = bytearray()
    while n > 63:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def vector(*items: bytes) -> bytes:
    return leb128(len(items)) + b"".join(items)


def section(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + leb128(len(content)) + content


def get(local: int) -> bytes:
    return b"\x20" + leb128(local)


def set_local(local: int, value: bytes) -> bytes:
    return value + b"\x21" + leb128(local)


def const(n: int) -> bytes:
    return b"\x41" + leb128(n)


def add(a: bytes, b: bytes) -> bytes:
    return a + b + b"\x6a"


def mul(a: bytes, b: bytes) -> bytes:
    return a + b + b"\x6c"


def step(local: int, by: bytes) -> bytes:
    return set_local(local, add(get(local), by))


def loop_while(test: bytes, body: bytes) -> bytes:
    """A loop that leaves its block as soon as `test` is 0 (i32.eqz, br_if 1; br 0 at the end)."""
    return b"\x02\x40\x03\x40" + test + b"\x45\x0d\x01" + body + b"\x0c\x00\x0b\x0b"


def at_most(a: bytes, b: bytes) -> bytes:
    return a + b + b"\x4d"


def load_vector(address: bytes, offset: int) -> bytes:
    return address + b"\xfd\x00\x02" + leb128(offset)


def load_splat(address: bytes) -> bytes:
    return address + b"\xfd\x09\x02\x00"


def store(address: bytes, value: bytes, offset: int) -> bytes:
    return address + value + b"\xfd\x0b\x02" + leb128(offset)


ZERO = b"\xfd\x0c" + bytes(16)
VECTOR_ADD, VECTOR_MUL = b"\xfd\xe4\x01", b"\xfd\xe6\x01"

A, B, C, M, K, N, ROW, COLUMN, END, PB, PC, K4, N4 = range(13)
PA = 13  # addresses in A, one for each row of the tile
ACCUMULATORS = PA + TALL
LOADED = ACCUMULATORS + TALL * WIDE
SPLAT = LOADED + WIDE
LOCALS = vector(leb128(PA + TALL - 6) + bytes([I32]), leb128(SPLAT + 1 - ACCUMULATORS) + bytes([V128]))


def tile(rows: int, vectors: int) -> bytes:
    """The sums of `rows` rows and 4 * `vectors` columns, from row ROW and column COLUMN on."""
    sums = [[ACCUMULATORS + r * WIDE + v for v in range(vectors)] for r in range(rows)]
    out = set_local(PB, add(get(B), mul(get(COLUMN), const(4))))
    out += b"".join(set_local(PA + r, add(get(A), mul(add(get(ROW), const(r)), get(K4)))) for r in range(rows))
    out += set_local(END, add(get(PA), get(K4))) + b"".join(set_local(s, ZERO) for row in sums for s in row)
    body = b"".join(set_local(LOADED + v, load_vector(get(PB), 16 * v)) for v in range(vectors))
    for r, row in enumerate(sums):
        body += set_local(SPLAT, load_splat(get(PA + r))) + step(PA + r, const(4))
        for v, s in enumerate(row):
            body += set_local(s, get(s) + get(SPLAT) + get(LOADED + v) + VECTOR_MUL + VECTOR_ADD)
    body += step(PB, get(N4))
    out += loop_while(get(PA) + get(END) + b"\x49", body)
    out += set_local(PC, add(get(C), add(mul(get(ROW), get(N4)), mul(get(COLUMN), const(4)))))
    for row in sums:
        out += b"".join(store(get(PC), get(s), 16 * v) for v, s in enumerate(row)) + step(PC, get(N4))
    return out


def tiles(size: int, of: int, local: int, body: bytes) -> bytes:
    """`body` for every `size` of the `of` rows or columns that are left, counted in `local`."""
    return loop_while(at_most(add(get(local), const(size)), get(of)), body + step(local, const(size)))


def module() -> bytes:
    """The WebAssembly module: imports `page.memory`, exports `matmul`."""
    columns: Callable[[int], bytes] = lambda rows: (
        set_local(COLUMN, const(0)) + b"".join(tiles(4 * v, N, COLUMN, tile(rows, v)) for v in (WIDE, 1))
    )
    code = set_local(K4, mul(get(K), const(4))) + set_local(N4, mul(get(N), const(4))) + set_local(ROW, const(0))
    code += b"".join(tiles(rows, M, ROW, columns(rows)) for rows in (TALL, 1))
    function = LOCALS + code + b"\x0b"
    name = lambda text: vector(*(bytes([c]) for c in text.encode()))
    return b"\0asm\1\0\0\0" + b"".join(
        [
            section(1, vector(b"\x60" + vector(*[bytes([I32])] * 6) + vector())),
            section(2, vector(name("page") + name("memory") + b"\x02\x00\x01")),
            section(3, vector(leb128(0))),
            section(7, vector(name("matmul") + b"\x00" + leb128(0))),
            section(10, vector(leb128(len(function)) + function)),
        ]
    )
