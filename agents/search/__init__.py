"""Tree search over batches of positions: Gumbel, PUCT and UCB1 on one tree, mctx's own policies as the reference, and
greedy play by the values of successors.
"""
