"""Which runtimes take a `.tflite` file, and why the others do not.

Rules are what a runtime's own source checks and what was measured with it, at the versions named; where neither is known
the answer is "unknown".
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence

from export.gpu_rules import why_not_on_gpu
from export.operator_support import LITERT, MEDIAPIPE, TASK_LIBRARY, newest_version
from export.tflite_file import OpenedFile
from export.tflite_model import Subgraph, Tensor

# By MediaPipe and the Task Library an input is known by its name in the metadata.
BERT_INPUTS = {"ids", "segment_ids", "mask"}
ANSWER_OUTPUTS = {"start_logits", "end_logits"}
ANSWER_LENGTH = 384  # built into BertQuestionAnswerer
_TOKENIZERS = ("BERT tokenizer", "SentencePiece tokenizer")
_NO_METADATA = "no metadata: it needs the names of tensors and the tokenizer"
_MOST_REASONS = 6


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Attributes:
    takes: "yes", "no", "partly" or "unknown".
    reasons: why not, or what to know.
    """

    runtime: str
    takes: str
    reasons: tuple[str, ...]


def verdicts(file: OpenedFile, why_not_loaded: str | None, litert_version: str) -> list[Verdict]:
    """The answer for each runtime.

    Args:
        file: the file.
        why_not_loaded: what ai-edge-litert said when it loaded the file here; see `export.trial`.
        litert_version: of that ai-edge-litert.
    """
    return [
        _answer(f"LiteRT {litert_version}", [*_custom(file), why_not_loaded] if why_not_loaded else []),
        _web(file),
        _mediapipe(file, "TextClassifier"),
        _mediapipe(file, "TextEmbedder"),
        _classifier(file),
        _embedder(file),
        _answerer(file),
        _gpu(file),
    ]


def needs_more(file: OpenedFile) -> bool:
    """Whether the file has operators that LiteRT does not know, so that it need not be damaged where LiteRT refuses it."""
    return bool(_custom(file) or _too_new(file, LITERT))


def _answer(runtime: str, reasons: Sequence[str], doubts: Sequence[str] = ()) -> Verdict:
    takes = "no" if reasons else "unknown" if doubts else "yes"
    shown = [*reasons, *doubts]
    more = [f"and {len(shown) - _MOST_REASONS} more"] if len(shown) > _MOST_REASONS else []
    return Verdict(runtime, takes, (*shown[:_MOST_REASONS], *more))


def _ends(file: OpenedFile) -> tuple[list[Tensor], list[Tensor]]:
    """Inputs and outputs of the first graph."""
    graph = file.model.subgraphs[0]
    return [graph.tensors[i] for i in graph.inputs], [graph.tensors[i] for i in graph.outputs]


def _custom(file: OpenedFile) -> list[str]:
    names = sorted({o.custom for graph in file.model.subgraphs for o in graph.operators if o.custom is not None})
    return [f"custom operators, which an application links itself: {', '.join(names)}"] if names else []


def _too_new(file: OpenedFile, runtime: str) -> list[str]:
    """A reason for each operator that is newer than a runtime."""
    used: dict[str, int] = {}
    for graph in file.model.subgraphs:
        for operator in graph.operators:
            if operator.custom is None:
                used[operator.name] = max(operator.version, used.get(operator.name, 0))
    return [
        f"{name} version {version}: it knows {f'versions to {newest}' if newest else 'no such operator'}"
        for name, version in sorted(used.items())
        if version > (newest := newest_version(name, runtime))
    ]


def _web(file: OpenedFile) -> Verdict:
    reasons = _too_new(file, LITERT)
    run = {signature.subgraph for signature in file.model.signatures} or {0}
    graphs = [file.model.subgraphs[number] for number in sorted(run)]
    if any(-1 in graph.tensors[i].signature for graph in graphs for i in graph.inputs):
        reasons.append("an input of open size: its run() takes fixed shapes only; export with fixed lengths")
    elif any(-1 in graph.tensors[i].signature[1:] for graph in graphs for i in graph.outputs):
        reasons.append("an output of open size: it makes room for one value; export the file again")
    return _answer("LiteRT for the web 2.5.3", reasons, _custom(file))


