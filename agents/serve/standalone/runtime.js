"use strict";
// Working memory and the matrix product of converted functions. Everything lies in one WebAssembly memory, so that
// the kernel reads the same arrays as JavaScript.

// A memory of `size` bytes: `alloc` gives typed arrays in it one after the other, `unpack` tables of the converter.
function newMemory(size) {
  const pages = Math.ceil(size / 65536);
  const memory = new WebAssembly.Memory({initial: pages, maximum: pages});
  let used = 0;

  function alloc(Type, n) {
    const start = used;
    used += Math.ceil(n * Type.BYTES_PER_ELEMENT / 16) * 16;
    return new Type(memory.buffer, start, n);
  }

  function unpack(text, kind, n, Type) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0)), out = alloc(Type, n);
    if (kind === "bits") for (let i = 0; i < n; i++) out[i] = (bytes[i >> 3] >> (i & 7)) & 1;
    else if (kind === "half") new Uint16Array(bytes.buffer).forEach((h, i) => { out[i] = ofHalf(h); });
    else out.set(new KINDS[kind](bytes.buffer));
    return out;
  }

  return {memory, alloc, unpack};
}

const KINDS = {Int8Array, Uint8Array, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array};

// The number of half precision with these bits (IEEE 754).
function ofHalf(h) {
  const sign = h & 0x8000 ? -1 : 1, exponent = (h >> 10) & 31, fraction = h & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return exponent === 31 ? (fraction ? NaN : sign * Infinity) : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

// C = A B for A [m, k], B [k, n], C [m, n] in float32; `bytes` is the module of kernel.py, which knows the memory.
function fastMatmul(bytes, memory) {
  const {matmul} = new WebAssembly.Instance(new WebAssembly.Module(bytes), {page: {memory}}).exports;
  return (a, b, c, m, k, n) => matmul(a.byteOffset, b.byteOffset, c.byteOffset, m, k, n);
}

// Numbers, as converted functions compute them

const f = Math.fround;
const roundAway = (x) => Math.sign(x) * Math.floor(Math.abs(x) + 0.5);
const roundEven = (x) => { const r = Math.round(x); return r - x === 0.5 && r % 2 ? r - 1 : r; };

function bitsIn(x) {
  x -= (x >>> 1) & 0x55555555;
  x = (x & 0x33333333) + ((x >>> 2) & 0x33333333);
  return Math.imul((x + (x >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
