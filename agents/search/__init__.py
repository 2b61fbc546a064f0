"""Search over batches of positions: Gumbel search, PUCT and UCB1 on one tree. mctx's own policies are the reference,
and a greedy player compares the values of successors.
"""
