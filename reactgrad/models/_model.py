"""A model of a file as a live graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reactgrad import Graph, GraphError, Var


class Model:
    """A live graph with named inputs, outputs and params.

    All of them are ordinary nodes of `graph`: inputs can be set, outputs read and differentiated, and
    nodes between them edited. What a set does not reach is not computed again.

    Attributes
    ----------
    graph : Graph
    inputs, outputs, params : dict of str to Var
        By the names of the file. Params are the initialisers of floats that something computes with.
        An output may be a list of Vars, where the file declares a sequence.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: Mapping[str, Var],
        outputs: Mapping[str, Any],
        params: Mapping[str, Var],
    ) -> None:
        self.graph = graph
        self.inputs = dict(inputs)
        self.outputs = dict(outputs)
        self.params = dict(params)

    def __call__(self, *arrays: Any, **feeds: Any) -> dict[str, Any]:
        """Set the inputs that are named, in one step, and return the outputs by name.

        Inputs that are not named keep their values. Nothing is computed before an output is read. Arrays without
        names are those of the inputs in the order of the file.
        """
        if len(arrays) > len(self.inputs):
            raise GraphError(
                f"m(...) was given {len(arrays)} arrays, and this model has {len(self.inputs)} inputs: "
                f"{list(self.inputs)}."
            )
        first = dict(zip(self.inputs, arrays, strict=False))
        if both := [name for name in first if name in feeds]:
            raise GraphError(f"m(...) was given {both[0]!r} twice: in order, and by its name.")
        feeds = {**first, **feeds}
        for name in feeds:
            if name not in self.inputs:
                raise GraphError(
                    f"m({name}=...): this model has no input {name!r}. Its inputs are {list(self.inputs)}."
                )
        self.graph.set({self.inputs[name]: np.asarray(value) for name, value in feeds.items()})
        return self.outputs

    def __repr__(self) -> str:
        return (
            f"<Model: inputs {list(self.inputs)}, outputs {list(self.outputs)}, {len(self.params)} params, "
            f"{len(self.graph)} nodes>"
        )
