"""Where a run is trained: one device, all of this machine's, several workers, or a TPU.

Keras 3.15 trains wrongly, or not at all, under `tf.distribute`; what makes it right is in `albert_tf.tasks.fitting` and
`albert_tf.training.optimizers`. The rest is here: the strategy, each replica's part of a batch, and who writes files.

A batch is divided by us, not by TensorFlow: the parts are padded alike and hold each example's share in the loss of the
whole batch, so that the sum over replicas is the loss of one device.
"""

import contextlib
import dataclasses
import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from albert_tf.errors import InputError

READY_FOLDER = "ALBERT_TF_READY_FOLDER"  # set by `albert-tf launch`: where a worker leaves word that it has joined


@dataclasses.dataclass(frozen=True)
class Devices:
    """The replicas of a model that a run trains.

    Attributes:
        strategy: None for one device, and on JAX.
        replicas: of all workers together.
        workers: processes of the run.
        worker: this one's number, from 0; the first, the chief, writes the files.
    """

    strategy: tf.distribute.Strategy | None = None
    replicas: int = 1
    workers: int = 1
    worker: int = 0

    @property
    def is_chief(self) -> bool:
        return self.worker == 0

    @property
    def jit(self) -> bool:
        """Whether `fit` compiles the step with XLA. On TensorFlow lengths differ from batch to batch and each would be
        compiled; JAX cannot do without.
        """
        return keras.backend.backend() == "jax"

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Within it models and optimizers are made."""
        return contextlib.nullcontext() if self.strategy is None else self.strategy.scope()

    def dataset(self, make: Callable[[int], tf.data.Dataset]) -> Any:
        """What `fit` goes over.

        Args:
            make: number of this worker's replicas → a dataset that has, for each batch, their parts in turn.
        """
        if self.strategy is None:
            return make(1)
        return self.strategy.distribute_datasets_from_function(lambda _: make(self.replicas // self.workers))

    def wait_for_all(self) -> None:
        """Returns when every worker has come here."""
        if self.strategy is not None and self.workers > 1:
            _sum_over_workers(self.strategy)

    def check_batch_size(self, batch_size: int) -> None:
        """Raises InputError unless the replicas share a batch equally."""
        if batch_size % self.replicas:
            raise InputError(
                f"--batch-size: expected a multiple of the {self.replicas} devices that share a batch, got {batch_size}"
            )


@tf.function
def _sum_over_workers(strategy: tf.distribute.Strategy) -> tf.Tensor:
    """Any sum will do: none has it before all have given their part."""
    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda: tf.ones(())), axis=None)


ONE_DEVICE = Devices()


def open_devices(strategy: str) -> Devices:
    """The devices that a `--strategy` names. Of several workers this must come before anything else of TensorFlow.

    Args:
        strategy: one of `albert_tf.training.settings.STRATEGIES`.

    Raises:
        InputError: the environment does not describe the workers, or there is no TPU.
    """
    if keras.backend.backend() == "jax":
        return _open_jax(strategy)
    if strategy == "mirrored":
        return _mirrored()
    if strategy == "multiworker":
        return _open_workers()
    if strategy == "tpu":
        return _open_tpu()
    return ONE_DEVICE


@functools.cache  # a second MirroredStrategy in a process takes the first one's collective keys, and fails
def _mirrored() -> Devices:
    """All GPUs; without one, the logical CPU devices."""
    devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    return Devices(tf.distribute.MirroredStrategy([device.name for device in devices]), len(devices))


def _open_workers() -> Devices:
    resolver = _cluster()
    workers = resolver.cluster_spec().num_tasks("worker")
    strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
    devices = Devices(strategy, strategy.num_replicas_in_sync, workers, int(resolver.task_id or 0))
    devices.wait_for_all()
    if folder := os.environ.get(READY_FOLDER):
        (Path(folder) / str(devices.worker)).touch()
    return devices


def _cluster() -> Any:
    """Who the workers are, from TF_CONFIG or, in a Slurm job, from Slurm."""
    resolvers = tf.distribute.cluster_resolver
    if text := os.environ.get("TF_CONFIG"):
        _check_tf_config(text)
        return resolvers.TFConfigClusterResolver()
    if int(os.environ.get("SLURM_NTASKS", "1")) > 1:
        return resolvers.SlurmClusterResolver({"worker": int(os.environ["SLURM_NTASKS"])})
    raise InputError(
        "--strategy multiworker: expected TF_CONFIG to name the workers (or a Slurm job of several tasks); on one machine "
        "albert-tf launch --workers N sets it"
    )


def _check_tf_config(text: str) -> None:
    """Raises InputError where TensorFlow would wait, or fail later and without the reason."""
    form = '{"cluster": {"worker": ["host:port", …]}, "task": {"type": "worker", "index": N}}'
    try:
        config = json.loads(text)
        hosts, task = config["cluster"]["worker"], config["task"]
        kind, index, others = task["type"], int(task["index"]), sorted(set(config["cluster"]) - {"worker"})
        usable = isinstance(hosts, list) and all(isinstance(host, str) for host in hosts)
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"TF_CONFIG: expected {form}, got {text[:200]}") from error
    if "ps" in others:
        raise InputError(
            "TF_CONFIG: names parameter servers (ps), which Keras 3 does not train with; name workers alone"
        )
    if others or not usable:
        raise InputError(f"TF_CONFIG: expected {form}, got {text[:200]}")
    if kind != "worker" or not 0 <= index < len(hosts):
        raise InputError(
            f"TF_CONFIG: expected a task of type worker and an index below {len(hosts)}, got {kind} {index}"
        )


def _open_tpu() -> Devices:
    """Not run by our tests: there is no TPU in them."""
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=os.environ.get("TPU_NAME", "local"))
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, tf.errors.OpError) as error:
        raise InputError(
            f"--strategy tpu: found no TPU that this TensorFlow can use ({str(error).splitlines()[0]}); it needs the "
            "package tensorflow-tpu on a TPU machine, and TPU_NAME where it is not the local one"
        ) from error
    tpu = tf.distribute.TPUStrategy(resolver)
    return Devices(tpu, tpu.num_replicas_in_sync)


def _open_jax(strategy: str) -> Devices:
    """On JAX, Keras divides each batch over the devices by itself."""
    if strategy not in ("one", "mirrored"):
        raise InputError(
            f"--strategy {strategy}: is TensorFlow's; with KERAS_BACKEND=jax give mirrored, which takes all devices of this "
            "machine, TPUs too"
        )
    if strategy == "one":
        keras.distribution.set_distribution(None)
        return ONE_DEVICE
    keras.distribution.set_distribution(keras.distribution.DataParallel(auto_shard_dataset=False))
    return Devices(replicas=len(keras.distribution.list_devices()))
