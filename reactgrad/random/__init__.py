"""Random numbers as nodes, with the names of ``numpy.random.Generator``.

A draw depends on the seed of its graph and on its node, and on nothing else: a read in any order, a replay, a
fork, a checkpoint, a loaded file and any device give the same numbers. ``draw.touch()`` draws others, and
``g.reseed(seed)`` draws all of a graph anew. Parameters may be nodes. Where a distribution is a smooth function of
parameter-free draws, gradients pass to its parameters; and when a parameter changes, the draws stay.

Where all parameters have defaults the shape is the first argument, ``normal((2, 3), loc, scale)``; else the
parameters come first. Without a shape it is that to which the parameters broadcast.

- ``_draw``: draws as nodes. ``_continuous``: distributions with gradients.
- ``_counted``: integers, and what has no gradient. ``_choice``: permutations, choices, categories.
"""

import typing

from reactgrad._calls import explain_all as _explain_all
from reactgrad._later import as_found as _as_found
from reactgrad.random._choice import categorical as categorical
from reactgrad.random._choice import choice as choice
from reactgrad.random._choice import permutation as permutation
from reactgrad.random._choice import permuted as permuted
from reactgrad.random._choice import shuffle as shuffle
from reactgrad.random._continuous import beta as beta
from reactgrad.random._continuous import chisquare as chisquare
from reactgrad.random._continuous import dirichlet as dirichlet
from reactgrad.random._continuous import exponential as exponential
from reactgrad.random._continuous import f as f
from reactgrad.random._continuous import gamma as gamma
from reactgrad.random._continuous import gumbel as gumbel
from reactgrad.random._continuous import laplace as laplace
from reactgrad.random._continuous import logistic as logistic
from reactgrad.random._continuous import lognormal as lognormal
from reactgrad.random._continuous import multivariate_normal as multivariate_normal
from reactgrad.random._continuous import normal as normal
from reactgrad.random._continuous import pareto as pareto
from reactgrad.random._continuous import power as power
from reactgrad.random._continuous import random as random
from reactgrad.random._continuous import rayleigh as rayleigh
from reactgrad.random._continuous import standard_cauchy as standard_cauchy
from reactgrad.random._continuous import standard_exponential as standard_exponential
from reactgrad.random._continuous import standard_gamma as standard_gamma
from reactgrad.random._continuous import standard_normal as standard_normal
from reactgrad.random._continuous import standard_t as standard_t
from reactgrad.random._continuous import triangular as triangular
from reactgrad.random._continuous import uniform as uniform
from reactgrad.random._continuous import weibull as weibull
from reactgrad.random._counted import bernoulli as bernoulli
from reactgrad.random._counted import binomial as binomial
from reactgrad.random._counted import geometric as geometric
from reactgrad.random._counted import hypergeometric as hypergeometric
from reactgrad.random._counted import integers as integers
from reactgrad.random._counted import logseries as logseries
from reactgrad.random._counted import multinomial as multinomial
from reactgrad.random._counted import multivariate_hypergeometric as multivariate_hypergeometric
from reactgrad.random._counted import negative_binomial as negative_binomial
from reactgrad.random._counted import noncentral_chisquare as noncentral_chisquare
from reactgrad.random._counted import noncentral_f as noncentral_f
from reactgrad.random._counted import poisson as poisson
from reactgrad.random._counted import vonmises as vonmises
from reactgrad.random._counted import wald as wald
from reactgrad.random._counted import zipf as zipf

_explain_all(globals(), __name__, "rg.random")

_ELSEWHERE = {
    "randn": "rg.random.normal(shape)",
    "rand": "rg.random.random(shape)",
    "random_sample": "rg.random.random(shape)",
    "randint": "rg.random.integers(low, high, shape)",
    "seed": "rg.Graph(rng=7), or g.reseed(7): the seed belongs to the graph",
    "default_rng": "rg.Graph(rng=7): the generator belongs to the graph, and its draws are nodes",
    "Generator": "rg.Graph(rng=7): the generator belongs to the graph, and its draws are nodes",
    "bit_generator": "rg.Graph(rng=7), and g.seed: each draw is at a place of its own in the stream of that seed",
    "bytes": 'rg.random.integers(256, shape=n, dtype="uint8")',
    "spawn": "rg.Graph(rng=seed), with another seed for each: graphs draw independently, and so do the draws of one",
}


def __getattr__(name: str) -> typing.NoReturn:
    way = f" Write {_ELSEWHERE[name]}." if name in _ELSEWHERE else ""
    error = AttributeError(f"module {__name__!r} has no attribute {name!r}.{way}")
    raise _as_found(error, __name__) from None
