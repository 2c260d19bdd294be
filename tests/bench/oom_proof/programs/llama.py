"""A decoder of today: rotary positions, groups of heads, gated layers; trained, or serving with a cache a layer."""

# mypy: ignore-errors
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def norm(x, scale):
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-6)
    return wide.astype(x.dtype) * scale.astype(x.dtype)


def rotate(x, positions):
    half = x.shape[-1] // 2
    angle = positions[..., None, None] * (10000.0 ** (-jnp.arange(half) / half))
    left, right = jnp.split(x.astype(jnp.float32), 2, -1)
    turned = [left * jnp.cos(angle) - right * jnp.sin(angle), right * jnp.cos(angle) + left * jnp.sin(angle)]
    return jnp.concatenate(turned, -1).astype(x.dtype)


def shapes(k):
    d, f, groups = k["width"], k["hidden"], k["groups"]
    head = d // k["heads"]
    data, model = "data" if k["fsdp"] else None, "model" if k["tensor"] else None
    block = {
        "norm1": ((d,), P(None)),
        "wq": ((d, k["heads"] * head), P(data, model)),
        "wkv": ((d, 2 * groups * head), P(data, None)),
        "wo": ((k["heads"] * head, d), P(model, data)),
        "norm2": ((d,), P(None)),
        "gate": ((d, f), P(data, model)),
        "up": ((d, f), P(data, model)),
        "down": ((f, d), P(model, data)),
    }
    stacked = {name: ((k["layers"], *shape), P(None, *spec)) for name, (shape, spec) in block.items()}
    blocks = stacked if k["scan"] else [block] * k["layers"]
    tables = {name: ((k["vocab"], d), P(data, None)) for name in ("embedding", "head")}
    return {**tables, "blocks": blocks, "norm": ((d,), P(None))}


def attend(k, q, key, value, mask):
    if k["flash"]:
        from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

        spec = P("data", "model" if k["tensor"] else None, None, None)
        groups = q.shape[2] // key.shape[2]
        parts = [q, jnp.repeat(key, groups, 2), jnp.repeat(value, groups, 2)]
        run = jax.shard_map(
            lambda *given: flash_attention(*given, causal=True), in_specs=(spec,) * 3, out_specs=spec, check_vma=False
        )
        return run(*(part.swapaxes(1, 2) for part in parts)).swapaxes(1, 2)
    b, s, heads, head = q.shape
    q = q.reshape(b, s, key.shape[2], -1, head)
    weights = jnp.einsum("bsgrh,btgh->bgrst", q, key).astype(jnp.float32) / head**0.5
    weights = jax.nn.softmax(jnp.where(mask, weights, -1e30), -1).astype(q.dtype)
    return jnp.einsum("bgrst,btgh->bsgrh", weights, value).reshape(b, s, heads, head)


def block(k, h, w, positions, mask, cache=None):
    b, s, _ = h.shape
    w = {name: leaf.astype(h.dtype) for name, leaf in w.items()}
    x = norm(h, w["norm1"])
    q = rotate((x @ w["wq"]).reshape(b, s, k["heads"], -1), positions)
    key, value = jnp.split((x @ w["wkv"]).reshape(b, s, 2 * k["groups"], -1), 2, 2)
    key = rotate(key, positions)
    if cache is not None:
        cache = [
            jax.lax.dynamic_update_slice(old, new.astype(old.dtype), (0, positions[0, 0], 0, 0))
            for old, new in zip(cache, (key, value), strict=True)
        ]
        key, value = (part.astype(h.dtype) for part in cache)
    h = h + attend(k, q, key, value, mask).reshape(b, s, -1) @ w["wo"]
    x = norm(h, w["norm2"])
    h = h + (jax.nn.silu(x @ w["gate"]) * (x @ w["up"])) @ w["down"]
    return jax.lax.with_sharding_constraint(h, P("data", None, None)), cache


