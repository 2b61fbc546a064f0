"""Perfect play by proofs from every position with five empty cells; four are among the ordinary tests."""

import pytest
from solved_tictactoe import proofs_play_perfectly, solved_tictactoe
from toys import KINDS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("empty", "positions"), [(5, 326)])
def test_proofs_play_perfectly_with_a_network_that_is_wrong(kind, empty, positions, golden):
    proofs_play_perfectly(kind, empty, positions, solved_tictactoe(golden))
