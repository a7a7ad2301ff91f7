"""ALBERT as other frameworks run it from their own files, for `albert_tf.evaluation.parity`.

There is one function for each. It takes the files; our config and weights, for what is to be built and which head; and
a batch: token_ids, segment_ids, padding_mask (B, S) and masked_positions (B, P). It returns what it has of: "layer 1",
"layer 2", … and sequence_output (B, S, H), pooled_output (B, H), masked_lm_logits (B, P, V), sentence_order_logits
(B, 2), and the logits of a task head.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.conversion.checkpoint import Weights
from albert_tf.conversion.huggingface import FORM as HUGGING_FACE
from albert_tf.conversion.keras_hub import FORM as KERAS_HUB
from albert_tf.conversion.model_garden import FORM as MODEL_GARDEN
from albert_tf.conversion.model_garden import model_garden_prefix
from albert_tf.conversion.model_garden_tables import find_parts
from albert_tf.conversion.object_graph import ObjectGraph
from albert_tf.errors import InputError

Batch = Mapping[str, np.ndarray]
Outputs = dict[str, np.ndarray]


def run_transformers(path: Path, config: AlbertConfig, weights: Weights, batch: Batch) -> Outputs:
    """transformers, in PyTorch. "gelu" is run as the form that our config says: see `huggingface_config`."""
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()  # what a class leaves out of a file is read by another here
    transformers.utils.logging.disable_progress_bar()
    heads = {
        frozenset({"masked_lm", "sentence_order"}): "AlbertForPreTraining",
        frozenset({"masked_lm"}): "AlbertForMaskedLM",
        frozenset({"classifier"}): "AlbertForSequenceClassification",
        frozenset({"multi_label"}): "AlbertForSequenceClassification",
        frozenset({"token_classification"}): "AlbertForTokenClassification",
        frozenset({"question_answering"}): "AlbertForQuestionAnswering",
        frozenset({"multiple_choice"}): "AlbertForMultipleChoice",
    }
    activations = {"gelu_tanh": "gelu_new", "gelu_erf": "gelu", "relu": "relu", "linear": "linear"}
    kind = heads.get(frozenset(_heads(weights)), "AlbertModel")
    theirs = transformers.AlbertConfig.from_pretrained(str(path), hidden_act=activations[config.activation])
    model = getattr(transformers, kind).from_pretrained(str(path), config=theirs).eval()
    inputs = {
        "input_ids": torch.tensor(batch["token_ids"], dtype=torch.long),
        "token_type_ids": torch.tensor(batch["segment_ids"], dtype=torch.long),
        "attention_mask": torch.tensor(batch["padding_mask"], dtype=torch.long),
    }
    with torch.no_grad():
        encoder = model if kind == "AlbertModel" else model.albert
        encoded = encoder(**inputs, output_hidden_states=True)
        pooled = encoded.pooler_output if "pooler/kernel" in weights else None  # one that is not in the file is random
        if pooled is None and "pooler/kernel" in weights:  # in the file, and not in this class
            pooled = transformers.AlbertModel.from_pretrained(str(path), config=theirs).eval()(**inputs).pooler_output
        states = encoded.hidden_states[1:]
        each = len(states) // config.num_layers  # since release 5 of every inner repetition
        layers = [state.numpy() for state in states[each - 1 :: each]]
        outputs = _encoder_outputs(layers, None if pooled is None else pooled.numpy())
        if kind == "AlbertForMultipleChoice":  # the rows are the choices of one question
            logits = model(**{name: value[None] for name, value in inputs.items()}).logits
            return outputs | {"multiple_choice_logits": logits.numpy().T}
        if kind != "AlbertModel":
            logits = _transformers_logits(kind, model(**inputs), batch["masked_positions"])
            if "multi_label/kernel" in weights:
                logits = {"multi_label_logits": logits["classifier_logits"]}
            outputs |= logits
    return outputs


def _transformers_logits(kind: str, found: Any, positions: np.ndarray) -> Outputs:
    rows = np.arange(len(positions))[:, None]
    if kind == "AlbertForPreTraining":
        return {
            "masked_lm_logits": found.prediction_logits.numpy()[rows, positions],
            "sentence_order_logits": found.sop_logits.numpy(),
        }
    if kind == "AlbertForMaskedLM":
        return {"masked_lm_logits": found.logits.numpy()[rows, positions]}
    if kind == "AlbertForQuestionAnswering":
        spans = np.stack([found.start_logits.numpy(), found.end_logits.numpy()], axis=-1)
        return {"question_answering_logits": spans}
    name = "classifier" if kind == "AlbertForSequenceClassification" else "token_classification"
    return {f"{name}_logits": found.logits.numpy()}


def run_keras_hub(path: Path, config: AlbertConfig, weights: Weights, batch: Batch) -> Outputs:
    """keras-hub."""
    import keras_hub

    models = keras_hub.models
    heads = _heads(weights)
    inputs = {name: batch[name] for name in ("token_ids", "segment_ids", "padding_mask")}
    # Compiled, a task would look for its optimizer's state in the file, and warn.
    options = {"preprocessor": None, "compile": False}
    task: Any = None
    if heads == {"masked_lm"}:
        task = models.AlbertMaskedLM.from_preset(str(path), **options)
    elif heads == {"classifier"}:
        task = models.AlbertTextClassifier.from_preset(str(path), **options)
    backbone = models.AlbertBackbone.from_preset(str(path)) if task is None else task.backbone
    words = backbone.token_embedding(inputs["token_ids"])
    summed = (words, backbone.position_embedding(words), backbone.segment_embedding(inputs["segment_ids"]))
    x = backbone.embeddings_projection(backbone.embeddings_layer_norm(backbone.embeddings_add(summed)))
    layers = []
    for group in backbone.transformer_layers:
        for _ in range(backbone.num_layers // backbone.num_groups):
            for layer in group:
                x = layer(x, padding_mask=inputs["padding_mask"])
            layers.append(np.asarray(x))
    found = backbone(inputs)
    outputs = _encoder_outputs(layers, np.asarray(found["pooled_output"]))
    outputs["sequence_output"] = np.asarray(found["sequence_output"])
    if heads == {"masked_lm"}:
        outputs["masked_lm_logits"] = np.asarray(task(inputs | {"mask_positions": batch["masked_positions"]}))
    elif heads == {"classifier"}:
        outputs["classifier_logits"] = np.asarray(task(inputs))
    return outputs


def run_model_garden(path: Path, config: AlbertConfig, weights: Weights, batch: Batch) -> Outputs:
    """tf-models-official: its own classes, restored by TensorFlow from the objects that the checkpoint has."""
    import tensorflow as tf
    import tf_keras
    from official.modeling import activations
    from official.nlp.modeling import layers, networks

    functions = {"gelu_tanh": activations.gelu, "gelu_erf": tf_keras.activations.gelu}
    activation = functions.get(config.activation, config.activation)
    encoder = networks.AlbertEncoder(
        vocab_size=config.vocabulary_size,
        embedding_width=config.embedding_dim,
        hidden_size=config.hidden_dim,
        num_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        max_sequence_length=config.max_sequence_length,
        type_vocab_size=config.num_segments,
        intermediate_size=config.intermediate_dim,
        activation=activation,
        dict_outputs=True,
    )
    prefix = model_garden_prefix(path)
    graph = ObjectGraph(prefix)
    ways = {name: graph.path_to(part.node) for name, part in find_parts(graph).items()}
    _restore(encoder, prefix, ways["encoder"])
    if "pooler" in ways:
        _restore(encoder.get_layer("pooler_transform"), prefix, ways["pooler"])
    names = {"input_word_ids": "token_ids", "input_mask": "padding_mask", "input_type_ids": "segment_ids"}
    found = encoder({theirs: batch[ours] for theirs, ours in names.items()})
    outputs = _encoder_outputs([np.asarray(layer) for layer in found["encoder_outputs"]], found["pooled_output"])
    if "masked_lm" in ways:
        head = layers.MaskedLM(encoder.get_embedding_table(), activation)
        positions = tf.constant(batch["masked_positions"])
        head(found["sequence_output"], positions)  # which builds it
        _restore(head, prefix, ways["masked_lm"])
        outputs["masked_lm_logits"] = np.asarray(head(found["sequence_output"], positions))
    for name in sorted(_heads(weights) - {"masked_lm"}):
        pooled = name in ("classifier", "sentence_order")
        features = found["pooled_output" if pooled else "sequence_output"]
        count = weights[f"{name}/bias"].size
        head = layers.ClassificationHead(inner_dim=0, num_classes=count) if pooled else tf_keras.layers.Dense(count)
        head(features)
        _restore(head, prefix, (*ways["head"], *(("layer_with_weights-0",) if name == "question_answering" else ())))
        outputs[f"{name}_logits"] = np.asarray(head(features))
    return outputs


def _restore(target: Any, prefix: Path, way: Sequence[str]) -> None:
    """Restores one object from where the checkpoint has it."""
    import tensorflow as tf

    for name in reversed(way):
        target = tf.train.Checkpoint(**{name: target})
    if not way:
        target = tf.train.Checkpoint(target)
    target.read(str(prefix)).expect_partial().assert_existing_objects_matched()


def _encoder_outputs(layers: Sequence[np.ndarray], pooled: Any) -> Outputs:
    outputs = {f"layer {index}": layer for index, layer in enumerate(layers, start=1)}
    outputs["sequence_output"] = layers[-1]
    return outputs if pooled is None else outputs | {"pooled_output": np.asarray(pooled)}


def _heads(weights: Weights) -> set[str]:
    return {name.partition("/")[0] for name in weights} - {"embeddings", "encoder", "pooler"}


class Framework(NamedTuple):
    """What runs a form of checkpoint: its name, the modules to import, the packages to install, and how to run it."""

    name: str
    modules: tuple[str, ...]
    packages: str
    run: Callable[[Path, AlbertConfig, Weights, Batch], Outputs]


# By the form that readers give a checkpoint. The graph of google-research/albert and brightmart/albert_zh needs
# TensorFlow 1, so TF1 checkpoints have none.
FRAMEWORKS = {
    HUGGING_FACE: Framework("transformers", ("torch", "transformers"), "transformers torch", run_transformers),
    KERAS_HUB: Framework("keras-hub", ("keras_hub",), "keras-hub", run_keras_hub),
    MODEL_GARDEN: Framework(
        "tf-models-official", ("official", "tf_keras"), "tf-models-official==2.20.0", run_model_garden
    ),
}


def require(framework: Framework) -> None:
    """Imports it.

    Raises:
        InputError: it is not installed.
    """
    for module in framework.modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise InputError(
                f"to compare outputs, {framework.name} must be installed ({error}): pip install {framework.packages}; or "
                "leave out --verify"
            ) from error
