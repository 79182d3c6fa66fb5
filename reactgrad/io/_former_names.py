"""Functions of the engine itself that files of earlier releases name, and where they are now."""

from __future__ import annotations

# Files of 0.1, whose modules lay flat. A function that moves gets a row here in the same commit.
_FORMER = {
    f"reactgrad._context:{name}": f"reactgrad.functions._context:{name}"
    for name in ("as_built", "_as_built_vjp", "_as_built_jvp")
}


def present_name(name: str) -> str:
    """Return the name under which the function of this name is found in this release."""
    return _FORMER.get(name, name)
