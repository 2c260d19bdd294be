"""A vision transformer and a U-Net, each with a step of gradient descent."""

# mypy: ignore-errors
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def convolve(x, w, stride=1):
    return jax.lax.conv_general_dilated(
        x, w.astype(x.dtype), (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x.astype(jnp.float32) ** 2, -1, keepdims=True) + 1e-6).astype(x.dtype)


def vit_block(k, h, w):
    b, s, d = h.shape
    w = jax.tree.map(lambda leaf: leaf.astype(h.dtype), w)
    q, key, v = jnp.split((norm(h) @ w["qkv"]).reshape(b, s, k["heads"], -1), 3, -1)
    with jax.named_scope("attention"):
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, key) / q.shape[-1] ** 0.5, axis=-1)
        h = h + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, s, d) @ w["out"]
    return h + jax.nn.gelu(norm(h) @ w["up"]) @ w["down"]


def vit(k, params, images):
    size, n = 16, k["pixels"] // 16
    h = images.astype(k["dtype"]).reshape(-1, n, size, n, size, 3).swapaxes(2, 3).reshape(-1, n * n, size * size * 3)
    h = h @ params["patch"].astype(h.dtype)
    for number in range(k["layers"]):
        with jax.named_scope(f"block_{number}"):
            step = (
                jax.checkpoint(lambda h, w: vit_block(k, h, w)) if k["checkpoint"] else lambda h, w: vit_block(k, h, w)
            )
            h = step(h, params[f"block_{number}"])
    return (h.mean(1) @ params["head"].astype(h.dtype)).astype(jnp.float32)


def unet_block(h, w):
    return jax.nn.relu(norm(convolve(jax.nn.relu(norm(convolve(h, w["first"]))), w["second"])))


def unet(k, params, images):
    h, kept = images.astype(k["dtype"]), []
    block = jax.checkpoint(unet_block) if k["checkpoint"] else unet_block
    for number in range(k["layers"]):
        with jax.named_scope(f"down_{number}"):
            h = block(h, params[f"down_{number}"])
            kept.append(h)
            h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME").astype(h.dtype)
    for number in reversed(range(k["layers"])):
        with jax.named_scope(f"up_{number}"):
            h = jnp.repeat(jnp.repeat(h, 2, 1), 2, 2)
            h = block(jnp.concatenate([h, kept[number]], -1), params[f"up_{number}"])
    return convolve(h, params["head"]).astype(jnp.float32)


def vit_shapes(k):
    d, f = k["width"], k["hidden"]
    block = {"qkv": (d, 3 * d), "out": (d, d), "up": (d, f), "down": (f, d)}
    return {"patch": (768, d), "head": (d, 1000), **{f"block_{number}": block for number in range(k["layers"])}}


def unet_shapes(k):
    parts, channels = {}, 3
    for number in range(k["layers"]):
        width = k["width"] << number
        parts[f"down_{number}"] = {"first": (3, 3, channels, width), "second": (3, 3, width, width)}
        channels = width
    for number in reversed(range(k["layers"])):
        width = k["width"] << number
        parts[f"up_{number}"] = {"first": (3, 3, channels + width, width), "second": (3, 3, width, width)}
        channels = width
    return {**parts, "head": (1, 1, channels, 1)}


def build(k, array):
    """A step; the U-Net answers a picture of one channel."""
    model, of = (vit, vit_shapes) if k["kind"] == "vit" else (unet, unet_shapes)
    params = jax.tree.map(lambda shape: array(shape, P(), jnp.float32), of(k), is_leaf=lambda x: isinstance(x, tuple))
    images = array((k["batch"], k["pixels"], k["pixels"], 3), P(), jnp.uint8)
    answer = (1000,) if k["kind"] == "vit" else (k["pixels"], k["pixels"], 1)
    targets = array((k["batch"], *answer), P(), jnp.bfloat16)

    def step(params, images, targets):
        def loss(params):
            return ((model(k, params, images) - targets) ** 2).mean()

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value

    return step, (params, images, targets), {"donate_argnums": (0,) if k["donate"] else ()}
