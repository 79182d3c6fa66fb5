"""The parts of ``torch.nn.utils``: sequences of several lengths, and params as one vector.

- ``rnn``: ``pack_padded_sequence``, ``pad_packed_sequence``, ``pad_sequence`` and their like.
- ``_vector``: params as one vector, and back.

Gradients are clipped by ``rg.optim.clip_grad_norm_``.
"""

from reactgrad._habits import absent_from as _absent_from
from reactgrad._names_of_torch import OF_UTILS as _OF_UTILS
from reactgrad.nn.utils import rnn as rnn
from reactgrad.nn.utils._vector import parameters_to_vector as parameters_to_vector
from reactgrad.nn.utils._vector import vector_to_parameters as vector_to_parameters

__getattr__ = _absent_from(__name__, _OF_UTILS)
