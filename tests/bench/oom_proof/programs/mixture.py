"""A mixture of experts: each token goes to its best expert, as long as that has room."""

# mypy: ignore-errors
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def experts(k, h, w):
    """Tokens to experts and back, by one-hot matrices."""
    tokens = h.reshape(-1, h.shape[-1])
    room = 2 * tokens.shape[0] // k["experts"]
    gate = jax.nn.softmax((tokens @ w["router"]).astype(jnp.float32), -1)
    chosen = jax.nn.one_hot(gate.argmax(-1), k["experts"], dtype=jnp.float32)
    place = (jnp.cumsum(chosen, 0) * chosen).sum(-1).astype(jnp.int32) - 1
    slots = gate.argmax(-1) * room + jnp.minimum(place, room - 1)
    given = jnp.zeros((k["experts"] * room, h.shape[-1]), h.dtype).at[slots].add(tokens)
    given = given.reshape(k["experts"], room, -1)
    up = jax.nn.gelu(jnp.einsum("ecd,edf->ecf", given, w["up"]))
    back = jnp.einsum("ecf,efd->ecd", up, w["down"]).reshape(k["experts"] * room, -1)[slots]
    return h + (back * gate.max(-1)[:, None].astype(h.dtype)).reshape(h.shape)


def loss(k, params, x):
    dtype = jnp.dtype(k["dtype"])

    def step(h, w):
        return experts(k, h, jax.tree.map(lambda leaf: leaf.astype(dtype), w))

    step = jax.checkpoint(step) if k["checkpoint"] else step
    h, _ = jax.lax.scan(lambda h, w: (step(h, w), None), x.astype(dtype), params)
    return (h.astype(jnp.float32) ** 2).mean()


def build(k, array):
    """A step of gradient descent with momentum."""
    n, e, d, f = k["layers"], k["experts"], k["width"], k["hidden"]
    of = {"router": (n, d, e), "up": (n, e, d, f), "down": (n, e, f, d)}
    params = {name: array(shape, P(), jnp.dtype(k["params"])) for name, shape in of.items()}
    momentum = {name: array(shape, P(), jnp.dtype(k["state"])) for name, shape in of.items()}

    def step(params, momentum, x):
        value, grads = jax.value_and_grad(lambda p: loss(k, p, x))(params)
        if k["gradients"] != "float32":
            grads = jax.tree.map(lambda leaf: leaf.astype(k["gradients"]), grads)
        momentum = jax.tree.map(
            lambda m, g: (0.9 * m.astype(jnp.float32) + g.astype(jnp.float32)).astype(m.dtype), momentum, grads
        )
        return jax.tree.map(lambda p, m: (p - 0.01 * m).astype(p.dtype), params, momentum), momentum, value

    x = array((k["batch"], k["length"], d), P(), jnp.bfloat16)
    return step, (params, momentum, x), {"donate_argnums": (0, 1) if k["donate"] else ()}
