"""What a `.tflite` file by anyone holds, what is wrong with it, and which runtimes take it."""

import dataclasses
import hashlib
import importlib.metadata
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from export.runtime_rules import Verdict, needs_more, verdicts
from export.tflite_file import OpenedFile, open_file
from export.tflite_metadata import LABELS_FILE
from export.tflite_metadata_reader import ModelMetadata
from export.tflite_model import FLOATS, Model, Operator, Quantization, Subgraph, Tensor
from export.trial import why_not_loaded

# Equal buffers below this size are zeros, ones and shapes, not weights stored twice.
SMALLEST_DUPLICATE = 1024
# Those whose output has a value for each label. An embedder's labels are of pairs, and not in the file.
_TASKS_OF_LABELS = ("classification", "multi-label", "tagging")
_RUNTIME_VERSION = "min_runtime_version"
# Where one of these gives integers, the file computes in integers; others only pass on what is stored.
_ARITHMETIC = ("ADD", "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MUL")


@dataclasses.dataclass(frozen=True)
class End:
    """An input or output. A size of -1 is open."""

    name: str
    type: str
    shape: tuple[int, ...]
    quantization: Quantization | None


@dataclasses.dataclass(frozen=True)
class SignatureReport:
    key: str
    subgraph: int
    inputs: tuple[End, ...]
    outputs: tuple[End, ...]


@dataclasses.dataclass(frozen=True)
class OperatorCount:
    """How often an operator of one version occurs with values of the same types.

    Attributes:
        name: of a custom one begins with "custom ".
        types: of its inputs and outputs, such as "float32, int8 → float32"; each once.
    """

    name: str
    version: int
    types: str
    count: int


@dataclasses.dataclass(frozen=True)
class SubgraphReport:
    name: str
    tensors: int
    inputs: tuple[End, ...]
    outputs: tuple[End, ...]
    operators: tuple[OperatorCount, ...]


@dataclasses.dataclass(frozen=True)
class StoredShare:
    """Constants that are stored alike: `bytes` of the file, `share` of all constants."""

    type: str
    quantization: str
    tensors: int
    bytes: int
    share: float


@dataclasses.dataclass(frozen=True)
class Inspection:
    """Attributes:
    size_bytes: of the whole file; model_bytes: without the files behind the model.
    parameters: as albert_tf.json says, or counted: stored values of floats and of quantised integers.
    parameters_from: which of the two.
    min_runtime_version: of TensorFlow Lite, as the converter recorded it; None where it did not.
    shared_buffers: how many buffers serve more than one tensor, so that weights are stored once.
    duplicates: equal buffers, each with its count and size: weights stored more than once.
    float_operators: those that compute in floats, where the file also computes in integers; None where it does not.
    settings: of albert_tf.json.
    files: behind the model, with their sizes.
    problems: what is wrong with the file.
    """

    size_bytes: int
    model_bytes: int
    description: str
    parameters: int
    parameters_from: str
    bytes_per_parameter: float
    min_runtime_version: str | None
    signatures: tuple[SignatureReport, ...]
    subgraphs: tuple[SubgraphReport, ...]
    stored: tuple[StoredShare, ...]
    shared_buffers: int
    duplicates: tuple[dict[str, int], ...]
    float_operators: dict[str, int] | None
    metadata: ModelMetadata | None
    settings: dict[str, Any] | None
    files: dict[str, int]
    problems: tuple[str, ...]
    runtimes: tuple[Verdict, ...]


def inspect_file(path: str | Path) -> Inspection:
    """Reads a `.tflite` file. Only a process of its own runs the runtime on it, for it may end that process.

    Raises:
        InputError: the file cannot be read, is no TFLite model, or the model in it is damaged.
    """
    file = open_file(path)
    model = file.model
    parameters, parameters_from = _parameters(file)
    refused = why_not_loaded(file.path)
    runtimes = tuple(verdicts(file, refused, importlib.metadata.version("ai-edge-litert")))
    problems = [*file.problems, *_model_problems(model), *_label_problems(file), *_length_problems(file)]
    if refused is not None and not needs_more(file):
        problems.append(f"the runtime does not load it: {refused}")
    return Inspection(
        size_bytes=file.size,
        model_bytes=file.model_bytes,
        description=model.description,
        parameters=parameters,
        parameters_from=parameters_from,
        bytes_per_parameter=file.model_bytes / max(parameters, 1),
        min_runtime_version=_recorded_version(model),
        signatures=tuple(_signature_report(model, i) for i in range(len(model.signatures))),
        subgraphs=tuple(map(_subgraph_report, model.subgraphs)),
        stored=_stored_shares(model),
        shared_buffers=_shared_buffers(model),
        duplicates=duplicates(model),
        float_operators=float_operators(model),
        metadata=file.metadata,
        settings=file.settings,
        files=file.archive.sizes,
        problems=tuple(problems),
        runtimes=runtimes,
    )


