"""peers.py: the measurements of bench.c for engines that are used from Python.

A script peer_NAME.py defines a class with what its engine does, gives it to main(), and is called as
peer_NAME.py ENGINE MEASURE THREADS FOLDER MODEL. ENGINE is its name in the tables: peer_openvino.py measures
"openvino" and "openvino-bf16". The class has

    SETTINGS                 a list of dictionaries: ways of working among which `prepare` finds the fastest
    __init__(setting)        opens the engine; setting None is for one text at a time
    embed(texts, setting)    vectors [texts, dim], float32, in the order of the texts
    one(text)                embeds one text
    lengths(texts)           how many tokens they have, cut as embed cuts them; not timed
    about()                  its version, and a dictionary of what else one should know

Tokens is such a class for engines that take token ids: it tokenizes, sorts by length, cuts into batches,
pools and normalizes as sentence-transformers does for this model. An engine adds open() and hidden().
"""
import concurrent.futures
import json
import math
import os
import sys
import time

engine_name, measure, threads, folder, model = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5]
# Threads other than the engine's own would only take the cores from it.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = str(threads)
os.environ["RAYON_NUM_THREADS"] = str(threads)
os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"

import numpy as np  # noqa: E402 (after the environment is set)

LONGEST = 256
WARMUP_DOCUMENTS, WARMUP_SHORTS, TRIAL_DOCUMENTS = 32, 50, 192
FIRST_TEXT = "How do I reset my password when the mail never arrives?"
BATCHES = [{"batch": 16}, {"batch": 32}]
# All threads in one batch, or a batch for each thread.
BATCHES_AND_STREAMS = [{**batch, "streams": streams} for streams in sorted({1, threads}) for batch in BATCHES]


def onnx_file():
    return os.path.join(folder, "all-minilm-l6-v2.onnx")


class Tokens:
    """An engine that takes ids. open(streams, threads) opens it for so many calls at once, of so many threads
    each; hidden(ids, mask) is a forward pass, [texts, tokens] to [texts, tokens, hidden]."""

    SETTINGS = BATCHES_AND_STREAMS

    def __init__(self, setting):
        import tokenizers

        self.streams = setting["streams"] if setting else 1
        self.tokenizer = tokenizers.Tokenizer.from_file(os.path.join(model, "tokenizer.json"))
        self.tokenizer.no_padding()  # the file asks for 128 always
        self.tokenizer.enable_truncation(LONGEST)
        self.open(self.streams, threads // self.streams)

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
        weights = mask.astype(np.float32)[:, None, :]
        pooled = np.matmul(weights, self.hidden(ids, mask))[:, 0, :] / weights.sum(2)
        return pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)

    def embed(self, texts, setting):
        tokens = self.tokenize(texts)
        order = sorted(range(len(texts)), key=lambda i: -len(tokens[i]))
        size = setting["batch"]
        batches = [order[start : start + size] for start in range(0, len(order), size)]

        def run(rows):
            return self.forward([tokens[i] for i in rows])

        if self.streams == 1:
            vectors = list(map(run, batches))
        else:
            with concurrent.futures.ThreadPoolExecutor(self.streams) as pool:
                vectors = list(pool.map(run, batches))
        out = np.empty((len(texts), vectors[0].shape[1]), np.float32)
        for rows, part in zip(batches, vectors):
            out[rows] = part
        return out

    def one(self, text):
        self.forward([self.tokenizer.encode(text).ids])

    def lengths(self, texts):
        return [len(ids) for ids in self.tokenize(texts)]


# ---- Measurements ------------------------------------------------------------


def lines(name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read().splitlines()


def report(**fields):
    print(json.dumps({"engine": engine_name, "measure": measure, "threads": threads, **fields}))


def peak_kilobytes():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


def setting_file():
    return os.path.join(folder, f"{engine_name}.setting.{threads}")


def timed(engine, texts, setting):
    begin = time.perf_counter()
    engine.embed(texts, setting)
    return time.perf_counter() - begin


def trial(Engine, setting, texts):
    engine = Engine(setting)
    engine.embed(texts[:WARMUP_DOCUMENTS // 2], setting)
    seconds = timed(engine, texts, setting)
    return min(seconds, timed(engine, texts, setting)) if seconds < 3 else seconds


def prepare(Engine):
    """Finds the fastest setting for this machine and keeps it for `bulk`. With PREPARE_SECONDS no further setting
    is tried after so long."""
    texts = lines("corpus.txt")[:TRIAL_DOCUMENTS]
    best, fastest, tried = None, math.inf, []
    begin, limit = time.perf_counter(), float(os.environ.get("PREPARE_SECONDS") or math.inf)
    for setting in Engine.SETTINGS:
        if best and time.perf_counter() - begin > limit:
            break
        seconds = trial(Engine, setting, texts)
        tried.append({**setting, "seconds": round(seconds, 4)})
        if seconds < fastest:
            best, fastest = setting, seconds
    with open(setting_file(), "w", encoding="ascii") as file:
        json.dump(best, file)
    report(best=best, tried=tried)


def bulk(Engine):
    with open(setting_file(), encoding="ascii") as file:
        setting = json.load(file)
    engine, texts = Engine(setting), lines("corpus.txt")
    engine.embed(texts[:WARMUP_DOCUMENTS], setting)
    seconds, peak = timed(engine, texts, setting), peak_kilobytes()
    lengths = engine.lengths(texts)
    report(seconds=round(seconds, 6), documents=len(texts), tokens=sum(lengths), longest=max(lengths),
           setting=setting, peak_kb=peak)


def short(Engine):
    engine, texts = Engine(None), lines("short.txt")
    seconds = []
    for text in texts:
        begin = time.perf_counter()
        engine.one(text)
        seconds.append(time.perf_counter() - begin)
    seconds = seconds[WARMUP_SHORTS:]
    p10, median, p90 = np.quantile(seconds, [0.1, 0.5, 0.9])
    report(seconds=round(median, 7), p10=round(p10, 7), p90=round(p90, 7), calls=len(seconds),
           tokens=round(float(np.mean(engine.lengths(texts))), 2))


def vectors(Engine):
    setting = Engine.SETTINGS[0]
    engine, texts = Engine(setting), lines("corpus.txt")
    out = engine.embed(texts, setting)
    out.astype("<f4").tofile(os.path.join(folder, f"{engine_name}.f32"))
    report(documents=out.shape[0], tokens=sum(engine.lengths(texts)), dim=out.shape[1])


def info(Engine):
    version, detail = Engine(None).about()
    report(version=version, detail={**detail, "numpy": np.__version__, "python": sys.version.split()[0]})


def first(Engine):
    Engine(None).one(FIRST_TEXT)
    print("embedded", flush=True)


def main(Engine):
    {"prepare": prepare, "bulk": bulk, "short": short, "vectors": vectors, "info": info, "first": first}[measure](Engine)
