"""Trainings in a process of their own, with two logical CPU devices: TensorFlow allows that only before it has begun.

    python distribution_job.py SETTINGS_JSON…

The settings are those of `albert-tf pretrain` or `finetune TASK`, by field, with `command` beside.
"""

import json
import os
import sys
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
tf.config.threading.set_intra_op_parallelism_threads(1)


def train(settings: dict[str, Any]) -> None:
    command = settings.pop("command")
    if command == "pretrain":
        from albert_tf.training.pretrain import pretrain
        from albert_tf.training.pretrain_config import PretrainConfig

        pretrain(PretrainConfig(**settings), report=lambda line: print(line, flush=True))
    else:
        from albert_tf.training.finetune import finetune
        from albert_tf.training.task_runs import RUNS

        run_class = next(run for run, _ in RUNS if run.task == command)
        finetune(run_class(**settings), report=lambda line: print(line, flush=True))


if __name__ == "__main__":
    for text in sys.argv[1:]:
        train(json.loads(text))