def _recorded_version(model: Model) -> str | None:
    found = model.metadata_buffer(_RUNTIME_VERSION)
    text = "" if found is None else bytes(found[:64]).split(b"\0")[0].decode("utf-8", errors="replace")
    return text or None


def _end(name: str, tensor: Tensor) -> End:
    return End(name or tensor.name, tensor.type.lower(), tensor.signature, tensor.quantization)


def _signature_report(model: Model, number: int) -> SignatureReport:
    signature = model.signatures[number]
    tensors = model.subgraphs[signature.subgraph].tensors
    inputs, outputs = (
        tuple(_end(name, tensors[index]) for name, index in names.items())
        for names in (signature.inputs, signature.outputs)
    )
    return SignatureReport(signature.key, signature.subgraph, inputs, outputs)


def _subgraph_report(graph: Subgraph) -> SubgraphReport:
    operators = operator_counts([graph])
    inputs, outputs = (tuple(_end("", graph.tensors[i]) for i in indices) for indices in (graph.inputs, graph.outputs))
    return SubgraphReport(graph.name, len(graph.tensors), inputs, outputs, operators)


def operator_counts(graphs: Iterable[Subgraph]) -> tuple[OperatorCount, ...]:
    """The operators of these graphs together, the most frequent first."""
    counts = Counter(
        (_operator_name(operator), operator.version, _types(graph, operator))
        for graph in graphs
        for operator in graph.operators
    )
    return tuple(OperatorCount(*operator, count) for operator, count in counts.most_common())


def _types(graph: Subgraph, operator: Operator) -> str:
    ends = (
        ", ".join(dict.fromkeys(graph.tensors[i].type.lower() for i in indices if i >= 0))
        for indices in (operator.inputs, operator.outputs)
    )
    return " → ".join(ends)


def _operator_name(operator: Operator) -> str:
    return operator.name if operator.custom is None else f"custom {operator.custom}"


def _stored(model: Model) -> dict[int, Tensor]:
    """Each buffer with data → the first tensor that uses it."""
    found: dict[int, Tensor] = {}
    for graph in model.subgraphs:
        for tensor in graph.tensors:
            if tensor.stored_bytes:
                found.setdefault(tensor.buffer, tensor)
    return found


def _parameters(file: OpenedFile) -> tuple[int, str]:
    """How many, and who says so."""
    recorded = (file.settings or {}).get("parameters")
    if isinstance(recorded, int) and not isinstance(recorded, bool) and recorded > 0:
        return recorded, "albert_tf.json"
    stored = _stored(file.model).values()
    return sum(t.values for t in stored if t.type in FLOATS or t.quantization is not None), "stored values"


def _stored_shares(model: Model) -> tuple[StoredShare, ...]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for tensor in _stored(model).values():
        quantization = tensor.quantization
        kind = "none" if quantization is None else quantization.kind
        if quantization is not None and quantization.block_size:
            kind = f"{kind}, {quantization.block_size} values"
        groups[tensor.type.lower(), kind].append(tensor.stored_bytes)
    total = sum(map(sum, groups.values()))
    rows = [StoredShare(kind, how, len(sizes), sum(sizes), sum(sizes) / total) for (kind, how), sizes in groups.items()]
    return tuple(sorted(rows, key=lambda row: -row.bytes))


def _shared_buffers(model: Model) -> int:
    uses = Counter(t.buffer for graph in model.subgraphs for t in graph.tensors if t.stored_bytes)
    return sum(count > 1 for count in uses.values())


def duplicates(model: Model) -> tuple[dict[str, int], ...]:
    """Equal buffers, each with its count and size: weights stored more than once."""
    by_size: dict[int, list[int]] = defaultdict(list)
    for buffer, tensor in _stored(model).items():
        if tensor.stored_bytes >= SMALLEST_DUPLICATE:
            by_size[tensor.stored_bytes].append(buffer)
    found = []
    for size, buffers in by_size.items():
        if len(buffers) > 1:
            sums = Counter(hashlib.sha256(model.buffers[buffer]).digest() for buffer in buffers)
            found += [{"copies": copies, "bytes": size} for copies in sums.values() if copies > 1]
    return tuple(sorted(found, key=lambda group: -group["copies"] * group["bytes"]))


