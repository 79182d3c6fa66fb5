"""Ops of neural networks: convolution, pooling, normalisation, attention, recurrence, losses.

- ``_space``: axes of space, and arguments that have a number for each of them.
- ``_convolution``: convolutions over 1, 2 and 3 axes of space. ``_transposed``: their transposes.
- ``_losses``, ``_cross_entropy``, ``_distances``, ``_ctc``: losses. ``_embedding``: rows of tables. ``_attention``: attention.
- ``_pooling``: the largest element of windows, parts and all of space. ``_means``: the mean.
  ``_norm_pooling``: the p-norm. ``_unpool``: the largest elements put back.
- ``_resampling``: linear maps along each axis of space.
- ``_normalization``: batches, groups, channels and rows. ``_recurrence``: recurrent layers; ``_recurrent_steps``:
  the same step by step.
- ``_units``: gated halves, softmin, bilinear forms.
- ``_interpolate``: images stretched to another size. ``_unfold``: patches as columns, and back.
- ``_pixel_shuffle``: channels that become space, and back. ``_local_response``: channels by their neighbours.
- ``_sampling``: images at the places of a grid, and grids of affine maps.
"""

from reactgrad.ops.neural import _ctc as _ctc  # its ops; the function is in rg.nn.functional
from reactgrad.ops.neural._attention import attention_weights as attention_weights
from reactgrad.ops.neural._attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from reactgrad.ops.neural._convolution import conv1d as conv1d
from reactgrad.ops.neural._convolution import conv2d as conv2d
from reactgrad.ops.neural._convolution import conv3d as conv3d
from reactgrad.ops.neural._cross_entropy import cross_entropy as cross_entropy
from reactgrad.ops.neural._distances import cosine_embedding_loss as cosine_embedding_loss
from reactgrad.ops.neural._distances import cosine_similarity as cosine_similarity
from reactgrad.ops.neural._distances import normalize as normalize
from reactgrad.ops.neural._distances import pairwise_distance as pairwise_distance
from reactgrad.ops.neural._distances import triplet_margin_loss as triplet_margin_loss
from reactgrad.ops.neural._embedding import embedding as embedding
from reactgrad.ops.neural._embedding import one_hot as one_hot
from reactgrad.ops.neural._interpolate import interpolate as interpolate
from reactgrad.ops.neural._local_response import local_response_norm as local_response_norm
from reactgrad.ops.neural._losses import binary_cross_entropy as binary_cross_entropy
from reactgrad.ops.neural._losses import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from reactgrad.ops.neural._losses import gaussian_nll_loss as gaussian_nll_loss
from reactgrad.ops.neural._losses import hinge_embedding_loss as hinge_embedding_loss
from reactgrad.ops.neural._losses import huber_loss as huber_loss
from reactgrad.ops.neural._losses import kl_div as kl_div
from reactgrad.ops.neural._losses import l1_loss as l1_loss
from reactgrad.ops.neural._losses import margin_ranking_loss as margin_ranking_loss
from reactgrad.ops.neural._losses import mse_loss as mse_loss
from reactgrad.ops.neural._losses import nll_loss as nll_loss
from reactgrad.ops.neural._losses import poisson_nll_loss as poisson_nll_loss
from reactgrad.ops.neural._losses import smooth_l1_loss as smooth_l1_loss
from reactgrad.ops.neural._losses import soft_margin_loss as soft_margin_loss
from reactgrad.ops.neural._means import adaptive_avg_pool1d as adaptive_avg_pool1d
from reactgrad.ops.neural._means import adaptive_avg_pool2d as adaptive_avg_pool2d
from reactgrad.ops.neural._means import adaptive_avg_pool3d as adaptive_avg_pool3d
from reactgrad.ops.neural._means import avg_pool1d as avg_pool1d
from reactgrad.ops.neural._means import avg_pool2d as avg_pool2d
from reactgrad.ops.neural._means import avg_pool3d as avg_pool3d
from reactgrad.ops.neural._norm_pooling import lp_pool1d as lp_pool1d
from reactgrad.ops.neural._norm_pooling import lp_pool2d as lp_pool2d
from reactgrad.ops.neural._norm_pooling import lp_pool3d as lp_pool3d
from reactgrad.ops.neural._normalization import batch_moments as batch_moments
from reactgrad.ops.neural._normalization import batch_norm as batch_norm
from reactgrad.ops.neural._normalization import group_norm as group_norm
from reactgrad.ops.neural._normalization import instance_norm as instance_norm
from reactgrad.ops.neural._normalization import rms_norm as rms_norm
from reactgrad.ops.neural._pixel_shuffle import pixel_shuffle as pixel_shuffle
from reactgrad.ops.neural._pixel_shuffle import pixel_unshuffle as pixel_unshuffle
from reactgrad.ops.neural._pooling import adaptive_max_pool1d as adaptive_max_pool1d
from reactgrad.ops.neural._pooling import adaptive_max_pool2d as adaptive_max_pool2d
from reactgrad.ops.neural._pooling import adaptive_max_pool3d as adaptive_max_pool3d
from reactgrad.ops.neural._pooling import global_avg_pool as global_avg_pool
from reactgrad.ops.neural._pooling import global_max_pool as global_max_pool
from reactgrad.ops.neural._pooling import max_pool1d as max_pool1d
from reactgrad.ops.neural._pooling import max_pool2d as max_pool2d
from reactgrad.ops.neural._pooling import max_pool3d as max_pool3d
from reactgrad.ops.neural._recurrence import gru as gru
from reactgrad.ops.neural._recurrence import lstm as lstm
from reactgrad.ops.neural._recurrence import rnn as rnn
from reactgrad.ops.neural._sampling import affine_grid as affine_grid
from reactgrad.ops.neural._sampling import grid_sample as grid_sample
from reactgrad.ops.neural._transposed import conv_transpose1d as conv_transpose1d
from reactgrad.ops.neural._transposed import conv_transpose2d as conv_transpose2d
from reactgrad.ops.neural._transposed import conv_transpose3d as conv_transpose3d
from reactgrad.ops.neural._unfold import fold as fold
from reactgrad.ops.neural._unfold import unfold as unfold
from reactgrad.ops.neural._units import bilinear as bilinear
from reactgrad.ops.neural._units import glu as glu
from reactgrad.ops.neural._units import softmin as softmin
