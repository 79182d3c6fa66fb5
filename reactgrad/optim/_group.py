"""A group of params with options of its own: a dict that takes no option which nothing reads."""

from __future__ import annotations

from typing import Any

from reactgrad._habits import unknown_option

_OF_ALL = frozenset(("params", "names", "initial_lr"))


class ParamGroup(dict[str, Any]):
    """The params of an optimiser that share options, which may be changed between steps.

    Parameters
    ----------
    owner : str
        The name of the optimiser's class.
    options : tuple of str
        The options that it reads.
    """

    __slots__ = ("_options", "_owner")

    def __init__(self, owner: str, options: tuple[str, ...], values: dict[str, Any]) -> None:
        super().__init__(values)
        self._owner, self._options = owner, options

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self and name not in _OF_ALL and name not in self._options:
            raise unknown_option(f"a group of {self._owner}", name, value, self._options)
        super().__setitem__(name, value)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Return the value of an option, after it was set to a default if the group had none."""
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, *values: Any, **named: Any) -> None:
        """Set several options."""
        for name, value in dict(*values, **named).items():
            self[name] = value

    def __ior__(self, values: Any) -> ParamGroup:  # type: ignore[override, misc]
        self.update(values)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return ParamGroup, (self._owner, self._options, dict(self))
