"""summarize.py FOLDER: FOLDER/results.jsonl as tables, with medians, spread and ratios.

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
SAME_COSINE = 0.99999  # float32 against float32; below this the engines did different work


def read_results():
    with open(os.path.join(folder, "results.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


results = read_results()


def find(measure, engine, threads=None):
    """The measurements in the order of the rounds."""
    return [r for r in results if r["measure"] == measure and r["engine"] == engine
            and (threads is None or r["threads"] == threads)]


def engines():
    """bertsql first, then the peers that measured anything."""
    names = [r["engine"] for r in results if r["measure"] == "info"]
    return sorted(set(names), key=lambda name: (name != OURS, names.index(name)))


def thread_counts():
    return sorted({r["threads"] for r in results if r["measure"] == "bulk"})


# ---- Numbers as text ---------------------------------------------------------


def digits(x):
    return f"{x:.0f}" if abs(x) >= 1000 else f"{x:.1f}" if abs(x) >= 100 else f"{x:.2f}"


def spread(values):
    if not values:
        return "-"
    text = digits(statistics.median(values))
    return text if len(values) == 1 else f"{text} ({digits(min(values))} .. {digits(max(values))})"


def ratios(ours, theirs):
    return [a / b for a, b in zip(ours, theirs)]


def table(header, rows):
    """A Markdown table whose columns also line up in a terminal."""
    widths = [max(len(row[i]) for row in [header] + rows) for i in range(len(header))]
    for row in [header, ["-" * w for w in widths]] + rows:
        print("| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths)) + " |")
    print()


# ---- What was measured -------------------------------------------------------


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.lower().startswith(("model name", "cpu model")):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def print_machine():
    info = find("info", OURS)[0]
    detail = info["detail"]
    print(f"\nMachine: {processor()}, {os.cpu_count()} cores, {platform.machine()}, {platform.system()} "
          f"{platform.release()}; others took {100 * others():.0f}% of the cores before the busiest round")
    print(f"bertsql {info['version']}: kernels {detail['kernels']}, {detail['blas']}, SQLite {detail['sqlite']}, "
          f"{detail['compiler']}")
    for name in engines()[1:]:
        peer = find("info", name)[0]
        print(f"{name} {peer['version']}: " + ", ".join(f"{k} {v}" for k, v in peer["detail"].items()))
    bulk = find("bulk", OURS)[0]
    print(f"Corpus: {bulk['documents']} documents of {bulk['tokens'] / bulk['documents']:.1f} tokens on "
          f"average, the longest {bulk['longest']}; rounds: {rounds()}\n")
    if others() > QUIET:
        print("**The machine was busy with other work: these figures are no measurement.**\n")


def others():
    return max(r["share"] for r in results if r["measure"] == "busy")


def rounds():
    return len(find("bulk", OURS, thread_counts()[0]))


# ---- Rows --------------------------------------------------------------------
# A quantity: its name, which way is better, the unit, the measure it comes from
# and how to compute it from one line of that measure.


def tokens_per_document():
    bulk = find("bulk", OURS)[0]
    return bulk["tokens"] / bulk["documents"]


QUANTITIES = [
    ("Bulk", "higher", "documents/s", "bulk", lambda r: r["documents"] / r["seconds"]),
    ("Bulk", "higher", "tokens/s", "bulk", lambda r: r["tokens"] / r["seconds"]),
    ("UPDATE … SET emb = bert_embed(body)", "higher", "documents/s", "update",
     lambda r: r["documents"] / r["seconds"]),
    ("INSERT INTO docs_emb(docs_emb) VALUES('refresh')", "higher", "documents/s", "refresh",
     lambda r: r["documents"] / r["seconds"]),
    ("One short text, median", "lower", "ms", "short", lambda r: 1000 * r["seconds"]),
    ("One short text, 90th percentile", "lower", "ms", "short", lambda r: 1000 * r["p90"]),
    ("Peak memory in bulk", "lower", "MB", "bulk", lambda r: r["peak_kb"] / 1024),
]
START = ("Process start to first embedding", "lower", "ms", "start", lambda r: 1000 * r["seconds"])


def row(quantity, threads):
    name, better, unit, measure, compute = quantity
    values = {e: [compute(r) for r in find(measure, e, threads)] for e in engines()}
    cells = [name, str(threads or "all"), unit]
    cells += [spread(values[e]) for e in engines()]
    cells += [spread(ratios(values[OURS], values[e])) for e in engines()[1:]]
    return cells + [better]


def print_engines():
    rows = [row(q, t) for q in QUANTITIES for t in thread_counts()] + [row(START, None)]
    header = ["measure", "threads", "unit"] + engines()
    table(header + [f"{OURS}/{e}" for e in engines()[1:]] + ["better"], rows)


# ---- Against the ceiling -----------------------------------------------------


def print_ceiling():
    rows = []
    for t in thread_counts():
        ceiling = [r["tokens_per_second"] / tokens_per_document() for r in find("ceiling", "sgemm", t)]
        gflops = [r["gflops"] for r in find("ceiling", "sgemm", t)]
        if not ceiling:
            continue
        shares = []
        for e in engines():
            values = [r["documents"] / r["seconds"] for r in find("bulk", e, t)]
            shares.append(spread(ratios(values, ceiling)))
        rows.append([str(t), spread(gflops), spread(ceiling)] + shares)
    if rows:
        print("OpenBLAS sgemm at 1024 rows in the model's shapes, and the share of it that bulk work reaches:\n")
        table(["threads", "GFLOP/s", "documents/s"] + [f"{e}/ceiling" for e in engines()], rows)


def rates(measure, engine, threads):
    key = "tokens_per_second"
    return [r[key] if key in r else r["tokens"] / r["seconds"] for r in find(measure, engine, threads)]


def print_derived():
    """Ratios of bertsql's own measurements."""
    low, high = thread_counts()[0], thread_counts()[-1]
    rows = []
    for t in thread_counts():
        update = [r["documents"] / r["seconds"] for r in find("update", OURS, t)]
        bulk = [r["documents"] / r["seconds"] for r in find("bulk", OURS, t)]
        rows.append([f"UPDATE/bulk, threads: {t}", spread(ratios(update, bulk))])
        refresh = [r["documents"] / r["seconds"] for r in find("refresh", OURS, t)]
        rows.append([f"refresh/bulk, threads: {t}", spread(ratios(refresh, bulk))])
        above = [(r["peak_kb"] - r["weights_kb"]) / 1024 for r in find("bulk", OURS, t)]
        rows.append([f"peak memory above the mapped weights in MB, threads: {t}", spread(above)])
    if high > low:
        for measure, engine in [("bulk", e) for e in engines()] + [("ceiling", "sgemm")]:
            gain = ratios(rates(measure, engine, high), rates(measure, engine, low))
            if gain:
                rows.append([f"{engine}: speed with {high} threads/with {low}", spread(gain)])
    table(["ratio", "value"], rows)


