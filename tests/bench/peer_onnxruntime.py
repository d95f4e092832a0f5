"""peer_onnxruntime.py MEASURE THREADS FOLDER MODEL: the same measurements as bench.c, of onnxruntime.

The same weights in float32, as sentence-transformers would run them: tokens from the tokenizers package,
at most 256, mean pooling, normalized. Its best settings: all graph optimizations, THREADS threads within
an operation and one operation at a time, texts sorted by length, batches of 16 or 32 (`prepare` tries
both), padded to the longest of their batch.
"""
import json
import math
import os
import sys
import time

measure, threads, folder, model = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
# Threads other than onnxruntime's own would only take the cores from it.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["RAYON_NUM_THREADS"] = str(threads)
os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"

import numpy as np  # noqa: E402 (after the environment is set)
import onnxruntime  # noqa: E402
import tokenizers  # noqa: E402

NAME = "onnxruntime"
LONGEST = 256
WARMUP_DOCUMENTS, WARMUP_SHORTS = 32, 50
FIRST_TEXT = "How do I reset my password when the mail never arrives?"


class Engine:
    def __init__(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = onnxruntime.InferenceSession(
            os.path.join(folder, "all-minilm-l6-v2.onnx"), options, providers=["CPUExecutionProvider"])
        self.tokenizer = tokenizers.Tokenizer.from_file(os.path.join(model, "tokenizer.json"))
        self.tokenizer.no_padding()  # the file asks for 128 always
        self.tokenizer.enable_truncation(LONGEST)

    def tokenize(self, texts):
        # The fast form leaves out offsets, which nobody needs here.
        encode = getattr(self.tokenizer, "encode_batch_fast", self.tokenizer.encode_batch)
        return [encoding.ids for encoding in encode(texts)]

    def forward(self, batch):
        """Lists of ids to vectors [texts, dim]."""
        longest = max(map(len, batch))
        ids = np.zeros((len(batch), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        (hidden,) = self.session.run(
            None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
        weights = mask.astype(np.float32)[:, None, :]
        pooled = np.matmul(weights, hidden)[:, 0, :] / weights.sum(2)
        return pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)

    def embed(self, texts, batch_size):
        """Vectors [texts, dim] in the order of the texts, and the lengths in tokens."""
        tokens = self.tokenize(texts)
        order = sorted(range(len(texts)), key=lambda i: -len(tokens[i]))
        out = None
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            vectors = self.forward([tokens[i] for i in rows])
            if out is None:
                out = np.empty((len(texts), vectors.shape[1]), np.float32)
            out[rows] = vectors
        return out, [len(t) for t in tokens]


def lines(name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read().splitlines()


def report(**fields):
    print(json.dumps({"engine": NAME, "measure": measure, "threads": threads, **fields}))


def peak_kilobytes():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


def batch_file():
    return os.path.join(folder, f"{NAME}.batch.{threads}")


def timed(engine, texts, batch_size):
    begin = time.perf_counter()
    _, lengths = engine.embed(texts, batch_size)
    return time.perf_counter() - begin, lengths


def prepare():
    """Finds the faster size of batches for this machine and keeps it for `bulk`."""
    engine, texts = Engine(), lines("corpus.txt")
    engine.embed(texts[:WARMUP_DOCUMENTS], 16)
    seconds = {16: math.inf, 32: math.inf}
    for size in 2 * list(seconds):
        seconds[size] = min(seconds[size], timed(engine, texts, size)[0])
    best = min(seconds, key=seconds.get)
    with open(batch_file(), "w", encoding="ascii") as file:
        file.write(str(best))
    report(batch=best, seconds=seconds)


def bulk():
    with open(batch_file(), encoding="ascii") as file:
        batch_size = int(file.read())
    engine, texts = Engine(), lines("corpus.txt")
    engine.embed(texts[:WARMUP_DOCUMENTS], batch_size)
    seconds, lengths = timed(engine, texts, batch_size)
    report(seconds=round(seconds, 6), documents=len(texts), tokens=sum(lengths), longest=max(lengths),
           batch=batch_size, peak_kb=peak_kilobytes())


def short():
    engine, texts = Engine(), lines("short.txt")
    seconds, tokens = [], 0
    for text in texts:
        begin = time.perf_counter()
        ids = engine.tokenizer.encode(text).ids
        engine.forward([ids])
        seconds.append(time.perf_counter() - begin)
        tokens += len(ids)
    seconds = seconds[WARMUP_SHORTS:]
    p10, median, p90 = np.quantile(seconds, [0.1, 0.5, 0.9])
    report(seconds=round(median, 7), p10=round(p10, 7), p90=round(p90, 7), calls=len(seconds),
           tokens=round(tokens / len(texts), 2))


def vectors():
    out, lengths = Engine().embed(lines("corpus.txt"), 16)
    out.astype("<f4").tofile(os.path.join(folder, f"{NAME}.f32"))
    report(documents=out.shape[0], tokens=sum(lengths), dim=out.shape[1])


def info():
    report(version=onnxruntime.__version__,
           detail={"tokenizers": tokenizers.__version__, "numpy": np.__version__,
                   "python": sys.version.split()[0]})


def first():
    engine = Engine()
    engine.forward([engine.tokenizer.encode(FIRST_TEXT).ids])
    print("embedded", flush=True)


{"prepare": prepare, "bulk": bulk, "short": short, "vectors": vectors, "info": info, "first": first}[measure]()
