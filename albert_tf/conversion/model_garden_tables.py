"""Where the TF Model Garden's objects keep their variables: our name → the attributes that lead there."""

from collections.abc import Mapping
from typing import NamedTuple

from albert_tf.conversion.object_graph import ObjectGraph
from albert_tf.errors import InputError


class Variable(NamedTuple):
    """A variable: the attributes that lead to it from its part's object, and its axes.

    Letters: those of `AXES`; D the width of one of A heads, A · D = H; L labels; 2 is itself.
    """

    path: str
    axes: str


Table = Mapping[str, Variable]

AXES = {
    "V": "vocabulary_size",
    "E": "embedding_dim",
    "H": "hidden_dim",
    "I": "intermediate_dim",
    "A": "num_heads",
    "P": "max_sequence_length",
    "T": "num_segments",
}


def _dense(ours: str, theirs: str, axes: str, bias: str) -> dict[str, Variable]:
    return {f"{ours}/kernel": Variable(f"{theirs}/kernel", axes), f"{ours}/bias": Variable(f"{theirs}/bias", bias)}


def _layer_norm(ours: str, theirs: str, axis: str) -> dict[str, Variable]:
    return {f"{ours}/{part}": Variable(f"{theirs}/{part}", axis) for part in ("gamma", "beta")}


# AlbertEncoder numbers its layers in the order of its graph.
_LAYER = "layer_with_weights-{}"
WORD_TABLE = f"{_LAYER.format(0)}/embeddings"
# Attributes of the layer that all share, TransformerEncoderBlock, and of Transformer before it.
_BLOCK = ("_attention_layer", "_attention_layer_norm", "_intermediate_dense", "_output_dense", "_output_layer_norm")


def encoder_table(has_projection: bool) -> dict[str, Variable]:
    """AlbertEncoder (official/nlp/modeling/networks/albert_encoder.py)."""
    projection = _dense("embeddings/projection", _LAYER.format(4), "EH", "H") if has_projection else {}
    block, pooler = (_LAYER.format(4 + has_projection + n) for n in range(2))
    attention = f"{block}/_attention_layer"
    return {
        "embeddings/word_embedding/embeddings": Variable(WORD_TABLE, "VE"),
        "embeddings/position_embedding/embeddings": Variable(f"{_LAYER.format(1)}/embeddings", "PE"),
        "embeddings/segment_embedding/embeddings": Variable(f"{_LAYER.format(2)}/embeddings", "TE"),
        **_layer_norm("embeddings/layer_norm", _LAYER.format(3), "E"),
        **projection,
        **_dense("encoder/attention_0/query", f"{attention}/_query_dense", "HAD", "AD"),
        **_dense("encoder/attention_0/key", f"{attention}/_key_dense", "HAD", "AD"),
        **_dense("encoder/attention_0/value", f"{attention}/_value_dense", "HAD", "AD"),
        **_dense("encoder/attention_0/output", f"{attention}/_output_dense", "ADH", "H"),
        **_layer_norm("encoder/attention_0/layer_norm", f"{block}/_attention_layer_norm", "H"),
        **_dense("encoder/feed_forward_0/intermediate", f"{block}/_intermediate_dense", "HI", "I"),
        **_dense("encoder/feed_forward_0/output", f"{block}/_output_dense", "IH", "H"),
        **_layer_norm("encoder/feed_forward_0/layer_norm", f"{block}/_output_layer_norm", "H"),
        **_dense("pooler", pooler, "HH", "H"),
    }


MASKED_LM = {  # layers.MaskedLM
    **_dense("masked_lm/transform", "dense", "HE", "E"),
    **_layer_norm("masked_lm/layer_norm", "layer_norm", "E"),
    "masked_lm/output_bias": Variable("bias", "V"),
}
SENTENCE_ORDER = _dense("sentence_order", "out_proj", "H2", "2")  # layers.ClassificationHead in BertPretrainerV2
CLASSIFIER = _dense("classifier", "out_proj", "HL", "L")  # layers.ClassificationHead in BertClassifier
HEAD_POOLER = {"pooler/kernel": Variable("kernel", "HH"), "pooler/bias": Variable("bias", "H")}
TOKEN_CLASSIFIER = {
    "token_classification/kernel": Variable("kernel", "HL"),
    "token_classification/bias": Variable("bias", "L"),
}
SPANS = _dense("question_answering", _LAYER.format(0), "H2", "2")  # networks.SpanLabeling in BertSpanLabeler


class Part(NamedTuple):
    """An object in a checkpoint, and what is taken from below it."""

    node: int
    table: Table


def find_parts(graph: ObjectGraph) -> dict[str, Part]:
    """What a checkpoint has: "encoder", and of the heads "masked_lm", "head" and "pooler", in this order.

    Raises:
        InputError: no ALBERT encoder, or several; several heads of a kind; a masked-word head that is not tied.
    """
    prefix = graph.reader.prefix
    blocks = graph.having(*_BLOCK)
    if len(blocks) != 1:
        found = f"{len(blocks)} of them: BERT, or several models" if blocks else "none"
        raise InputError(
            f"{prefix}: expected an ALBERT of the TF Model Garden, with one layer that is used again and again; found "
            f"{found}"
        )
    encoders = [
        Part(node, encoder_table(has_projection))
        for has_projection, block in ((False, _LAYER.format(4)), (True, _LAYER.format(5)))
        for node in graph.having(block)
        if graph.children[node][block] == blocks[0]
    ]
    if not encoders:
        raise InputError(f"{prefix}: the shared layer is in no AlbertEncoder; expected one of the TF Model Garden")
    candidates = {"encoder": encoders} | _heads(graph)
    if several := [f"{len(found)} of {name}" for name, found in candidates.items() if len(found) > 1]:
        raise InputError(f"{prefix}: expected one encoder and one head of a kind, found {', '.join(several)}")
    parts = {name: found[0] for name, found in candidates.items() if found}
    if "masked_lm" in parts:
        own = graph.follow(parts["masked_lm"].node, "embedding_table")
        if own != graph.follow(parts["encoder"].node, WORD_TABLE):
            raise InputError(f"{prefix}: the masked-word head has a word table of its own; ALBERT's is the encoder's")
    return parts


def _heads(graph: ObjectGraph) -> dict[str, list[Part]]:
    in_pretrainer = {node for heads in graph.called("classification_heads") for node in graph.children[heads].values()}
    heads = [Part(node, SENTENCE_ORDER if node in in_pretrainer else CLASSIFIER) for node in graph.having("out_proj")]
    heads += [Part(node, TOKEN_CLASSIFIER) for node in graph.called("classifier") if "kernel" in graph.children[node]]
    heads += [Part(node, SPANS) for node in graph.called("span_labeling")]
    poolers = {graph.children[node]["dense"] for node in graph.having("out_proj", "dense")}
    poolers |= {
        child for children in graph.children for name, child in children.items() if name.endswith(".pooler_dense")
    }
    return {
        "masked_lm": [Part(node, MASKED_LM) for node in graph.having("embedding_table", "dense", "layer_norm")],
        "head": heads,
        "pooler": [Part(node, HEAD_POOLER) for node in sorted(poolers)],
    }
