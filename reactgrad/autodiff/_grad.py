"""``rg.grad`` and ``backward``: requests for adjoints, and the sums in ``.grad``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from reactgrad._errors import DTypeError, GradientError, GradModeWarning, ShapeError
from reactgrad._habits import unknown_keyword
from reactgrad.autodiff._edges import wanted_leaves
from reactgrad.backend import device_of, owner, read_value, spec
from reactgrad.build._constants import full
from reactgrad.build._leaf import new_leaf
from reactgrad.core._arguments import own_slot
from reactgrad.core._core import Core
from reactgrad.core._gradients import Gradients, added
from reactgrad.core._handles import handle, release_values
from reactgrad.core._held import held
from reactgrad.flow._mode import is_grad_enabled
from reactgrad.flow._passing import passing
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import SEED
from reactgrad.nodes._site import user_level
from reactgrad.ops import known_shape
from reactgrad.reading._joint_run import OneRead
from reactgrad.reading._refresh import refresh
from reactgrad.reading._run import Run
from reactgrad.reading._value import clean_values
from reactgrad.scheduler import add_note, error_text, is_interrupt
from reactgrad.values._quiet import quietly

if TYPE_CHECKING:
    from reactgrad.autodiff._program import Program


def find_program(output: Any, gradient: Any) -> tuple[Program, dict[int, Any]]:
    """Return the program of `output` for a seed, and the adjoints that the output's handle keeps
    alive.

    The seed is ones, or a Var that holds the gradient.
    """
    graph, slot = output._graph, output._slot
    programs = output._programs_dict()
    if graph._generations.of:
        graph._generations.forsake(graph, slot)
    if gradient is not None:
        # Kept alive only by the gradients it gave out: another Var means another program.
        key = gradient._graph._scheduler.topology.serial[gradient._slot]
        return graph._programs.made(slot, key, lambda: _program(output, gradient)), {}
    found = programs.get(None)
    if found is not None and not _goes_with(found[1], output):
        programs.pop(None)[1].stay()  # it stays while a gradient that it gave out lives
        found = None
    if found is None:
        program = graph._programs.find(slot, None)
        if program is None or not _goes_with(program, output):
            program = _program(output, _ones(output))
            graph._programs.name(slot, None, program)
        found = programs[None] = (program.seed, program, program.all_given())
    return found[1], found[2]


def _program(output: Any, seed: Any) -> Program:
    # Imported here: nothing needs the code that derives before the first derivative.
    from reactgrad.autodiff._program import Program

    return Program(output, seed)


def _goes_with(program: Program, output: Any) -> bool:
    """Return whether the seed of ones has the shape of the output, where only a value shows that
    shape.
    """
    known = output._graph._host.specs[output._slot] is not None
    return known or known_shape(program.seed) == output.shape


def _ones(output: Any) -> Any:
    found = output._graph._host.specs[output._slot]
    if found is None:  # the result of a Python function
        found = spec(output.shape, output.dtype, output.device)
    return full(output._graph, found, 1.0)


def grad(y: Any, xs: Any, gradient: Any = None, allow_unused: bool = False) -> Any:
    """Return gradients of `y` for `xs` as live nodes of the same graph; see ``rg.grad``."""
    single = isinstance(xs, Handle)
    if not single and not hasattr(xs, "__iter__"):
        raise DTypeError(f"rg.grad takes Vars to differentiate for, not {type(xs).__name__}.")
    wanted: Sequence[Any] = [xs] if single else list(xs)
    _check_output(y, "rg.grad", complex_too=gradient is not None)
    graph = y._graph
    with graph._lock:
        for x in wanted:
            _check_wanted(graph, x)
        if gradient is None:
            _check_scalar(y, "rg.grad(y, xs, gradient=...)")
            program, seed = find_program(y, None)
        elif isinstance(gradient, Handle):
            _check_gradient(y, gradient)
            program, seed = find_program(y, gradient)
        else:
            # A program for this call alone, kept alive by what it returns: the next array needs
            # other nodes.
            program, seed = _program(y, _seed(graph, y, gradient)), None
        results = program.adjoints([x._slot for x in wanted], seed)
        for x, result in zip(wanted, results, strict=True):
            if result is None and not allow_unused:
                raise GradientError(
                    f"{graph._host.label(y._slot)!r} does not depend on {x.label!r} over edges that "
                    "gradients pass: the path is detached, was built under no_grad, goes through integers or "
                    "comparisons, or there is none. Pass allow_unused=True to get None for it."
                )
    return results[0] if single else tuple(results)


def backward(
    y: Any,
    /,
    gradient: Any = None,
    retain_graph: bool | None = None,
    inputs: Any = None,
    **unknown: Never,
) -> Run:
    """Add the gradient of this node to ``.grad`` of the params it depends on.

    Evaluates the same nodes as ``rg.grad`` and creates none at the second call. If a node
    raises, no ``.grad`` has changed.

    Parameters
    ----------
    gradient : array_like or Var, optional
        The gradient of what follows, in the shape of this value; needed unless it is a single
        number.
    retain_graph : bool, optional
        ``False`` releases the values in between, large ones as soon as nothing in this run reads them
        any more, also if it fails then; ``True`` shows the gradients of all nodes in
        between in their ``.grad`` until the next backward that passes them.
    inputs : Var or sequence of Var, optional
        The nodes whose ``.grad`` is wanted instead of all unfrozen params.

    Returns
    -------
    Run
        What ran.

    Raises
    ------
    ShapeError
        If there are several elements and no `gradient`.
    GradientError
        If there is nothing trainable to reach.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([1.0, 2.0])
    >>> run = (w * 3.0).sum().backward()
    >>> w.grad
    array([3., 3.])
    """
    if unknown:
        raise unknown_keyword("backward", unknown, ("gradient", "retain_graph", "inputs"))
    graph = y._graph
    if gradient is None and retain_graph is None and inputs is None:
        made = None
        if hasattr(y, "_programs_dict"):
            programs = y._programs_dict()
            if graph._generations.of and None not in programs:
                with graph._lock:
                    graph._generations.wake(graph, y._slot, programs)
            made = programs.get(None)
        if made is not None and made[1].again is not None:
            repeated = made[1].again.repeat(y, made[1])
            if repeated is not None:
                return repeated
    with held(graph), OneRead(graph) as read:
        _check_output(y, "backward", complex_too=gradient is not None)
        graph._scheduler.check_idle()
        if not is_grad_enabled(graph):
            warnings.warn(
                "backward inside no_grad: gradients of what was built outside are computed; call "
                "it outside of the block if that is what is meant.",
                GradModeWarning,
                stacklevel=user_level(),
            )
        host = graph._host
        if inputs is None:
            wanted = wanted_leaves(graph, y._slot)
            if not wanted:
                raise GradientError(
                    f"backward from {y.label!r} reaches nothing trainable: no unfrozen param over "
                    "edges that gradients pass. Make leaves with g.param, unfreeze() them, or use "
                    "rg.grad(y, x) for other nodes; what was built under rg.no_grad() passes none."
                )
        else:
            given = [inputs] if isinstance(inputs, Handle) else list(inputs)
            for x in given:
                _check_wanted(graph, x)
                if x._slot in host.frozen:
                    raise GradientError(
                        f"{host.label(x._slot)!r} is frozen, so backward gives it no .grad; unfreeze() it, or use "
                        "rg.grad(y, x)."
                    )
            wanted = [x._slot for x in given]
        if gradient is None:
            _check_scalar(y, "backward(gradient=...)")
            program, seed = find_program(y, None)
        else:
            program, seed = _seeded(y, gradient)
        # Intermediate nodes whose ``.grad`` was asked for, too.
        shown = [
            slot
            for slot in (program.reads if retain_graph else host.retained & program.reads.keys())
            if program.depends_on(slot)
            and slot not in wanted
            and not graph._scheduler.leaf[slot]
            and _has_gradient(host, slot)
        ]
        adjoints = dict(zip(wanted, program.adjoints(wanted, seed), strict=True))
        for slot in wanted:
            if adjoints[slot] is None:
                raise GradientError(
                    f"{y.label!r} does not depend on {host.label(slot)!r} over edges that gradients "
                    "pass; leave it out of inputs=."
                )
        if graph._rounds is not None:  # other ranks have a part in these gradients
            adjoints = graph._rounds.exchanged(adjoints)
            wanted = [*adjoints]
        adjoints.update(zip(shown, program.adjoints(shown, seed), strict=True))
        if host.hooks:
            program.rerun_hooks()
        asked = {slot: var._slot for slot, var in adjoints.items() if var is not None}
        going = program.between(y._slot) if retain_graph is False else ()
        with passing(graph, going):
            refresh(graph, tuple(dict.fromkeys([y._slot, *asked.values()])))
            run = read.joined()
            values = dict(zip(asked, clean_values(graph, asked.values()), strict=True))
            for slot in shown:  # by now the value has shown the dtype
                dtype = getattr(host.data[slot], "dtype", None)
                if getattr(dtype, "kind", "f") not in "fc":
                    values.pop(slot, None)
            graph._scheduler.last_run = run  # not a run that only rebuilt what this one released
            replaced = host.gradients.replaced
            sums = {
                slot: added(None if slot in replaced else host.grads.get(slot), values[slot])
                for slot in wanted
                if graph._scheduler.leaf[slot]
            }
            kept = {
                slot: grad
                for slot, grad in host.grads.items()
                if slot not in sums and (graph._scheduler.leaf[slot] or not program.has_read(slot))
            }
            host.put_gradients(
                Gradients(
                    kept | values | sums,
                    {},
                    host.gradients.between or len(values) > len(sums),
                    replaced - sums.keys(),
                )
            )
            view = Run(graph, run)
            if retain_graph is not None:
                retain_between(graph, program, y._slot, retain_graph)
            elif gradient is None and inputs is None and not shown:
                from reactgrad.autodiff._again import remember_backward

                remember_backward(y, program, asked)
        told = [
            (handle(graph, slot), hook)
            for slot in (sums if host.after_grad else ())
            for hook in host.after_grad.get(slot, ())
        ]
    _call_all(told)
    return view


def _call_all(told: Sequence[tuple[Any, Any]]) -> None:
    """Call the hooks that wait for ``.grad``.

    An error of one does not prevent the others from being called.
    """
    errors: list[Exception] = []
    for var, hook in told:
        try:
            hook(var)
        except Exception as error:
            if is_interrupt(error):
                raise
            errors.append(error)
    for other in range(1, len(errors)):
        add_note(errors[0], f"another hook raised {error_text(errors[other])}")
    if errors:
        try:
            raise errors[0]
        finally:
            # The traceback holds this frame: together with the list that would be a cycle.
            errors.clear()


def _seeded(y: Any, gradient: Any) -> tuple[Program, dict[int, Any]]:
    """Return the program of `y` whose seed is an input that each ``backward`` sets."""
    programs = y._programs_dict()
    if isinstance(gradient, Handle):
        _check_gradient(y, gradient)
        gradient = gradient.value  # type: ignore[attr-defined]
    value = _gradient_array(y, gradient)
    found = programs.get("backward")
    if found is None or found[0].shape != value.shape:
        seed = new_leaf(y._graph, SEED, value, None, None, None, "equal")
        found = programs["backward"] = (seed, _program(y, seed), {})
    else:
        found[0].set(value)
    return found[1], found[2]


def _seed(graph: Any, y: Any, gradient: Any) -> Any:
    return graph.const(_gradient_array(y, gradient))


def _gradient_array(y: Any, gradient: Any, what: str = "gradient=") -> Any:
    """Return what was given for `y` as an array of its shape, dtype and device."""
    seen, value = read_value(gradient, what)
    if seen is None:
        raise DTypeError(f"{what} is {type(gradient).__name__}; gradients are floats.")
    if owner(value) is None:
        value = np.asarray(value)
    _check_shape(y, value, what)
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind not in ("fiubc" if y.dtype.kind == "c" else "fiub"):
            raise DTypeError(f"{what} is of {value.dtype}; gradients are floats.")
        value = quietly(value.astype, y.dtype)  # beyond the dtype of y it is infinite
        kind = y.device.partition(":")[0]
        return value if kind == "cpu" else device_of(y.device).asarray(value, y.dtype)
    return value


def _check_gradient(y: Any, gradient: Any, what: str = "gradient=") -> None:
    """Raise if a Var cannot be the gradient of `y`."""
    if gradient._graph is not y._graph:
        raise GradientError(f"{what} is a Var of another graph than {y.label!r}.")
    _check_shape(y, gradient, what)
    if gradient.dtype.kind not in ("fc" if y.dtype.kind == "c" else "f"):
        raise DTypeError(f"{what} is of {gradient.dtype}; gradients are floats.")


def _check_shape(y: Any, gradient: Any, what: str) -> None:
    if gradient.shape != y.shape:
        raise ShapeError(
            f"{what} has shape {gradient.shape}; it must have the shape of {y.label!r}, {y.shape}."
        )


def _check_output(y: Any, what: str, *, complex_too: bool = False) -> None:
    """Raise if `y` cannot be differentiated; complex numbers can where a gradient or direction is given."""
    if not isinstance(y, Handle):
        raise DTypeError(f"{what} takes a Var, not {type(y).__name__}.")
    if not hasattr(y, "_programs_dict"):
        raise GradientError(
            f"{what}: {y.label!r} is detached, so no gradient leaves it; use its base."  # type: ignore[attr-defined]
        )
    _refuse_tuple(y)
    kind = y.dtype.kind  # type: ignore[attr-defined]
    if kind == "c" and not complex_too:
        raise DTypeError(
            f"{what}: {y.label!r} is of {y.dtype}; only real numbers are differentiated. Take "  # type: ignore[attr-defined]
            "rg.real, rg.imag or rg.absolute of it, or say how its elements count: "
            "rg.grad(y, xs, gradient=...)."
        )
    if kind not in "fc":
        raise DTypeError(
            f"{what}: {y.label!r} is of {y.dtype}; only floats have gradients. Convert before, "  # type: ignore[attr-defined]
            "x.astype('float64')."
        )


def _has_gradient(host: Any, slot: int) -> bool:
    """Return whether the value has a gradient: false for conditions and tuples."""
    found = host.specs[slot]
    several = getattr(host.ops[slot], "outputs", None) is not None
    return not several and (found is None or found.differentiable)


def _refuse_tuple(x: Any) -> None:
    """Raise for the node of a function with several outputs, since its value is a tuple."""
    if getattr(x._graph._host.ops[x._slot], "outputs", None) is not None:
        raise GradientError(
            f"{x.label!r} computes several outputs at once, and a tuple has no gradient; differentiate "
            "its outputs, which are nodes of their own."
        )


def _check_wanted(graph: Any, x: Any) -> None:
    """Raise if there is no gradient for `x`."""
    own_slot(graph, x, "the gradient")
    _refuse_tuple(x)
    if x.dtype.kind not in "fc":
        raise DTypeError(
            f"there is no gradient for {x.label!r}: it is of {x.dtype}, and only floats have "
            "gradients. Make it with floats (3.0 instead of 3) or dtype='float64'."
        )


def _check_scalar(y: Any, how: str) -> None:
    if any(n != 1 for n in y.shape):
        raise ShapeError(
            f"{y.label!r} has shape {y.shape}, and only a single number has a gradient of its own. "
            f"Reduce it first, {y.label}.sum(), or say how its elements count: {how}."
        )


def retain_between(graph: Core, program: Program, root: int, retain: bool) -> None:
    """Keep the intermediate values between an output and its leaves, or release them (rule D6 of
    the design).
    """
    host = graph._host
    between = program.between(root)
    if retain:
        host.spared |= between
        return
    host.spared -= between
    release_values(graph, between)
