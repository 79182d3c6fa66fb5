"""In which dtypes the runtimes compute an op, and the dtype that may stand in where one is missing.

The table is what onnxruntime 1.32 has on the CPU for opset 18, where that is less than the standard allows.
Where it has none, the operands are converted to a dtype that holds all of their values.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

DType = np.dtype[Any]

FLOATS: Final = "f2 f4 f8"
SINGLES: Final = "f2 f4"
NUMBERS: Final = "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8"
ALL: Final = f"{NUMBERS} b1"
SUMMED: Final = "f2 f4 f8 i4 i8"
ORDERED: Final = "f2 f4 f8 i1 i4 i8 u1 u4 u8"
BITS: Final = "i1 i2 i4 i8 u1 u2 u4 u8"

# fmt: off
KERNELS: Final[dict[str, frozenset[str]]] = {
    op: frozenset(dtypes.split())
    for dtypes, ops in {
        ALL: "Concat Expand Flatten Gather GatherElements GatherND Identity Reshape ScatterElements ScatterND "
             "Shape Slice Split Squeeze Tile Transpose Unsqueeze Equal ConstantOfShape",
        NUMBERS: "Abs Add Div Mul Sub Mod Sign Greater GreaterOrEqual Less LessOrEqual",
        "f2 f4 f8 i1 i2 i4 i8": "Neg",
        FLOATS: "Exp Log Sqrt Reciprocal Sin Cos Tanh Sigmoid Floor Ceil Round IsNaN Softmax LogSoftmax "
                "LayerNormalization BatchNormalization Gemm",
        "f4 f8": "IsInf Range",
        SINGLES: "Acos Acosh Asin Asinh Atan Atanh AveragePool Conv ConvTranspose Cosh Det Elu Erf Gelu "
                 "GRU LSTM GlobalAveragePool GridSample HardSigmoid HardSwish InstanceNormalization LRN LeakyRelu "
                 "LpPool Mish PRelu RNN Selu Sinh Softplus Softsign Tan ThresholdedRelu Celu",
        "b1": "And Or Xor Not",
        BITS: "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot",
        "u1 u2 u4 u8": "BitShift",
        SUMMED: "CumSum Einsum Pow ReduceSum ReduceMean ReduceProd ReduceL1 ReduceL2 ReduceSumSquare "
                "ReduceLogSumExp",
        ORDERED: "Clip Max Min",
        f"{ORDERED} b1": "Pad",
        "f2 f4 f8 i1 i4 i8 u1": "ArgMax ArgMin ReduceMax ReduceMin",
        "f2 f4 f8 i1 i2 i4 i8 u1": "TopK",
        "f2 f4 f8 i1 u1": "MaxPool DepthToSpace SpaceToDepth",
        "f2 f4 f8 i4 i8 u4 u8": "MatMul",
        "f2 f4 i4 i8 u1 b1": "NonZero",
        "f2 f4 f8 i1 i4": "Relu",
        "f2 f4 i1 i4 u1": "Resize",
        "f2 f4 f8 i4 i8 b1": "Trilu",
        "f2 f4 f8 i1 i4 i8 u1 u4": "Where",
    }.items()
    for op in ops.split()
}
# fmt: on
# Dtypes that hold all values of one, nearest first.
WIDER: Final = {
    "b1": ("u1", "i4", "i8", "f4"),
    "i1": ("i2", "i4", "i8", "f4", "f8"),
    "i2": ("i4", "i8", "f4", "f8"),
    "i4": ("i8", "f8"),
    "u1": ("i2", "u2", "i4", "u4", "i8", "f4", "f8"),
    "u2": ("i4", "u4", "i8", "f4", "f8"),
    "u4": ("i8", "f8"),
    "f2": ("f4", "f8"),
    "f4": ("f8",),
}


def code(dtype: DType) -> str:
    """Return the kind and the size of a dtype: ``f4``."""
    return f"{dtype.kind}{dtype.itemsize}"


def computed_in(op: str, dtype: DType) -> DType | None:
    """Return the dtype in which an op is computed for operands of this one; ``None`` if there is none."""
    own, known = code(dtype), KERNELS.get(op)
    if known is None or own in known:
        return dtype
    return next((np.dtype(one) for one in WIDER.get(own, ()) if one in known), None)
