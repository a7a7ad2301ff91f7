"""brightmart/albert_zh as a TensorFlow 1 graph with variables and a saver, written from the formulas.

The names of the variables come from scopes, as in the original: word_embeddings · word_embeddings_2 + segment +
position → layer norm; `num_hidden_layers` passes through `layer_shared`, each attention → + → norm → two dense layers →
+ → norm; the masked-word head transforms H → H and multiplies by word_embeddings_2ᵀ and word_embeddingsᵀ.
"""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1


class BrightmartGraph:
    """The pretraining graph of a config, keys as in albert_config.json, with random weights far from symmetric ones."""

    def __init__(self, config: dict[str, Any], *, seed: int = 0, scale: float = 0.3) -> None:
        self.config = config
        self.random = np.random.default_rng(seed)
        self.scale = scale
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.inputs = {
                name: v1.placeholder(tf.int32, (None, None), name)
                for name in ("token_ids", "segment_ids", "padding_mask", "masked_positions")
            }
            self.outputs = self._outputs()
            self.session = v1.Session()
            self.session.run(v1.global_variables_initializer())

    def values(self) -> dict[str, np.ndarray]:
        """Every variable by its name."""
        with self.graph.as_default():
            variables = v1.global_variables()
            return {v.name.removesuffix(":0"): x for v, x in zip(variables, self.session.run(variables), strict=True)}

    def save(self, prefix: Path, *, slots: tuple[str, ...] = ()) -> None:
        """Writes a checkpoint; with slots, as after training: "adam_m" and the like for each variable, global_step."""
        prefix.parent.mkdir(parents=True, exist_ok=True)
        with self.graph.as_default():
            for variable in v1.global_variables() if slots else ():
                for slot in slots:
                    value = np.full(variable.shape, 9, np.float32)
                    v1.get_variable(f"{variable.name.removesuffix(':0')}/{slot}", initializer=value)
            if slots:
                v1.train.create_global_step()
                self.session.run(v1.global_variables_initializer())
            v1.train.Saver().save(self.session, str(prefix), write_meta_graph=False)

    def restore(self, prefix: Path) -> None:
        """Fills every variable from a checkpoint, by name and shape, or fails."""
        with self.graph.as_default():
            v1.train.Saver().restore(self.session, str(prefix))

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        feed = {placeholder: inputs[name] for name, placeholder in self.inputs.items()}
        return self.session.run(self.outputs, feed)

    # === The graph ===

    def _variable(self, name: str, *shape: int) -> Any:
        mean = 1.0 if name == "gamma" else 0.0
        value = (mean + self.scale * self.random.standard_normal(shape)).astype(np.float32)
        return v1.get_variable(name, initializer=value)

    def _dense(self, x: Any, units: int, scope: str = "dense") -> Any:
        with v1.variable_scope(scope):
            return tf.tensordot(x, self._variable("kernel", x.shape[-1], units), 1) + self._variable("bias", units)

    def _norm(self, x: Any) -> Any:
        with v1.variable_scope("LayerNorm"):
            beta, gamma = self._variable("beta", x.shape[-1]), self._variable("gamma", x.shape[-1])
        mean, variance = tf.nn.moments(x, -1, keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)

    def _activation(self, x: Any) -> Any:
        if self.config["hidden_act"] == "relu":
            return tf.maximum(x, 0.0)
        return 0.5 * x * (1.0 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x)))

    def _outputs(self) -> dict[str, Any]:
        hidden = self.config["hidden_size"]
        with v1.variable_scope("bert"):
            with v1.variable_scope("embeddings"):
                x = self._embeddings(hidden)
            outputs = {"embedding_output": x, "layer_outputs": []}
            for layer in range(self.config["num_hidden_layers"]):
                with v1.variable_scope("encoder/layer_shared", reuse=layer > 0):
                    x = self._layer(x, hidden)
                outputs["layer_outputs"].append(x)
            with v1.variable_scope("pooler"):
                outputs["pooled_output"] = tf.tanh(self._dense(x[:, 0], hidden))
        with v1.variable_scope("cls/predictions"):
            with v1.variable_scope("transform"):
                masked = tf.gather(x, self.inputs["masked_positions"], batch_dims=1)
                masked = self._norm(self._activation(self._dense(masked, hidden)))
            narrow = tf.einsum("bph,eh->bpe", masked, self.projection)
            words = tf.einsum("bpe,ve->bpv", narrow, self.table)
            outputs["masked_lm_logits"] = words + self._variable("output_bias", self.config["vocab_size"])
        with v1.variable_scope("cls/seq_relationship"):
            weights, bias = self._variable("output_weights", 2, hidden), self._variable("output_bias", 2)
            outputs["sentence_order_logits"] = tf.matmul(outputs["pooled_output"], weights, transpose_b=True) + bias
        return outputs

    def _embeddings(self, hidden: int) -> Any:
        self.table = self._variable("word_embeddings", self.config["vocab_size"], self.config["embedding_size"])
        self.projection = self._variable("word_embeddings_2", self.config["embedding_size"], hidden)
        segments = self._variable("token_type_embeddings", self.config["type_vocab_size"], hidden)
        positions = self._variable("position_embeddings", self.config["max_position_embeddings"], hidden)
        x = tf.tensordot(tf.gather(self.table, self.inputs["token_ids"]), self.projection, 1)
        x += tf.gather(segments, self.inputs["segment_ids"])
        return self._norm(x + positions[: tf.shape(x)[1]])

    def _layer(self, x: Any, hidden: int) -> Any:
        with v1.variable_scope("attention"):
            with v1.variable_scope("self"):
                query, key, value = (self._dense(x, hidden, name) for name in ("query", "key", "value"))
                context = self._attend(query, key, value)
            with v1.variable_scope("output"):
                x = self._norm(x + self._dense(context, hidden))
        with v1.variable_scope("intermediate"):
            expanded = self._activation(self._dense(x, self.config["intermediate_size"]))
        with v1.variable_scope("output"):
            return self._norm(x + self._dense(expanded, hidden))

    def _attend(self, query: Any, key: Any, value: Any) -> Any:
        """Head by head: each has its own columns."""
        contexts = []
        padding = (1.0 - tf.cast(self.inputs["padding_mask"], tf.float32)) * -10000.0
        splits = (tf.split(x, self.config["num_attention_heads"], -1) for x in (query, key, value))
        for q, k, v in zip(*splits, strict=True):
            scores = tf.einsum("btd,bsd->bts", q, k) / np.sqrt(int(q.shape[-1])).astype(np.float32)
            contexts.append(tf.einsum("bts,bsd->btd", tf.nn.softmax(scores + padding[:, None]), v))
        return tf.concat(contexts, -1)