def print_search():
    """MATCH of the virtual table beside vec0 of sqlite-vec, which answered the same."""
    rows = []
    for measure, name in [("search", "ten nearest, median"), ("search_first", "a connection's first search, median")]:
        lines = {e: find(measure, e) for e in (OURS, "sqlite-vec")}
        if not lines[OURS]:
            continue
        ms = {e: [1000 * r["seconds"] for r in found] for e, found in lines.items()}
        rows.append([f"{name} of {lines[OURS][0]['vectors']}", "ms", spread(ms[OURS]), spread(ms["sqlite-vec"]),
                     spread(ratios(ms[OURS], ms["sqlite-vec"])), "lower"])
    if rows:
        table(["search, all cores", "unit", OURS, "sqlite-vec", f"{OURS}/sqlite-vec", "better"], rows)


# ---- The same work -----------------------------------------------------------


def read_vectors(engine):
    """[documents * dim] and dim, or None."""
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


def smallest_cosine(a, b, dim):
    smallest = 1.0
    for start in range(0, len(a), dim):
        x, y = a[start : start + dim], b[start : start + dim]
        dot = sum(p * q for p, q in zip(x, y))
        norms = math.sqrt(sum(p * p for p in x) * sum(q * q for q in y))
        # A vector that is not finite compares as the worst.
        cosine = dot / norms if norms > 0 and math.isfinite(dot) else -1.0
        smallest = min(smallest, cosine)
    return smallest


def print_same_work():
    ours = read_vectors(OURS)
    for name in engines()[1:]:
        theirs = read_vectors(name)
        if not ours or not theirs or len(ours[0]) != len(theirs[0]):
            print(f"{name}: no vectors to compare with, so its figures may be of other work")
            continue
        cosine = smallest_cosine(ours[0], theirs[0], ours[1])
        print(f"{name}: smallest cosine to bertsql's vector of the same document {cosine:.7f}, "
              f"tokens {theirs[2]} to {ours[2]}")
        if cosine < SAME_COSINE or theirs[2] != ours[2]:
            print(f"**{name} and bertsql did not do the same work; do not compare their figures.**")


def print_notes():
    with open(os.path.join(folder, "notes.txt"), encoding="utf-8") as file:
        for line in file:
            print(f"Note: {line.rstrip()}")


if not thread_counts():
    sys.exit("no measurement came to its end: the time was up before")
print_machine()
print("median of the rounds (smallest .. largest)\n")
print_engines()
print_ceiling()
print_derived()
print_search()
print_same_work()
print_notes()
