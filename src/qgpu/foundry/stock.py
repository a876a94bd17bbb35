"""Names and shapes of the stock Qwen3.5 text model's tensors (without the ``model.`` prefix)."""

from __future__ import annotations

from .network import Shape

FULL_ATTENTION_INTERVAL = 4


def has_deltanet(layer: int) -> bool:
    """Every fourth layer is full attention; ours leave it idle."""
    return layer % FULL_ATTENTION_INTERVAL != FULL_ATTENTION_INTERVAL - 1


def stock_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every tensor, in file order."""
    hidden, wide = shape.hidden, shape.linear_heads * shape.head_dim
    query, pair = shape.attention_heads * shape.attention_head_dim, shape.key_value_heads * shape.attention_head_dim
    linear = {
        "linear_attn.in_proj_qkv.weight": (3 * wide, hidden),
        "linear_attn.in_proj_z.weight": (wide, hidden),
        "linear_attn.in_proj_a.weight": (shape.linear_heads, hidden),
        "linear_attn.in_proj_b.weight": (shape.linear_heads, hidden),
        "linear_attn.conv1d.weight": (3 * wide, 1, shape.conv_kernel),
        "linear_attn.A_log": (shape.linear_heads,),
        "linear_attn.dt_bias": (shape.linear_heads,),
        "linear_attn.norm.weight": (shape.head_dim,),
        "linear_attn.out_proj.weight": (hidden, wide),
    }
    full = {
        "self_attn.q_proj.weight": (2 * query, hidden),
        "self_attn.k_proj.weight": (pair, hidden),
        "self_attn.v_proj.weight": (pair, hidden),
        "self_attn.o_proj.weight": (hidden, query),
        "self_attn.q_norm.weight": (shape.attention_head_dim,),
        "self_attn.k_norm.weight": (shape.attention_head_dim,),
    }
    every = {
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
        "mlp.gate_proj.weight": (shape.intermediate, hidden),
        "mlp.up_proj.weight": (shape.intermediate, hidden),
        "mlp.down_proj.weight": (hidden, shape.intermediate),
    }
    tensors: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (shape.vocabulary, hidden)}
    for layer in range(shape.layers):
        mixer = linear if has_deltanet(layer) else full
        tensors |= {f"layers.{layer}.{name}": size for name, size in (mixer | every).items()}
    return tensors | {"norm.weight": (hidden,), "lm_head.weight": (shape.vocabulary, hidden)}
