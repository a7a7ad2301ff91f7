"""The variables of brightmart/albert_zh: BERT's names, one layer that all share, and another order in the embeddings.

Released tiny to xlarge for Chinese. `AlbertConfig.factorization` "words" is its architecture. (Its models called
"google" have the layout of google-research/albert.)
"""

from albert_tf.conversion.tf1_tables import Layout, Variable, dense, embeddings, layer_norm, masked_lm

_LAYER = "bert/encoder/layer_shared"

# As modeling.py and run_pretraining.py create them.
BRIGHTMART = Layout(
    form="brightmart",
    embeddings=embeddings("H"),
    projection={"embeddings/projection/kernel": Variable("bert/embeddings/word_embeddings_2", "EH")},
    block={
        **dense("encoder/attention_{n}/query", f"{_LAYER}/attention/self/query", "HH"),
        **dense("encoder/attention_{n}/key", f"{_LAYER}/attention/self/key", "HH"),
        **dense("encoder/attention_{n}/value", f"{_LAYER}/attention/self/value", "HH"),
        **dense("encoder/attention_{n}/output", f"{_LAYER}/attention/output/dense", "HH"),
        **layer_norm("encoder/attention_{n}/layer_norm", f"{_LAYER}/attention/output/LayerNorm", "H"),
        **dense("encoder/feed_forward_{n}/intermediate", f"{_LAYER}/intermediate/dense", "HI"),
        **dense("encoder/feed_forward_{n}/output", f"{_LAYER}/output/dense", "IH"),
        **layer_norm("encoder/feed_forward_{n}/layer_norm", f"{_LAYER}/output/LayerNorm", "H"),
    },
    masked_lm=masked_lm("H"),
)
# Parts of names that no other layout has.
MARKS = ("bert/embeddings/word_embeddings_2", "bert/encoder/layer_shared/")
