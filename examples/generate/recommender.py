"""Recommenders.

ncf  NeuMF, He et al., arXiv:1708.05031, as TensorFlow's official model builds it: one embedding a side that holds the
     matrix factorization's 8 columns and the perceptron's 32, layers 64-32-16-8, 10 variables. The rows are
     MovieLens-20M (138,493 users, 26,744 items) enlarged 16 and 32 times (Belletti et al., arXiv:1901.08910), the
     "x16x32" set of MLPerf: 122.87 M parameters. This is our reading of AutoSync's NCF-dense, of which it says x16x32,
     10 variables, 122M. ncf has dense gradients for its embeddings, ncf-sparse the rows that a batch touches.
"""

USERS, ITEMS = 16 * 138493, 32 * 26744
FACTORS, LAYERS = 8, (64, 32, 16, 8)


def neumf(g, sparse):
    width = FACTORS + LAYERS[0] // 2
    user = g.embedding("embedding_user", g.input(), USERS, width, sparse=sparse)
    item = g.embedding("embedding_item", g.input(), ITEMS, width, sparse=sparse)
    factors = g.multiply("mf.multiply", g.view(user, FACTORS), g.view(item, FACTORS))
    half = LAYERS[0] // 2
    x = g.concat("mlp.concat", [g.view(user, half), g.view(item, half)])
    for i, size in enumerate(LAYERS[1:], 1):
        x = g.activation(f"layer-{i}.relu", g.linear(f"layer-{i}", x, size))
    g.loss("loss", g.linear("rating", g.concat("rating.concat", [factors, x]), 1))


def ncf(g):
    neumf(g, sparse=False)


def ncf_sparse(g):
    neumf(g, sparse=True)
