"""Ops of neural networks: convolution, pooling, normalisation, attention, recurrence, losses.

- ``_space``: axes of space, and arguments that have a number for each of them.
- ``_convolution``: convolutions over 1, 2 and 3 axes of space, and their transposes.
"""

from reactgrad.ops.neural._convolution import conv1d as conv1d
from reactgrad.ops.neural._convolution import conv2d as conv2d
from reactgrad.ops.neural._convolution import conv3d as conv3d
from reactgrad.ops.neural._convolution import conv_transpose1d as conv_transpose1d
from reactgrad.ops.neural._convolution import conv_transpose2d as conv_transpose2d
from reactgrad.ops.neural._convolution import conv_transpose3d as conv_transpose3d
