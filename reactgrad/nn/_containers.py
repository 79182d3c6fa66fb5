"""Modules that hold others, by number or by name."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from reactgrad._errors import DTypeError, GraphError, IndexingError, ParameterError
from reactgrad.nn._module import Module, absent_of
from reactgrad.nn._parameter import Parameter
from reactgrad.nn._registry import changes, check_path, is_param
from reactgrad.scheduler import safe_repr


class _Container(Module):
    """Members by name, beside attributes."""

    _members: dict[str, Any]
    _holds_modules = True

    def __init__(self) -> None:
        vars(self)["_members"] = {}

    def _attributes(self) -> Iterator[tuple[str, Any]]:
        yield from self._members.items()
        for name, value in vars(self).items():
            if name not in ("_record", "_members"):
                yield name, value

    def _assign(self, name: str, value: Any) -> None:
        # As in PyTorch: a module that is assigned or added by name is one of those that are called.
        own = vars(self)
        if (
            isinstance(value, Module)
            and self._holds_modules
            and "_members" in own
            and name not in own
        ):
            self._put(name, value)
        else:
            super()._assign(name, value)

    def _replace(self, name: str, value: Any) -> None:
        if name in self._members:
            if self._members[name] is not value:
                self._put(name, value)
        else:
            super()._replace(name, value)

    def _put(self, name: str, value: Any) -> None:
        self._check(value)
        check_path(self, name)
        self._members[name] = value
        self._moved()

    def _check(self, value: Any) -> None:
        if not isinstance(value, Module):
            raise DTypeError(
                f"{type(self).__name__} holds modules, not {safe_repr(value):.40}. Wrap a function in "
                "a class with forward, or "
                "call it in the forward of yours."
            )

    def _moved(self) -> None:
        changes[0] += 1
        self._record.edit()

    def __getattr__(self, name: str) -> Any:
        members = vars(self).get("_members", {})
        if name in members:
            return members[name]
        raise absent_of(self, name)

    def __len__(self) -> int:
        return len(self._members)

    def __bool__(self) -> bool:
        return True


class _Numbered(_Container):
    """Members by number."""

    def _name(self, index: Any) -> str:
        """Return the name of the member at an index."""
        names = list(self._members)
        at = operator.index(index)
        if not -len(names) <= at < len(names):
            raise IndexingError(f"{type(self).__name__}[{at}]: it has {len(names)} members.")
        return names[at]

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._members.values()))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)._of(list(self._members.items())[index])
        if isinstance(index, str):
            if index not in self._members:
                raise GraphError(
                    f"{type(self).__name__}[{safe_repr(index)}]: it has {', '.join(self._members) or 'no members'}."
                )
            return self._members[index]
        return self._members[self._name(index)]

    @classmethod
    def _of(cls, pairs: list[tuple[str, Any]]) -> Self:
        """Return a container of these members; numbered ones are counted anew."""
        made = cls()
        for i, (name, one) in enumerate(pairs):
            made._put(str(i) if name.isdigit() else name, one)
        return made

    def __setitem__(self, index: Any, value: Any) -> None:
        self._put(index if isinstance(index, str) else self._name(index), value)

    def __delitem__(self, index: Any) -> None:
        names = [*self._members]
        gone = {*names[index]} if isinstance(index, slice) else {self._name(index)}
        self._renumber([pair for pair in self._members.items() if pair[0] not in gone])

    def _renumber(self, pairs: list[tuple[str, Any]]) -> None:
        self._members.clear()
        for i, (name, one) in enumerate(pairs):
            self._members[str(i) if name.isdigit() else name] = one
        self._moved()

    def append(self, module: Any) -> Self:
        """Add one at the end, and return the container."""
        self._put(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Any]) -> Self:
        """Add several at the end, and return the container."""
        for one in modules:
            self.append(one)
        return self

    def insert(self, index: int, module: Any) -> Self:
        """Add one before an index, and return the container."""
        self._check(module)
        pairs = list(self._members.items())
        pairs.insert(index, ("0", module))
        self._renumber(pairs)
        return self

    def __add__(self, modules: Iterable[Any]) -> Self:
        return type(self)._of([*self._members.items()]).extend(modules)

    def __iadd__(self, modules: Iterable[Any]) -> Self:
        return self.extend(modules)

    def pop(self, index: int = -1) -> Any:
        """Remove the member at an index, and return it."""
        found = self[index]
        del self[index]
        return found


class Sequential(_Numbered):
    """Modules that are called one after the other, each with the result of the one before.

    Parameters
    ----------
    *modules : Module, or one mapping from str to Module
        Without names they are called ``"0"``, ``"1"``, …

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     net = rg.nn.Sequential(rg.nn.Linear(4, 3), rg.nn.ReLU(), rg.nn.Linear(3, 2))
    >>> net[0].out_features, net["0"] is net[0], len(net[:2]), net([0.0] * 4).shape
    (3, True, 2, (2,))

    ``net * 3`` and ``3 * net`` call the same members three times over, with the same params; ``net *= 3`` makes `net`
    do so.
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, one in modules[0].items():
                self._put(name, one)
        else:
            if len(modules) == 1 and isinstance(modules[0], list | tuple):
                raise DTypeError(
                    "Sequential([...]): it takes modules one by one. Write Sequential(*modules), or "
                    "Sequential({'name': module}) for names."
                )
            for one in modules:
                self.append(one)

    def __mul__(self, times: int) -> Sequential:
        return Sequential()._repeat([*self], times)

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        return self._repeat([*self], times, len(self))

    def _repeat(self, modules: list[Any], times: int, there: int = 0) -> Self:
        """Add modules again and again, up to so many times of them; some are there. Return the container."""
        if not isinstance(times, int):
            raise DTypeError(
                f"Sequential * {safe_repr(times):.40}: it is repeated a whole number of times. To "
                "scale what it returns, "
                "multiply the result of its call."
            )
        if times < 1:
            raise ParameterError(f"Sequential * {times}: it is repeated at least once.")
        return self.extend((modules * times)[there:])

    def forward(self, input: Any) -> Any:
        """Return the result of the last module."""
        for one in self:
            input = one(input)
        return input


