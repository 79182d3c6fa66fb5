"""``Module``: params, buffers and other modules by path, and calls that are built once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from reactgrad._calls import check_names, explain_init
from reactgrad._errors import DTypeError, GraphError, ParameterError
from reactgrad._habits import absent, check_assigned, present, refuse
from reactgrad._names_of_torch import OF_MODULES, SETTINGS_OF_MODULES
from reactgrad.graph._var import Var
from reactgrad.nn import _copies, _moving, _shown, _state
from reactgrad.nn._building import ModuleCall, building, follow
from reactgrad.nn._forward_hooks import ForwardHook, add_hook
from reactgrad.nn._registry import (
    Parameters,
    Record,
    Registered,
    changes,
    check_path,
    parts_of,
    registers,
)
from reactgrad.nn._sizes import check_sizes
from reactgrad.nodes._handle import current_graph
from reactgrad.ops import logical_and
from reactgrad.scheduler import safe_repr
from reactgrad.subgraphs._sharing import Sharing

_SAME = (bool, int, float, complex, str, bytes, type(None))
_NONE: Any = object()


class Module(Registered):
    """A part of a model: layers and params as attributes, and ``forward``, which combines them.

    A subclass makes its layers in ``__init__`` and builds nodes in ``forward``. Modules, params, and
    lists, tuples and dicts of them, register as they are assigned. A call builds nodes once for each
    structure: shapes and dtypes of the arguments, plain values among them, and what the module consists
    of. Afterwards it feeds the nodes that are there, so a loop does not grow the graph. Arguments are
    arrays, Vars, or detached Vars. Two results that live never change each other. As for
    ``rg.subgraph``, ``forward`` cannot read values of its arguments, and lists and dicts of plain
    values that change inside are not noticed; attributes that are assigned are.

    All params of a module belong to one graph, the one that was current when they were made.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> class Block(rg.nn.Module):
    ...     def __init__(self, width):
    ...         self.inner = rg.nn.Linear(width, width, rng=0)
    ...         self.scale = rg.nn.Parameter(np.ones(width))
    ...
    ...     def forward(self, x):
    ...         return x + self.scale * rg.tanh(self.inner(x))
    >>> with rg.Graph() as g:
    ...     block = Block(2)
    >>> [(path, param.shape) for path, param in block.named_parameters()]
    [('scale', (2,)), ('inner.weight', (2, 2)), ('inner.bias', (2,))]
    >>> y = block(np.zeros((3, 2)))
    >>> y.shape, y is block(np.zeros((3, 2)))
    ((3, 2), True)
    """

    # Which result that is held a call returns again.
    _sharing = Sharing.DRAWN
    _arrays: tuple[str, ...] = ()  # attributes that are no nodes, and part of the ``state_dict``
    # The attributes that the line of `repr` shows.
    _settings: tuple[str, ...] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        explain_init(cls)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            check_names(cls, cls.__qualname__, args, kwargs)
        check_sizes(cls, args, kwargs)
        made = super().__new__(cls)
        object.__setattr__(made, "_record", Record())
        return made

    def __init__(self) -> None:
        pass

    # --- calls ----------------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result for these arguments; written by subclasses.

        Raises
        ------
        GraphError
            If a subclass has none.
        """
        raise GraphError(
            f"{type(self).__name__} has no forward: a module is called by it. Write `def forward(self, x):` in the "
            "class, which combines its layers and returns nodes."
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        outer = building()
        if outer is not None:
            return outer.inner(self, args, kwargs)
        record = self._record
        if record.call is None:
            record.call = ModuleCall(self, self._sharing)
        return record.call.result(self, args, kwargs)

    # --- attributes -----------------------------------------------------------------------------

    def _attributes(self) -> Iterator[tuple[str, Any]]:
        """Yield the attributes that may register."""
        for name, value in vars(self).items():
            if name != "_record":
                yield name, value

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "training":
            self.train(value)
            return
        if name[:1] != "_" and name not in vars(self):
            self._check_new(name, value)
            if registers(value):
                check_path(self, name)
        self._assign(name, value)

    def _assign(self, name: str, value: Any) -> None:
        former = vars(self).get(name, _NONE)
        object.__setattr__(self, name, value)
        if former is value or (type(former) is type(value) in _SAME and former == value):
            return
        self._changed(former, value)

    def _check_new(self, name: str, value: Any) -> None:
        """Raise ``AbsentError`` for a mistyped name of an attribute that is there.

        A layer of the package has all of its attributes once it is made, and a module of the user once it
        was called, or asked for its params; before that ``__init__`` may give any names.
        """
        record = self._record
        closed = type(self).__module__.startswith("reactgrad.") or record.call or record.parts
        # A layer and a list of layers are two things.
        has = [one for one in vars(self) if closed and one.rstrip("s") != name.rstrip("s")]
        owner = f"a {type(self).__name__}"
        check_assigned(self, owner, name, value, SETTINGS_OF_MODULES, ["training", *has])

    def __delattr__(self, name: str) -> None:
        former = vars(self).get(name)
        object.__delattr__(self, name)
        self._record.buffers.pop(name, None)
        self._changed(former, None)

    def _changed(self, former: Any, value: Any) -> None:
        """Note that an attribute has another value: outside of calls they are built anew."""
        if registers(value) or registers(former):
            changes[0] += 1
        if building() is None:
            self._record.edit()

    def _replace(self, name: str, value: Any) -> None:
        """Set an attribute, of those that ``_attributes`` yields."""
        if vars(self)[name] is not value:
            setattr(self, name, value)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add an input that belongs to the module and is not trained, such as a running mean.

        Parameters
        ----------
        name : str
            The attribute.
        tensor : array_like, Var or None
            Its value, which becomes an input of the current graph.
        persistent : bool
            Whether it is part of the ``state_dict``.

        Raises
        ------
        GraphError
            If the name is that of another attribute.

        Examples
        --------
        >>> import reactgrad as rg
        >>> with rg.Graph():
        ...     net = rg.nn.Identity()
        ...     net.register_buffer("steps", 0)
        >>> list(net.state_dict())
        ['steps']
        """
        check_path(self, name)
        if name not in self._record.buffers and hasattr(self, name):
            raise GraphError(
                f"register_buffer({name!r}): {type(self).__name__} has an attribute of that name. Choose another one."
            )
        if tensor is not None and not isinstance(tensor, Var):
            tensor = current_graph().input(np.asarray(tensor))
        self._record.buffers[name] = persistent
        self._assign(name, tensor)

    def register_parameter(self, name: str, param: Any) -> None:
        """Set an attribute to a param, or to ``None``."""
        check_path(self, name)
        self._assign(name, param)

    register_module = register_parameter
    add_module = register_parameter

    # --- what it consists of --------------------------------------------------------------------

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Var]]:
        """Yield params by path, ``"0.weight"``; one that is shared once, at its first path."""
        yield from self._named({"param"}, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Var]:
        """Return an iterator over params, each once, frozen ones included.

        An optimiser that is given it saves its state by their paths.

        Examples
        --------
        >>> import reactgrad as rg
        >>> with rg.Graph():
        ...     net = rg.nn.Sequential(rg.nn.Linear(4, 3), rg.nn.ReLU(), rg.nn.Linear(3, 2))
        >>> sum(p.value.size for p in net.parameters())
        23
        """
        return Parameters(self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Var]]:
        """Yield buffers by path."""
        yield from self._named({"buffer", "passing"}, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Var]:
        """Yield buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def _named(
        self, kinds: set[str], prefix: str, recurse: bool, once: bool
    ) -> Iterator[tuple[str, Var]]:
        parts = parts_of(self)
        if parts.waiting:
            where = ", ".join(parts.waiting) or "itself"
            raise GraphError(
                f"{type(self).__name__} has params that are made at its first call, at {where}. Call it with a batch "
                "before they are asked for, as by an optimiser: net(rows)."
            )
        seen: set[int] = set()
        start = f"{prefix}." if prefix else ""
        for path, var, kind in parts.entries[: None if recurse else parts.own]:
            if kind not in kinds:
                continue
            if not once or var._slot not in seen:
                seen.add(var._slot)
                yield start + path, var

    def named_modules(
        self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield this module under `prefix`, and all below it by path."""
        for path, module in parts_of(self).modules:
            yield ".".join(filter(None, (prefix, path))), module

    def modules(self) -> Iterator[Module]:
        """Yield this module and all below it, each once."""
        for _, module in parts_of(self).modules:
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the modules right below this one, by path: those in lists as ``"layers.0"``."""
        found: list[str] = []
        for path, module in parts_of(self).modules[1:]:
            if not any(path.startswith(f"{one}.") for one in found):
                found.append(path)
                yield path, module

    def children(self) -> Iterator[Module]:
        """Yield the modules right below this one."""
        for _, module in self.named_children():
            yield module

    def get_submodule(self, target: str) -> Module:
        """Return the module at a path.

        Raises
        ------
        GraphError
            If there is none.
        """
        return self._at(target, dict(parts_of(self).modules), "module")

    def get_parameter(self, target: str) -> Var:
        """Return the param at a path."""
        return self._at(target, dict(self.named_parameters(remove_duplicate=False)), "param")

    def _at(self, target: str, known: dict[str, Any], kind: str) -> Any:
        if target in known:
            return known[target]
        raise GraphError(
            f"{type(self).__name__} has no {kind} {safe_repr(target)}; it has {', '.join(filter(None, known))}."
        )

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call a function with each module, those below first, and return this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> ForwardHook:
        """Call ``hook(module, args, output)`` at each call of the module, wherever it stands in a model.

        Nodes are built once and fed afterwards. At the call that builds them, what the hook returns takes the place of
        the output, unless it is ``None``; such a hook is part of what was built, and is not called again. A hook that
        reads values is called when there are some.

        Parameters
        ----------
        hook : callable
            Is given the module, a tuple of its arguments, and what it returned, as nodes.
        prepend : bool
            Whether it is called before the hooks that are there.
        with_kwargs : bool
            Whether it is given a dict of the arguments by name behind the tuple.

        Returns
        -------
        ForwardHook
            With ``remove()``; also the object of a ``with`` block.

        Examples
        --------
        >>> import reactgrad as rg
        >>> with rg.Graph():
        ...     net = rg.nn.Sequential(rg.nn.Linear(2, 3, rng=0), rg.nn.ReLU())
        ...     found = {}
        ...     hook = net[0].register_forward_hook(
        ...         lambda module, args, out: found.update(hidden=out)
        ...     )
        ...     y = net([1.0, 2.0])
        >>> found["hidden"].shape, bool((rg.relu(found["hidden"]).value == y.value).all())
        ((3,), True)
        """
        return add_hook(self, hook, False, prepend, with_kwargs)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> ForwardHook:
        """Call ``hook(module, args)`` before ``forward``; what it returns takes the place of the arguments.

        See ``register_forward_hook``.
        """
        return add_hook(self, hook, True, prepend, with_kwargs)

    # --- modes ----------------------------------------------------------------------------------

    @property
    def training(self) -> bool:
        """True in train mode, which ``eval`` of the module, of one above it, or of the graph ends."""
        record = self._record
        if building() is not None:
            record.looked = True
        graph = next((var._graph for _, var, _ in parts_of(self).entries), None)
        return record.training and (graph is None or bool(graph.training))

    def _mode(self, graph: Any) -> Any:
        """Return a node that is true in train mode, for a layer that obeys it."""
        record = self._record
        if record.switch is None or record.switch._graph is not graph:
            record.switch = graph.input(record.training)
        return logical_and(graph.mode, record.switch)

    def train(self, mode: bool = True) -> Self:
        """Switch this module and all below it to train mode, and return it.

        Nodes that depend on the mode of one of these layers become stale, and no others: that is how
        results that are there already follow. ``g.train()`` and ``g.eval()`` do so for all of a graph;
        a layer is in train mode where both are.

        Examples
        --------
        >>> import reactgrad as rg
        >>> with rg.Graph():
        ...     net = rg.nn.Sequential(rg.nn.Dropout(1.0))
        ...     y = net([1.0, 2.0])
        >>> y.tolist(), net.eval().training, y.tolist()
        ([0.0, 0.0], False, [1.0, 2.0])
        """
        if not isinstance(mode, bool):
            raise ParameterError(
                f"train({safe_repr(mode):.40}): the mode is True, or False for eval mode."
            )
        sets: dict[Any, dict[Any, Any]] = {}
        for module in self.modules():
            record = module._record
            record.training = mode
            if record.switch is not None and record.switch.value is not mode:
                sets.setdefault(record.switch._graph, {})[record.switch] = mode
        for graph, switches in sets.items():
            graph.set(switches)
        return self

    def eval(self) -> Self:
        """Switch this module and all below it to eval mode, and return it; see ``train``."""
        return self.train(False)

    def update_statistics(self) -> None:
        """Mix the moments of the last call, as they are now, into running statistics once more.

        A call in train mode does so itself. This is for a loop that has called the module once, and sets
        its inputs.
        """
        follow(self._record.moments)

    # --- training -------------------------------------------------------------------------------

    def freeze(self) -> Self:
        """Take all params out of training, and return the module: ``backward`` gives them no gradient.

        Examples
        --------
        >>> import reactgrad as rg
        >>> with rg.Graph():
        ...     net = rg.nn.Linear(2, 1).freeze()
        >>> net.weight.frozen, net.unfreeze().weight.frozen
        (True, False)
        """
        for param in self.parameters():
            param.freeze()
        return self

    def unfreeze(self) -> Self:
        """Put all params back into training, and return the module."""
        for param in self.parameters():
            param.unfreeze()
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Freeze or unfreeze all params; PyTorch's name."""
        return self.unfreeze() if requires_grad else self.freeze()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set ``.grad`` of all params to ``None``."""
        if not set_to_none:
            raise ParameterError(
                f"zero_grad(set_to_none={safe_repr(set_to_none):.40}): a module's params have no "
                "gradient afterwards. Leave it "
                "out, or write opt.zero_grad(set_to_none=False) for zeros."
            )
        for param in self.parameters():
            param.zero_grad()

    # --- state, copies, text --------------------------------------------------------------------

    state_dict = _state.state_dict
    load_state_dict = _state.load_state_dict
    to = _moving.to
    float = _moving.to_float32
    double = _moving.to_float64
    half = _moving.to_float16
    cpu = _moving.to_cpu
    cuda = _moving.to_cuda
    twin = _copies.twin
    extra_repr = _shown.extra_repr

    def __repr__(self) -> str:
        """Return the tree, a line each, with shapes and counts of params."""
        return _shown.tree(self)

    def __dir__(self) -> list[str]:
        return present(self)

    def __copy__(self) -> Any:
        raise DTypeError(
            "a module is not copied without its params, whose names would be shared. copy.deepcopy(net) has params of "
            "its own, and net.twin(g.fork()) those of a fork."
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same layers with leaves of their own, in the same graph, of the present values."""
        return _copies.deep_copy(self, memo)

    def __reduce__(self) -> Any:
        raise DTypeError(
            "a module is not pickled: its params are nodes of a graph. Save net.state_dict(), and load it into a "
            "module that is made by the same code."
        )


def absent_of(module: Any, name: str) -> AttributeError:
    """Return the error for an attribute that a module does not have."""
    if name not in OF_MODULES:
        return AttributeError(f"{type(module).__name__!r} object has no attribute {name!r}")
    kind = "Module" if module is None else type(module).__name__
    return absent(f"a {kind}", "net", name, OF_MODULES)


explain_init(Module)
refuse(Module, OF_MODULES, absent_of)
