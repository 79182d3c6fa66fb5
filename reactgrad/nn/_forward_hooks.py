"""Hooks of modules: functions that are called with what a module is given, and with what it returns."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from reactgrad._errors import DTypeError, UnsetError
from reactgrad.scheduler import safe_repr


class ForwardHook:
    """One hook, which ``remove`` or the end of a ``with`` block takes away.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     net = rg.nn.Linear(2, 1, rng=0)
    ...     seen = []
    ...     with net.register_forward_hook(lambda module, args, out: seen.append(out.shape)):
    ...         y = net([1.0, 2.0])
    ...     y = net([3.0, 4.0])
    >>> seen
    [(1,)]
    """

    __slots__ = ("_function", "_module", "_pre", "_with_kwargs")

    def __init__(
        self, module: Any, function: Callable[..., Any], pre: bool, with_kwargs: bool
    ) -> None:
        self._module = weakref.ref(module)
        self._function, self._pre, self._with_kwargs = function, pre, with_kwargs

    @property
    def is_pre(self) -> bool:
        """True if it is called before the module's ``forward``."""
        return self._pre

    def remove(self) -> None:
        """Remove the hook if it is still there."""
        module = self._module()
        if module is not None and self in module._record.hooks:
            module._record.hooks = [one for one in module._record.hooks if one is not self]
            module._record.edit()

    def __enter__(self) -> ForwardHook:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()

    def call(self, module: Any, args: Any, kwargs: Any, output: Any) -> Any:
        """Call the function, and return what it returned."""
        given = (args, kwargs) if self._with_kwargs else (args,)
        return (
            self._function(module, *given) if self._pre else self._function(module, *given, output)
        )


class Heard:
    """One hook of a module whose nodes are built: at later calls it is called again with the same nodes.

    Attributes
    ----------
    done : bool
        True if it has been called for the present call.
    """

    __slots__ = ("done", "hook", "module")

    def __init__(self, module: Any, hook: ForwardHook, done: bool) -> None:
        self.module = weakref.ref(module)
        self.hook, self.done = hook, done


Calls = list[tuple[Heard, Any, Any, Any]]


def add_hook(
    module: Any, function: Any, pre: bool, prepend: bool, with_kwargs: bool
) -> ForwardHook:
    """Add a hook to a module, whose calls build anew."""
    if not callable(function):
        name = "register_forward_pre_hook" if pre else "register_forward_hook"
        raise DTypeError(
            f"{name}({safe_repr(function):.40}): a hook is a function. Write hook(module, "
            f"args{'' if pre else ', output'})."
        )
    made = ForwardHook(module, function, pre, with_kwargs)
    hooks = module._record.hooks
    module._record.hooks = [made, *hooks] if prepend else [*hooks, made]
    module._record.edit()
    return made


def forward(module: Any, args: Any, kwargs: Any, calls: Calls) -> Any:
    """Build what a module returns, with its hooks."""
    hooks = module._record.hooks
    if not hooks:
        return module.forward(*args, **kwargs)
    for hook in hooks:
        if hook.is_pre:
            new = _called(hook, module, args, kwargs, None, calls)
            if new is None:
                continue
            if hook._with_kwargs:
                if not isinstance(new, tuple) or len(new) != 2:
                    raise DTypeError(
                        f"register_forward_pre_hook of {type(module).__name__}: with with_kwargs=True a hook returns a "
                        "tuple of arguments and a dict of those by name, or None."
                    )
                args, kwargs = new
            else:
                args = new if isinstance(new, tuple) else (new,)
    output = module.forward(*args, **kwargs)
    for hook in hooks:
        if not hook.is_pre:
            new = _called(hook, module, args, kwargs, output, calls)
            output = output if new is None else new
    return output


def _called(
    hook: ForwardHook, module: Any, args: Any, kwargs: Any, output: Any, calls: Calls
) -> Any:
    try:
        new = hook.call(module, args, kwargs, output)
        done = True
    except UnsetError:  # it reads a value: there is one when the call has been fed
        new, done = None, False
    if new is None:
        calls.append((Heard(module, hook, done), args, kwargs, output))
    return new


def call_again(calls: Calls) -> None:
    """Call the hooks of a call that has been fed: those that were not called as it was built."""
    for heard, args, kwargs, output in calls:
        module = heard.module()
        if heard.done or module is None:
            heard.done = False
            continue
        new = heard.hook.call(module, args, kwargs, output)
        if new is not None:
            raise DTypeError(
                f"a hook of {type(module).__name__} has returned {type(new).__name__} at a later call than the first. "
                "Nodes are built once, so a hook that changes them reads no values: write rg.where or rg.lift in it."
            )
