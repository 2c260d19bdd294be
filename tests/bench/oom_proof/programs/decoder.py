"""A decoder with its training step: with or without scan, checkpoint, flash attention and a loss in chunks."""

# mypy: ignore-errors
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def shapes(k):
    """Name to shape and sharding of the weights; those of the layers lead with the layers."""
    d, f, n = k["width"], k["hidden"], k["layers"]
    fsdp, tensor = ("data", None) if k["fsdp"] else (None, None), "model" if k["tensor"] else None
    return {
        "embed": ((k["vocab"], d), P(fsdp[0], None)),
        "layers": {
            "query": ((n, d, d), P(None, fsdp[0], tensor)),
            "key": ((n, d, d), P(None, fsdp[0], tensor)),
            "value": ((n, d, d), P(None, fsdp[0], tensor)),
            "out": ((n, d, d), P(None, tensor, fsdp[0])),
            "up": ((n, d, f), P(None, fsdp[0], tensor)),
            "down": ((n, f, d), P(None, tensor, fsdp[0])),
        },
    }


def attention(k, q, key, v):
    """Attention over whole sequences, or the flash kernel that JAX ships."""
    if k["flash"]:
        from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

        def kernel(*parts):
            heads_first = (part.transpose(0, 2, 1, 3) for part in parts)
            return flash_attention(*heads_first, causal=True).transpose(0, 2, 1, 3)

        spec = P("data", None, "model" if k["tensor"] else None, None)
        spread = jax.shard_map(kernel, in_specs=(spec, spec, spec), out_specs=spec, check_vma=False)
        return spread(q, key, v)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, key) / q.shape[-1] ** 0.5
    length = q.shape[1]
    causal = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights.astype(q.dtype), v)


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x.astype(jnp.float32) ** 2, -1, keepdims=True) + 1e-6).astype(x.dtype)


def whole_batch(h):
    """Sequences spread over the chips, whatever the weights' shards suggest."""
    return jax.lax.with_sharding_constraint(h, P("data", None, None))


def layer(k, h, w):
    b, s, d = h.shape
    w = jax.tree.map(lambda leaf: leaf.astype(h.dtype), w)
    x = norm(h)
    q, key, v = ((x @ w[name]).reshape(b, s, k["heads"], -1) for name in ("query", "key", "value"))
    h = h + attention(k, q, key, v).reshape(b, s, d) @ w["out"]
    return whole_batch(h + jax.nn.gelu(norm(h) @ w["up"]) @ w["down"])


def losses(logits, targets):
    logits = logits.astype(jnp.float32)
    return jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]


def loss(k, params, tokens, targets):
    dtype = jnp.dtype(k["dtype"])
    h = whole_batch(params["embed"][tokens].astype(dtype))
    step = jax.checkpoint(lambda h, w: layer(k, h, w)) if k["checkpoint"] else lambda h, w: layer(k, h, w)
    if k["scan"]:
        h, _ = jax.lax.scan(lambda h, w: (step(h, w), None), h, params["layers"])
    else:
        for number in range(k["layers"]):
            with jax.named_scope(f"layer_{number}"):
                h = step(h, jax.tree.map(lambda leaf, number=number: leaf[number], params["layers"]))
    out = params["embed"].T.astype(dtype)
    if k["chunks"] == 1:
        with jax.named_scope("loss"):
            return losses(h @ out, targets).mean()
    pieces = jax.tree.map(lambda x: x.reshape(x.shape[0], k["chunks"], -1, *x.shape[2:]).swapaxes(0, 1), (h, targets))

    @jax.checkpoint
    def some(total, piece):
        return total + losses(piece[0] @ out, piece[1]).sum(), None

    return jax.lax.scan(some, jnp.float32(0), pieces)[0] / targets.size


def adam(param, grad, mean, square):
    grad = grad.astype(jnp.float32)
    mean_ = 0.9 * mean.astype(jnp.float32) + 0.1 * grad
    square_ = 0.99 * square.astype(jnp.float32) + 0.01 * grad**2
    new = param - 1e-3 * mean_ / (jnp.sqrt(square_) + 1e-8)
    return new.astype(param.dtype), mean_.astype(mean.dtype), square_.astype(square.dtype)


def adafactor(param, grad, rows, columns):
    """Second moments by row and column alone."""
    grad = grad.astype(jnp.float32)
    rows = 0.99 * rows + 0.01 * (grad**2).mean(-1)
    columns = 0.99 * columns + 0.01 * (grad**2).mean(-2)
    scale = rows[..., None] * columns[..., None, :] / rows.mean(-1)[..., None, None]
    return (param - 1e-3 * grad * jax.lax.rsqrt(scale + 1e-30)).astype(param.dtype), rows, columns


def train_step(k, state, batch):
    params = state["params"]
    value, grads = jax.value_and_grad(lambda p: loss(k, p, batch["tokens"], batch["targets"]))(params)
    if k["gradients"] != "float32":
        grads = jax.tree.map(lambda leaf: leaf.astype(k["gradients"]), grads)
    update, first, second = (adam, "mean", "square") if k["optimizer"] == "adam" else (adafactor, "rows", "columns")
    updated = jax.tree.map(update, params, grads, state[first], state[second])
    is_leaf = lambda x: isinstance(x, tuple)  # noqa: E731
    parts = [jax.tree.map(lambda x, place=place: x[place], updated, is_leaf=is_leaf) for place in range(3)]
    return {"params": parts[0], first: parts[1], second: parts[2]}, value


def build(k, array):
    """The step, its arguments' shapes, and the options of `jax.jit`."""
    is_leaf = lambda x: isinstance(x, tuple)  # noqa: E731

    def made(change, dtype):
        return jax.tree.map(lambda leaf: array(*change(*leaf), dtype), shapes(k), is_leaf=is_leaf)

    same = lambda shape, spec: (shape, spec)  # noqa: E731
    params = made(same, jnp.dtype(k["params"]))
    if k["optimizer"] == "adam":
        moments = made(same, jnp.dtype(k["state"]))
        state = {"params": params, "mean": moments, "square": moments}
    else:
        rows = made(lambda shape, spec: (shape[:-1], P(*spec[:-1])), jnp.float32)
        columns = made(lambda shape, spec: ((*shape[:-2], shape[-1]), P(*spec[:-2], spec[-1])), jnp.float32)
        state = {"params": params, "rows": rows, "columns": columns}
    tokens = array((k["batch"] * k["replicas"], k["length"]), P("data", None), jnp.int32)

    def step(state, batch):
        return train_step(k, state, batch)

    return step, (state, {"tokens": tokens, "targets": tokens}), {"donate_argnums": (0,) if k["donate"] else ()}
