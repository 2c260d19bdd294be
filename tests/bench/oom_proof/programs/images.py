"""Convolutions: a residual network with batch norm and momentum, and a denoiser with attention at its lowest scale."""

# mypy: ignore-errors
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

NHWC = ("NHWC", "HWIO", "NHWC")


def conv(x, w, stride=1):
    return jax.lax.conv_general_dilated(x, w.astype(x.dtype), (stride, stride), "SAME", dimension_numbers=NHWC)


def batch_norm(x, w):
    wide = x.astype(jnp.float32)
    mean, square = wide.mean((0, 1, 2)), (wide * wide).mean((0, 1, 2))
    return ((wide - mean) * jax.lax.rsqrt(square - mean * mean + 1e-5) * w[0] + w[1]).astype(x.dtype)


def bottleneck(h, w, stride):
    x = jax.nn.relu(batch_norm(conv(h, w["first"]), w["bn1"]))
    x = jax.nn.relu(batch_norm(conv(x, w["second"], stride), w["bn2"]))
    x = batch_norm(conv(x, w["third"]), w["bn3"])
    return jax.nn.relu(x + (conv(h, w["across"], stride) if "across" in w else h))


def resnet_shapes(k):
    parts, channels = {"stem": (7, 7, 3, k["width"])}, k["width"]
    for stage, count in enumerate((3, 4, 6, 3)[: k["layers"]]):
        inner = k["width"] << stage
        for number in range(count):
            block = {
                "first": (1, 1, channels, inner),
                "second": (3, 3, inner, inner),
                "third": (1, 1, inner, 4 * inner),
            }
            block |= {"bn1": (2, inner), "bn2": (2, inner), "bn3": (2, 4 * inner)}
            block |= {"across": (1, 1, channels, 4 * inner)} if number == 0 else {}
            parts[f"stage_{stage}_block_{number}"] = block
            channels = 4 * inner
    return {**parts, "head": (channels, 1000)}


def resnet(k, params, images):
    h = jax.nn.relu(conv(images.astype(k["dtype"]), params["stem"], 2))
    for name, w in params.items():
        if name.startswith("stage"):
            stride = 2 if name.endswith("block_0") and not name.startswith("stage_0") else 1
            step = lambda h, w, stride=stride: bottleneck(h, w, stride)  # noqa: E731
            with jax.named_scope(name):
                h = (jax.checkpoint(step) if k["checkpoint"] else step)(h, w)
    return h.mean((1, 2)).astype(jnp.float32) @ params["head"]


def denoiser_shapes(k):
    parts, channels = {"stem": (3, 3, 4, k["width"])}, k["width"]
    for number in range(k["layers"]):
        parts[f"down_{number}"] = {
            "first": (3, 3, channels, 2 * channels),
            "second": (3, 3, 2 * channels, 2 * channels),
        }
        channels *= 2
    parts["middle"] = {"qkv": (channels, 3 * channels), "out": (channels, channels)}
    for number in range(k["layers"]):
        parts[f"up_{number}"] = {
            "first": (3, 3, 2 * channels, channels // 2),
            "second": (3, 3, channels // 2, channels // 2),
        }
        channels //= 2
    return {**parts, "last": (3, 3, channels, 4)}


def pair(h, w):
    return jax.nn.silu(conv(jax.nn.silu(conv(h, w["first"])), w["second"]))


def middle(h, w):
    b, size, _, c = h.shape
    q, key, value = jnp.split(h.reshape(b, size * size, c) @ w["qkv"].astype(h.dtype), 3, -1)
    with jax.named_scope("self_attention"):
        weights = jax.nn.softmax((q @ key.swapaxes(1, 2)).astype(jnp.float32) / c**0.5, -1).astype(h.dtype)
        return h + ((weights @ value) @ w["out"].astype(h.dtype)).reshape(h.shape)


def denoiser(k, params, images):
    run = jax.checkpoint if k["checkpoint"] else (lambda f: f)
    h, kept = conv(images.astype(k["dtype"]), params["stem"]), []
    for number in range(k["layers"]):
        with jax.named_scope(f"down_{number}"):
            h = run(pair)(h, params[f"down_{number}"])
            kept.append(h)
            h = h.reshape(h.shape[0], h.shape[1] // 2, 2, h.shape[2] // 2, 2, -1).mean((2, 4))
    h = run(middle)(h, params["middle"])
    for number in range(k["layers"]):
        with jax.named_scope(f"up_{number}"):
            h = jax.image.resize(h, (h.shape[0], 2 * h.shape[1], 2 * h.shape[2], h.shape[3]), "nearest")
            h = run(pair)(jnp.concatenate([h, kept.pop()], -1), params[f"up_{number}"])
    return conv(h, params["last"]).astype(jnp.float32)


def build(k, array):
    """A step of descent with momentum."""
    model, of = (resnet, resnet_shapes) if k["kind"] == "resnet" else (denoiser, denoiser_shapes)
    is_leaf = lambda x: isinstance(x, tuple)  # noqa: E731
    made = lambda dtype: jax.tree.map(lambda shape: array(shape, P(), jnp.dtype(dtype)), of(k), is_leaf=is_leaf)  # noqa: E731
    size, rows = k["pixels"], k["batch"] * k["replicas"]
    images = array((rows, size, size, 3 if k["kind"] == "resnet" else 4), P("data"), jnp.bfloat16)
    targets = array(
        (rows,) if k["kind"] == "resnet" else images.shape,
        P("data"),
        jnp.int32 if k["kind"] == "resnet" else jnp.bfloat16,
    )

    def loss(params, images, targets):
        out = model(k, params, images)
        if k["kind"] == "resnet":
            return (jax.nn.logsumexp(out, -1) - jnp.take_along_axis(out, targets[:, None], -1)[:, 0]).mean()
        return ((out - targets) ** 2).mean()

    def step(params, momentum, images, targets):
        value, grads = jax.value_and_grad(loss)(params, images, targets)
        momentum = jax.tree.map(lambda m, g: (0.9 * m + g).astype(m.dtype), momentum, grads)
        return jax.tree.map(lambda p, m: (p - 0.1 * m).astype(p.dtype), params, momentum), momentum, value

    given = (made(k["params"]), made(k["state"]), images, targets)
    return step, given, {"donate_argnums": (0, 1) if k["donate"] else ()}
