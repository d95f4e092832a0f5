"""summarize.py FOLDER: FOLDER/results.jsonl as tables: the targets first, then what they rest on."""
import os
import platform
import sys

from results import (OURS, QUIET, above_weights, bulk_rates, ceiling_rates, documents_per_second, engines, find, folder,
                     median, milliseconds, most_threads, operations, others, peak_megabytes, precision_of, processor, ratios,
                     read_vectors, smallest_cosine, spread, table, thread_counts, tokens_per_second)
from targets import gain, print_targets

# Below these two engines did different work.
SAME_COSINE = {"float32": 0.99999, "bf16": 0.9999, "int8": 0.98}


# ---- What was measured -------------------------------------------------------


def print_machine():
    info = find("info", OURS)[0]
    detail = info["detail"]
    print(f"\nMachine: {processor()}, {os.cpu_count()} cores, {platform.machine()}, {platform.system()} "
          f"{platform.release()}; others took {100 * others():.0f}% of the cores before the busiest round")
    print(f"bertsql {info['version']}: kernels {detail['kernels']}, {detail['blas']}, SQLite {detail['sqlite']}, "
          f"{detail['compiler']}")
    for name in engines()[1:]:
        if name.startswith(OURS):
            continue
        peer = find("info", name)[0]
        setting = find("bulk", name, most_threads())
        best = " ".join(f"{k} {v}" for k, v in setting[0]["setting"].items()) if setting else "-"
        print(f"{name} {peer['version']}: " + ", ".join(f"{k} {v}" for k, v in peer["detail"].items())
              + f"; best setting: {best}")
    bulk = find("bulk", OURS)[0]
    print(f"Corpus: {bulk['documents']} documents of {bulk['tokens'] / bulk['documents']:.1f} tokens on "
          f"average, the longest {bulk['longest']}; rounds: {len(find('bulk', OURS, most_threads()))}\n")
    if others() > QUIET:
        print("**The machine was busy with other work: these figures are no measurement.**\n")


# ---- Engines -----------------------------------------------------------------


def print_engines(threads):
    rows = []
    for engine in engines():
        bulk, short = find("bulk", engine, threads), find("short", engine, threads)
        starts = find("start", engine) if threads == most_threads() else []
        compared = [
            ratios(bulk_rates(OURS, threads), bulk_rates(engine, threads)),
            ratios([r["seconds"] for r in find("short", OURS, threads)], [r["seconds"] for r in short]),
            ratios([r["peak_kb"] for r in find("bulk", OURS, threads)], [r["peak_kb"] for r in bulk])]
        rows.append([engine, spread([documents_per_second(r) for r in bulk]),
                     spread([milliseconds(r) for r in short]), spread([1000 * r["p90"] for r in short]),
                     spread([peak_megabytes(r) for r in bulk]), spread([milliseconds(r) for r in starts])]
                    + ["" if engine == OURS else spread(values) for values in compared])
    print(f"Engines with {threads} thread{'s' if threads > 1 else ''}; the last three columns are bertsql / this engine:\n")
    table(["engine", "documents/s", "one short text, ms", "its 90th percentile", "peak memory, MB", "start, ms",
           "documents/s", "short text", "memory"], rows)


# ---- Against the ceiling -----------------------------------------------------


def print_ceiling():
    rows = []
    for t in thread_counts():
        ceiling = ceiling_rates(t)
        if not ceiling:
            continue
        gflops = [r["gflops"] for r in find("ceiling", "sgemm", t)]
        shares = [f"{e} {median(ratios(bulk_rates(e, t), ceiling)):.2f}" for e in engines() if bulk_rates(e, t)]
        rows.append([str(t), spread(gflops), spread(ceiling), ", ".join(shares)])
    if rows:
        print("OpenBLAS sgemm in float32 at 1024 rows in the model's shapes, and the share of it that bulk work reaches:\n")
        table(["threads", "GFLOP/s", "documents/s", "share"], rows)


def print_derived():
    """Ratios of bertsql's own measurements."""
    rows = []
    for t in thread_counts():
        for measure in ("update", "refresh"):
            rates = [documents_per_second(r) for r in find(measure, OURS, t)]
            rows.append([f"{measure}/bulk, threads: {t}", spread(ratios(rates, bulk_rates(OURS, t)))])
        above = [above_weights(r) for r in find("bulk", OURS, t)]
        rows.append([f"peak memory above the mapped weights in MB, threads: {t}", spread(above)])
    counts = sorted({r["threads"] for r in find("scaling", OURS)})
    for n in counts[1:]:
        for measure, engine in (("scaling", OURS), ("ceiling", "sgemm")):
            rows.append([f"{engine}: speed with {n} threads/with {counts[0]}", spread(gain(measure, engine, n, counts[0]))])
    if len(thread_counts()) > 1:
        low, high = thread_counts()[0], most_threads()
        for engine in engines()[1:]:
            rows.append([f"{engine}: speed with {high} threads/with {low}", spread(gain("bulk", engine, high, low))])
    table(["ratio", "value"], rows)