class ModuleList(_Numbered):
    """A list of modules, which a ``forward`` calls as it likes.

    Parameters
    ----------
    modules : iterable of Module, optional
    """

    def __init__(self, modules: Iterable[Any] = ()) -> None:
        super().__init__()
        self.extend(modules)


class ParameterList(_Numbered):
    """A list of params.

    Parameters
    ----------
    values : iterable of Var or array_like, optional
        Arrays become params.
    """

    _holds_modules = False

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__()
        self.extend(values)

    def append(self, module: Any) -> Self:
        """Add a param at the end, and return the list; an array becomes one."""
        self._put(str(len(self)), module if is_param(module) else Parameter(module))
        return self

    def _check(self, value: Any) -> None:
        if not is_param(value):
            raise DTypeError(
                f"ParameterList holds params, not {safe_repr(value):.40}: rg.nn.Parameter makes one."
            )


class _Named(_Container):
    """Members by name."""

    def __init__(self, values: Any = None) -> None:
        super().__init__()
        if values is not None:
            self.update(values)

    def __getitem__(self, key: str) -> Any:
        if key not in self._members:
            raise GraphError(
                f"{type(self).__name__}[{key!r}]: it has {', '.join(self._members) or 'no members'}."
            )
        return self._members[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._put(key, value)

    def __delitem__(self, key: str) -> None:
        del self._members[key]
        self._moved()

    def __contains__(self, key: object) -> bool:
        return key in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._members))

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._members.keys()

    def values(self) -> Iterable[Any]:
        """Return the members."""
        return self._members.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return names and members."""
        return self._members.items()

    def update(self, values: Any) -> None:
        """Add the members of a mapping, or of pairs."""
        for key, one in values.items() if isinstance(values, Mapping) else values:
            self[key] = one

    def pop(self, key: str) -> Any:
        """Remove a member, and return it."""
        found = self[key]
        del self[key]
        return found

    def clear(self) -> None:
        """Remove all members."""
        self._members.clear()
        self._moved()


class ModuleDict(_Named):
    """Modules by name, which a ``forward`` calls as it likes.

    Parameters
    ----------
    modules : mapping or iterable of pairs, optional
    """


class ParameterDict(_Named):
    """Params by name.

    Parameters
    ----------
    parameters : mapping or iterable of pairs, optional
        Arrays become params.
    """

    _holds_modules = False

    def _put(self, name: str, value: Any) -> None:
        super()._put(name, value if is_param(value) else Parameter(value))

    def _check(self, value: Any) -> None:
        pass