def _mediapipe(file: OpenedFile, task: str) -> Verdict:
    inputs, outputs = _ends(file)
    reasons = _too_new(file, MEDIAPIPE)
    if len(file.model.subgraphs) != 1:
        reasons.append(f"{len(file.model.subgraphs)} subgraphs: it takes one; export with form unrolled")
    kinds = _types(inputs)
    if kinds == {"int32"}:
        reasons += _bert_inputs(file, inputs) if len(inputs) != 1 else _regex_input(file, inputs)
    elif kinds != {"string"}:
        reasons.append(f"inputs of the type {_listed(kinds)}: expected int32 for all, or string for all")
    elif len(inputs) not in (1, 3):
        reasons.append(f"{len(inputs)} inputs of strings: expected 1 or 3")
    taken = ("float32", "uint8", "bool") if task == "TextClassifier" else ("float32", "uint8")
    if refused := _types(outputs) - set(taken):
        reasons.append(f"outputs of the type {_listed(refused)}: it takes {_listed(taken)}")
    if file.metadata is not None and file.metadata.outputs and len(file.metadata.outputs) != len(outputs):
        reasons.append(f"{len(outputs)} outputs, of which the metadata describes {len(file.metadata.outputs)}")
    return _answer(f"{MEDIAPIPE} {task}", [*reasons, *_archive_reasons(file)], _custom(file))


def _bert_inputs(file: OpenedFile, inputs: list[Tensor]) -> list[str]:
    """What is wrong for a model of ids, segments and mask, in MediaPipe as in the Task Library."""
    reasons = []
    if len(inputs) != len(BERT_INPUTS):
        reasons.append(f"{len(inputs)} inputs: expected 3, or 1 for a regex tokenizer")
    if any(len(tensor.shape) != 2 or tensor.shape[0] != 1 for tensor in inputs):
        reasons.append(f"inputs of the shapes {[list(tensor.signature) for tensor in inputs]}: expected [1, length]")
    elif len({tensor.signature[1] for tensor in inputs}) > 1:
        reasons.append("inputs of different lengths")
    if file.metadata is None:
        return [*reasons, _NO_METADATA]
    if (names := {tensor.name for tensor in file.metadata.inputs}) != BERT_INPUTS:
        reasons.append(f"inputs called {_listed(names)} in the metadata: expected {_listed(BERT_INPUTS)}")
    return reasons + _tokenizer_reasons(file)


def _tokenizer_reasons(file: OpenedFile) -> list[str]:
    if file.metadata is None:
        return [_NO_METADATA]
    units = file.metadata.input_process_units
    if not units or units[0].kind not in _TOKENIZERS:
        return [f"no tokenizer in the metadata: expected a {' or a '.join(_TOKENIZERS)} as first process unit"]
    return [] if units[0].files else [f"the {units[0].kind} in the metadata names no vocabulary"]


def _regex_input(file: OpenedFile, inputs: list[Tensor]) -> list[str]:
    if file.metadata is None:
        return [_NO_METADATA]
    if len(inputs[0].shape) != 2 or inputs[0].shape[0] != 1:
        return [f"an input of the shape {list(inputs[0].signature)}: expected [1, length]"]
    units = file.metadata.inputs[0].process_units if file.metadata.inputs else ()
    if not any(unit.kind == "regex tokenizer" for unit in units):
        return ["one input, and no regex tokenizer for it in the metadata; models of tokens have 3 inputs"]
    return []


def _archive_reasons(file: OpenedFile) -> list[str]:
    """What is wrong with the files that the metadata names."""
    named = {entry.name for entry in file.metadata.named_files()} if file.metadata is not None else set()
    reasons = [f"{name}: named in the metadata, not in the file" for name in sorted(named - file.archive.sizes.keys())]
    if named and file.archive.compressed:
        reasons.append("a compressed archive: expected one that stores its files as they are")
    return reasons


def _task_library(file: OpenedFile, task: str, reasons: list[str]) -> Verdict:
    # Several subgraphs it takes: a loop was tried there.
    inputs, _ = _ends(file)
    kinds = _types(inputs)
    wrong = [] if kinds == {"int32"} else [f"inputs of the type {_listed(kinds)}: expected int32"]
    if any(tensor.type == "INT4" for graph in file.model.subgraphs for tensor in graph.tensors):
        wrong.append("tensors of 4 bits: it knows none")
    if any(_computes_roots_of_integers(graph) for graph in file.model.subgraphs):
        wrong.append("RSQRT of int16: it has it for floats and int8")
    places = sorted(file.model.subgraphs[0].inputs)
    if any(-1 in tensor.signature for tensor in inputs) and places != list(range(len(places))):
        wrong.append("inputs of open size that are not the graph's first tensors: it resizes those")
    shown = [*_too_new(file, TASK_LIBRARY), *wrong, *reasons, *_archive_reasons(file)]
    return _answer(f"{TASK_LIBRARY} {task}", shown, _custom(file))