def loss(k, params, tokens):
    dtype = jnp.dtype(k["dtype"])
    positions = jnp.arange(tokens.shape[1])[None]
    mask = positions[0][:, None] >= positions[0][None]
    h = jax.lax.with_sharding_constraint(params["embedding"].astype(dtype)[tokens], P("data", None, None))
    step = lambda h, w: block(k, h, w, positions, mask)[0]  # noqa: E731
    step = jax.checkpoint(step) if k["checkpoint"] else step
    if k["scan"]:
        h = jax.lax.scan(lambda h, w: (step(h, w), None), h, params["blocks"])[0]
    else:
        for number, w in enumerate(params["blocks"]):
            with jax.named_scope(f"block_{number}"):
                h = step(h, w)
    h, targets, head = norm(h, params["norm"]), jnp.roll(tokens, -1, 1), params["head"].astype(dtype)

    def cross_entropy(h, targets):
        logits = jnp.einsum("bsd,vd->bsv", h, head).astype(jnp.float32)
        return (jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]).sum()

    if k["chunks"] == 1:
        return cross_entropy(h, targets) / tokens.size
    pieces = [x.reshape(x.shape[0], k["chunks"], -1, *x.shape[2:]).swapaxes(0, 1) for x in (h, targets)]
    some = jax.checkpoint(lambda total, piece: (total + cross_entropy(*piece), None))
    return jax.lax.scan(some, jnp.float32(0), pieces)[0] / tokens.size


def train(k, array):
    is_leaf = lambda x: isinstance(x, tuple)  # noqa: E731
    made = lambda dtype: jax.tree.map(lambda leaf: array(*leaf, jnp.dtype(dtype)), shapes(k), is_leaf=is_leaf)  # noqa: E731

    def update(param, grad, mu, nu):
        grad = grad.astype(jnp.float32)
        mu_, nu_ = 0.9 * mu.astype(jnp.float32) + 0.1 * grad, 0.95 * nu.astype(jnp.float32) + 0.05 * grad * grad
        new = param.astype(jnp.float32) * 0.9999 - 1e-4 * mu_ / (jnp.sqrt(nu_) + 1e-8)
        return new.astype(param.dtype), mu_.astype(mu.dtype), nu_.astype(nu.dtype)

    def step(params, opt_state, tokens):
        value, grads = jax.value_and_grad(lambda p: loss(k, p, tokens))(params)
        grads = jax.tree.map(lambda leaf: leaf.astype(k["gradients"]) if k["gradients"] != "float32" else leaf, grads)
        new = jax.tree.map(update, params, grads, opt_state["mu"], opt_state["nu"])
        parts = [jax.tree.map(lambda x, n=n: x[n], new, is_leaf=is_leaf) for n in range(3)]
        return parts[0], {"mu": parts[1], "nu": parts[2]}, value

    tokens = array((k["batch"] * k["replicas"], k["length"]), P("data", None), jnp.int32)
    state = {"mu": made(k["state"]), "nu": made(k["state"])}
    return step, (made(k["params"]), state, tokens), {"donate_argnums": (0, 1) if k["donate"] else ()}


def serve(k, array):
    """A token for each sequence; every layer has a cache of its own."""
    is_leaf = lambda x: isinstance(x, tuple)  # noqa: E731
    params = jax.tree.map(lambda leaf: array(*leaf, jnp.dtype(k["params"])), shapes(k), is_leaf=is_leaf)
    shape = (k["batch"], k["length"], k["groups"], k["width"] // k["heads"])
    one = [array(shape, P(), jnp.dtype(k["state"]))] * 2
    cache = [one] * k["layers"]

    def step(params, kv_cache, tokens, position):
        h, dtype = params["embedding"][tokens][:, None].astype(k["dtype"]), jnp.dtype(k["dtype"])
        positions = jnp.full((1, 1), position)
        mask = jnp.arange(k["length"])[None] <= position
        kept = []
        for number, (w, layer) in enumerate(zip(params["blocks"], kv_cache, strict=True)):
            with jax.named_scope(f"block_{number}"):
                h, new = block(k, h, w, positions, mask, layer)
                kept.append(new)
        logits = norm(h, params["norm"])[:, 0] @ params["head"].astype(dtype).T
        return logits.argmax(-1), kept

    given = (params, cache, array((k["batch"],), P(), jnp.int32), array((), P(), jnp.int32))
    return step, given, {"donate_argnums": (1,) if k["donate"] else ()}


def build(k, array):
    """A step of training or of serving."""
    return serve(k, array) if k["kind"] == "serve" else train(k, array)
