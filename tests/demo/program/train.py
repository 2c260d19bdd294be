"""The demo's training program: one Adam step, and one evaluation step."""

# mypy: ignore-errors
from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from model import CONFIG, forward


def loss_fn(params, batch, config):
    logits = forward(params, batch["tokens"], config).astype(jnp.float32)
    with jax.named_scope("loss"):
        picked = jnp.take_along_axis(logits, batch["targets"][..., None], axis=-1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - picked)


def adam(param, grad, mean, square, count):
    mean = 0.9 * mean + 0.1 * grad
    square = 0.95 * square + 0.05 * grad * grad
    scaled = (mean / (1 - 0.9**count)) / (jnp.sqrt(square / (1 - 0.95**count)) + 1e-8)
    return param - 3e-4 * (scaled + 0.1 * param), mean, square


@functools.partial(jax.jit, static_argnums=2, donate_argnums=0)
def train_step(state, batch, config=CONFIG):
    loss, grads = jax.value_and_grad(loss_fn)(state["params"], batch, config)
    count = state["count"] + 1
    with jax.named_scope("clip"):
        norm = jnp.sqrt(sum(jnp.sum(grad * grad) for grad in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda grad: grad * jnp.minimum(1.0, 1.0 / norm), grads)
    with jax.named_scope("adam"):
        updated = jax.tree.map(
            lambda p, g, m, s: adam(p, g, m, s, count), state["params"], grads, state["mean"], state["square"]
        )
    params, mean, square = jax.tree.transpose(jax.tree.structure(grads), jax.tree.structure((0, 0, 0)), updated)
    return {"params": params, "mean": mean, "square": square, "count": count}, {"loss": loss, "grad_norm": norm}


@functools.partial(jax.jit, static_argnums=2)
def eval_step(params, batch, config=CONFIG):
    logits = forward(params, batch["tokens"], config).astype(jnp.float32)
    with jax.named_scope("metrics"):
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), batch["targets"][..., None], axis=-1)[..., 0]
        hits = jnp.mean(jnp.argmax(logits, axis=-1) == batch["targets"])
    return {"loss": -jnp.mean(picked), "accuracy": hits}
