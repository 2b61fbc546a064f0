"""What `benchmarks/hlo.py` reads in the text of a compiled program, for a program written by hand."""

from benchmarks.hlo import Cost, Kernels, Loop, Program

# Five rounds of a scatter and a gather of six rows, a convolution and a sum; then one product of numbers.
TEXT = """HloModule by_hand

%rows (p0: f32[8,4], p1: s32[6]) -> f32[6,4] {
  %s = f32[8,4]{1,0} scatter(%p0, %p1, %u), to_apply=%add
  ROOT %g = f32[6,4]{1,0} gather(%p0, %p1), offset_dims={1}, collapsed_slice_dims={0}, slice_sizes={1,4}
}

%once (t: (s32[])) -> (s32[]) {
  %a = f32[6,4]{1,0} fusion(%x, %y), kind=kCustom, calls=%rows
  %b = f32[2,3]{1,0} convolution(%p, %q), backend_config={"estimated_cycles":"100"}
  %c = f32[2,3]{1,0} add(%b, %b), metadata={op_name="jit(f)/while/body/add"}, backend_config={"estimated_cycles":"40"}
}

%more (t: (s32[])) -> pred[] {
  %limit = s32[]{:T(128)} constant(5)
  ROOT %lt = pred[]{:T(512)} compare(%i, %limit), direction=LT
}

ENTRY %main (x: f32[8,4]) -> f32[] {
  %w = (s32[]) while(%t), condition=%more, body=%once
  %d = f32[] multiply(%u, %v), metadata={op_name="jit(f)/mul"}, backend_config={"estimated_cycles":"7"}
}
"""


def test_costs_by_hand():
    program = Program(TEXT)
    total, loops = program.cost(program.entry)
    assert total == Cost(cycles=5 * 140 + 7, products=500, other=(200, "f32[2,3] body/add"), gathered=30, scatters=1)
    assert loops == [
        Loop(0, 5, Cost(cycles=140, products=100, other=(40, "f32[2,3] body/add"), gathered=6, scatters=1), "", "once")
    ]


def test_a_loop_of_unknown_length_counts_once():
    program = Program(TEXT.replace("direction=LT", "direction=NE"))
    total, loops = program.cost(program.entry)
    assert loops[0].rounds is None
    assert (total.cycles, total.gathered, total.unknown) == (147, 6, 1)


# A conditional, then a descent of unknown length and four steps with two operations of the network each.
OF_GPU = """HloModule by_hand

FileNames
1 "tree.py"

FunctionNames
1 "descend"
2 "make.<locals>.search"

FileLocations
1 {file_name_id=1 function_name_id=1 line=1}
2 {file_name_id=1 function_name_id=2 line=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

%goes_on (t: (s32[], f32[2])) -> pred[] {
  ROOT %compare = pred[] fusion(%i), kind=kLoop, calls=%compared
}

%level (t: (s32[], f32[2])) -> (s32[], f32[2]) {
  %i = s32[] get-tuple-element(%t), index=0
  %step = (s32[], /*index=1*/f32[2]{0}) fusion(%i), kind=kLoop, calls=%stepped
  %copied = f32[2]{0} copy(%x)
}

%once (t: (s32[])) -> (s32[]) {
  %conv = (f32[4,4]{1,0}, u8[0]{0}) custom-call(%x, %k), metadata={op_name="jit(f)/PolicyValue/Conv_0/conv"}
  %relu = f32[4,4]{1,0} fusion(%conv), kind=kLoop, calls=%r, metadata={op_name="jit(f)/PolicyValue/max"}
  %written = f32[9,4]{1,0} fusion(%relu), kind=kLoop, calls=%w
}

%many (t: (s32[])) -> (s32[]) {
  %a = f32[2]{0} fusion(%x), kind=kLoop, calls=%r
  %b = f32[2]{0} fusion(%a), kind=kLoop, calls=%r
}

%none (t: (s32[])) -> (s32[]) {
  ROOT %same = f32[2]{0} parameter(0)
}

ENTRY %main (x: f32[8,4]) -> f32[] {
  %c = (s32[]) conditional(%p, %t, %t), branch_computations={%none, %many}
  %d = (s32[], f32[2]{0}) while(%t), condition=%goes_on, body=%level, metadata={stack_frame_id=1}
  %w = (s32[]) while(%t), condition=%goes_on, body=%once, metadata={stack_frame_id=2}, backend_config=KNOWN
}
""".replace("KNOWN", '{"known_trip_count":{"n":"4"}}')


def test_kernels_by_hand():
    program = Program(OF_GPU)
    total, loops = program.kernels(program.entry, "PolicyValue")
    assert total == Kernels(network=4 * 2, descent=3, other=2 + 4, unknown=1, branches=1)
    assert loops == [
        Loop(0, None, Kernels(descent=3), "descend", "level"),
        Loop(0, 4, Kernels(network=2, other=1), "search", "once"),
    ]


# Five updates with a sum of 12 + 4 numbers and one of 3 flags; one gather of 8 numbers afterwards.
OF_MANY = """HloModule by_hand

%many (t: (s32[])) -> (s32[]) {
  %r = (f32[3,4]{1,0}, f32[4]{0}) all-reduce-start(%a, %b), to_apply=%add
  %d = (f32[3,4]{1,0}, f32[4]{0}) all-reduce-done(%r)
  %p = pred[3]{0} all-reduce(%q), to_apply=%or
}

%more (t: (s32[])) -> pred[] {
  %limit = s32[] constant(5)
  ROOT %lt = pred[] compare(%i, %limit), direction=LT
}

ENTRY %main (x: f32[8,4]) -> f32[] {
  %w = (s32[]) while(%t), condition=%more, body=%many
  %g = bf16[8]{0} all-gather(%v), dimensions={0}
}
"""


def test_messages_by_hand():
    program = Program(OF_MANY)
    assert program.messages("many") == (2, 4 * (12 + 4) + 3)
    assert program.messages(program.entry) == (5 * 2 + 1, 5 * 67 + 16)
