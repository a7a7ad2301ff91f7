"""Which operators TFLite's GPU delegate takes, by its published rules.

They are those of tensorflow/lite/tools/versioning/gpu_compatibility.cc and delegates/gpu/common/model_builder_helper.cc,
as far as a file alone tells: kinds of operators, types, ranks and masks. A device may still refuse what they allow.
"""

from export.tflite_model import Operator, Subgraph, Tensor

_UNARY = (
    "ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH", "LEAKY_RELU", "LOG", "LOGISTIC", "NEG", "PRELU",
    "RELU", "RELU6", "RELU_N1_TO_1", "RSQRT", "SIGN", "SIN", "SQRT", "SQUARE", "TANH",
)  # fmt: skip
_COMPARISONS = ("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "LOGICAL_AND", "NOT_EQUAL")
_BINARY = (
    "ADD", "ADD_N", "ATAN2", "DIV", "FLOOR_DIV", "FLOOR_MOD", "MAXIMUM", "MINIMUM", "MUL", "POW", "SQUARED_DIFFERENCE",
    "SUB",
)  # fmt: skip
_OTHERS = (
    "AVERAGE_POOL_2D", "BATCH_MATMUL", "CAST", "CONCATENATION", "CONV_2D", "CUMSUM", "DENSIFY", "DEPTHWISE_CONV_2D",
    "DEPTH_TO_SPACE", "DEQUANTIZE", "DYNAMIC_UPDATE_SLICE", "EMBEDDING_LOOKUP", "FULLY_CONNECTED", "GATHER", "LSTM",
    "MAX_POOL_2D", "MEAN", "MIRROR_PAD", "ONE_HOT", "PACK", "PAD", "PADV2", "QUANTIZE", "REDUCE_MAX", "REDUCE_MIN",
    "REDUCE_PROD", "RESHAPE", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SELECT", "SELECT_V2", "SLICE", "SOFTMAX",
    "SPACE_TO_DEPTH", "SPLIT", "SPLIT_V", "STABLEHLO_CLAMP", "STRIDED_SLICE", "SUM", "TILE", "TRANSPOSE",
    "TRANSPOSE_CONV",
)  # fmt: skip
SUPPORTED = frozenset((*_UNARY, *_COMPARISONS, *_BINARY, *_OTHERS))
_DATA = ("FLOAT32", "FLOAT16")
_QUANTISED_DATA = ("INT8", "UINT8")
# Types that some operators take or give beside data.
_INTEGERS_IN = ("CAST", "DYNAMIC_UPDATE_SLICE", "EMBEDDING_LOOKUP", "GATHER", "ONE_HOT")
_TRUTHS_IN = ("CAST", "LOGICAL_AND", "SELECT", "SELECT_V2")
_TRUTHS_OUT = (*_COMPARISONS, "CAST")
_HIGHEST_RANK = 4
# StridedSliceOptions: the masks that must be zero, by their place.
_SLICE_MASKS = {2: "ellipsis", 3: "new axis", 4: "shrink axis"}


def why_not_on_gpu(operator: Operator, graph: Subgraph) -> str | None:
    """Why the delegate leaves an operator to the CPU; None where no rule says so."""
    if operator.name not in SUPPORTED:
        return f"{operator.custom or operator.name}: it has none"
    inputs = [graph.tensors[i] for i in operator.inputs if i >= 0]
    outputs = [graph.tensors[i] for i in operator.outputs]
    reason = (
        _wrong_type(operator.name, inputs, outputs)
        or _wrong_rank(operator.name, inputs, outputs)
        or _wrong_options(operator)
    )
    return None if reason is None else f"{operator.name}: {reason}"


def _wrong_type(name: str, inputs: list[Tensor], outputs: list[Tensor]) -> str | None:
    more_in = ("INT32",) * (name in _INTEGERS_IN) + ("BOOL",) * (name in _TRUTHS_IN)
    more_out = ("BOOL",) * (name in _TRUTHS_OUT) + ("INT32",) * (name == "CAST")
    for tensors, more in (([t for t in inputs if not t.stored_bytes], more_in), (outputs, more_out)):
        for tensor in tensors:
            quantised = tensor.type in _QUANTISED_DATA and tensor.quantization is not None
            if tensor.type not in (*_DATA, *more) and not quantised:
                return f"{tensor.type.lower()} values"
    if name == "GATHER" and inputs and inputs[0].type == "INT32":
        return "a table of int32"
    return None


def _wrong_rank(name: str, inputs: list[Tensor], outputs: list[Tensor]) -> str | None:
    computed = [tensor for tensor in (*inputs, *outputs) if not tensor.stored_bytes]
    highest = max((len(tensor.shape) for tensor in computed), default=0)
    if highest > _HIGHEST_RANK:
        return f"{highest} dimensions"
    if name in ("GATHER", "EMBEDDING_LOOKUP"):
        indices = inputs[1 if name == "GATHER" else 0] if len(inputs) > 1 else None
        if indices is not None and len(indices.shape) != 1:
            return f"indices of {len(indices.shape)} dimensions"
    if name in ("SLICE", "STRIDED_SLICE") and inputs and len(inputs[0].shape) not in (3, 4):
        return f"{len(inputs[0].shape)} dimensions"
    return None


def _wrong_options(operator: Operator) -> str | None:
    if operator.name != "STRIDED_SLICE" or operator.options is None:
        return None
    masks = [name for field, name in _SLICE_MASKS.items() if operator.options.number(field, "i")]
    return f"a mask ({', '.join(masks)})" if masks else None