def float_operators(model: Model) -> dict[str, int] | None:
    """Operators that compute in floats, where the model also computes in integers; None where it does not."""
    in_integers, counts = False, Counter[str]()
    for graph in model.subgraphs:
        for operator in graph.operators:
            outputs = [graph.tensors[i] for i in operator.outputs]
            if any(tensor.type in FLOATS for tensor in outputs):
                counts[_operator_name(operator)] += 1
            elif operator.name in _ARITHMETIC and any(tensor.quantization is not None for tensor in outputs):
                in_integers = True
    return dict(counts.most_common()) if in_integers else None


def _model_problems(model: Model) -> list[str]:
    problems = []
    stored = _stored(model).values()
    wrong = [t for t in stored if t.expected_bytes is not None and t.expected_bytes != t.stored_bytes]
    if wrong:
        problems.append(
            f"{len(wrong)} constants of a wrong size, such as {wrong[0].name!r}: {wrong[0].stored_bytes:,} bytes stored, "
            f"{wrong[0].expected_bytes:,} expected for {wrong[0].type.lower()} {list(wrong[0].shape)}"
        )
    missing = [t for t in stored if t.type == "FLOAT32" and _has_nan(model.buffers[t.buffer])]
    if missing:
        problems.append(f"values that are not a number in {len(missing)} constants, such as {missing[0].name!r}")
    results = [g.tensors[i] for g in model.subgraphs for operator in g.operators for i in operator.outputs]
    if overwritten := [tensor for tensor in results if tensor.stored_bytes]:
        problems.append(
            f"operators that write to {len(overwritten)} constants, such as {overwritten[0].name!r}: it can end the "
            "process that runs it"
        )
    names = {operator.name for graph in model.subgraphs for operator in graph.operators}
    if "READ_VARIABLE" in names and "ASSIGN_VARIABLE" not in names:
        problems.append("it reads variables that nothing assigns: its weights were lost when it was converted")
    return problems


def _has_nan(data: memoryview) -> bool:
    return len(data) % 4 == 0 and bool(np.isnan(np.frombuffer(data, np.float32)).any())


def _label_problems(file: OpenedFile) -> list[str]:
    """Lists of labels that do not fit the output that they name."""
    graph = file.model.subgraphs[0]
    lists: list[tuple[str, int, int]] = []  # what, how many labels, number of the output
    settings = (file.settings or {}).get("settings", {})
    has_values = (file.settings or {}).get("task") in _TASKS_OF_LABELS
    if has_values and isinstance(settings.get("labels"), list) and len(graph.outputs) == 1:
        lists.append(("albert_tf.json", len(settings["labels"]), 0))
    for number, tensor in enumerate(file.metadata.outputs if file.metadata is not None else ()):
        for named in tensor.files:
            content = file.archive.contents.get(named.name)
            if named.type == "axis labels" and content is not None and number < len(graph.outputs):
                lists.append((named.name, len(content.decode("utf-8", errors="replace").splitlines()), number))
    problems = []
    for what, labels, number in lists:
        signature = graph.tensors[graph.outputs[number]].signature
        if signature and signature[-1] not in (-1, labels):
            problems.append(f"{what} has {labels} labels, the output has {signature[-1]} values for each")
    listed, own = file.archive.contents.get(LABELS_FILE), settings.get("labels")
    if not problems and listed is not None and isinstance(own, list):
        found = listed.decode("utf-8", errors="replace")
        if found != "".join(f"{label}\n" for label in own):
            problems.append(f"{LABELS_FILE} has other labels than albert_tf.json: {found.split()[:3]}, {own[:3]}")
    return problems


def _length_problems(file: OpenedFile) -> list[str]:
    if file.settings is None:
        return []
    length, longest = file.settings["length"], file.settings["config"].get("max_sequence_length")
    lengths = length if isinstance(length, list) else [length]
    return [
        f"albert_tf.json: a length of {tokens} tokens, and a config of at most {longest}"
        for tokens in lengths
        if isinstance(tokens, int) and isinstance(longest, int) and tokens > longest
    ]
