"""Transformers.

bert        Devlin et al., arXiv:1810.04805: BertModel of HuggingFace, pooler included. No task head, because the
            published counts have none: the loss reads the pooled output directly, as a head of a few thousand
            parameters would.
gpt2        Radford et al., 2019: GPT2LMHeadModel of HuggingFace; the output layer is the token embedding (one
            variable).
transformer Vaswani et al., arXiv:1706.03762, base size, with the parameters of Sockeye 1 (arXiv:1712.05690), the
            program behind PACE's benchmark: layer normalization before each block and at the end, no bias in
            attention, untied embeddings. Tensors: 6 encoder layers of 10, 6 decoder layers of 16, 2 final norms of 2,
            2 embeddings, output weight and bias = 164, as in PACE's table II.
"""


def attention(g, name, q, k, v, heads, drop=True):
    """Scores, softmax and context; q is (queries, width), k and v are (keys, width)."""
    (queries, width), keys = q.shape, k.shape[0]
    scores = g.matmul(name + ".scores", q, k, (heads, queries, keys), width // heads)
    scores = g.softmax(name + ".softmax", scores)
    if drop:
        scores = g.dropout(name + ".dropout", scores)
    return g.matmul(name + ".context", scores, v, (queries, width), keys)


def bert(g, layers, width, heads, length):
    tokens = g.input(length)
    e = "embeddings."
    x = g.add(e + "add", g.embedding(e + "word_embeddings", tokens, 30522, width),
              g.embedding(e + "position_embeddings", tokens, 512, width),
              g.embedding(e + "token_type_embeddings", tokens, 2, width))
    x = g.dropout(e + "dropout", g.layer_norm(e + "LayerNorm", x))
    for i in range(layers):
        a = f"encoder.layer.{i}.attention."
        q, k, v = (g.linear(f"{a}self.{part}", x, width) for part in ("query", "key", "value"))
        y = g.linear(a + "output.dense", attention(g, a + "self", q, k, v, heads), width)
        x = g.layer_norm(a + "output.LayerNorm", g.add(a + "output.add", g.dropout(a + "output.dropout", y), x))
        f = f"encoder.layer.{i}."
        y = g.activation(f + "intermediate.gelu", g.linear(f + "intermediate.dense", x, 4 * width))
        y = g.dropout(f + "output.dropout", g.linear(f + "output.dense", y, width))
        x = g.layer_norm(f + "output.LayerNorm", g.add(f + "output.add", y, x))
    x = g.linear("pooler.dense", g.select("pooler.first_token", x, (width,)), width)
    g.loss("loss", g.activation("pooler.tanh", x))


def bert_3l(g):
    bert(g, 3, 768, 12, 128)


def bert_base(g):
    bert(g, 12, 768, 12, 128)


def bert_large(g):
    bert(g, 24, 1024, 16, 128)


def conv1d(g, name, x, width):
    """GPT-2's linear layer, whose weight is (in, out)."""
    reads = [g.variable(name + ".weight", x.shape[-1], width), g.variable(name + ".bias", width)]
    return g.linear(name, x, width, reads=reads)


def gpt2(g, layers, width, heads, vocabulary, positions, length, drop=True):
    tokens = g.input(length)
    t = "transformer."
    x = g.add(t + "add", g.embedding(t + "wte", tokens, vocabulary, width),
              g.embedding(t + "wpe", tokens, positions, width))
    residual = (lambda name, y: g.dropout(name, y)) if drop else (lambda name, y: y)
    x = residual(t + "drop", x)
    for i in range(layers):
        h = f"{t}h.{i}."
        qkv = conv1d(g, h + "attn.c_attn", g.layer_norm(h + "ln_1", x), 3 * width)
        q, k, v = (g.view(qkv, length, width) for _ in range(3))
        y = conv1d(g, h + "attn.c_proj", attention(g, h + "attn", q, k, v, heads, drop), width)
        x = g.add(h + "add_1", residual(h + "attn.resid_dropout", y), x)
        y = g.activation(h + "mlp.act", conv1d(g, h + "mlp.c_fc", g.layer_norm(h + "ln_2", x), 4 * width))
        y = residual(h + "mlp.dropout", conv1d(g, h + "mlp.c_proj", y, width))
        x = g.add(h + "add_2", y, x)
    x = g.layer_norm(t + "ln_f", x)
    g.loss("loss", g.linear("lm_head", x, vocabulary, bias=False, weight=t + "wte.weight"))


def gpt2_small(g):
    gpt2(g, 12, 768, 12, 50257, 1024, 1024)


# -- Sockeye -----------------------------------------------------------------------------------------------------------

VOCABULARY = 31000  # not in PACE's paper; about what 30,000 byte-pair merges give, and what 91.8 M implies
SOCKEYE_LENGTH = 32


def mx_linear(g, name, x, width, bias=False):
    reads = [g.variable(name + "_weight", width, x.shape[-1])] + ([g.variable(name + "_bias", width)] if bias else [])
    return g.linear(name, x, width, reads=reads)


def mx_norm(g, name, x):
    return g.layer_norm(name, x, ("_gamma", "_beta"))


def block(g, name, x, body):
    """norm, body, dropout, residual: Sockeye's pre "n", post "dr"."""
    y = g.dropout(name + "_post_dropout", body(mx_norm(g, name + "_pre_norm", x)))
    return g.add(name + "_post_add", y, x)


def self_attention(g, name, x, heads):
    length, width = x.shape
    qkv = mx_linear(g, name + "_i2h", x, 3 * width)
    q, k, v = (g.view(qkv, length, width) for _ in range(3))
    return mx_linear(g, name + "_h2o", attention(g, name, q, k, v, heads), width)


def source_attention(g, name, x, memory, heads):
    width = x.shape[-1]
    q = mx_linear(g, name + "_q2h", x, width)
    k, v = mx_linear(g, name + "_k2h", memory, width), mx_linear(g, name + "_v2h", memory, width)
    return mx_linear(g, name + "_h2o", attention(g, name, q, k, v, heads), width)


def feed_forward(g, name, x):
    y = g.activation(name + "_relu", mx_linear(g, name + "_i2h", x, 4 * x.shape[-1], True))
    y = g.dropout(name + "_dropout", y)
    return mx_linear(g, name + "_h2o", y, x.shape[-1], True)


def transformer(g, layers=6, width=512, heads=8):
    def embed(side):
        table = g.variable(side + "_embed_weight", VOCABULARY, width)
        return g.dropout(side + "_dropout", g.embedding(side + "_embed", g.input(SOCKEYE_LENGTH), 0, width, table))

    memory = embed("source")
    for i in range(layers):
        p = f"encoder_transformer_{i}_"
        memory = block(g, p + "att_self", memory, lambda y: self_attention(g, p + "att_self", y, heads))
        memory = block(g, p + "ff", memory, lambda y: feed_forward(g, p + "ff", y))
    memory = mx_norm(g, "encoder_transformer_final_process_norm", memory)
    x = embed("target")
    for i in range(layers):
        p = f"decoder_transformer_{i}_"
        x = block(g, p + "att_self", x, lambda y: self_attention(g, p + "att_self", y, heads))
        x = block(g, p + "att_enc", x, lambda y: source_attention(g, p + "att_enc", y, memory, heads))
        x = block(g, p + "ff", x, lambda y: feed_forward(g, p + "ff", y))
    x = mx_norm(g, "decoder_transformer_final_process_norm", x)
    g.loss("loss", mx_linear(g, "target_output", x, VOCABULARY, True))
