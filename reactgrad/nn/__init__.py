"""Layers, losses and models whose weights are live nodes, with PyTorch's names and layouts.

``Module``
    The base: layers and params as attributes, and ``forward``. Called with arrays, Vars or detached Vars, it builds
    nodes once for each structure and feeds them afterwards.
``Sequential``, ``ModuleList``, ``ModuleDict``, ``ParameterList``, ``ParameterDict``, ``Parameter``
    What modules are made of.
``init``, ``functional``, ``utils``
    First values of params; functions of arrays under PyTorch's names; sequences of several lengths.

Layers make their params in the current graph. ``rng=`` is a seed or a generator of NumPy for their first values;
without one they follow from the seed of the graph. ``dtype=`` is that of the params, float64 by default.

- ``_registry``: params, buffers and modules by path. ``_parameter``: ``Parameter``.
- ``_building``: calls, built once. ``_forward_hooks``: hooks. ``_module``: ``Module``.
- ``_containers``: modules that hold others.
- ``_state``: state dicts. ``_moving``: other dtypes and devices. ``_shown``: modules as text.
- ``_packed``: sequences of several lengths. ``_values``: arrays of first values, by the formulas of ``init``.
- The other files hold layers or criteria, a family each.
"""

from reactgrad._habits import absent_from as _absent_from
from reactgrad._names_of_torch import OF_NN as _OF_NN
from reactgrad.nn import functional as functional
from reactgrad.nn import init as init
from reactgrad.nn import utils as utils
from reactgrad.nn._activations import CELU as CELU
from reactgrad.nn._activations import ELU as ELU
from reactgrad.nn._activations import GELU as GELU
from reactgrad.nn._activations import GLU as GLU
from reactgrad.nn._activations import SELU as SELU
from reactgrad.nn._activations import Hardshrink as Hardshrink
from reactgrad.nn._activations import Hardsigmoid as Hardsigmoid
from reactgrad.nn._activations import Hardswish as Hardswish
from reactgrad.nn._activations import Hardtanh as Hardtanh
from reactgrad.nn._activations import LeakyReLU as LeakyReLU
from reactgrad.nn._activations import LogSigmoid as LogSigmoid
from reactgrad.nn._activations import LogSoftmax as LogSoftmax
from reactgrad.nn._activations import Mish as Mish
from reactgrad.nn._activations import PReLU as PReLU
from reactgrad.nn._activations import ReLU as ReLU
from reactgrad.nn._activations import ReLU6 as ReLU6
from reactgrad.nn._activations import RReLU as RReLU
from reactgrad.nn._activations import Sigmoid as Sigmoid
from reactgrad.nn._activations import SiLU as SiLU
from reactgrad.nn._activations import Softmax as Softmax
from reactgrad.nn._activations import Softmax2d as Softmax2d
from reactgrad.nn._activations import Softmin as Softmin
from reactgrad.nn._activations import Softplus as Softplus
from reactgrad.nn._activations import Softshrink as Softshrink
from reactgrad.nn._activations import Softsign as Softsign
from reactgrad.nn._activations import Tanh as Tanh
from reactgrad.nn._activations import Tanhshrink as Tanhshrink
from reactgrad.nn._activations import Threshold as Threshold
from reactgrad.nn._adaptive_softmax import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from reactgrad.nn._arrangement import ChannelShuffle as ChannelShuffle
from reactgrad.nn._arrangement import Flatten as Flatten
from reactgrad.nn._arrangement import Fold as Fold
from reactgrad.nn._arrangement import PixelShuffle as PixelShuffle
from reactgrad.nn._arrangement import PixelUnshuffle as PixelUnshuffle
from reactgrad.nn._arrangement import Unflatten as Unflatten
from reactgrad.nn._arrangement import Unfold as Unfold
from reactgrad.nn._arrangement import Upsample as Upsample
from reactgrad.nn._arrangement import UpsamplingBilinear2d as UpsamplingBilinear2d
from reactgrad.nn._arrangement import UpsamplingNearest2d as UpsamplingNearest2d
from reactgrad.nn._attention import MultiheadAttention as MultiheadAttention
from reactgrad.nn._batch_norm import BatchNorm1d as BatchNorm1d
from reactgrad.nn._batch_norm import BatchNorm2d as BatchNorm2d
from reactgrad.nn._batch_norm import BatchNorm3d as BatchNorm3d
from reactgrad.nn._batch_norm import InstanceNorm1d as InstanceNorm1d
from reactgrad.nn._batch_norm import InstanceNorm2d as InstanceNorm2d
from reactgrad.nn._batch_norm import InstanceNorm3d as InstanceNorm3d
from reactgrad.nn._containers import ModuleDict as ModuleDict
from reactgrad.nn._containers import ModuleList as ModuleList
from reactgrad.nn._containers import ParameterDict as ParameterDict
from reactgrad.nn._containers import ParameterList as ParameterList
from reactgrad.nn._containers import Sequential as Sequential
from reactgrad.nn._convolution import Conv1d as Conv1d
from reactgrad.nn._convolution import Conv2d as Conv2d
from reactgrad.nn._convolution import Conv3d as Conv3d
from reactgrad.nn._convolution import ConvTranspose1d as ConvTranspose1d
from reactgrad.nn._convolution import ConvTranspose2d as ConvTranspose2d
from reactgrad.nn._convolution import ConvTranspose3d as ConvTranspose3d
from reactgrad.nn._distances import CosineEmbeddingLoss as CosineEmbeddingLoss
from reactgrad.nn._distances import CosineSimilarity as CosineSimilarity
from reactgrad.nn._distances import MarginRankingLoss as MarginRankingLoss
from reactgrad.nn._distances import PairwiseDistance as PairwiseDistance
from reactgrad.nn._distances import TripletMarginLoss as TripletMarginLoss
from reactgrad.nn._distances import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from reactgrad.nn._dropout import AlphaDropout as AlphaDropout
from reactgrad.nn._dropout import Dropout as Dropout
from reactgrad.nn._dropout import Dropout1d as Dropout1d
from reactgrad.nn._dropout import Dropout2d as Dropout2d
from reactgrad.nn._dropout import Dropout3d as Dropout3d
from reactgrad.nn._dropout import FeatureAlphaDropout as FeatureAlphaDropout
from reactgrad.nn._embedding import Embedding as Embedding
from reactgrad.nn._embedding import EmbeddingBag as EmbeddingBag
from reactgrad.nn._lazy import LazyBatchNorm1d as LazyBatchNorm1d
from reactgrad.nn._lazy import LazyBatchNorm2d as LazyBatchNorm2d
from reactgrad.nn._lazy import LazyBatchNorm3d as LazyBatchNorm3d
from reactgrad.nn._lazy import LazyConv1d as LazyConv1d
from reactgrad.nn._lazy import LazyConv2d as LazyConv2d
from reactgrad.nn._lazy import LazyConv3d as LazyConv3d
from reactgrad.nn._lazy import LazyConvTranspose1d as LazyConvTranspose1d
from reactgrad.nn._lazy import LazyConvTranspose2d as LazyConvTranspose2d
from reactgrad.nn._lazy import LazyConvTranspose3d as LazyConvTranspose3d
from reactgrad.nn._lazy import LazyInstanceNorm1d as LazyInstanceNorm1d
from reactgrad.nn._lazy import LazyInstanceNorm2d as LazyInstanceNorm2d
from reactgrad.nn._lazy import LazyInstanceNorm3d as LazyInstanceNorm3d
from reactgrad.nn._lazy import LazyLinear as LazyLinear
from reactgrad.nn._linear import Bilinear as Bilinear
from reactgrad.nn._linear import Identity as Identity
from reactgrad.nn._linear import Linear as Linear
from reactgrad.nn._loss import Loss as Loss
from reactgrad.nn._losses import BCELoss as BCELoss
from reactgrad.nn._losses import BCEWithLogitsLoss as BCEWithLogitsLoss
from reactgrad.nn._losses import CrossEntropyLoss as CrossEntropyLoss
from reactgrad.nn._losses import CTCLoss as CTCLoss
from reactgrad.nn._losses import GaussianNLLLoss as GaussianNLLLoss
from reactgrad.nn._losses import HuberLoss as HuberLoss
from reactgrad.nn._losses import KLDivLoss as KLDivLoss
from reactgrad.nn._losses import L1Loss as L1Loss
from reactgrad.nn._losses import MSELoss as MSELoss
from reactgrad.nn._losses import NLLLoss as NLLLoss
from reactgrad.nn._losses import PoissonNLLLoss as PoissonNLLLoss
from reactgrad.nn._losses import SmoothL1Loss as SmoothL1Loss
from reactgrad.nn._margins import HingeEmbeddingLoss as HingeEmbeddingLoss
from reactgrad.nn._margins import MultiLabelMarginLoss as MultiLabelMarginLoss
from reactgrad.nn._margins import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from reactgrad.nn._margins import MultiMarginLoss as MultiMarginLoss
from reactgrad.nn._margins import SoftMarginLoss as SoftMarginLoss
from reactgrad.nn._module import Module as Module
from reactgrad.nn._normalization import GroupNorm as GroupNorm
from reactgrad.nn._normalization import LayerNorm as LayerNorm
from reactgrad.nn._normalization import LocalResponseNorm as LocalResponseNorm
from reactgrad.nn._normalization import RMSNorm as RMSNorm
from reactgrad.nn._padding import CircularPad1d as CircularPad1d
from reactgrad.nn._padding import CircularPad2d as CircularPad2d
from reactgrad.nn._padding import CircularPad3d as CircularPad3d
from reactgrad.nn._padding import ConstantPad1d as ConstantPad1d
from reactgrad.nn._padding import ConstantPad2d as ConstantPad2d
from reactgrad.nn._padding import ConstantPad3d as ConstantPad3d
from reactgrad.nn._padding import ReflectionPad1d as ReflectionPad1d
from reactgrad.nn._padding import ReflectionPad2d as ReflectionPad2d
from reactgrad.nn._padding import ReflectionPad3d as ReflectionPad3d
from reactgrad.nn._padding import ReplicationPad1d as ReplicationPad1d
from reactgrad.nn._padding import ReplicationPad2d as ReplicationPad2d
from reactgrad.nn._padding import ReplicationPad3d as ReplicationPad3d
from reactgrad.nn._padding import ZeroPad1d as ZeroPad1d
from reactgrad.nn._padding import ZeroPad2d as ZeroPad2d
from reactgrad.nn._padding import ZeroPad3d as ZeroPad3d
from reactgrad.nn._parameter import Parameter as Parameter
from reactgrad.nn._pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from reactgrad.nn._pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from reactgrad.nn._pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from reactgrad.nn._pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from reactgrad.nn._pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from reactgrad.nn._pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from reactgrad.nn._pooling import AvgPool1d as AvgPool1d
from reactgrad.nn._pooling import AvgPool2d as AvgPool2d
from reactgrad.nn._pooling import AvgPool3d as AvgPool3d
from reactgrad.nn._pooling import FractionalMaxPool2d as FractionalMaxPool2d
from reactgrad.nn._pooling import FractionalMaxPool3d as FractionalMaxPool3d
from reactgrad.nn._pooling import LPPool1d as LPPool1d
from reactgrad.nn._pooling import LPPool2d as LPPool2d
from reactgrad.nn._pooling import LPPool3d as LPPool3d
from reactgrad.nn._pooling import MaxPool1d as MaxPool1d
from reactgrad.nn._pooling import MaxPool2d as MaxPool2d
from reactgrad.nn._pooling import MaxPool3d as MaxPool3d
from reactgrad.nn._pooling import MaxUnpool1d as MaxUnpool1d
from reactgrad.nn._pooling import MaxUnpool2d as MaxUnpool2d
from reactgrad.nn._pooling import MaxUnpool3d as MaxUnpool3d
from reactgrad.nn._recurrent import GRU as GRU
from reactgrad.nn._recurrent import LSTM as LSTM
from reactgrad.nn._recurrent import RNN as RNN
from reactgrad.nn._recurrent import GRUCell as GRUCell
from reactgrad.nn._recurrent import LSTMCell as LSTMCell
from reactgrad.nn._recurrent import RNNCell as RNNCell
from reactgrad.nn._transformer import Transformer as Transformer
from reactgrad.nn._transformer import TransformerDecoder as TransformerDecoder
from reactgrad.nn._transformer import TransformerDecoderLayer as TransformerDecoderLayer
from reactgrad.nn._transformer import TransformerEncoder as TransformerEncoder
from reactgrad.nn._transformer import TransformerEncoderLayer as TransformerEncoderLayer

__getattr__ = _absent_from(__name__, _OF_NN)