def _computes_roots_of_integers(graph: Subgraph) -> bool:
    """Versions do not tell: ai-edge-quantizer writes version 1 whatever the types."""
    roots = [operator for operator in graph.operators if operator.name == "RSQRT"]
    return any(graph.tensors[i].type == "INT16" for operator in roots for i in operator.inputs if i >= 0)


def _classifier(file: OpenedFile) -> Verdict:
    inputs, outputs = _ends(file)
    reasons = _bert_inputs(file, inputs)
    if len(outputs) != 1:
        reasons.append(f"{len(outputs)} outputs: expected 1")
    elif file.metadata is not None and [tensor.name for tensor in file.metadata.outputs] != ["probability"]:
        found = _listed({tensor.name for tensor in file.metadata.outputs})
        reasons.append(f"an output called {found} in the metadata: expected probability")
    return _task_library(file, "BertNLClassifier", reasons)


def _embedder(file: OpenedFile) -> Verdict:
    inputs, outputs = _ends(file)
    reasons = _bert_inputs(file, inputs) if len(inputs) != 1 else _regex_input(file, inputs)
    if refused := _types(outputs) - {"float32", "uint8"}:
        reasons.append(f"outputs of the type {_listed(refused)}: it takes float32, uint8")
    if any(len(tensor.shape) not in (2, 4) or tensor.shape[0] != 1 for tensor in outputs):
        reasons.append(f"outputs of the shapes {[list(tensor.shape) for tensor in outputs]}: expected [1, values]")
    return _task_library(file, "TextEmbedder", reasons)


def _answerer(file: OpenedFile) -> Verdict:
    inputs, outputs = _ends(file)
    reasons = _bert_inputs(file, inputs)
    if lengths := {tensor.signature[-1] for tensor in inputs if tensor.signature} - {ANSWER_LENGTH}:
        found = ", ".join("any" if length < 0 else str(length) for length in sorted(lengths))
        reasons.append(f"inputs of {found} tokens: expected {ANSWER_LENGTH}")
    if len(outputs) < len(ANSWER_OUTPUTS):
        reasons.append(f"{len(outputs)} output: expected {_listed(ANSWER_OUTPUTS)}")
    elif file.metadata is not None and ANSWER_OUTPUTS - (names := {tensor.name for tensor in file.metadata.outputs}):
        reasons.append(f"outputs called {_listed(names)} in the metadata: expected {_listed(ANSWER_OUTPUTS)}")
    return _task_library(file, "BertQuestionAnswerer", reasons)


def _gpu(file: OpenedFile) -> Verdict:
    runtime = "TFLite GPU delegate"
    if any(-1 in tensor.signature for graph in file.model.subgraphs for tensor in graph.tensors):
        found = "an input of open size" if any(-1 in t.signature for t in _ends(file)[0]) else "sizes that are open"
        return _answer(runtime, [f"{found}: it takes fixed shapes only; export with a fixed length"])
    graph = file.model.subgraphs[0]
    refused = Counter(reason for operator in graph.operators if (reason := why_not_on_gpu(operator, graph)))
    inside = sum(len(other.operators) for other in file.model.subgraphs[1:])
    total = len(graph.operators) + inside
    left = refused.total() + inside
    reasons = [f"{count} × {reason}" for reason, count in refused.most_common(_MOST_REASONS)]
    if inside:
        reasons.insert(
            0, f"{inside} operators in other subgraphs, such as the body of a loop; export with form unrolled"
        )
    if 0 < left < total:
        reasons.insert(0, f"{total - left} of {total} operators by its published rules, the others on the CPU")
    return Verdict(runtime, "no" if left == total else "partly" if left else "yes", tuple(reasons))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _types(tensors: Iterable[Tensor]) -> set[str]:
    return {tensor.type.lower() for tensor in tensors}
