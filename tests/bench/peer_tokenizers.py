"""peer_tokenizers.py KIND DIRECTORY TEXTS: what bench_encoder tokenize does, with Hugging Face tokenizers.

One thread; its fast form, which leaves out offsets, on all texts in one call; nothing is cut. The caches of words
that some of its models have are warm.
"""
import json
import os
import statistics
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import tokenizers  # noqa: E402 (after the environment is set)

PASSES, WARMUP_SHARE = 3, 10
kind, directory, path = sys.argv[1:]


def digest(encodings):
    """FNV-1a of the ids, a token at a time."""
    value = 0xCBF29CE484222325
    for encoding in encodings:
        for token in encoding.ids:
            value = ((value ^ token) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


tokenizer = tokenizers.Tokenizer.from_file(os.path.join(directory, "tokenizer.json"))
tokenizer.no_padding()
tokenizer.no_truncation()
encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
with open(path, encoding="utf-8") as file:
    texts = file.read().splitlines()
encode(texts[: len(texts) // WARMUP_SHARE])
seconds = []
for _ in range(PASSES):
    begin = time.perf_counter()
    encodings = encode(texts)
    seconds.append(time.perf_counter() - begin)
print(json.dumps({"engine": "tokenizers", "measure": "tokenize", "kind": kind,
                  "vocabulary": tokenizer.get_vocab_size(), "seconds": round(statistics.median(seconds), 6),
                  "bytes": sum(len(text.encode()) for text in texts),
                  "tokens": sum(len(encoding.ids) for encoding in encodings), "digest": digest(encodings),
                  "version": tokenizers.__version__}))
