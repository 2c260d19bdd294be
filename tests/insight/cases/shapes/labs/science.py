"""Forecasts on a mesh, and solvers of flows on a grid."""

from __future__ import annotations

from tests.insight.cases.shapes.labs.lab import Lab
from tests.insight.cases.shapes.labs.models import flows, forecasts
from tests.insight.cases.shapes.shape import Plant, transposed
from tests.insight.simulator.code import V5E, V5P
from tests.insight.simulator.parts import Activations, Products, Rearranged, VectorProduct
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.spelled import Taken

WEATHER = Lab(
    "forecasts",
    {
        "graphcast-v5p": Scene(
            (forecasts(40_960, 327_680, 512, 3),), V5P, seed=831, steps=8, chips=Chips(jitter=0.01),
            loop=Loop(fetch="$data_utils.py:350 extract_inputs_targets_forcings", call="", batch_ps=6 * MS,
            put_ps=1 * MS),
        ),
    },
    {
        "messages-added-row-by-row": (
            "graphcast-v5p",
            Plant(
                "latency-bound", ("segment_sum", "typed_graph_net.py"),
                part=Taken(
                    rows=60_000, table=40_960, width=512, adds=True, ns_a_row=48, base="scatter_fusion",
                    scope="mesh_gnn/~/segment_sum/scatter-add", source="typed_graph_net.py:233",
                ),
                into="each",
            ),
        ),
        "edges-normed-in-f32": (
            "graphcast-v5p",
            Plant(
                "memory-bound", ("edges_layer_norm", "layer_norm.py:231"), ("precision", "unfused"),
                Activations(
                    rows=327_680, width=512, count=3, base="subtract_rsqrt_fusion", source="layer_norm.py:231",
                    scope="mesh2grid_gnn/~/edges_layer_norm/mul",
                ),
                into="each",
            ),
        ),
        "grid-turned-for-each-level": (
            "graphcast-v5p",
            transposed("grid_node_features/transpose", "model_utils.py:505", 4, 262_144, 512, into="first"),
        ),
    },
    (("messages-added-row-by-row", "grid-turned-for-each-level"),),
)  # fmt: skip

OF_LATE = flows(65_536, 1024, 3, late=True)
FLOWS = Lab(
    "flows",
    {
        "jax-cfd-v5e": Scene(
            (flows(65_536, 1024, 3),), V5E, seed=832, steps=14, loop=Loop(fetch="", call="", annotate=False),
        ),
    },
    {
        "halos-awaited-ahead-of-the-interior": (
            "jax-cfd-v5e",
            Plant("collective", ("collective-permute", "ppermute", "halo"), ("pipeline",), work={"each": OF_LATE.each}),
        ),
        "legendre-transforms-in-f32-at-highest": (
            "jax-cfd-v5e",
            Plant(
                "precision", ("spherical_harmonics", "fourier.py"),
                part=Products(
                    2048, 1024, 1024, kind="f32", precision="highest", count=6, base="fusion",
                    scope="spherical_harmonics/transform/dot_general", source="fourier.py:188",
                ),
                into="each",
            ),
        ),
        "derivatives-by-multiply-and-sum": (
            "jax-cfd-v5e",
            Plant(
                "vector-work", ("finite_differences", "finite_differences.py"),
                part=VectorProduct(
                    m=16_384, k=256, n=1024, scope="finite_differences/reduce_sum", source="finite_differences.py:60"
                ),
                into="each",
            ),
        ),
        "fields-rolled": (
            "jax-cfd-v5e",
            Plant(
                "shuffle", ("jit__roll_static", "grids.py"), ("copy", "memory-bound"),
                Rearranged(
                    rows=65_536, width=1024, count=2, scope="shift/jit__roll_static/concatenate", source="grids.py:244"
                ),
                into="each",
            ),
        ),
    },
    (("derivatives-by-multiply-and-sum", "legendre-transforms-in-f32-at-highest"),),
)  # fmt: skip

LABS = (WEATHER, FLOWS)
