"""The programs of the bench: what each is made of, for which chips, and in which half it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tpuprof.parsers.base.record import dataclass

Knob = int | str
Half = Literal["tuned", "held"]


@dataclass(frozen=True, slots=True)
class Case:
    """A program for a chip.

    Attributes:
        name: what the table calls it.
        program: the file of `programs`.
        half: whether the advice was tuned on it, or it was held back.
        chip: ``v5e``, ``v5p``, ``v6e`` or ``7x``.
        knobs: what the program is made of, and all that advice may change.
    """

    name: str
    program: str
    half: Half
    chip: str
    knobs: Mapping[str, Knob]


_DECODER: Mapping[str, Knob] = {
    "width": 1024, "hidden": 4096, "layers": 8, "heads": 8, "vocab": 32000, "length": 2048, "batch": 8,
    "fsdp": 0, "tensor": 0, "replicas": 1, "flash": 0, "dtype": "float32", "checkpoint": 0, "scan": 1, "chunks": 1,
    "gradients": "float32", "optimizer": "adam", "params": "float32", "state": "float32", "donate": 1,
}  # fmt: skip
_MIXTURE: Mapping[str, Knob] = {
    "width": 1024, "hidden": 2048, "layers": 4, "experts": 16, "length": 1024, "batch": 32, "dtype": "float32",
    "checkpoint": 0, "gradients": "float32", "params": "float32", "state": "float32", "donate": 1,
}  # fmt: skip
_VIT: Mapping[str, Knob] = {
    "kind": "vit", "width": 768, "hidden": 3072, "heads": 12, "layers": 4, "pixels": 512, "batch": 512,
    "dtype": "float32", "checkpoint": 0, "donate": 1,
}  # fmt: skip
_UNET: Mapping[str, Knob] = {
    "kind": "unet", "width": 64, "layers": 3, "pixels": 256, "batch": 144, "dtype": "bfloat16", "checkpoint": 0,
    "donate": 1,
}  # fmt: skip
_SERVING: Mapping[str, Knob] = {
    "width": 2048, "heads": 16, "layers": 16, "length": 4096, "batch": 32, "dtype": "bfloat16", "state": "bfloat16",
    "params": "bfloat16", "donate": 0,
}  # fmt: skip
_POINTS: Mapping[str, Knob] = {"points": 1 << 25, "points_last": 0}
_MLP: Mapping[str, Knob] = {
    "width": 8192, "layers": 24, "batch": 4096, "replicas": 1, "fsdp": 0, "dtype": "bfloat16", "checkpoint": 0,
    "params": "float32", "state": "float32", "gradients": "float32", "donate": 1,
}  # fmt: skip
_LLAMA: Mapping[str, Knob] = {
    "kind": "train", "width": 2048, "hidden": 5632, "heads": 16, "groups": 4, "layers": 16, "vocab": 32000,
    "length": 2048, "batch": 8, "fsdp": 0, "tensor": 0, "replicas": 1, "flash": 0, "scan": 1, "checkpoint": 0,
    "chunks": 1, "dtype": "bfloat16", "params": "float32", "state": "float32", "gradients": "float32", "donate": 1,
}  # fmt: skip
_IMAGES: Mapping[str, Knob] = {
    "kind": "resnet", "width": 64, "layers": 4, "pixels": 224, "batch": 384, "replicas": 1, "dtype": "bfloat16",
    "params": "float32", "state": "float32", "checkpoint": 0, "donate": 1,
}  # fmt: skip
_SEQUENCES: Mapping[str, Knob] = {
    "kind": "encoder", "width": 1024, "hidden": 4096, "heads": 16, "layers": 12, "vocab": 30522, "length": 512,
    "batch": 64, "replicas": 1, "dtype": "float32", "params": "float32", "state": "float32", "gradients": "float32",
    "checkpoint": 0, "donate": 1,
}  # fmt: skip
_KERNEL: Mapping[str, Knob] = {
    "kind": "matmul", "inner": 4096, "block_m": 1024, "block_n": 1024, "buffers": 2, "limit": 0, "dtype": "float32",
}  # fmt: skip

CASES = (
    Case("decoder, scan", "decoder", "tuned", "v5e", _DECODER),
    Case("decoder, no scan", "decoder", "tuned", "v6e", {**_DECODER, "scan": 0, "layers": 4, "batch": 56}),
    Case(
        "decoder, checkpoint", "decoder", "tuned", "v5e",
        {**_DECODER, "checkpoint": 1, "dtype": "bfloat16", "batch": 24, "vocab": 50304},
    ),
    Case(
        "decoder, flash, loss in chunks", "decoder", "tuned", "v6e",
        {**_DECODER, "flash": 1, "chunks": 8, "dtype": "bfloat16", "batch": 20, "layers": 12},
    ),
    Case(
        "decoder, Adafactor", "decoder", "tuned", "v5p",
        {**_DECODER, "optimizer": "adafactor", "width": 2048, "hidden": 8192, "heads": 16, "batch": 14},
    ),
    Case("decoder, FSDP on 8", "decoder", "tuned", "v5e", {**_DECODER, "fsdp": 1, "replicas": 8, "layers": 16}),
    Case(
        "decoder, tensors on 4", "decoder", "tuned", "v6e",
        {**_DECODER, "tensor": 4, "width": 4096, "hidden": 16384, "heads": 32, "layers": 12, "length": 1024},
    ),
    Case("mixture of experts", "mixture", "tuned", "v5e", _MIXTURE),
    Case("vision transformer", "vision", "tuned", "v6e", _VIT),
    Case("U-Net", "vision", "tuned", "v5e", _UNET),
    Case("serving, KV cache", "serving", "tuned", "v5e", _SERVING),
    Case("points, padded", "points", "tuned", "v5e", _POINTS),
    Case("Adam, not donated", "mlp", "tuned", "v5p", {**_MLP, "donate": 0, "layers": 64}),
    Case("Adam, state too large", "mlp", "tuned", "v6e", {**_MLP, "layers": 48}),
    Case("perceptron", "mlp", "tuned", "7x", {**_MLP, "layers": 8, "batch": 6 << 16}),
    Case("kernel, matrix product", "kernels", "tuned", "v6e", _KERNEL),
    Case("kernel, norm", "kernels", "tuned", "v5e", {**_KERNEL, "kind": "norm", "inner": 8192, "block_m": 512}),
    Case("kernel, scratch", "kernels", "tuned", "v6e", {**_KERNEL, "kind": "scratch", "inner": 1024, "block_m": 40960}),
    Case("kernel, table of scalars", "kernels", "tuned", "v5e", {**_KERNEL, "kind": "table", "block_m": 2097152}),
    Case("llama, scan", "llama", "tuned", "v5e", {**_LLAMA, "layers": 8, "batch": 4}),
    Case("llama, written out", "llama", "held", "v5p", {**_LLAMA, "scan": 0, "layers": 12, "batch": 32}),
    Case("llama, FSDP on 4", "llama", "tuned", "v6e", {**_LLAMA, "fsdp": 1, "replicas": 4, "batch": 4}),
    Case(
        "llama, tensors on 8", "llama", "held", "v5e",
        {**_LLAMA, "tensor": 8, "width": 4096, "hidden": 14336, "heads": 32, "groups": 8, "batch": 8},
    ),
    Case(
        "llama, flash, checkpoint", "llama", "tuned", "v6e",
        {**_LLAMA, "flash": 1, "checkpoint": 1, "batch": 16, "vocab": 128256},
    ),
    Case(
        "llama, state too large", "llama", "held", "v5e",
        {**_LLAMA, "layers": 48, "checkpoint": 1, "flash": 1, "batch": 1, "chunks": 8},
    ),
    Case(
        "llama, not donated", "llama", "held", "7x",
        {**_LLAMA, "width": 4096, "hidden": 14336, "heads": 32, "groups": 8, "layers": 24, "batch": 2, "checkpoint": 1,
         "donate": 0},
    ),
    Case(
        "llama, serving", "llama", "tuned", "v5e",
        {**_LLAMA, "kind": "serve", "scan": 0, "params": "bfloat16", "state": "bfloat16", "batch": 64, "length": 8192,
         "donate": 0},
    ),
    Case("residual network", "images", "held", "v5e", {**_IMAGES, "batch": 448}),
    Case(
        "denoiser", "images", "tuned", "v6e",
        {**_IMAGES, "kind": "denoiser", "layers": 2, "pixels": 128, "batch": 768, "dtype": "float32"},
    ),
    Case("encoder", "sequences", "held", "v5e", _SEQUENCES),
    Case("encoder, bf16", "sequences", "held", "v6e", {**_SEQUENCES, "dtype": "bfloat16", "batch": 192, "layers": 24}),
    Case(
        "recurrent network", "sequences", "tuned", "v5p",
        {**_SEQUENCES, "kind": "recurrent", "layers": 4, "batch": 1536, "length": 256},
    ),
    Case("mixture, not donated", "mixture", "held", "v6e", {**_MIXTURE, "experts": 32, "batch": 64, "donate": 0}),
    Case("kernel, attention", "kernels", "tuned", "v6e", {**_KERNEL, "kind": "attend", "inner": 16384, "block_n": 256}),
    Case("kernel, more scalars", "kernels", "held", "v6e", {**_KERNEL, "kind": "table", "block_m": 1500000}),
)  # fmt: skip
