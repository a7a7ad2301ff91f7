"""How large a model of given weights can be, where each is stored once."""

from albert_tf.tasks.base import AlbertTask
from export.quantization import Recipe
from export.signatures import Length
from export.tflite_model import Model

# What a model holds beside its weights: the graph, some of it for each block that is written out, and quantisation
# scales. The converter may also merge equal vectors, such as biases of zeros.
TOLERATED_SHARE = 0.03
GRAPH_BYTES = 40_000
GRAPH_BYTES_PER_STEP = 14_000
# Of a full-integer file, which is written out and has scales for every tensor and constants for its length.
INTEGER_GRAPH_BYTES_PER_STEP, INTEGER_GRAPH_BYTES_PER_TOKEN = 32_000, 300


def size_limits(
    task: AlbertTask, recipe: Recipe, *, form: str, length: Length, text_input: bool = False
) -> tuple[int, int]:
    """The fewest and the most bytes that a model with every weight, once, can take, but for a tokenizer in it."""
    config = task.backbone.config
    # Of the position table the converter keeps the rows that a fixed length uses.
    lengths = length if isinstance(length, tuple) else (length,)
    longest = max(n or config.max_sequence_length for n in lengths)
    dropped = (config.max_sequence_length - longest) * config.summed_dim
    lowest = recipe.weight_bytes * (task.count_params() - dropped)
    highest = sum(
        recipe.stored_bytes(path, weight.shape) * (2 if path in task.stored_twice else 1)
        for path, weight in task.named_weights().items()
    )
    steps = len(config.block_schedule if form == "unrolled" else set(config.block_schedule))
    graph = GRAPH_BYTES + GRAPH_BYTES_PER_STEP * steps
    if recipe.activation_bits is not None:
        graph = GRAPH_BYTES + INTEGER_GRAPH_BYTES_PER_STEP * steps + INTEGER_GRAPH_BYTES_PER_TOKEN * longest
    return (
        round((1 - TOLERATED_SHARE) * lowest),
        round((1 + TOLERATED_SHARE) * highest) + graph * (len(lengths) + text_input),
    )


def tokenizer_bytes(model: Model) -> int:
    """What the tables of a tokenizer take of a model: the constants that custom operators read."""
    found = {
        tensor.buffer: tensor.stored_bytes
        for graph in model.subgraphs
        for operator in graph.operators
        if operator.custom is not None
        for tensor in (graph.tensors[index] for index in operator.inputs if index >= 0)
    }
    return sum(found.values())
