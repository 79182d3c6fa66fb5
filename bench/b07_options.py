"""B7: the Black-Scholes value of 1,000,000 calls, float64, and all first Greeks.

All five inputs of every option are new at each step, and no side copies them. By NumPy's kernels,
and with the distribution function as a compiled loop (``jit``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import at_most, faster
from bench._peers import load


def call_value(
    spot: Any, strike: Any, years: Any, volatility: Any, rate: Any, xp: Any, cdf: Any
) -> Any:
    """Return the value of European calls, in any library that has NumPy's functions."""
    deviation = volatility * xp.sqrt(years)
    d1 = (xp.log(spot / strike) + rate * years) / deviation + 0.5 * deviation
    return spot * cdf(d1) - strike * xp.exp(-rate * years) * cdf(d1 - deviation)


def call_value_permuted(
    spot: Any, strike: Any, years: Any, volatility: Any, rate: Any, xp: Any, cdf: Any
) -> Any:
    """Return the same value, computed in another order."""
    discounted = xp.exp(-(years * rate)) * strike
    deviation = xp.sqrt(volatility * volatility * years)
    d2 = xp.log(spot / discounted) / deviation - deviation * 0.5
    return cdf(d2 + deviation) * spot - cdf(d2) * discounted


class Options:
    """The number of options, and the formula."""

    def __init__(self, setting: Setting) -> None:
        self.count = setting.size(1_000_000, 64)
        self.formula: Callable[..., Any] = call_value
        if setting.permuted:
            self.formula, self.count = call_value_permuted, self.count - self.count // 16

    def draw(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Draw spots, strikes, years, volatilities, rates."""
        bounds = ((80, 120), (80, 120), (0.2, 2.0), (0.15, 0.6), (0.0, 0.05))
        return [rng.uniform(low, high, self.count) for low, high in bounds]

    def ours(self, *, greeks: bool, jit: bool) -> Step:
        g = rg.Graph(jit=jit)
        inputs = [g.input(array) for array in self.draw(np.random.default_rng(0))]
        value = self.formula(*inputs, rg, rg.norm_cdf)
        wanted = [value, *(rg.grad(value.sum(), inputs) if greeks else ())]

        def step(arrays: Any) -> Any:
            for leaf, array in zip(inputs, arrays, strict=True):
                leaf.set(array, copy=False)
            g.forward(*wanted)
            return [one.value for one in wanted]

        return step

    def in_torch(self, *, greeks: bool) -> Step:
        torch = load("torch")
        formula, cdf = self.formula, torch.special.ndtr

        def value_alone(inputs: Any) -> Any:
            with torch.no_grad():
                return [formula(*inputs, torch, cdf)]

        def with_greeks(inputs: Any) -> Any:
            for one in inputs:
                one.requires_grad_()
            value = formula(*inputs, torch, cdf)
            return [value.detach(), *torch.autograd.grad(value.sum(), inputs)]

        return with_greeks if greeks else value_alone

    def in_jax(self, *, greeks: bool) -> Step:
        jax = load("jax")
        jnp, cdf = jax.numpy, jax.scipy.special.ndtr

        def value(*inputs: Any) -> Any:
            return self.formula(*inputs, jnp, cdf)

        def total(*inputs: Any) -> Any:
            found = value(*inputs)
            return found.sum(), found

        derived = jax.value_and_grad(total, argnums=tuple(range(5)), has_aux=True)

        def all_of_it(*inputs: Any) -> Any:
            (_, found), gradients = derived(*inputs)
            return [found, *gradients]

        compiled = jax.jit(all_of_it if greeks else lambda *inputs: [value(*inputs)])

        def step(inputs: Any) -> Any:
            return [one.block_until_ready() for one in compiled(*inputs)]

        return step


def tensors(arrays: Any) -> Any:
    """Return the arrays as tensors."""
    torch = load("torch")
    return [torch.from_numpy(array) for array in arrays]


def on_device(arrays: Any) -> Any:
    """Return the arrays as JAX arrays."""
    jax = load("jax")
    return [jax.numpy.asarray(array).block_until_ready() for array in arrays]


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    options = Options(setting)
    found: list[Case] = []
    for greeks, jax_goal in ((False, at_most(1.5)), (True, None)):
        peers = (
            Peer(
                Side(
                    "PyTorch eager",
                    lambda greeks=greeks: options.in_torch(greeks=greeks),
                    take=tensors,
                    needs="torch",
                    apart=True,
                ),
                faster(3.0),
            ),
            Peer(
                Side(
                    "JAX jit",
                    lambda greeks=greeks: options.in_jax(greeks=greeks),
                    take=on_device,
                    needs="jax",
                    apart=True,
                ),
                jax_goal,
            ),
        )
        what = f"{'value + five Greeks' if greeks else 'value'} of {options.count:,} options"
        for jit in (False, True):
            ours = Side(
                "reactgrad",
                lambda greeks=greeks, jit=jit: options.ours(greeks=greeks, jit=jit),
                needs="numba" if jit else None,
            )
            name = f"jit: {what}" if jit else what
            found.append(Contest(name, options.draw, ours, peers, rtol=1e-8, atol=1e-9))
    return found


WORKLOAD = Workload("B7", "Black-Scholes", cases)


def test_b07(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
