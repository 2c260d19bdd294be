"""A step of decoding with a cache of keys and values."""

# mypy: ignore-errors
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def build(k, array):
    """One token for each sequence; the cache is an argument, and comes back."""
    n, d, heads = k["layers"], k["width"], k["heads"]
    dtype, kept = jnp.dtype(k["dtype"]), jnp.dtype(k["state"])
    weights = {
        "qkv": array((n, d, 3 * d), P(), jnp.dtype(k["params"])),
        "out": array((n, d, d), P(), jnp.dtype(k["params"])),
        "up": array((n, d, 4 * d), P(), jnp.dtype(k["params"])),
        "down": array((n, 4 * d, d), P(), jnp.dtype(k["params"])),
    }
    shape = (n, k["batch"], k["length"], heads, d // heads)
    cache = {"key": array(shape, P(), kept), "value": array(shape, P(), kept)}

    def step(weights, cache, x, position):
        def layer(h, one):
            w, key_cache, value_cache = one
            q, key, value = (
                part.reshape(-1, heads, d // heads) for part in jnp.split(h @ w["qkv"].astype(dtype), 3, -1)
            )
            key_cache = jax.lax.dynamic_update_slice(key_cache, key[:, None].astype(kept), (0, position, 0, 0))
            value_cache = jax.lax.dynamic_update_slice(value_cache, value[:, None].astype(kept), (0, position, 0, 0))
            scores = jnp.einsum("bhd,bkhd->bhk", q, key_cache.astype(dtype)) / q.shape[-1] ** 0.5
            read = jnp.einsum("bhk,bkhd->bhd", jax.nn.softmax(scores, -1), value_cache.astype(dtype))
            h = h + read.reshape(h.shape) @ w["out"].astype(dtype)
            return h + jax.nn.gelu(h @ w["up"].astype(dtype)) @ w["down"].astype(dtype), (key_cache, value_cache)

        h, (keys, values) = jax.lax.scan(layer, x, (weights, cache["key"], cache["value"]))
        return h, {"key": keys, "value": values}

    x = array((k["batch"], d), P(), dtype)
    return step, (weights, cache, x, array((), P(), jnp.int32)), {"donate_argnums": (1,) if k["donate"] else ()}
