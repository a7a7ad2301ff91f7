"""From examples to answers, whatever runs the model: a Keras task or a TFLite file. Nothing here needs TensorFlow.

A pipeline turns examples into rows of token ids (`prepare`), and what the model puts out for them into answers
(`answer`); in between a `Runner` runs the rows. Metrics are taken on the answers, so training, `evaluate` and `predict`
agree on Keras and on a device.
"""