def print_search():
    """MATCH of the virtual table beside vec0 of sqlite-vec, which answered the same."""
    rows = []
    for measure, name in [("search", "ten nearest, median"), ("search_first", "a connection's first search, median")]:
        lines = {e: find(measure, e) for e in (OURS, "sqlite-vec")}
        if not lines[OURS]:
            continue
        ms = {e: [milliseconds(r) for r in found] for e, found in lines.items()}
        rows.append([f"{name} of {lines[OURS][0]['vectors']}", "ms", spread(ms[OURS]), spread(ms["sqlite-vec"]),
                     spread(ratios(ms[OURS], ms["sqlite-vec"]))])
    if rows:
        table(["search, all cores", "unit", OURS, "sqlite-vec", f"{OURS}/sqlite-vec"], rows)


# ---- Tokenizers --------------------------------------------------------------


def print_tokenizers():
    rows, different = [], []
    for kind in ("wordpiece", "bpe", "unigram"):
        ours, theirs = (find("tokenize", e, kind=kind) for e in (OURS, "tokenizers"))
        if not ours:
            continue
        rates = [[1e-6 * r["bytes"] / r["seconds"] for r in lines] for lines in (ours, theirs)]
        rows.append([kind, str(ours[0]["vocabulary"]), *map(spread, rates), spread(ratios(*rates))])
        if theirs and theirs[0]["digest"] != ours[0]["digest"]:
            different.append(kind)
    if rows:
        table(["tokenizing, one thread", "vocabulary", f"{OURS}, MB/s", "tokenizers, MB/s", "ratio"], rows)
    for kind in different:
        print(f"**{kind}: both found other tokens; do not compare their figures.**\n")


# ---- Curves ------------------------------------------------------------------


def print_curves():
    rows = []
    for n in sorted({r["documents"] for r in find("documents", OURS)}):
        lines = find("documents", OURS, documents=n)
        rows.append([str(n), f"{lines[0]['tokens'] / n:.1f}", spread([1e6 / tokens_per_second(r) for r in lines]),
                     spread([peak_megabytes(r) for r in lines])])
    if rows:
        print("More documents, short ones:\n")
        table(["documents", "tokens each", "microseconds per token", "peak memory, MB"], rows)
    lengths = sorted({r["length"] for r in find("lengths", OURS)})
    rows = []
    for length in lengths:
        lines, base = find("lengths", OURS, length=length), find("lengths", OURS, length=lengths[0])
        rows.append([f"{length:.0f}", spread([1e6 / tokens_per_second(r) for r in lines]),
                     spread(ratios([1 / tokens_per_second(r) for r in lines], [1 / tokens_per_second(r) for r in base])),
                     f"{operations(lines[0]) / operations(base[0]):.2f}",
                     spread([1e-9 * operations(r) * tokens_per_second(r) for r in lines])])
    if rows:
        print("Longer texts; operations grow by attention's own only:\n")
        table(["tokens", "microseconds per token", f"to that of {lengths[0]:.0f} tokens", "operations likewise",
               "GFLOP/s, attention included"], rows)


# ---- The same work -----------------------------------------------------------


def same_work(engine, cosine, tokens):
    if tokens[engine] != tokens[OURS]:
        return "**no, other tokens: do not compare their figures**"
    if cosine >= SAME_COSINE[precision_of(engine)]:
        return "yes"
    if precision_of(engine) == "float32":
        return "**no: do not compare their figures**"
    return "**coarser than that: faster than it should be**"


def print_same_work():
    tokens = {name: (read_vectors(name) or (0, 0, None))[2] for name in engines()}
    rows = []
    for name in engines()[1:]:
        cosine, limit = smallest_cosine(name), str(SAME_COSINE[precision_of(name)])
        if cosine is None:
            rows.append([name, "-", limit, "-", "no vectors: its figures may be of other work"])
        else:
            rows.append([name, f"{cosine:.7f}", limit, f"{tokens[name]} to {tokens[OURS]}", same_work(name, cosine, tokens)])
    if rows:
        table(["engine", f"smallest cosine to {OURS}'s vectors", "at least", "tokens", "the same work"], rows)


def print_notes():
    with open(os.path.join(folder, "notes.txt"), encoding="utf-8") as file:
        for line in file:
            print(f"Note: {line.rstrip()}")


if not thread_counts():
    sys.exit("no measurement came to its end: the time was up before")
print_machine()
print("Median of the rounds (smallest .. largest).\n")
print_targets()
for count in reversed(thread_counts()):
    print_engines(count)
print_same_work()
print_ceiling()
print_derived()
print_search()
print_tokenizers()
print_curves()
print_notes()
