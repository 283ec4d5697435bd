"""Llama-like decoders (Touvron et al., arXiv:2302.13971): root-mean-square norms, rotary positions, grouped queries, SwiGLU.

llama-8b    Llama 3 8B (arXiv:2407.21783): its output layer is a variable of its own.
llama-1b    Llama 3.2 1B; llama-135m: SmolLM-135M. Their output layer is the token embedding.

Names are those of HuggingFace's LlamaForCausalLM. Products of the same input are one operator (query, key and value; gate
and up), and what follows a product element by element is part of it. Attention is flash attention: the scores never leave
the chip, and half of them, those of later tokens, are not computed. Nothing is computed twice in the backward pass, unless
the name says "checkpointing": then of each layer only the input is kept, and the backward pass computes the layer again.
Where a published speed includes some of that, the efficiency that was fitted to it (device.py) does too.

What is kept for the backward pass is counted as Korthikanti et al. do (arXiv:2205.05198, section 4), for this architecture
and without its section 4.1's 5as/h of the scores: every product keeps its input, attention its query, key, value, output
and for each head and token a sum in f32 (Dao, arXiv:2307.08691, section 3.1), SwiGLU both of its inputs, a norm its input.
An input that several products read is kept once. With 2 bytes an element that is, for a token and layer, 12 bytes for each of
`width`, 4 for each of `kv_heads * head`, 6 for each of `hidden` and some for statistics. The optimizer is AdamW with f32
copies of the variables (Micikevicius et al., arXiv:1710.03740): what large models are trained with.
"""

from graph import F32


def rms_norm(g, name, x):
    return g.norm(name, x, x.shape[-1], (".weight",))


def products(g, name, parts, x, widths, out, elementwise, keeps):
    """Matrix products of one input with several weights, and `elementwise` passes over their values behind them. `keeps`:
    values that it keeps."""
    reads = [g.variable(f"{name}.{part}.weight", width, x.shape[-1]) for part, width in zip(parts, widths)]
    length, values = x.shape[0], g.view(x, x.shape[0], sum(widths))
    traffic = g.bytes(x, g.view(x, *out)) + elementwise * g.bytes(values) + g.size(*reads) * g.width
    return g.operator(f"{name}.{'_'.join(parts)}", [x], out, reads, "gemm", 2.0 * length * x.shape[-1] * sum(widths),
                      traffic, 2 * traffic, keeps=g.bytes(*keeps))


def attention(g, name, qkv, width, heads):
    """Of one value that is query, key and value. Its gradient, which is that of all three, costs twice the FLOPs. It keeps
    its output, which the product behind it reads, and for each head and token a sum in f32."""
    length = qkv.shape[0]
    flops = 2 * 2.0 * length * length * width / 2
    traffic = g.bytes(qkv, g.view(qkv, length, width))
    return g.operator(name, [qkv], (length, width), (), "gemm", flops, traffic, 2 * traffic, grad_flops=2 * flops,
                      keeps=g.bytes(qkv, g.view(qkv, length, width)) + F32 * g.batch * heads * length)


def llama(g, vocabulary, width, layers, heads, kv_heads, hidden, length, tied, checkpointing=False):
    g.optimizer = {"name": "adamw", "master_copy": True}
    tokens, head = g.input(length), width // heads
    x = g.embedding("model.embed_tokens", tokens, vocabulary, width)
    for i in range(layers):
        p, entry, first = f"model.layers.{i}.", x, len(g.operators)
        qkv = width + 2 * kv_heads * head
        y = rms_norm(g, p + "input_layernorm", x)
        y = products(g, p + "self_attn", ["q_proj", "k_proj", "v_proj"], y, [width] + 2 * [kv_heads * head],
                     (length, qkv), 2, [y])
        y = attention(g, p + "self_attn.attention", y, width, heads)
        x = g.add(p + "self_attn.add", x, products(g, p + "self_attn", ["o_proj"], y, [width], (length, width), 0, []))
        y = rms_norm(g, p + "post_attention_layernorm", x)
        y = products(g, p + "mlp", ["gate_proj", "up_proj"], y, 2 * [hidden], (length, hidden), 2,
                     [y, g.view(y, length, 2 * hidden)])
        x = g.add(p + "mlp.add", x, products(g, p + "mlp", ["down_proj"], y, [width], (length, width), 0, [y]))
        if checkpointing:
            g.checkpoint(entry, g.operators[first:])
    x = rms_norm(g, "model.norm", x)
    weight = "model.embed_tokens.weight" if tied else None
    g.loss("loss", g.linear("lm_head", x, vocabulary, bias=False, weight=weight))


def llama_135m(length):
    return lambda g: llama(g, 49152, 576, 30, 9, 3, 1536, length, True)


def llama_1b(length):
    return lambda g: llama(g, 128256, 2048, 16, 32, 8, 8192, length, True)


def llama_8b(length, checkpointing=False):
    return lambda g: llama(g, 128256, 4096, 32, 32, 8, 14336, length, False, checkpointing)
