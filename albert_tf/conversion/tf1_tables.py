"""The variables of TF1 checkpoints: what is common to all, and the table of google-research/albert."""

from collections.abc import Mapping, Set
from typing import NamedTuple

from albert_tf.config import AlbertConfig


class Variable(NamedTuple):
    """A variable of the checkpoint: its name, its axes (a letter or digit each), and whether ours is transposed.

    Letters: those of `AXES`; C is 2H; L is the number of labels.
    """

    name: str
    axes: str
    transposed: bool = False


Table = Mapping[str, Variable]

# Axis letter → (field of albert_config.json, our field).
AXES = {
    "V": ("vocab_size", "vocabulary_size"),
    "E": ("embedding_size", "embedding_dim"),
    "H": ("hidden_size", "hidden_dim"),
    "I": ("intermediate_size", "intermediate_dim"),
    "P": ("max_position_embeddings", "max_sequence_length"),
    "T": ("type_vocab_size", "num_segments"),
}


class Layout(NamedTuple):
    """How one system names its variables: our name → variable.

    Attributes:
        form: the system's name.
        embeddings: the three tables and their layer norm.
        projection: in the file where the config has a projection.
        block: attention and feed-forward block; {n} counts the blocks, n = g · inner_group_num + i.
        masked_lm: the masked-word head.
    """

    form: str
    embeddings: Table
    projection: Table
    block: Table
    masked_lm: Table


def dense(ours: str, theirs: str, axes: str) -> dict[str, Variable]:
    return {f"{ours}/kernel": Variable(f"{theirs}/kernel", axes), f"{ours}/bias": Variable(f"{theirs}/bias", axes[-1])}


def layer_norm(ours: str, theirs: str, axis: str) -> dict[str, Variable]:
    return {f"{ours}/{part}": Variable(f"{theirs}/{part}", axis) for part in ("gamma", "beta")}


def _output(ours: str, theirs: str, axis: str) -> dict[str, Variable]:
    """A last layer, which the original code multiplies transposed."""
    return {
        f"{ours}/kernel": Variable(f"{theirs}output_weights", f"{axis}H", transposed=True),
        f"{ours}/bias": Variable(f"{theirs}output_bias", axis),
    }


def embeddings(width: str) -> dict[str, Variable]:
    """The three tables and their layer norm; `width` is the axis of all but the word table."""
    return {
        "embeddings/word_embedding/embeddings": Variable("bert/embeddings/word_embeddings", "VE"),
        "embeddings/segment_embedding/embeddings": Variable("bert/embeddings/token_type_embeddings", f"T{width}"),
        "embeddings/position_embedding/embeddings": Variable("bert/embeddings/position_embeddings", f"P{width}"),
        **layer_norm("embeddings/layer_norm", "bert/embeddings/LayerNorm", width),
    }


def masked_lm(width: str) -> dict[str, Variable]:
    """The masked-word head; `width` is the axis it transforms to."""
    return {
        **dense("masked_lm/transform", "cls/predictions/transform/dense", f"H{width}"),
        **layer_norm("masked_lm/layer_norm", "cls/predictions/transform/LayerNorm", width),
        "masked_lm/output_bias": Variable("cls/predictions/output_bias", "V"),
    }


_GROUP = "bert/encoder/transformer/group_{g}/inner_group_{i}"

# As modeling.py and run_pretraining.py of google-research/albert create them.
GOOGLE = Layout(
    form="google",
    embeddings=embeddings("E"),
    projection=dense("embeddings/projection", "bert/encoder/embedding_hidden_mapping_in", "EH"),
    block={
        **dense("encoder/attention_{n}/query", f"{_GROUP}/attention_1/self/query", "HH"),
        **dense("encoder/attention_{n}/key", f"{_GROUP}/attention_1/self/key", "HH"),
        **dense("encoder/attention_{n}/value", f"{_GROUP}/attention_1/self/value", "HH"),
        **dense("encoder/attention_{n}/output", f"{_GROUP}/attention_1/output/dense", "HH"),
        **layer_norm("encoder/attention_{n}/layer_norm", f"{_GROUP}/LayerNorm", "H"),
        **dense("encoder/feed_forward_{n}/intermediate", f"{_GROUP}/ffn_1/intermediate/dense", "HI"),
        # The original opens the scope of the output inside that of the intermediate layer.
        **dense("encoder/feed_forward_{n}/output", f"{_GROUP}/ffn_1/intermediate/output/dense", "IH"),
        **layer_norm("encoder/feed_forward_{n}/layer_norm", f"{_GROUP}/LayerNorm_1", "H"),
    },
    masked_lm=masked_lm("E"),
)

# Each of these, and the masked-word head, is in a file as a whole or not at all.
_POOLER = dense("pooler", "bert/pooler/dense", "HH")
_SENTENCE_ORDER = _output("sentence_order", "cls/seq_relationship/", "2")
_CLASSIFIER = _output("classifier", "", "L")  # of run_classifier.py and run_race.py
_SQUAD_1 = _output("question_answering", "cls/squad/", "2")  # of run_squad_v1.py
_SQUAD_2 = {  # of run_squad_v2.py (squad_utils.py, create_v2_model)
    **dense("question_answering/start", "start_logits/dense", "H1"),
    **dense("question_answering/end_hidden", "end_logits/dense_0", "CH"),
    **layer_norm("question_answering/end_layer_norm", "end_logits/LayerNorm", "H"),
    **dense("question_answering/end", "end_logits/dense_1", "H1"),
    **dense("question_answering/no_answer_hidden", "answer_class/dense_0", "CH"),
    "question_answering/no_answer/kernel": Variable("answer_class/dense_1/kernel", "H1"),
}


def required_table(layout: Layout, config: AlbertConfig) -> dict[str, Variable]:
    """Our name → variable of what every checkpoint of this config has: the encoder without its pooler."""
    table = dict(layout.embeddings)
    if config.has_projection:
        table |= layout.projection
    for g in range(config.num_groups):
        for i in range(config.num_inner_repetitions):
            n = g * config.num_inner_repetitions + i
            table |= {ours.format(n=n): v._replace(name=v.name.format(g=g, i=i)) for ours, v in layout.block.items()}
    return table


def optional_tables(layout: Layout) -> tuple[Table, ...]:
    """The pooler and the heads."""
    return _POOLER, layout.masked_lm, _SENTENCE_ORDER, _CLASSIFIER, _SQUAD_1, _SQUAD_2


def table_of_file(layout: Layout, config: AlbertConfig, names: Set[str]) -> dict[str, Variable]:
    """What a file must hold that has variables called `names`: with every part that it has anything of."""
    table = required_table(layout, config)
    for part in optional_tables(layout):
        if any(variable.name in names for variable in part.values()):
            table |= part
    return table


def table_of_weights(layout: Layout, config: AlbertConfig, ours: Set[str]) -> dict[str, Variable]:
    """What a file must hold for the weights called `ours`."""
    table = required_table(layout, config)
    for part in optional_tables(layout):
        if not ours.isdisjoint(part):
            table |= part
    return table
