"""A network as a formula: one line a neuron, as text, as LaTeX, or as Python that computes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import reactgrad as rg
from reactgrad.neat._activations import SELU, SELU_ALPHA
from reactgrad.neat._phenotype import Neuron, Phenotype

FORMS: Final = ("text", "latex", "python")

# name: (meaning in a text, in LaTeX with @ for the argument, and in Python)
FUNCTIONS: Final[dict[str, tuple[str, str, str]]] = {
    "sigmoid": (
        "1 / (1 + exp(-5 z))",
        r"\sigma(5 (@))",
        "1.0 / (1.0 + math.exp(-clamp(5.0 * z, 60.0)))",
    ),
    "tanh": ("tanh(2.5 z)", r"\tanh(2.5 (@))", "math.tanh(clamp(2.5 * z, 60.0))"),
    "sin": ("sin(5 z)", r"\sin(5 (@))", "math.sin(clamp(5.0 * z, 60.0))"),
    "gauss": ("exp(-5 z^2)", r"e^{-5 (@)^2}", "math.exp(-5.0 * clamp(z, 3.4) ** 2)"),
    "relu": ("max(0, z)", r"\max(0, @)", "z if z > 0.0 else 0.0"),
    "elu": (
        "z if z > 0, else exp(z) - 1",
        r"\mathrm{elu}(@)",
        "z if z > 0.0 else math.exp(z) - 1.0",
    ),
    "lelu": ("z if z > 0, else 0.005 z", r"\mathrm{lelu}(@)", "z if z > 0.0 else 0.005 * z"),
    "selu": (
        "1.0507 z if z > 0, else 1.7581 (exp(z) - 1)",
        r"\mathrm{selu}(@)",
        f"{SELU} * z if z > 0.0 else {SELU_ALPHA} * (math.exp(z) - 1.0)",
    ),
    "softplus": (
        "0.2 log(1 + exp(5 z))",
        r"0.2 \ln(1 + e^{5 (@)})",
        "0.2 * math.log(1.0 + math.exp(clamp(5.0 * z, 60.0)))",
    ),
    "identity": ("z", "@", "z"),
    "clamped": ("z from -1 to 1", r"\mathrm{clamped}(@)", "clamp(z, 1.0)"),
    "inv": ("1 / z, 0 at 0", r"(@)^{-1}", "0.0 if z == 0.0 else 1.0 / z"),
    "log": ("log(max(1e-7, z))", r"\ln(@)", "math.log(max(1e-7, z))"),
    "exp": ("exp(z)", r"e^{@}", "math.exp(clamp(z, 60.0))"),
    "abs": ("|z|", r"\left|@\right|", "abs(z)"),
    "hat": ("max(0, 1 - |z|)", r"\max(0, 1 - |@|)", "max(0.0, 1.0 - abs(z))"),
    "square": ("z^2", r"(@)^2", "z**2"),
    "cube": ("z^3", r"(@)^3", "z**3"),
}
# Of a list of terms, in Python.
AGGREGATIONS: Final = {
    "sum": "sum(terms)",
    "product": "math.prod(terms)",
    "max": "max(terms, default=0.0)",
    "min": "min(terms, default=0.0)",
    "maxabs": "max(terms, key=abs, default=0.0)",
    "median": "statistics.median(terms) if terms else 0.0",
    "mean": "sum(terms) / len(terms) if terms else 0.0",
}


def formula(
    phenotype: Phenotype,
    form: str = "text",
    *,
    names: Mapping[int, str] | None = None,
    digits: int = 4,
    recurrent: bool = False,
) -> str:
    """Return a network as a formula; see ``Network.formula``."""
    if form not in FORMS:
        raise rg.ParameterError(
            f"formula(form={form!r:.60}): there are {', '.join(map(repr, FORMS))}."
        )
    if form == "python" and recurrent:
        raise rg.ParameterError(
            "formula(form='python') is for feed-forward networks: one with memory is no function of its inputs. "
            "Write 'text' or 'latex'."
        )
    called = {**default_names(phenotype), **(names or {})}
    if form == "python":
        return _python(phenotype, called)
    lines = [
        _line(key, one, phenotype, called, form, digits, recurrent)
        for key, one in phenotype.neurons.items()
    ]
    lines += [
        f"{_written(called[key], form)} = 0"
        for key in phenotype.outputs
        if key not in phenotype.neurons
    ]
    if form == "latex":
        rows = " \\\\\n".join(line.replace(" = ", " &= ", 1) for line in lines)
        return f"\\begin{{aligned}}\n{rows}\n\\end{{aligned}}"
    used: dict[Any, None] = dict.fromkeys(one.activation for one in phenotype.neurons.values())
    told = [f"{name}(z) = {FUNCTIONS[name][0]}" for name in used if name in FUNCTIONS]
    return "\n".join([*lines, *[f"where {one}" for one in told if "identity" not in one]])


def default_names(phenotype: Phenotype) -> dict[int, str]:
    """Return x1, x2, ... for the inputs, y0, y1, ... for the outputs, and h and the key for others."""
    found = {key: f"h{key}" for key in phenotype.neurons}
    sources = {source for one in phenotype.neurons.values() for source in one.sources}
    found |= {key: f"h{key}" for key in sources - found.keys()}
    found |= {key: f"y{key}" for key in phenotype.outputs}
    return found | {key: f"x{i}" for i, key in enumerate(phenotype.inputs, 1)}


def _line(
    key: int,
    neuron: Neuron,
    phenotype: Phenotype,
    names: Mapping[int, str],
    form: str,
    digits: int,
    recurrent: bool,
) -> str:
    bias, response, *weights = neuron.genes

    def at(source: int, step: str = "t") -> str:
        name = _written(names[source], form)
        if not recurrent:
            return name
        return f"{name}_{{{step}}}" if form == "latex" and "_" not in name else f"{name}[{step}]"

    terms: list[str] = []
    is_sum = neuron.aggregation == "sum"
    for source, weight in zip(neuron.sources, weights, strict=True):
        step = "t" if source in phenotype.inputs else "t-1"
        scaled = response * weight if is_sum else weight
        terms.append(f"{_number(scaled, digits)} {at(source, step)}")
    if is_sum:
        inside = _sum([*([_number(bias, digits)] if bias or not terms else []), *terms])
    else:
        name = getattr(neuron.aggregation, "__name__", neuron.aggregation)
        word = rf"\mathrm{{{name}}}" if form == "latex" else name
        scale = "" if response == 1.0 else f"{_number(response, digits)} "
        inside = _sum(
            [
                *([_number(bias, digits)] if bias else []),
                f"{scale}{word}({', '.join(terms)})",
            ]
        )
    return f"{at(key)} = {_applied(neuron.activation, inside, form)}"


def _applied(activation: Any, inside: str, form: str) -> str:
    name = getattr(activation, "__name__", activation)
    if name == "identity":
        return inside
    if form == "text":
        return f"{name}({inside})"
    known = FUNCTIONS.get(name)
    if known is None:
        return rf"\mathrm{{{name}}}\left({inside}\right)"
    return known[1].replace("@", inside)


def _sum(terms: list[str]) -> str:
    text = " + ".join(terms)
    return text.replace("+ -", "- ")


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}g}"


def _written(name: str, form: str) -> str:
    """Return a name: in LaTeX, digits behind letters become an index."""
    if form != "latex":
        return name
    head = name.rstrip("0123456789")
    tail = name[len(head) :]
    head = head if len(head) == 1 else rf"\mathrm{{{head}}}"
    return f"{head}_{{{tail}}}" if tail else head


def _python(phenotype: Phenotype, names: Mapping[int, str]) -> str:
    """Return the source of a function of the inputs, with neat-python's formulas."""
    for key, name in names.items():
        if not name.isidentifier():
            raise rg.ParameterError(
                f"formula(form='python', names={{{key}: {name!r}}}): a name in Python is letters, digits and "
                "underscores."
            )
    functions: dict[Any, None] = {}
    body: list[str] = []
    for key, one in phenotype.neurons.items():
        for function in (one.activation, one.aggregation):
            if not isinstance(function, str):
                raise rg.DTypeError(
                    f"formula(form='python'): neuron {key} has {function!r:.60}, a function of your own, whose "
                    "source is not known here. Write 'text' or 'latex'."
                )
        functions[one.activation] = None
        bias, response, *weights = one.genes
        terms = [f"{names[source]} * {w!r}" for source, w in zip(one.sources, weights, strict=True)]
        total = AGGREGATIONS[str(one.aggregation)].replace("terms", f"[{', '.join(terms)}]")
        body.append(f"    {names[key]} = {one.activation}_({bias!r} + {response!r} * ({total}))")
    known = {*phenotype.neurons, *phenotype.inputs}
    results = [names[key] if key in known else "0.0" for key in phenotype.outputs]
    lines = ["import math", "import statistics", "", ""]
    lines += ["def clamp(z, limit):", "    return max(-limit, min(limit, z))", "", ""]
    for name in functions:
        lines += [f"def {name}_(z):", f"    return {FUNCTIONS[name][2]}", "", ""]
    lines += [f"def network({', '.join(names[key] for key in phenotype.inputs)}):", *body]
    return "\n".join([*lines, f"    return [{', '.join(results)}]", ""])
