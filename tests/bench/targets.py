"""targets.py: the ratios that bertsql is to reach on any machine, each from measurements of one run.

A target is a row: what it is, its values over the rounds, "at least" or "at most", and the number. A target that
depends on the machine says so in its name. A row without values could not be measured in this run.
"""
from results import (OURS, above_weights, bfloat16_instructions, bulk_rates, ceiling_rates, documents_per_second,
                     find, median, milliseconds, most_threads, peak_megabytes, ratios, smallest_cosine, spread, table,
                     tokens_per_second)

BF16, INT8 = f"{OURS}-bf16", f"{OURS}-int8"


def statement_rates(measure):
    return [documents_per_second(r) for r in find(measure, OURS, most_threads())]


def short_times(engine):
    return [milliseconds(r) for r in find("short", engine, most_threads())]


def bulk_targets():
    """1.2 times OpenVINO, or 0.9 of the ceiling where that is less; and 0.85 of the ceiling."""
    theirs, ceiling = bulk_rates("openvino"), ceiling_rates()
    below_ceiling = median([0.9 * c for c in ratios(ceiling, theirs)])
    goal = 1.2 if below_ceiling is None else min(1.2, below_ceiling)
    why = "1.2, or 0.9 of the ceiling" if ceiling else "1.2"
    for name, ours in [("bert_embed_rows", bulk_rates(OURS)), ("refresh", statement_rates("refresh"))]:
        yield f"{name} / OpenVINO float32, documents/s ({why})", ratios(ours, theirs), "at least", goal
        yield f"{name} / sgemm ceiling", ratios(ours, ceiling), "at least", 0.85


def short_targets():
    yield ("one short text / onnxruntime, median time", ratios(short_times(OURS), short_times("onnxruntime")),
           "at most", 0.65)


def cosines(engine):
    cosine = smallest_cosine(engine)
    return [] if cosine is None else [cosine]


def precision_targets():
    kind = bfloat16_instructions() or "neither AMX nor AVX512-BF16"
    yield (f"bfloat16 / OpenVINO bfloat16, documents/s ({kind})",
           ratios(bulk_rates(BF16), bulk_rates("openvino-bf16")), "at least", 1.2 if kind == "AMX" else 1.0)
    yield "bfloat16: smallest cosine to float32", cosines(BF16), "at least", 0.9999
    yield "int8: smallest cosine to float32", cosines(INT8), "at least", 0.995
    faster = ratios(bulk_rates(INT8), bulk_rates(BF16))
    peaks = [[peak_megabytes(r) for r in find("bulk", e, most_threads())] for e in (BF16, INT8)]
    smaller = ratios(*peaks)
    # Either will do: the better of the two counts.
    if not faster or median(faster) >= median(smaller):
        yield "int8 / bfloat16, documents/s (or less memory)", faster, "at least", 1
    else:
        yield "bfloat16 / int8, peak memory (or faster)", smaller, "at least", 1


def memory_targets():
    yield ("peak memory above the mapped weights in bulk, MB",
           [above_weights(r) for r in find("bulk", OURS, most_threads())], "at most", 48)
    rows = sorted({r["documents"] for r in find("documents", OURS)})
    if len(rows) > 1:
        few, many = ([peak_megabytes(r) for r in find("documents", OURS, documents=n)] for n in (rows[-2], rows[-1]))
        yield (f"peak memory of {rows[-1]} rows less that of {rows[-2]}, MB",
               [a - b for a, b in zip(many, few)], "at most", 2)
    connections = find("connections", OURS)
    count = connections[0]["connections"] if connections else 8
    yield (f"each of {count} connections more adds, MB",
           [r["added_kb"] / 1024 / r["connections"] for r in connections], "at most", 8)


def start_targets():
    yield "process start to first embedding, ms", [milliseconds(r) for r in find("start", OURS)], "at most", 60


def tokenizer_targets():
    for kind, name in [("wordpiece", "WordPiece"), ("bpe", "byte-level BPE"), ("unigram", "Unigram")]:
        ours, theirs = (find("tokenize", e, kind=kind) for e in (OURS, "tokenizers"))
        words = f" of {ours[0]['vocabulary']} pieces" if ours else ""
        yield (f"tokenizing, {name}{words} / Hugging Face tokenizers, one thread",
               ratios([1 / r["seconds"] for r in ours], [1 / r["seconds"] for r in theirs]), "at least", 4)


def statement_targets():
    yield "UPDATE … SET emb = bert_embed(body) / bulk", ratios(statement_rates("update"), bulk_rates(OURS)), "at least", 0.75
    ours, theirs = (find("search", e) for e in (OURS, "sqlite-vec"))
    what = f" of {ours[0]['vectors']} vectors" if ours else ""
    yield (f"search{what} / vec0, time", ratios([r["seconds"] for r in ours], [r["seconds"] for r in theirs]),
           "at most", 1 / 3)
    yield ("a pass that gives the attention of one layer / a plain pass, time",
           [r["seconds"] / r["plain"] for r in find("capture", OURS)], "at most", 1.15)


def scaling_targets():
    rows = sorted({r["documents"] for r in find("documents", OURS)})
    if len(rows) > 1:
        few, many = ([1 / tokens_per_second(r) for r in find("documents", OURS, documents=n)] for n in (rows[0], rows[-1]))
        yield f"time per token, {rows[-1]} / {rows[0]} documents", ratios(many, few), "at most", 1.1
    counts = sorted({r["threads"] for r in find("scaling", OURS)})
    for n in counts[1:]:
        ours = gain("scaling", OURS, n, counts[0])
        yield f"gain of {n} threads over one / sgemm's own", ratios(ours, gain("ceiling", "sgemm", n, counts[0])), "at least", 0.95


def gain(measure, engine, many, few):
    return ratios(*([tokens_per_second(r) for r in find(measure, engine, n)] for n in (many, few)))


POINTS = [("1 bulk", bulk_targets), ("2 one text", short_targets), ("3 precision", precision_targets),
          ("4 memory", memory_targets), ("5 start", start_targets), ("6 tokenizing", tokenizer_targets),
          ("7 statements", statement_targets), ("8 scaling", scaling_targets)]


def fine(x):
    """Cosines near 1 need their digits."""
    return f"{x:.5f}" if 0.99 < x < 1 else f"{x:.0f}" if x >= 1000 else f"{x:.1f}" if x >= 100 else f"{x:.2f}"


def print_targets():
    rows = []
    for point, targets in POINTS:
        for name, values, way, goal in targets():
            value = median(values)
            reached = "not measured" if value is None else "yes" if (value >= goal if way == "at least" else value <= goal) else "**no**"
            rows.append([point, name, spread(values, fine), f"{way} {goal:.4g}", reached])
    table(["point", "ratio", "value", "target", "reached"], rows)
