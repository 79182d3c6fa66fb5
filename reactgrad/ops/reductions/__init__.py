"""Reductions, scans and statistics over axes.

- ``_scan``: running sums and products; the recurrence that their derivatives are made of.
- ``_product``: products over axes.
- ``_truth``: all, any, count_nonzero.
- ``_deviation``: var, std, ptp.
- ``_norm``: norms of vectors and matrices.
- ``_logsumexp``: logarithms of sums of exponentials.
- ``_running``: running extrema.
- ``_extrema``: amax, amin, nanmax, nanmin.
- ``_nan``: the other reductions and scans that leave NaN out.
- ``_quantile``: medians, percentiles, quantiles.
- ``_average``: averages with weights, covariances, correlations.
- ``_difference``: diff, ediff1d, gradient, trapezoid, unwrap.
- ``_histogram``: histograms and counts of integers.
- ``_position``: argmax, argmin, nanargmax, nanargmin.
"""

from reactgrad.ops.reductions._average import average as average
from reactgrad.ops.reductions._average import corrcoef as corrcoef
from reactgrad.ops.reductions._average import cov as cov
from reactgrad.ops.reductions._deviation import ptp as ptp
from reactgrad.ops.reductions._deviation import std as std
from reactgrad.ops.reductions._deviation import var as var
from reactgrad.ops.reductions._difference import diff as diff
from reactgrad.ops.reductions._difference import ediff1d as ediff1d
from reactgrad.ops.reductions._difference import gradient as gradient
from reactgrad.ops.reductions._difference import trapezoid as trapezoid
from reactgrad.ops.reductions._difference import unwrap as unwrap
from reactgrad.ops.reductions._extrema import amax as amax
from reactgrad.ops.reductions._extrema import amin as amin
from reactgrad.ops.reductions._extrema import nanmax as nanmax
from reactgrad.ops.reductions._extrema import nanmin as nanmin
from reactgrad.ops.reductions._histogram import bincount as bincount
from reactgrad.ops.reductions._histogram import histogram as histogram
from reactgrad.ops.reductions._histogram import histogram2d as histogram2d
from reactgrad.ops.reductions._histogram import histogram_bin_edges as histogram_bin_edges
from reactgrad.ops.reductions._histogram import histogramdd as histogramdd
from reactgrad.ops.reductions._logsumexp import logcumsumexp as logcumsumexp
from reactgrad.ops.reductions._logsumexp import logsumexp as logsumexp
from reactgrad.ops.reductions._nan import nancumprod as nancumprod
from reactgrad.ops.reductions._nan import nancumsum as nancumsum
from reactgrad.ops.reductions._nan import nanmean as nanmean
from reactgrad.ops.reductions._nan import nanprod as nanprod
from reactgrad.ops.reductions._nan import nanstd as nanstd
from reactgrad.ops.reductions._nan import nansum as nansum
from reactgrad.ops.reductions._nan import nanvar as nanvar
from reactgrad.ops.reductions._norm import norm as norm
from reactgrad.ops.reductions._position import argmax as argmax
from reactgrad.ops.reductions._position import argmin as argmin
from reactgrad.ops.reductions._position import nanargmax as nanargmax
from reactgrad.ops.reductions._position import nanargmin as nanargmin
from reactgrad.ops.reductions._product import prod as prod
from reactgrad.ops.reductions._quantile import median as median
from reactgrad.ops.reductions._quantile import nanmedian as nanmedian
from reactgrad.ops.reductions._quantile import nanpercentile as nanpercentile
from reactgrad.ops.reductions._quantile import nanquantile as nanquantile
from reactgrad.ops.reductions._quantile import percentile as percentile
from reactgrad.ops.reductions._quantile import quantile as quantile
from reactgrad.ops.reductions._running import cummax as cummax
from reactgrad.ops.reductions._running import cummin as cummin
from reactgrad.ops.reductions._scan import cumprod as cumprod
from reactgrad.ops.reductions._scan import cumsum as cumsum
from reactgrad.ops.reductions._scan import cumulative_prod as cumulative_prod
from reactgrad.ops.reductions._scan import cumulative_sum as cumulative_sum
from reactgrad.ops.reductions._truth import all as all
from reactgrad.ops.reductions._truth import any as any
from reactgrad.ops.reductions._truth import count_nonzero as count_nonzero
