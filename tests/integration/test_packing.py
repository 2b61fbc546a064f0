"""Positions as words: bits by hand, every game's positions there and back, and searches in trees of words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import choose, noisy_network, random_positions

import envs
from agents.config import Config
from agents.search.packing import packing_of


def test_words_by_hand():
    """Bools share a word 32 to 1, bytes 4 to 1; a number of 32 bits has its own."""
    state = {"a": jnp.arange(33) % 2 == 1, "b": jnp.array([[1, 2, 3], [4, -1, 0]], jnp.int8), "c": jnp.float32(1)}
    packing = packing_of(state)
    # 33 bits in two words: word 0 holds the bits 0, 2, 4..., which are False, word 1 the bits 1, 3... 31, all True.
    # Six bytes in two words: word 0 holds 1, 3 and -1, word 1 holds 2, 4 and 0. 0x3F800000 is 1 as a float.
    words = [0, 0xFFFF, 0x00FF0301, 0x00000402, 0x3F800000]
    assert packing.pack(state).tolist() == words
    for name, x in packing.unpack(jnp.array(words, jnp.uint32)).items():
        np.testing.assert_array_equal(x, state[name])
        assert x.dtype == state[name].dtype


@pytest.mark.parametrize("name", envs.list())
def test_positions_survive(name):
    game = envs.make(name)
    states = random_positions(game, 6, 9)
    apart = jax.tree.map(lambda x: x.reshape(2, 3, *x.shape[1:]), states)
    packing = packing_of(jax.eval_shape(game.init))
    back = packing.unpack(packing.pack(apart))
    for one, other in zip(jax.tree.leaves(apart), jax.tree.leaves(back), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_numbers_of_64_bits_are_refused():
    with pytest.raises(ValueError, match="at most 32 bits, got float64"):
        packing_of(np.zeros(3))


@pytest.mark.parametrize("slots", [False, True], ids=["dense", "slots"])
def test_a_search_in_trees_of_words_is_the_same(slots):
    game = envs.make("foq:rows=4,cols=5")
    states, config = random_positions(game, 16, 6), Config(num_simulations=24, proofs=True)
    plain, packed = (
        choose(game, noisy_network(20), config, states, slots=slots, packed=packed) for packed in (False, True)
    )
    for one, other in zip(jax.tree.leaves(plain), jax.tree.leaves(packed), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)  # two programs may round differently
