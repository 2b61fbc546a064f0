"""What `benchmarks/compiled.py` reads in the text of a compiled program, for a program written by hand."""

from benchmarks.compiled import Cost, Loop, Program

# Five rounds of a gather of six rows, a convolution and a sum; then one product of numbers.
TEXT = """HloModule by_hand

%rows (p0: f32[8,4], p1: s32[6]) -> f32[6,4] {
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
    assert total == Cost(cycles=5 * 140 + 7, products=500, other=(200, "f32[2,3] body/add"), gathered=30)
    assert loops == [Loop(0, 5, Cost(cycles=140, products=100, other=(40, "f32[2,3] body/add"), gathered=6))]


def test_a_loop_of_unknown_length_counts_once():
    program = Program(TEXT.replace("direction=LT", "direction=NE"))
    total, loops = program.cost(program.entry)
    assert loops[0].rounds is None
    assert (total.cycles, total.gathered) == (147, 6)
