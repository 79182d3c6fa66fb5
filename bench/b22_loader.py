"""B22: an epoch of a loader over as many rows as the digits have, by 32, beside PyTorch's loader.

Rows of 64 float32 numbers with a label each. A step is given a number, which it returns with all batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import faster
from bench._peers import load

Rows = tuple[np.ndarray, np.ndarray]


def data(rows: int, width: int) -> Rows:
    """Return rows and labels."""
    rng = np.random.default_rng(7)
    return rng.normal(size=(rows, width)).astype("f4"), rng.integers(0, 10, rows)


def sums(found: tuple[float, Any]) -> list[Any]:
    """Return what does not depend on the order of an epoch: sums of all rows and labels, and lengths of batches."""
    factor, batches = found
    rows = np.concatenate([np.asarray(one[0]) for one in batches])
    labels = np.concatenate([np.asarray(one[1]) for one in batches])
    paired = rows.astype(np.float64).sum(1) @ labels  # each row with its label
    lengths = [float(len(one[1])) for one in batches]
    return [factor * rows.astype(np.float64).sum(0), factor * paired, lengths]


def ours(given: Rows, size: int, shuffle: bool) -> Step:
    """Return an epoch of our loader."""
    loader = rg.data.DataLoader(
        rg.data.ArrayDataset(*given), batch_size=size, shuffle=shuffle, rng=0
    )

    def step(factor: float) -> Any:
        return factor, list(loader)

    return step


def in_torch(given: Rows, size: int, shuffle: bool) -> Step:
    """Return an epoch of PyTorch's loader."""
    torch = load("torch")
    dataset = torch.utils.data.TensorDataset(*map(torch.from_numpy, given))
    loader = torch.utils.data.DataLoader(dataset, batch_size=size, shuffle=shuffle)

    def step(factor: float) -> Any:
        return factor, list(loader)

    return step


def by_hand(given: Rows, size: int, shuffle: bool) -> Step:
    """Return an epoch by NumPy: an order, and two takes a batch."""
    x, y = given
    rng = np.random.default_rng(0)

    def step(factor: float) -> Any:
        order = rng.permutation(len(x)) if shuffle else np.arange(len(x))
        parts = [order[start : start + size] for start in range(0, len(x), size)]
        return factor, [(x[which], y[which]) for which in parts]

    return step


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    rows, size = setting.size(1797, 10), setting.size(32, 4)
    if setting.permuted:
        rows, size = rows + 11, size + 1
    given = data(rows, setting.size(64, 3))
    found: list[Case] = []
    for shuffle in (True, False):
        peers = (
            Peer(
                Side(
                    "PyTorch",
                    lambda shuffle=shuffle: in_torch(given, size, shuffle),
                    show=sums,
                    needs="torch",
                    apart=True,
                ),
                faster(40.0),
            ),
            Peer(Side("by hand", lambda shuffle=shuffle: by_hand(given, size, shuffle), show=sums)),
        )
        found.append(
            Contest(
                f"epoch of {rows:,} rows by {size}, {'shuffled' if shuffle else 'in order'}",
                lambda rng: float(rng.uniform(0.5, 1.5)),
                Side("reactgrad", lambda shuffle=shuffle: ours(given, size, shuffle), show=sums),
                peers,
                unit="epoch",
                rtol=1e-9,
            )
        )
    return found


WORKLOAD = Workload("B22", "loader", cases)


def test_b22(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
