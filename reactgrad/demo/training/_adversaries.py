"""A generator of images and its critic, trained against each other."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import reactgrad as rg

LATENT: Final = 64
HIDDEN: Final = 128
GENERATOR_RATE: Final = 1e-3
CRITIC_RATE: Final = 5e-4
# Of Radford, Metz and Chintala, "Unsupervised Representation Learning with Deep Convolutional Generative
# Adversarial Networks" (2016): with a first one of 0.9 all images become the same.
BETAS: Final = (0.5, 0.999)


class CriticLoss(rg.nn.Module):
    """The cost of a critic's judgements. One module, so its nodes and gradients are built once."""

    def __init__(self, critic: rg.nn.Module) -> None:
        self.critic, self.criterion = critic, rg.nn.BCEWithLogitsLoss()

    def forward(self, real: Any, fake: Any, yes: Any, no: Any) -> Any:
        """Return the cost for real and generated images."""
        return self.criterion(self.critic(real), yes) + self.criterion(self.critic(fake), no)


class GeneratorLoss(rg.nn.Module):
    """The cost of a generator whose images the critic judges."""

    def __init__(self, generator: rg.nn.Module, critic: rg.nn.Module) -> None:
        self.generator, self.critic, self.criterion = generator, critic, rg.nn.BCEWithLogitsLoss()

    def forward(self, noise: Any, yes: Any) -> Any:
        """Return the cost for the images that it makes of noise."""
        return self.criterion(self.critic(self.generator(noise)), yes)


class Adversaries:
    """A generator that turns noise into images, and a critic that tells them from real ones.

    The critic is to say yes to real images and no to generated ones, and the generator wants it to say yes
    (Goodfellow and others, "Generative Adversarial Networks", 2014, with the loss of a generator that they
    advise). Each has an optimiser with a learning rate of its own.

    Parameters
    ----------
    pixels : int
        Those of an image.
    seed : int
    dtype : str
    """

    def __init__(self, pixels: int, seed: int, dtype: str = "float32") -> None:
        rng = np.random.default_rng(seed)
        with rg.Graph() as self.graph:

            def linear(wide: int, narrow: int) -> rg.nn.Linear:
                return rg.nn.Linear(wide, narrow, rng=rng, dtype=dtype)

            self.generator = rg.nn.Sequential(
                linear(LATENT, HIDDEN),
                rg.nn.ReLU(),
                linear(HIDDEN, 2 * HIDDEN),
                rg.nn.ReLU(),
                linear(2 * HIDDEN, pixels),
                rg.nn.Sigmoid(),
            )
            self.critic = rg.nn.Sequential(
                linear(pixels, HIDDEN),
                rg.nn.LeakyReLU(0.2),
                linear(HIDDEN, HIDDEN),
                rg.nn.LeakyReLU(0.2),
                linear(HIDDEN, 1),
            )
        self.of_generator = rg.optim.Adam(
            self.generator.parameters(), lr=GENERATOR_RATE, betas=BETAS
        )
        self.of_critic = rg.optim.Adam(self.critic.parameters(), lr=CRITIC_RATE, betas=BETAS)
        self._critic_loss = CriticLoss(self.critic)
        self._generator_loss = GeneratorLoss(self.generator, self.critic)

    def step(self, real: Any, noise: Any, more_noise: Any) -> tuple[float, float]:
        """Train the critic, then the generator, each with a batch; return their losses before that.

        Parameters
        ----------
        real : ndarray, shape (n, pixels)
        noise, more_noise : ndarray, shape (n, latent)
            For the images that the critic sees, and for those that the generator is trained on.
        """
        yes, no = np.ones((len(real), 1), real.dtype), np.zeros((len(real), 1), real.dtype)
        # Detached: the loss of the critic has no gradient for the generator, and computes none.
        fake = self.generator(noise).detach()
        critic_loss = self._critic_loss(real, fake, yes, no)
        self.of_critic.zero_grad()
        critic_loss.backward()
        of_critic = critic_loss.item()
        self.of_critic.step()

        generator_loss = self._generator_loss(more_noise, yes)
        self.of_generator.zero_grad()
        generator_loss.backward()
        of_generator = generator_loss.item()
        self.of_generator.step()
        return of_critic, of_generator

    def generate(self, noise: Any) -> Any:
        """Return generated images."""
        with rg.no_grad():
            return self.generator(noise).value
