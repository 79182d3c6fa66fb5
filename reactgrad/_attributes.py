"""Objects whose attributes are those that they were made with: what is assigned under a mistyped name is refused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from inspect import getattr_static
from typing import Any, ClassVar

from reactgrad._calls import explain_init
from reactgrad._habits import AbsentError, check_assigned, present

_MADE = "_made_with"  # the names that an object had when its constructor here returned


class OwnAttributes:
    """The base of classes that take no attributes besides those that their constructors assign.

    Subclasses outside of this package may add what they like, as long as it is no mistyped form of what is there.

    Attributes
    ----------
    _INSTEAD : mapping from str to str
        What to write in place of an assignment, by name; ``{value}`` stands for what was assigned.
    _OTHERWISE : str
        What to say of other names; ``{name}`` stands for it.
    """

    __slots__ = ()
    _INSTEAD: ClassVar[Mapping[str, str]] = {}
    _OTHERWISE: ClassVar[str] = (
        "It takes none of your own: keep this in a variable, or write a subclass."
    )

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls) and _is_ours(cls):
            explain_init(cls)
            cls.__init__ = _noting(cls.__init__)  # type: ignore[method-assign]

    def __setattr__(self, name: str, value: Any) -> None:
        own = vars(self)
        if name[:1] != "_" and name not in own and _MADE in own:
            kind = type(self)
            article = "an" if kind.__name__[0] in "AEIO" else "a"
            has = None if _is_ours(kind) else own[_MADE]
            owner, otherwise = f"{article} {kind.__name__}", self._OTHERWISE.format(name=name)
            check_assigned(self, owner, name, value, self._INSTEAD, has, otherwise)
            if callable(getattr_static(kind, name, None)) and not callable(value):
                raise AbsentError(f"{name!r} of {owner} is a method and cannot be assigned.", name)
        object.__setattr__(self, name, value)

    def __dir__(self) -> list[str]:
        return present(self)


class ClassAttributes:
    """The base of classes whose objects have no public attributes but those of their class.

    Nothing is noted when an object is made, so that thousands may be made at once. Where an assignment must cost
    nothing, it is made by ``object.__setattr__``; ``__dict__`` would make all later reads of attributes slower.
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        if name[:1] != "_":
            kind = type(self)
            article = "an" if kind.__name__[0] in "AEIO" else "a"
            has = None if _is_ours(kind) else [one for one in dir(kind) if one[0] != "_"]
            check_assigned(self, f"{article} {kind.__name__}", name, value, {}, has)
        object.__setattr__(self, name, value)


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "reactgrad"


def _noting(init: Any) -> Any:
    """Return a constructor after which new attributes are checked, unless that of a subclass here goes on."""

    @wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        ours = next(kind for kind in type(self).__mro__ if _is_ours(kind))
        if ours.__init__ is __init__:
            vars(self)[_MADE] = frozenset(vars(self))

    return __init__
