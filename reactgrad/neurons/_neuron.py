"""A neuron that grows by edits: connections with weights come and go while the graph lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad._attributes import OwnAttributes
from reactgrad.extend import carry
from reactgrad.neurons._dead import above, left_alone
from reactgrad.neurons._weighted import weighted
from reactgrad.scheduler import safe_repr

Activation = Callable[[Any], Any] | None

# The neurons of all graphs by their nodes, which they hold: so each number stands for one Var.
_neurons: weakref.WeakValueDictionary[int, Neuron] = weakref.WeakValueDictionary()


class Neuron(OwnAttributes):
    """A neuron in a graph, made by ``rg.neuron``.

    Its value is ``activation(bias + w1 x1 + w2 x2 + ...)``. Bias and weights are one param,
    ``genes``. Its connections change by edits: each changes the neuron and its genes together, or raises
    and changes nothing. Gradients follow, and optimisers keep what they remember of each weight.

    Attributes
    ----------
    node : Var
        Its value.
    genes : Var
        The param with the bias and the weights, in the order of ``sources``.
    activation : callable or None

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> a, b = g.input(1.0, name="a"), g.input(2.0, name="b")
    >>> n = rg.neuron([a], weights=[0.5], name="n")
    >>> n.connect(b, -0.25)
    >>> n
    <Neuron 'n': bias 0, {a: 0.5, b: -0.25}>
    """

    def __init__(self, total: Any, genes: Any, node: Any, activation: Activation) -> None:
        self._sum, self.genes, self.node, self.activation = total, genes, node, activation
        # So that neurons live as long as those that are computed from them.
        self._held: dict[Any, Any] = {}
        _neurons[id(node)] = self

    def __repr__(self) -> str:
        links = zip(self.inputs, self.weights.tolist(), strict=True)
        told = ", ".join(f"{var.label}: {weight:.3g}" for var, weight in links)
        return f"<Neuron {self.node.label!r}: bias {self.bias:.3g}, {{{told}}}>"

    # --- what it is ---------------------------------------------------------------------------

    @property
    def graph(self) -> Any:
        """Its graph."""
        return self.node.graph

    @property
    def value(self) -> Any:
        """Its value."""
        return self.node.value

    @property
    def inputs(self) -> list[Any]:
        """The Vars that it is computed from."""
        return list(self._sum.parents)[1:]

    @property
    def sources(self) -> list[Any]:
        """The neurons that it is connected from, and Vars that are none."""
        return [_neuron_of(var) or var for var in self.inputs]

    @property
    def bias(self) -> float:
        """The present bias."""
        return self.genes.value[0].item()

    @property
    def weights(self) -> np.ndarray[Any, Any]:
        """The present weights, in the order of ``sources``; a copy."""
        return self.genes.value[1:].copy()

    @property
    def own_nodes(self) -> list[Any]:
        """The nodes from its weighted sum to its value."""
        found, pending = {self.node, self._sum}, [self.node]
        while pending:
            node = pending.pop()
            for parent in () if node is self._sum else node.parents:
                if parent not in found and self._sum in above([parent]):
                    found.add(parent)
                    pending.append(parent)
        return [*found]

    @property
    def users(self) -> list[Any]:
        """The nodes that are computed from its value, those of gradients aside."""
        graph = self.graph
        return [child for child in self.node.children if child._slot not in graph._host.owners]

    def weight(self, source: Any) -> float:
        """Return the weight of a source.

        Raises
        ------
        EditError
            If it is not connected from there.
        """
        return self.weights[self._place(self.inputs, source)].item()

    # --- edits --------------------------------------------------------------------------------

    def connect(self, source: Any, weight: float = 0.0) -> None:
        """Add a connection with its weight, in one edit.

        Parameters
        ----------
        source : Var or Neuron
        weight : float

        Raises
        ------
        EditError
            If it is connected from there already.
        CycleError
            If the source is computed from this neuron. Nothing has changed then.
        """
        node = node_of(source)
        with self.graph.edit() as block:
            genes, *inputs = self._operands(block)
            if any(one is node for one in inputs):
                raise rg.EditError(
                    f"connect({node.label}): {self.node.label!r} is connected from there already, and has one "
                    f"weight for each source. Set it: neuron.set_weight(source, {safe_repr(weight)})."
                )
            values = self._values(block)
            self._sum.rewire(genes, *inputs, node)
            genes.set(np.append(values, np.asarray(weight, values.dtype)))
            carry(genes, [*range(len(values)), None])
        self._held[node] = source

    def disconnect(self, source: Any) -> list[Neuron]:
        """Remove a connection and its weight, in one edit.

        Returns
        -------
        list of Neuron
            Those that nothing is computed from any more: their values still follow, for nobody.

        Raises
        ------
        EditError
            If it is not connected from there.
        """
        node = node_of(source)
        with self.graph.edit() as block:
            genes, *inputs = self._operands(block)
            place = self._place(inputs, source)
            values = self._values(block)
            del inputs[place]
            self._sum.rewire(genes, *inputs)
            genes.set(np.delete(values, place + 1))
            kept = [*range(len(values))]
            carry(genes, kept[: place + 1] + kept[place + 2 :])
        return left_alone(node, _neuron_of)

    def split(
        self,
        source: Any,
        *,
        weight: float = 1.0,
        bias: float = 0.0,
        activation: Any = ...,
        name: str | None = None,
    ) -> Neuron:
        """Put a new neuron into a connection, in one edit. The connection to this neuron keeps its weight.

        Parameters
        ----------
        source : Var or Neuron
        weight, bias : float
            Of the new neuron: by default it takes in the source as it is.
        activation : callable or None
            That of this neuron by default.
        name : str, optional

        Returns
        -------
        Neuron
            The new one.

        Raises
        ------
        EditError
            If it is not connected from there.
        """
        node = node_of(source)
        with self.graph.edit() as block:
            genes, *inputs = self._operands(block)
            place = self._place(inputs, source)
            function = self.activation if activation is ... else activation
            new = neuron(
                [source],
                weights=[weight],
                bias=bias,
                activation=function,
                name=name,
                dtype=genes.dtype,
            )
            inputs[place] = new.node
            self._sum.rewire(genes, *inputs)
        self._held.pop(node, None)
        self._held[new.node] = new
        return new

    def set_weight(self, source: Any, weight: float) -> None:
        """Set the weight of a source.

        Raises
        ------
        EditError
            If it is not connected from there.
        """
        values = self.genes.value.copy()
        values[self._place(self.inputs, source) + 1] = weight
        self.genes.set(values)

    def leads_to(self, *outputs: Any) -> bool:
        """Return whether any of these is computed from it."""
        return self.node in above(map(node_of, outputs))

    def _operands(self, block: Any) -> list[Any]:
        """Return the genes and the inputs, as edits that were written before leave them."""
        return block.of(self._sum)

    def _values(self, block: Any) -> Any:
        return np.asarray(block.value(self.genes))

    def _place(self, inputs: Sequence[Any], source: Any) -> int:
        node = node_of(source)
        for place, one in enumerate(inputs):
            if one is node:
                return place
        has = ", ".join(one.label for one in inputs) or "nothing"
        raise rg.EditError(
            f"{self.node.label!r} is not connected from {node.label!r}: its sources are {has:.200}. Connect it "
            "first: neuron.connect(source, weight)."
        )


def node_of(source: Any) -> Any:
    """Return the node of a neuron, or the Var that was given.

    Raises
    ------
    DTypeError
        If it is neither.
    """
    found = source.node if isinstance(source, Neuron) else source
    if not isinstance(found, rg.Var):
        raise rg.DTypeError(
            f"{source!r:.60} is no source of a neuron: that is another neuron or a Var. Make an input of an "
            "array: g.input(array)."
        )
    return found


def _neuron_of(node: Any) -> Neuron | None:
    return _neurons.get(id(node))


def neuron(
    sources: Iterable[Any],
    *,
    weights: Any = None,
    bias: float = 0.0,
    activation: Any = ...,
    name: str | None = None,
    dtype: Any = "float64",
) -> Neuron:
    """Return a new neuron, ``activation(bias + w1 x1 + w2 x2 + ...)``, whose connections change by edits.

    Parameters
    ----------
    sources : iterable of Var or Neuron
        Of shapes that fit together, such as ``(samples,)``.
    weights : array_like of shape (sources,), optional
        Zeros by default.
    bias : float
    activation : callable or None
        A function of a Var, by default ``rg.tanh``; ``None`` for the sum itself.
    name : str, optional
        Of its node. The param is called ``"genes of "`` and that.
    dtype : dtype
        Of its genes.

    Returns
    -------
    Neuron

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> a, b = g.input([0.0, 1.0]), g.input([1.0, 1.0])
    >>> n = rg.neuron([a], weights=[2.0], activation=None)
    >>> loss = rg.sum(n.node)
    >>> slope = rg.grad(loss, n.genes)
    >>> n.connect(b, 0.5)
    >>> n.value, slope.value
    (array([0.5, 2.5]), array([2., 1., 2.]))
    >>> middle = n.split(a, activation=rg.relu)
    >>> n.value, middle.value
    (array([0.5, 2.5]), array([0., 1.]))
    >>> [one is middle for one in n.disconnect(middle)]  # it leads nowhere now
    [True]
    """
    given = list(sources)
    nodes = [node_of(one) for one in given]
    if len(set(nodes)) < len(nodes):
        raise rg.EditError(
            "neuron was given the same source twice. It has one weight for each source: add the two weights."
        )
    numbers = np.zeros(len(nodes)) if weights is None else np.asarray(weights)
    if numbers.shape != (len(nodes),):
        raise rg.ShapeError(
            f"neuron was given {len(nodes)} sources and weights of shape {numbers.shape}. Give one for each."
        )
    function = rg.tanh if activation is ... else activation
    if function is not None and not callable(function):
        raise rg.DTypeError(
            f"neuron(activation={safe_repr(activation):.60}): it is a function of a Var, such as rg.tanh, or None."
        )
    if nodes:
        graph = nodes[0].graph
        genes = graph.param(np.concatenate([[bias], numbers]), dtype=dtype)
    else:
        genes = rg.param(np.array([bias]), dtype=dtype)
    total = weighted(genes, *nodes)
    node: Any = total if function is None else function(total)
    made = Neuron(total, genes, node, function)
    if name is not None:
        node.name, genes.name = name, f"genes of {name}"
    made._held.update(zip(nodes, given, strict=True))
    return made


def dead_neurons(*outputs: Any) -> list[Neuron]:
    """Return the neurons in the graph of these outputs that none of them is computed from.

    Parameters
    ----------
    *outputs : Var or Neuron
        One at least: what counts, such as a loss.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0)
    >>> a, b = rg.neuron([x]), rg.neuron([x])
    >>> rg.dead_neurons(a) == [b]
    True
    """
    nodes = [node_of(one) for one in outputs]
    if not nodes:
        raise rg.ParameterError(
            "dead_neurons() was given no output. Give those that count: dead_neurons(loss)."
        )
    graph, used = nodes[0].graph, above(nodes)
    return [one for one in list(_neurons.values()) if one.graph is graph and one.node not in used]
