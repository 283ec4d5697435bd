"""Recurrent networks.

seq2seq  Bahdanau et al., arXiv:1409.0473, with the parameters of Sockeye 1 (arXiv:1712.05690), the program behind
         PACE's benchmark. PACE's table II gives 67.2 M parameters in 32 tensors and no architecture. This one has
         both: a bidirectional LSTM encoder (1 layer, 2 x 512), an LSTM decoder (2 layers of 1024), embeddings of 256
         shared by both sides, MLP attention. Tensors: encoder 8, decoder 8, its initial states 8, attention 3, hidden
         layer 2, embedding 1, output weight and bias. The sizes and the vocabulary are ours: many others would fit
         the two figures.

A layer is one operator over all time steps, as in a fused kernel, with a launch a step; PACE counts 293 operators, so
its graph is finer. The products of a time step have only the batch as rows, hence the lower efficiency ("recurrent").
"""

from math import prod

VOCABULARY = 29500  # not in PACE's paper; with the sizes above 67.2 M implies 29,476 to 29,554
LENGTH = 32


def lstm(g, name, x, hidden, initial=()):
    """All time steps of one layer: input and hidden products, then the gates."""
    steps, width = x.shape
    reads = [g.variable(f"{name}i2h_weight", 4 * hidden, width), g.variable(f"{name}i2h_bias", 4 * hidden),
             g.variable(f"{name}h2h_weight", 4 * hidden, hidden), g.variable(f"{name}h2h_bias", 4 * hidden)]
    gates = g.bytes(g.input(steps, 4 * hidden))
    flops, out = 8.0 * steps * hidden * (width + hidden), (steps, hidden)
    return g.operator(name + "cell", [x, *initial], out, reads, "recurrent", flops, 3 * gates, 5 * gates, steps)


def fully_connected(g, name, x, width, bias=True):
    reads = [g.variable(name + "_weight", width, x.shape[-1])] + ([g.variable(name + "_bias", width)] if bias else [])
    return g.linear(name, x, width, reads=reads)


def mlp_attention(g, query, source):
    """v tanh(U source + W query) for each target step and each source position."""
    (steps, hidden), positions = query.shape, source.shape[0]
    u = fully_connected(g, "att_e2h", source, hidden, bias=False)
    w = fully_connected(g, "att_q2h", query, hidden, bias=False)
    grid = g.bytes(g.input(steps, positions, hidden))
    scores = g.operator("att_h2s", [u, w], (steps, positions), [g.variable("att_h2s_weight", 1, hidden)],
                        "recurrent", 2.0 * prod((steps, positions, hidden)), 4 * grid, 8 * grid, steps)
    return g.matmul("att_context", g.softmax("att_softmax", scores), source, (steps, hidden), positions)


def seq2seq(g, embed=256, hidden=1024):
    table = g.variable("source_target_embed_weight", VOCABULARY, embed)
    x = g.embedding("source_embed", g.input(LENGTH), VOCABULARY, embed, table)
    forward = lstm(g, "encoder_birnn_forward_l0_", x, hidden // 2)
    reverse = lstm(g, "encoder_birnn_reverse_l0_", x, hidden // 2)
    source = g.concat("encoder_birnn_concat", [forward, reverse], axis=1)
    last = g.select("encoder_last", source, (hidden,))
    names = [f"decoder_rnn_enc2decinit_{i}" for i in range(4)]
    states = [g.activation(name + "_tanh", fully_connected(g, name, last, hidden)) for name in names]
    x = g.embedding("target_embed", g.input(LENGTH), VOCABULARY, embed, table)
    # The first layer also reads the previous step's hidden output, which comes from inside the recurrence.
    x = g.concat("decoder_rnn_feed", [x, g.input(LENGTH, hidden)], axis=1)
    x = lstm(g, "decoder_rnn_l0_", x, hidden, states[:2])
    x = lstm(g, "decoder_rnn_l1_", x, hidden, states[2:])
    x = g.concat("decoder_rnn_concat", [x, mlp_attention(g, x, source)], axis=1)
    x = g.activation("decoder_rnn_hidden_tanh", fully_connected(g, "decoder_rnn_hidden", x, hidden))
    g.loss("loss", fully_connected(g, "target_output", x, VOCABULARY))
