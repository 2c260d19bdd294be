"""Science: nets that solve equations, weather on a mesh of cores, differential equations with learned right sides."""

from __future__ import annotations

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.labs.domains.domain import Domain
from tests.insight.cases.shapes.labs.domains.models import attempts, solves, weather
from tests.insight.cases.shapes.labs.domains.parts import OneByOne
from tests.insight.cases.shapes.shape import Plant
from tests.insight.simulator.code import V4, V5E, V5P
from tests.insight.simulator.parts import Chain, Kernel, Products
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.stack import Gemms, Uneven

EQUATIONS = Domain(
    "equations",
    {
        "pinn-v5e": Scene(
            (solves(131_072, 1024, 2),), V5E, cores=1, seed=901, steps=11, marks=False,
            chips=Chips(jitter=0.013, slow_steps=((4, 1.03),)),
            loop=Loop(
                fetch="", call="", annotate=False, reading="$array.py:631 _value",
                chores=chore("$tqdm.py:1180 __iter__", 0.3),
            ),
        ),
    },
    {
        "line-search-on-the-host": (
            "pinn-v5e",
            Plant(
                "host", ("_lbfgsb", "_minimize"), ("idle",), loop={"ahead": 0},
                chores=chore("$_lbfgsb_py.py:441 _minimize_lbfgsb", 4.5, inside="$_minimize.py:710 minimize"),
            ),
        ),
        "third-derivatives-in-f32-at-highest": (
            "pinn-v5e",
            Plant(
                "precision", ("third_derivative", "burgers.py:52"),
                part=Products(
                    16_384, 1024, 1024, kind="f32", precision="highest", count=4, base="multiply_add_fusion",
                    scope="third_derivative/jet/dot_general", source="burgers.py:52",
                ),
                into="each",
            ),
        ),
        "coordinates-encoded-step-by-step": (
            "pinn-v5e",
            Plant(
                "unfused", ("fourier_features", "encoding.py"), ("memory-bound",),
                Chain(
                    count=6, rows=131_072, width=1024, scope="fourier_features/mul", source="encoding.py:31",
                    ops=("multiply", "add", "multiply", "subtract", "maximum", "multiply"),
                ),
                into="first",
            ),
        ),
    },
    (("third-derivatives-in-f32-at-highest", "line-search-on-the-host"),),
)  # fmt: skip

PHYSICS = Gemms(((0, 0, 0),) * 2, "column_physics/radiation/dot_general", "parameterizations.py:140", "fusion")
ATMOSPHERE = Domain(
    "atmosphere",
    {
        "4-by-4-cores-of-4-hosts-v5p": Scene(
            (weather(49_152, 1024, 5, 4),), V5P, hosts=4, cores=4, seed=902, steps=15,
            chips=Chips(jitter=0.006, speed=((6, 1.008), (13, 1.005))),
            loop=Loop(fetch="$xarray_loader.py:66 __next__", call="", batch_ps=1.5 * MS, put_ps=0.12 * MS),
        ),
    },
    {
        "poles-filtered-by-their-own-cores": (
            "4-by-4-cores-of-4-hosts-v5p",
            Plant(
                "imbalance",
                ("polar_filter", "filtering.py", "collective-permute", "ppermute", "host-0", "host-3"),
                ("straggler",),
                Uneven(
                    ((2.1,) * 4 + (0.2,) * 4) + ((0.1,) * 4 + (1.9,) * 4),
                    Kernel(
                        bad=False, counted=False, good=0.7, flops=1e9, size=850 << 20, base="spectral_damping",
                        scope="dycore/polar_filter/pallas_call", source="filtering.py:58",
                    ),
                ),
                into="each",
            ),
        ),
        "masses-summed-one-by-one": (
            "4-by-4-cores-of-4-hosts-v5p",
            Plant(
                "collective", ("all-reduce", "mass_fixer", "conservation.py"),
                part=OneByOne(7, parts=(PHYSICS,), scope="mass_fixer/psum", source="conservation.py:47"),
                into="each",
            ),
        ),
        "host-3-reads-boundaries-slowly-every-3rd-step": (
            "4-by-4-cores-of-4-hosts-v5p",
            Plant(
                "straggler", ("host-3",), ("input",), every=3,
                loop={"slow_every": 3, "slow_ps": 48 * MS, "slow_hosts": (3,)},
            ),
        ),
    },
    (("poles-filtered-by-their-own-cores", "masses-summed-one-by-one"),),
)  # fmt: skip

ODE = Domain(
    "neural-ode",
    {
        "runge-kutta-v4": Scene(
            (attempts(8192, 1024, 7),), V4, cores=1, seed=903, steps=26, marks=False,
            chips=Chips(jitter=0.016, slow_steps=((11, 1.06),)),
            loop=Loop(
                fetch="", call="", annotate=False, launch_ps=0.05 * MS, reading="$adaptive.py:131 _value",
                chores=chore("$solution.py:40 append", 0.08),
            ),
        ),
    },
    {
        "attempts-accepted-on-the-host": (
            "runge-kutta-v4", Plant("host", ("_value", "adaptive.py"), ("idle",), loop={"ahead": 0}),
        ),
        "calls-slower-than-attempts": (
            "runge-kutta-v4",
            Plant(
                "idle", ("PjitFunction", "Execute", "launch", "dispatch", "ParseArguments"), ("host",),
                loop={"launch_ps": 1.5 * MS},
            ),
        ),
    },
    (),
)  # fmt: skip

DOMAINS = (EQUATIONS, ATMOSPHERE, ODE)
