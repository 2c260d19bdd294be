"""A perceptron with Adam whose old state is not donated, or whose state alone is too large."""

# mypy: ignore-errors
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def build(k, array):
    """A step of Adam."""
    n, d = k["layers"], k["width"]
    spec = P(None, "data", None) if k["fsdp"] else P()
    weights = array((n, d, d), spec, jnp.dtype(k["params"]))
    moments = array((n, d, d), spec, jnp.dtype(k["state"]))

    def loss(weights, x):
        def layer(h, w):
            return jax.nn.relu(h @ w.astype(h.dtype)), None

        h, _ = jax.lax.scan(jax.checkpoint(layer) if k["checkpoint"] else layer, x, weights)
        return (h.astype(jnp.float32) ** 2).mean()

    def step(state, x):
        value, grad = jax.value_and_grad(loss)(state["weights"], x.astype(k["dtype"]))
        grad = grad.astype(k["gradients"]).astype(jnp.float32)
        mean = 0.9 * state["mean"].astype(jnp.float32) + 0.1 * grad
        square = 0.99 * state["square"].astype(jnp.float32) + 0.01 * grad**2
        new = state["weights"] - 1e-3 * mean / (jnp.sqrt(square) + 1e-8)
        of = {"weights": new.astype(weights.dtype), "mean": mean, "square": square}
        return {name: part.astype(state[name].dtype) for name, part in of.items()}, value

    state = {"weights": weights, "mean": moments, "square": moments}
    x = array((k["batch"] * k["replicas"], d), P("data", None), jnp.float32)
    return step, (state, x), {"donate_argnums": (0,) if k["donate"] else ()}
