"""Two poles on a cart, for many networks at once (Wieland, 1991; as in Stanley and Miikkulainen, 2002, section 4.4)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reactgrad import neat
from reactgrad.demo import neat_config

GRAVITY, CART = -9.8, 1.0
MASSES, HALVES = (0.1, 0.01), (0.5, 0.05)
FRICTION, OF_CART = 0.000002, 0.0005
STEP, LIMIT, TRACK = 0.01, np.deg2rad(36.0), 2.4
# Evaluations that NEAT needs in the paper, with and without velocities.
PAPER = {True: 3600, False: 33184}
SCALES = np.array([4.8, 2.0, 0.52, 2.0, 0.52, 2.0])


def slopes(state: Any, force: Any) -> Any:
    """The derivative of cart and poles: place, speed, and angle and its speed for each pole."""
    x_speed = state[1]
    total, mass = force - OF_CART * np.sign(x_speed), CART
    parts = []
    for i, (own, half) in enumerate(zip(MASSES, HALVES, strict=True)):
        angle, speed = state[2 + 2 * i], state[3 + 2 * i]
        sine, cosine = np.sin(angle), np.cos(angle)
        rubbed = FRICTION * speed / (own * half)
        total = total + own * half * speed**2 * sine
        total = total + 0.75 * own * cosine * (rubbed + GRAVITY * sine)
        mass = mass + own * (1.0 - 0.75 * cosine**2)
        parts.append((sine, cosine, rubbed, half))
    pull = total / mass
    turns = [
        -0.75 / half * (pull * cosine + GRAVITY * sine + rubbed)
        for sine, cosine, rubbed, half in parts
    ]
    return np.array([x_speed, pull, state[3], turns[0], state[5], turns[1]])


def moved(state: Any, force: Any) -> Any:
    """Two steps of the method of Runge and Kutta, as the paper makes for each action."""
    for _ in range(2):
        a = slopes(state, force)
        b = slopes(state + 0.5 * STEP * a, force)
        c = slopes(state + 0.5 * STEP * b, force)
        d = slopes(state + STEP * c, force)
        state = state + STEP / 6.0 * (a + 2.0 * b + 2.0 * c + d)
    return state


def seen(state: Any, velocities: bool) -> Any:
    """What networks are given: scaled, with a bias at the end."""
    scaled = state.T / SCALES
    columns = scaled if velocities else scaled[:, ::2]
    return np.column_stack([columns, np.ones(len(scaled))])


def balance(
    genomes: list[Any], config: Any, velocities: bool, steps: int, start: Any = None
) -> tuple[Any, Any]:
    """Steps that each network balances both poles, and how much all wobbles in its last hundred."""
    left = np.arange(len(genomes))
    networks = neat.Networks(genomes, config, recurrent=not velocities)
    state = np.zeros((6, len(genomes)))
    state[2] = 0.07
    if start is not None:
        state[:] = np.asarray(start)[:, None]
    lasted = np.full(len(genomes), steps)
    wobbles = np.zeros((100, len(genomes)))
    observations = np.empty((len(genomes), 7 if velocities else 4))
    for step in range(steps):
        observations[left] = seen(state, velocities)
        force = (networks.activate(observations)[left, 0] * 2.0 - 1.0) * 10.0
        state = moved(state, force)
        wobbles[step % 100, left] = np.abs(state[:4]).sum(axis=0)
        stands = (np.abs(state[0]) < TRACK) & (np.abs(state[2]) < LIMIT)
        stands &= np.abs(state[4]) < LIMIT
        if not stands.all():
            lasted[left[~stands]] = step
            left, state = left[stands], state[:, stands]
            if not len(left):
                break
            if len(left) < len(genomes) / 2 and velocities:
                # Networks without memory may be left out.
                return _rest(genomes, config, lasted, wobbles, left, state, step + 1, steps)
    return lasted, wobbles.sum(axis=0)


def _rest(
    genomes: Any,
    config: Any,
    lasted: Any,
    wobbles: Any,
    left: Any,
    state: Any,
    begin: int,
    end: int,
) -> tuple[Any, Any]:
    networks = neat.Networks([genomes[i] for i in left], config, recurrent=False)
    for step in range(begin, end):
        force = (networks.activate(seen(state, True))[:, 0] * 2.0 - 1.0) * 10.0
        state = moved(state, force)
        stands = (np.abs(state[0]) < TRACK) & (np.abs(state[2]) < LIMIT)
        stands &= np.abs(state[4]) < LIMIT
        if not stands.all():
            lasted[left[~stands]] = step
            left, state = left[stands], state[:, stands]
            if not len(left):
                break
            networks = neat.Networks([genomes[i] for i in left], config, recurrent=False)
    return lasted, wobbles.sum(axis=0)


def lasts(genome: Any, config: Any, velocities: bool, steps: int, angle: float = 0.07) -> bool:
    """Whether one network balances the poles so long; the same in floats, which is faster for one."""
    kind = neat.FeedForwardNetwork if velocities else neat.RecurrentNetwork
    activate = kind.create(genome, config).activate
    x, x_speed, a, a_speed, b, b_speed = 0.0, 0.0, angle, 0.0, 0.0, 0.0
    for _ in range(steps):
        if velocities:
            given = [x / 4.8, x_speed / 2.0, a / 0.52, a_speed / 2.0, b / 0.52, b_speed / 2.0, 1.0]
        else:
            given = [x / 4.8, a / 0.52, b / 0.52, 1.0]
        force = (activate(given)[0] * 2.0 - 1.0) * 10.0
        for _ in range(2):
            state = (x, x_speed, a, a_speed, b, b_speed)
            first = _slopes(*state, force)
            second = _slopes(*_along(state, first, 0.5), force)
            third = _slopes(*_along(state, second, 0.5), force)
            last = _slopes(*_along(state, third, 1.0), force)
            x, x_speed, a, a_speed, b, b_speed = [
                one + STEP / 6.0 * (p + 2.0 * q + 2.0 * r + s)
                for one, p, q, r, s in zip(state, first, second, third, last, strict=True)
            ]
        if abs(x) >= TRACK or abs(a) >= LIMIT or abs(b) >= LIMIT:
            return False
    return True


def _along(state: Any, slope: Any, part: float) -> list[float]:
    return [one + part * STEP * two for one, two in zip(state, slope, strict=True)]


def _slopes(
    x: float, x_speed: float, a: float, a_speed: float, b: float, b_speed: float, force: float
) -> tuple[float, ...]:
    total = force - (OF_CART * math.copysign(1.0, x_speed) if x_speed else 0.0)
    mass, parts = CART, []
    for own, half, angle, speed in ((0.1, 0.5, a, a_speed), (0.01, 0.05, b, b_speed)):
        sine, cosine = math.sin(angle), math.cos(angle)
        rubbed = FRICTION * speed / (own * half)
        total += own * half * speed * speed * sine
        total += 0.75 * own * cosine * (rubbed + GRAVITY * sine)
        mass += own * (1.0 - 0.75 * cosine * cosine)
        parts.append((sine, cosine, rubbed, half))
    pull = total / mass
    turns = [-0.75 / half * (pull * c + GRAVITY * s + rubbed) for s, c, rubbed, half in parts]
    return x_speed, pull, a_speed, turns[0], b_speed, turns[1]


def settings(velocities: bool) -> Any:
    """The paper's rates of structural mutations; others suit neat-python's distances and steps of weights."""
    found = neat_config(
        num_inputs=7 if velocities else 4,
        pop_size=150 if velocities else 1000,
        feed_forward=velocities,
        fitness_threshold=1e9,
        no_fitness_termination=True,
        node_add_prob=0.03,
        node_delete_prob=0.0,
        conn_add_prob=0.05 if velocities else 0.3,
        conn_delete_prob=0.0,
        compatibility_weight_coefficient=0.4,
        weight_mutate_rate=0.5,
        weight_mutate_power=1.0,
        weight_replace_rate=0.02,
        bias_mutate_rate=0.5,
        bias_mutate_power=1.0,
        bias_replace_rate=0.02,
    )
    found.species_set_config.compatibility_threshold = 2.0
    return found


def solve(seed: int, velocities: bool) -> tuple[int, Any]:
    """The evaluations until a network balances the poles for 100,000 steps, and its genome."""
    config = settings(velocities)
    population = neat.Population(config, seed=seed)
    found: list[Any] = []
    evaluations = 0

    def fitness(genomes: Any, config: Any) -> Any:
        nonlocal evaluations
        evaluations += len(genomes)
        every = [genome for _, genome in genomes]
        lasted, wobbles = balance(every, config, velocities, 1000)
        if velocities:
            values = lasted / 1000.0
        else:  # Gruau, Whitley and Pyeatt (1996): networks that shake the cart do not count
            calm = np.where(lasted < 100, 0.0, 0.75 / np.maximum(wobbles, 1e-9))
            values = 0.1 * lasted / 1000.0 + 0.9 * calm
        if not found:
            order = np.argsort(-values, kind="stable")
            best = [every[i] for i in order[:1] if lasted[i] == 1000]
            found.extend(one for one in best if lasts(one, config, velocities, 100_000))
        return values

    most = int(1.5 * PAPER[velocities]) // config.pop_size
    while not found and population.generation < most:
        population.run(fitness, 1)
    return evaluations, found[0] if found else None
