"""results.py: the measurements of FOLDER/results.jsonl, for summarize.py, targets.py and plots.py.

Needs nothing but Python itself, so that bertsql's own figures appear where no peer could be installed.
A ratio compares measurements of the same round, which were made right after one another; its median
and spread are those of the rounds' ratios, so that a machine that slows down for a while bends it little.
"""
import array
import json
import math
import os
import platform
import statistics
import sys

folder = sys.argv[1]
OURS = "bertsql"
QUIET = 0.05  # of the cores, taken by others: below this a machine is idle


def read_results():
    with open(os.path.join(folder, "results.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


results = read_results()


def find(measure, engine, threads=None, **fields):
    """The measurements in the order of the rounds."""
    return [r for r in results if r["measure"] == measure and r["engine"] == engine
            and (threads is None or r["threads"] == threads)
            and all(r[name] == value for name, value in fields.items())]


def engines():
    """bertsql first, its other precisions, then the peers that measured anything."""
    names = [r["engine"] for r in results if r["measure"] == "info"]
    return sorted(set(names), key=lambda name: (name != OURS, not name.startswith(OURS), names.index(name)))


def precision_of(engine):
    return next((p for p in ("bf16", "int8") if engine.endswith(p)), "float32")


def thread_counts():
    return sorted({r["threads"] for r in results if r["measure"] == "bulk"})


def most_threads():
    return thread_counts()[-1]


# ---- Quantities of one line --------------------------------------------------


def documents_per_second(r):
    return r["documents"] / r["seconds"]


def tokens_per_second(r):
    return r["tokens_per_second"] if "tokens_per_second" in r else r["tokens"] / r["seconds"]


def milliseconds(r):
    return 1000 * r["seconds"]


def peak_megabytes(r):
    return r["peak_kb"] / 1024


def above_weights(r):
    return (r["peak_kb"] - r["weights_kb"]) / 1024


def operations(r):
    """Of one token: the products with the weights (query, key, value, output: 4; intermediate and output: 8), and
    attention's own with all tokens of the text."""
    hidden, layers = r["hidden"], r["layers"]
    return 2 * layers * hidden * (12 * hidden + 2 * r["length"])


def bulk_rates(engine, threads=None):
    return [documents_per_second(r) for r in find("bulk", engine, threads or most_threads())]


def ceiling_rates(threads=None):
    """What OpenBLAS's products alone would allow, in documents/s of this corpus."""
    bulk = find("bulk", OURS)[0]
    return [tokens_per_second(r) * bulk["documents"] / bulk["tokens"]
            for r in find("ceiling", "sgemm", threads or most_threads())]


def ratios(ours, theirs):
    return [a / b for a, b in zip(ours, theirs)]


def median(values):
    return statistics.median(values) if values else None


# ---- The machine -------------------------------------------------------------


def cpuinfo(names):
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.lower().startswith(names):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return ""


def processor():
    return cpuinfo(("model name", "cpu model")) or platform.processor() or platform.machine()


def bfloat16_instructions():
    flags = cpuinfo(("flags",)).split()
    return "AMX" if "amx_bf16" in flags else "AVX512-BF16" if "avx512_bf16" in flags else ""


def others():
    """The share of the cores that others took before the busiest round."""
    return max(r["share"] for r in results if r["measure"] == "busy")


# ---- Vectors -----------------------------------------------------------------


def read_vectors(engine):
    """[documents * dim], dim and the tokens of all documents, or None."""
    line = find("vectors", engine)
    path = os.path.join(folder, f"{engine}.f32")
    if not line or not os.path.exists(path):
        return None
    numbers = array.array("f")
    with open(path, "rb") as file:
        numbers.frombytes(file.read())
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers, line[0]["dim"], line[0]["tokens"]


def smallest_cosine(engine):
    """Of its vectors and bertsql's in float32, document by document; None where there are no two to compare."""
    ours, theirs = read_vectors(OURS), read_vectors(engine)
    if not ours or not theirs or len(ours[0]) != len(theirs[0]):
        return None
    dim, smallest = ours[1], 1.0
    for start in range(0, len(ours[0]), dim):
        x, y = ours[0][start : start + dim], theirs[0][start : start + dim]
        dot = sum(p * q for p, q in zip(x, y))
        norms = math.sqrt(sum(p * p for p in x) * sum(q * q for q in y))
        # A vector that is not finite compares as the worst.
        smallest = min(smallest, dot / norms if norms > 0 and math.isfinite(dot) else -1.0)
    return smallest


# ---- Numbers and tables as text ----------------------------------------------


def digits(x):
    return f"{x:.0f}" if abs(x) >= 1000 else f"{x:.1f}" if abs(x) >= 100 else f"{x:.2f}"


def spread(values, write=digits):
    if not values:
        return "-"
    text = write(statistics.median(values))
    return text if len(values) == 1 else f"{text} ({write(min(values))} .. {write(max(values))})"


def table(header, rows):
    """A Markdown table whose columns also line up in a terminal."""
    widths = [max(len(row[i]) for row in [header] + rows) for i in range(len(header))]
    for row in [header, ["-" * w for w in widths]] + rows:
        print("| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths)) + " |")
    print()
