"""Cart-poles: gymnasium's where it is installed, else the same equations here."""

from __future__ import annotations

import importlib.util
from typing import Any, Final, Protocol

import numpy as np

LONGEST: Final = 500  # steps of an episode, as in gymnasium's CartPole-v1
_GRAVITY, _CART, _POLE, _HALF, _FORCE, _SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
_FARTHEST, _STEEPEST = 2.4, 12 * 2 * np.pi / 360


class CartPoles(Protocol):
    """Carts side by side, each with a pole to balance; each row of an array is a cart's.

    A state has four numbers: place and speed of the cart, angle and speed of the pole. Each step that the
    pole stands is a reward of 1.
    """

    states: Any

    def step(self, pushes: Any) -> tuple[Any, Any]:
        """Push each cart to the left (0) or to the right (1).

        Returns
        -------
        fallen, timed_out : ndarray of bool
            The episodes that ended with this step, by a fall or after ``LONGEST`` steps. ``states`` has
            their last states until ``restart``.
        """
        ...

    def restart(self, ended: Any) -> None:
        """Begin new episodes where `ended` is true."""
        ...


class Equations:
    """Cart-poles by the equations of motion.

    The task is that of Barto, Sutton and Anderson, "Neuronlike Adaptive Elements That Can Solve Difficult
    Learning Control Problems" (IEEE Transactions on Systems, Man, and Cybernetics 13, 1983). The equations
    without friction are those of Florian, "Correct Equations for the Dynamics of the Cart-Pole System" (2007),
    integrated by Euler's method; constants and limits are those of gymnasium's CartPole-v1.

    Parameters
    ----------
    count : int
        The number of carts.
    seed : int
    """

    def __init__(self, count: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.states = np.zeros((count, 4))
        self._ages = np.zeros(count, int)
        self.restart(np.ones(count, bool))

    def restart(self, ended: Any) -> None:
        """Begin new episodes where `ended` is true."""
        states = self.states.copy()
        states[ended] = self._rng.uniform(-0.05, 0.05, (int(ended.sum()), 4))
        self.states = states
        self._ages[ended] = 0

    def step(self, pushes: Any) -> tuple[Any, Any]:
        """Push each cart; see ``CartPoles``."""
        place, speed, angle, turning = self.states.T
        force = np.where(pushes == 1, _FORCE, -_FORCE)
        sin, cos = np.sin(angle), np.cos(angle)
        mass = _CART + _POLE
        push = (force + _POLE * _HALF * turning**2 * sin) / mass
        twist = (_GRAVITY * sin - cos * push) / (_HALF * (4.0 / 3.0 - _POLE * cos**2 / mass))
        pull = push - _POLE * _HALF * twist * cos / mass
        after = [
            place + _SECONDS * speed,
            speed + _SECONDS * pull,
            angle + _SECONDS * turning,
            turning + _SECONDS * twist,
        ]
        self.states = np.stack(after, axis=1)
        self._ages += 1
        fallen = (np.abs(after[0]) > _FARTHEST) | (np.abs(after[2]) > _STEEPEST)
        return fallen, ~fallen & (self._ages >= LONGEST)


class Gymnasium:
    """gymnasium's ``CartPole-v1``, several of them.

    Parameters
    ----------
    count : int
        The number of carts.
    seed : int
    """

    def __init__(self, count: int, seed: int) -> None:
        import gymnasium

        self._carts = [gymnasium.make("CartPole-v1") for _ in range(count)]
        # Each cart has a generator of its own, and no two the same.
        seeds = np.random.SeedSequence(seed).generate_state(count)
        first = [cart.reset(seed=int(one))[0] for cart, one in zip(self._carts, seeds)]
        self.states = np.array(first, float)

    def restart(self, ended: Any) -> None:
        """Begin new episodes where `ended` is true."""
        states = self.states.copy()
        for i in np.flatnonzero(ended):
            states[i] = self._carts[i].reset()[0]
        self.states = states

    def step(self, pushes: Any) -> tuple[Any, Any]:
        """Push each cart; see ``CartPoles``."""
        done = [cart.step(int(push)) for cart, push in zip(self._carts, pushes, strict=True)]
        self.states = np.array([one[0] for one in done], float)
        return np.array([one[2] for one in done]), np.array([one[3] and not one[2] for one in done])


def cart_poles(count: int, seed: int) -> tuple[CartPoles, str]:
    """Return carts and where their equations come from, in words."""
    if importlib.util.find_spec("gymnasium") is not None:
        return Gymnasium(count, seed), "gymnasium's CartPole-v1"
    return Equations(count, seed), "own equations (gymnasium is not installed)"
