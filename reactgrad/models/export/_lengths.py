"""Lengths that differ from set to set, as numbers that the file computes.

Shape rules and gradients of a graph know the lengths of the last set. So the graph is drawn up for several
lengths, in forks in which nothing is computed: a number that is the same in all of them is a constant, and one
that follows the lengths becomes a node of the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad.models._errors import OpError
from reactgrad.models.export._draft import Draft, Step
from reactgrad.models.export._modes import network_in_mode
from reactgrad.models.export._trace import drafted

# Lengths to draw up with: multiples of many numbers, for models that take a length apart.
UNIT: Final = 48
Slot = tuple[str, int]  # an input leaf, by name, and an axis


@dataclass(frozen=True, eq=False)
class Sample:
    """A draft for certain lengths, and the specs of nodes for them."""

    lengths: tuple[int, ...]
    draft: Draft
    specs: dict[str, Any]


@dataclass(frozen=True)
class Form:
    """A number as ``factor * (product of lengths) + offset``, by the numbers of the lengths."""

    factor: Fraction
    lengths: tuple[int, ...]
    offset: int


def open_slots(network: Any, leaves: Sequence[str]) -> list[Slot]:
    """Return the axes of input leaves whose length may differ from set to set."""
    slots: list[Slot] = []
    for label in leaves:
        row = network.nodes[label]
        pattern = row.get("pattern") or row["spec"]
        if row["op"] == "input" and pattern is not None:
            slots += [(label, axis) for axis, n in enumerate(pattern.shape) if n is None]
    return slots


class Lengths:
    """The open lengths of a graph, in groups that can only change together."""

    def __init__(
        self,
        graph: rg.Graph,
        network: Any,
        slots: Sequence[Slot],
        inputs: Mapping[str, rg.Var],
        outputs: Mapping[str, rg.Var],
    ) -> None:
        self.graph = graph
        self.network = network
        self.slots = list(slots)
        self.inputs = inputs
        self.outputs = outputs
        self.groups = self._groups()

    def _groups(self) -> list[list[Slot]]:
        """Return the slots in as many groups as possible: each changes without the others."""
        alone = [[slot] for slot in self.slots]
        if self._fork(alone, self._first(len(alone))) is not None:
            return alone
        groups: list[list[Slot]] = []
        rest = list(self.slots)
        while rest:
            group = list(rest)
            for slot in rest[1:]:
                fewer = [one for one in group if one != slot]
                others = [one for one in self.slots if one not in fewer]
                if self._fork([fewer, others], (2 * UNIT, 3 * UNIT)) is not None:
                    group = fewer
            groups.append(group)
            rest = [one for one in rest if one not in group]
        return groups

    @staticmethod
    def _first(count: int) -> tuple[int, ...]:
        return tuple((i + 2) * UNIT for i in range(count))

    def _fork(
        self, groups: Sequence[Sequence[Slot]], lengths: Sequence[int]
    ) -> tuple[rg.Graph, list[rg.Var]] | None:
        """Return a fork with these lengths, and its twins of inputs and outputs; ``None`` if they do not fit."""
        by_slot = {slot: n for group, n in zip(groups, lengths, strict=True) for slot in group}
        fork = self.graph.fork()
        # Gradients follow new lengths while somebody holds them.
        held = [fork[var] for var in (*self.inputs.values(), *self.outputs.values())]
        values: dict[rg.Var, Any] = {}
        for label in dict.fromkeys(label for label, _ in self.slots):
            row = self.network.nodes[label]
            pattern = row.get("pattern") or row["spec"]
            shape = tuple(
                by_slot[label, i] if n is None else n for i, n in enumerate(pattern.shape)
            )
            values[fork[label]] = np.zeros(shape, pattern.dtype)
        try:
            fork.set(values)
        except ValueError:
            return None
        return fork, held

    def draft(self) -> tuple[Draft, dict[str, list[int | str | None] | None]]:
        """Return the draft with lengths as numbers that it computes, and the shapes of inputs and outputs."""
        first = self._first(len(self.groups))
        samples = [self._sample(first)]
        for i in range(len(self.groups)):
            for step in (3, 5):
                moved = (*first[:i], first[i] + step * UNIT, *first[i + 1 :])
                samples.append(self._sample(moved))
        shapes = {
            name: self._shape(name, [s.specs[name] for s in samples], samples)
            for name in (*self.inputs, *self.outputs)
        }
        sources = self._sources(shapes)
        return _joined(samples, sources, [self.name(i) for i in range(len(self.groups))]), shapes

    def name(self, group: int) -> str:
        """Return the name of the lengths of a group."""
        label, axis = self.groups[group][0]
        return f"{label}_{axis}"

    def _sample(self, lengths: tuple[int, ...]) -> Sample:
        found = self._fork(self.groups, lengths)
        if found is None:
            raise OpError(
                f"rg.to_onnx: the open lengths {[f'{a}.shape[{i}]' for a, i in self.slots]} cannot be chosen "
                f"freely: {lengths} do not fit. Declare those that are fixed, as g.input(shape=(None, 3))."
            )
        fork, twins = found
        network = network_in_mode(fork)
        labels = dict(zip((*self.inputs, *self.outputs), (var.name for var in twins), strict=True))
        inputs = {labels[name]: name for name in self.inputs}
        outputs = {name: labels[name] for name in self.outputs}
        specs = {name: network.nodes[label]["spec"] for name, label in labels.items()}
        return Sample(lengths, drafted(network, inputs, outputs), specs)

    def _shape(
        self, name: str, specs: Sequence[Any], samples: Sequence[Sample]
    ) -> list[int | str | None] | None:
        if specs[0] is None:
            return None
        shape: list[int | str | None] = []
        for axis, many in enumerate(zip(*(one.shape for one in specs), strict=True)):
            form = _form(many, samples)
            if form is not None and not form.lengths:
                shape.append(many[0])
            elif (
                form is not None and form.factor == 1 and not form.offset and len(form.lengths) == 1
            ):
                shape.append(self.name(form.lengths[0]))
            else:
                shape.append(f"{name}_{axis}")
        return shape

    def _sources(self, shapes: Mapping[str, Any]) -> dict[int, tuple[str, int]]:
        """Return for each length an input of the file, and its axis, that have it."""
        found: dict[int, tuple[str, int]] = {}
        for group in range(len(self.groups)):
            for name in self.inputs:
                if self.name(group) in (shapes[name] or ()):
                    found.setdefault(group, (name, shapes[name].index(self.name(group))))
        return found


def _form(values: Sequence[Any], samples: Sequence[Sample]) -> Form | None:
    """Return how a number follows lengths, given its value in each sample; ``None`` if no form fits."""
    first = samples[0]
    if any(v != int(v) for v in values):
        return None
    values = [int(v) for v in values]
    follows = [
        i
        for i in range(len(first.lengths))
        if any(
            v != values[0]
            for v, s in zip(values, samples, strict=True)
            if s.lengths[i] != first.lengths[i]
        )
    ]
    if not follows:
        return Form(Fraction(0), (), values[0])

    def product(sample: Sample) -> int:
        found = 1
        for i in follows:
            found *= sample.lengths[i]
        return found

    changed = next(s for s in samples if product(s) != product(first))
    value = values[samples.index(changed)]
    factor = Fraction(value - values[0], product(changed) - product(first))
    offset = values[0] - factor * product(first)
    if offset.denominator != 1:
        return None
    if any(factor * product(s) + offset != v for s, v in zip(samples, values, strict=True)):
        return None
    return Form(factor, tuple(follows), int(offset))


def _joined(
    samples: Sequence[Sample], sources: Mapping[int, tuple[str, int]], names: list[str]
) -> Draft:
    """Return the first draft, in which numbers that differ between the drafts are computed from lengths."""
    first, *others = [s.draft for s in samples]
    twins = [_twins(first, other) for other in others]
    fronts: list[Step] = []
    for name in list(first.weights):
        own = first.weights[name]
        many = [own, *(d.weights[t[name]] for d, t in zip(others, twins, strict=True))]
        if all(
            one is own or np.array_equal(one, own, equal_nan=one.dtype.kind == "f") for one in many
        ):
            continue
        if own.ndim > 1 or any(one.shape != own.shape for one in many):
            raise _unwritable(names)
        forms = [
            _form(row, samples) for row in zip(*(one.reshape(-1) for one in many), strict=True)
        ]
        if any(f is None or not set(f.lengths) <= sources.keys() for f in forms):
            raise _unwritable(names)
        del first.weights[name]
        fronts += _computed(first, name, own, forms, sources)  # type: ignore[arg-type]
    first.steps[:0] = fronts
    return first


def _unwritable(names: list[str]) -> OpError:
    return OpError(
        f"rg.to_onnx: this graph hangs on its open lengths {names} in a way that a file cannot say. Nothing was "
        "written. Declare the lengths, as g.input(shape=(32, 3)), and export it for them."
    )


def _twins(one: Draft, other: Draft) -> dict[str, str]:
    """Return for each name of a draft that of another one in the same place."""
    twins = {name: name for name in one.inputs}
    if len(one.steps) != len(other.steps):
        raise _unwritable([*one.inputs])
    for a, b in zip(one.steps, other.steps, strict=True):
        same = a.op == b.op and a.attributes == b.attributes and len(a.inputs) == len(b.inputs)
        if not same or any(
            twins.setdefault(x, y) != y for x, y in zip(a.inputs, b.inputs, strict=True)
        ):
            raise _unwritable([*one.inputs])
        twins.update(zip(a.outputs, b.outputs, strict=True))
    return twins


def _computed(
    draft: Draft,
    name: str,
    array: Any,
    forms: Sequence[Form],
    sources: Mapping[int, tuple[str, int]],
) -> list[Step]:
    """Return the steps that compute integers of these forms, as the value of this name."""
    steps: list[Step] = []

    def put(op: str, *inputs: str, **attributes: Any) -> str:
        output = draft.fresh(f"{name}.length")
        draft.dtypes[output] = np.dtype("i8")
        steps.append(Step(op, inputs, (output,), attributes))
        return output

    def row(value: int) -> str:
        return draft.constant(np.array([value], "i8"))

    parts: list[str] = []
    for form in forms:
        if not form.lengths:
            parts.append(row(form.offset))
            continue
        part = ""
        for number in form.lengths:
            source, axis = sources[number]
            length = put("Shape", source, start=axis, end=axis + 1)
            part = length if not part else put("Mul", part, length)
        if form.factor.numerator != 1:
            part = put("Mul", part, row(form.factor.numerator))
        if form.factor.denominator != 1:
            part = put("Div", part, row(form.factor.denominator))
        if form.offset:
            part = put("Add", part, row(form.offset))
        parts.append(part)
    found = parts[0] if len(parts) == 1 else put("Concat", *parts, axis=0)
    if not array.ndim:
        found = put("Reshape", found, draft.constant(np.zeros(0, "i8")))
    if array.dtype != np.dtype("i8"):
        steps.append(Step("Cast", (found,), (name,), {"to": array.dtype}))
    else:
        steps.append(Step("Identity", (found,), (name,), {}))
    return steps
