"""Sequences otherwise: an encoder that fills in masked words, and a recurrent network that scans over time."""

# mypy: ignore-errors
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def encoder_shapes(k):
    d, f = k["width"], k["hidden"]
    layer = {"qkv": (d, 3 * d), "bias": (3 * d,), "out": (d, d), "up": (d, f), "down": (f, d)}
    return {
        "embedding": (k["vocab"], d),
        "position": (k["length"], d),
        **{f"layer_{n}": layer for n in range(k["layers"])},
    }


def layer_norm(x):
    wide = x.astype(jnp.float32)
    return ((wide - wide.mean(-1, keepdims=True)) * jax.lax.rsqrt(wide.var(-1, keepdims=True) + 1e-6)).astype(x.dtype)


def encoder_layer(k, h, w):
    b, s, d = h.shape
    w = {name: leaf.astype(h.dtype) for name, leaf in w.items()}
    q, key, value = jnp.split((h @ w["qkv"] + w["bias"]).reshape(b, s, k["heads"], -1), 3, -1)
    with jax.named_scope("attention"):
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, key).astype(jnp.float32) / q.shape[-1] ** 0.5, -1)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights.astype(h.dtype), value)
    h = layer_norm(h + mixed.reshape(b, s, d) @ w["out"])
    return layer_norm(h + jax.nn.gelu(h @ w["up"], approximate=False) @ w["down"])


def encoder_loss(k, params, tokens):
    h = (params["embedding"][tokens] + params["position"]).astype(k["dtype"])
    step = lambda h, w: encoder_layer(k, h, w)  # noqa: E731
    for number in range(k["layers"]):
        with jax.named_scope(f"layer_{number}"):
            h = (jax.checkpoint(step) if k["checkpoint"] else step)(h, params[f"layer_{number}"])
    with jax.named_scope("mlm_loss"):
        logits = (h @ params["embedding"].T.astype(h.dtype)).astype(jnp.float32)
        picked = jnp.take_along_axis(logits, tokens[..., None], -1)[..., 0]
        return (jax.nn.logsumexp(logits, -1) - picked).mean()


def recurrent_shapes(k):
    d = k["width"]
    return {"embedding": (k["vocab"], d), "cells": (k["layers"], 2 * d, 4 * d), "head": (d, k["vocab"])}


def recurrent_loss(k, params, tokens):
    h = params["embedding"][tokens].astype(k["dtype"]).swapaxes(0, 1)

    def layer(h, w):
        w = w.astype(h.dtype)

        def cell(carry, x):
            state, out = carry
            gates = jnp.concatenate([x, out], -1) @ w
            i, f, o, g = jnp.split(gates, 4, -1)
            state = jax.nn.sigmoid(f) * state + jax.nn.sigmoid(i) * jnp.tanh(g)
            out = jax.nn.sigmoid(o) * jnp.tanh(state)
            return (state, out), out

        zeros = jnp.zeros(h.shape[1:], h.dtype)
        return jax.lax.scan(jax.checkpoint(cell) if k["checkpoint"] else cell, (zeros, zeros), h)[1]

    for number in range(k["layers"]):
        with jax.named_scope(f"lstm_{number}"):
            h = layer(h, params["cells"][number])
    with jax.named_scope("softmax_loss"):
        logits = (h @ params["head"].astype(h.dtype)).astype(jnp.float32)
        picked = jnp.take_along_axis(logits, tokens.T[..., None], -1)[..., 0]
        return (jax.nn.logsumexp(logits, -1) - picked).mean()


def build(k, array):
    """A step of Adam."""
    loss, of = (encoder_loss, encoder_shapes) if k["kind"] == "encoder" else (recurrent_loss, recurrent_shapes)
    is_leaf = lambda x: isinstance(x, tuple)  # noqa: E731
    made = lambda dtype: jax.tree.map(lambda shape: array(shape, P(), jnp.dtype(dtype)), of(k), is_leaf=is_leaf)  # noqa: E731

    def update(p, g, m, v):
        m_, v_ = 0.9 * m.astype(jnp.float32) + 0.1 * g, 0.999 * v.astype(jnp.float32) + 0.001 * g * g
        return (p - 1e-3 * m_ / (jnp.sqrt(v_) + 1e-8)).astype(p.dtype), m_.astype(m.dtype), v_.astype(v.dtype)

    def step(state, tokens):
        value, grads = jax.value_and_grad(lambda p: loss(k, p, tokens))(state["params"])
        grads = jax.tree.map(lambda g: g.astype(k["gradients"]).astype(jnp.float32), grads)
        new = jax.tree.map(update, state["params"], grads, state["m"], state["v"])
        parts = [jax.tree.map(lambda x, n=n: x[n], new, is_leaf=is_leaf) for n in range(3)]
        return {"params": parts[0], "m": parts[1], "v": parts[2]}, value

    state = {"params": made(k["params"]), "m": made(k["state"]), "v": made(k["state"])}
    tokens = array((k["batch"] * k["replicas"], k["length"]), P("data", None), jnp.int32)
    return step, (state, tokens), {"donate_argnums": (0,) if k["donate"] else ()}
