"""The demo's model: a decoder-only transformer whose weights are sharded over `data` and `model`."""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


class Config(NamedTuple):
    layers: int = 3
    width: int = 4096
    heads: int = 32
    hidden: int = 16384
    vocabulary: int = 32768
    batch: int = 16
    length: int = 1024


CONFIG = Config()


def shapes(config):
    """Shape and sharding of every weight; those of a layer have the layers in front."""
    layers, width, hidden = config.layers, config.width, config.hidden
    return {
        "embedding": ((config.vocabulary, width), P("model", "data")),
        "layers": {
            "qkv": ((layers, width, 3 * width), P(None, "data", "model")),
            "out": ((layers, width, width), P(None, "model", "data")),
            "up": ((layers, width, hidden), P(None, "data", "model")),
            "down": ((layers, hidden, width), P(None, "model", "data")),
            "norm_attention": ((layers, width), P(None, None)),
            "norm_mlp": ((layers, width), P(None, None)),
        },
        "norm_final": ((width,), P(None)),
    }


def rms_norm(x, scale):
    x32 = x.astype(jnp.float32)
    x32 = x32 * jax.lax.rsqrt(jnp.mean(x32 * x32, axis=-1, keepdims=True) + 1e-6)
    return (x32 * scale).astype(x.dtype)


def attention(x, layer, config):
    batch, length, width = x.shape
    qkv = x @ layer["qkv"].astype(x.dtype)
    q, k, v = jnp.split(qkv.reshape(batch, length, config.heads, -1), 3, axis=-1)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (q.shape[-1] ** -0.5)
    causal = jnp.tril(jnp.ones((length, length), bool))
    scores = jnp.where(causal, scores.astype(jnp.float32), -1e30)
    weights = jax.nn.softmax(scores, axis=-1).astype(x.dtype)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, width)
    return mixed @ layer["out"].astype(x.dtype)


def mlp(x, layer):
    return jax.nn.gelu(x @ layer["up"].astype(x.dtype)) @ layer["down"].astype(x.dtype)


def block(x, layer, config):
    with jax.named_scope("attention"):
        x = x + attention(rms_norm(x, layer["norm_attention"]), layer, config)
    with jax.named_scope("mlp"):
        x = x + mlp(rms_norm(x, layer["norm_mlp"]), layer)
    return jax.lax.with_sharding_constraint(x, P("data", None, None))


def forward(params, tokens, config):
    """Logits of the next token at every position."""
    with jax.named_scope("embed"):
        x = params["embedding"].astype(jnp.bfloat16)[tokens]
        x = jax.lax.with_sharding_constraint(x, P("data", None, None))
    with jax.named_scope("layers"):
        x, _ = jax.lax.scan(lambda x, layer: (block(x, layer, config), None), x, params["layers"])
    with jax.named_scope("logits"):
        x = rms_norm(x, params["norm_final"])
        return x @ params["embedding"].astype(x.dtype).T
