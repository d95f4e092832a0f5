"""plots.py FOLDER OUT: FOLDER/results.jsonl as pictures, OUT/NAME.svg.

    throughput, short, memory   every engine: documents/s in bulk, one short text, peak memory
    documents, lengths          bertsql's time per token for more documents and for longer texts

The pictures bring their own background and follow the reader's light or dark mode; text is text.
"""
import math
import os
import sys
from xml.sax.saxutils import escape

from results import (OURS, QUIET, bulk_rates, ceiling_rates, engines, find, median, milliseconds, most_threads,
                     operations, others, peak_megabytes, precision_of, tokens_per_second)

out = sys.argv[2]
WIDTH, MARGIN = 760, 24
STYLE = """
  svg { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; }
  .back { fill: #ffffff; } .text { fill: #1f2328; } .soft { fill: #59636e; } .title { font-size: 15px; font-weight: 600; }
  .line { stroke: #d1d9e0; } .ours { fill: #0969da; } .peer { fill: #afb8c1; } .bold { font-weight: 600; }
  .over { stroke: #ffffff; stroke-width: 4px; paint-order: stroke; stroke-linejoin: round; }
  .curve { stroke: #0969da; fill: none; stroke-width: 2.5; } .dot { fill: #0969da; }
  .other { stroke: #59636e; fill: none; stroke-width: 1.5; stroke-dasharray: 5 4; }
  @media (prefers-color-scheme: dark) {
    .back { fill: #0d1117; } .over { stroke: #0d1117; } .text { fill: #f0f6fc; } .soft { fill: #9198a1; }
    .line { stroke: #3d444d; } .ours { fill: #4493f8; } .peer { fill: #656c76; }
    .curve { stroke: #4493f8; } .dot { fill: #4493f8; } .other { stroke: #9198a1; }
  }
"""


def short_number(x):
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def text(x, y, words, kind="text", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1, y1, x2, y2, kind="line"):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def write(name, title, subtitle, height, parts):
    """Title, subtitle and the parts, which begin at y = 64."""
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
            f'height="{height:.0f}" role="img" aria-label="{escape(title)}">', f"<style>{STYLE}</style>",
            f'<rect class="back" width="{WIDTH}" height="{height:.0f}" rx="8"/>',
            text(MARGIN, 30, title, "text title"), text(MARGIN, 49, subtitle, "soft")]
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, f"{name}.svg"), "w", encoding="utf-8") as file:
        file.write("\n".join(head + parts + ["</svg>"]) + "\n")


# ---- Bars --------------------------------------------------------------------

LABELS = {"sentence-transformers": "sentence-transformers (torch)", "onnxruntime": "ONNX Runtime",
          "openvino": "OpenVINO", "ctranslate2": "CTranslate2", "bertsql": "bertsql"}


def label(engine):
    precision = precision_of(engine)
    return LABELS.get(engine.removesuffix(f"-{precision}"), engine)


def bars(name, title, subtitle, values, better, mark=None):
    """values: engine to number. Float32 first, then less precision; the best on top. mark: (number, words) of a
    line across the bars of float32."""
    left, right, row = 230, WIDTH - 90, 26
    top = max(list(values.values()) + ([mark[0]] if mark else []))
    parts, y = [], 66
    for precision in ("float32", "bf16", "int8"):
        group = sorted((e for e in values if precision_of(e) == precision), key=values.get, reverse=better == "higher")
        if not group:
            continue
        parts.append(text(MARGIN, y + 12, {"bf16": "bfloat16"}.get(precision, precision), "soft"))
        y += 20
        if mark and precision == "float32":
            x = left + (right - left) * mark[0] / top
            parts += [line(x, y, x, y + row * len(group), "other"),
                      text(x, y - 6, mark[1], "soft", "end" if x > WIDTH / 2 else "start")]
        for engine in group:
            ours, width = engine.startswith(OURS), (right - left) * values[engine] / top
            parts.append(text(left - 10, y + 17, label(engine), "text bold" if ours else "text", "end"))
            parts.append(f'<rect x="{left}" y="{y + 4}" width="{max(width, 1):.1f}" height="{row - 8}" rx="2" '
                         f'class="{"ours" if ours else "peer"}"/>')
            parts.append(text(left + width + 7, y + 17, short_number(values[engine]),
                              "text over bold" if ours else "text over"))
            y += row
        y += 8
    write(name, title, subtitle, y + 12, parts)


def engine_bars():
    threads = most_threads()
    with_threads = f"{threads} thread{'s' if threads > 1 else ''}"
    corpus = find("bulk", OURS)[0]
    texts = f"all-MiniLM-L6-v2, {corpus['documents']} documents of {corpus['tokens'] / corpus['documents']:.0f} tokens, {with_threads}"

    def medians(measure, compute):
        found = {e: median([compute(r) for r in find(measure, e, threads)]) for e in engines()}
        return {e: value for e, value in found.items() if value is not None}

    rates = {e: median(bulk_rates(e)) for e in engines() if bulk_rates(e)}
    ceiling = median(ceiling_rates())
    bars("throughput", "Documents per second (more is better)", texts, rates, "higher",
         (ceiling, f"OpenBLAS's matrix products alone: {short_number(ceiling)}") if ceiling else None)
    bars("short", "One short text, milliseconds (less is better)", f"all-MiniLM-L6-v2, 13 tokens, {with_threads}, median",
         medians("short", milliseconds), "lower")
    bars("memory", "Peak memory in bulk work, MB (less is better)", texts, medians("bulk", peak_megabytes), "lower")


# ---- Curves ------------------------------------------------------------------


def round_step(top):
    """About five steps of 1, 2 or 5 times a power of ten."""
    step = 10 ** math.floor(math.log10(top / 5))
    return next(step * k for k in (1, 2, 5, 10) if top / (step * k) <= 6)


def curve(name, title, subtitle, points, across, dashed=()):
    """points and dashed: [(x, y)], x on a logarithmic axis."""
    left, right, top, bottom = 90, WIDTH - 60, 80, 300
    low, high = math.log(points[0][0]), math.log(points[-1][0])
    highest = 1.15 * max(y for _, y in [*points, *dashed])

    def place(x, y):
        return left + (right - left) * (math.log(x) - low) / (high - low), bottom - (bottom - top) * y / highest

    parts, step = [], round_step(highest)
    for k in range(int(highest / step) + 1):
        y = place(points[0][0], k * step)[1]
        parts += [line(left - 30, y, right + 30, y), text(left - 38, y + 4, f"{k * step:g}", "soft", "end")]
    for x, _ in points:
        parts.append(text(place(x, 0)[0], bottom + 20, f"{x:,.0f}", "soft", "middle"))
    parts.append(text((left + right) / 2, bottom + 42, across, "soft", "middle"))
    if dashed:
        parts.append(f'<polyline class="other" points="{" ".join("%.1f,%.1f" % place(*p) for p in dashed)}"/>')
    parts.append(f'<polyline class="curve" points="{" ".join("%.1f,%.1f" % place(*p) for p in points)}"/>')
    for x, y in points:
        at = place(x, y)
        parts += [f'<circle class="dot" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="4"/>',
                  text(at[0], at[1] - 10, short_number(y), "text over", "middle")]
    write(name, title, subtitle, bottom + 60, parts)


def microseconds(lines):
    return median([1e6 / tokens_per_second(r) for r in lines])


def curves():
    counts = sorted({r["documents"] for r in find("documents", OURS)})
    if len(counts) > 1:
        points = [(n, microseconds(find("documents", OURS, documents=n))) for n in counts]
        curve("documents", "Microseconds per token, more documents", "texts of 13 tokens, bert_embed_rows", points, "documents")
    lengths = sorted({r["length"] for r in find("lengths", OURS)})
    if len(lengths) > 1:
        lines = {n: find("lengths", OURS, length=n) for n in lengths}
        points = [(n, microseconds(lines[n])) for n in lengths]
        # Where time would be if it grew as the operations do, from its least on.
        least = min(lengths, key=lambda n: microseconds(lines[n]) / operations(lines[n][0]))
        scale = microseconds(lines[least]) / operations(lines[least][0])
        dashed = [(n, scale * operations(lines[n][0])) for n in lengths]
        curve("lengths", "Microseconds per token, longer texts",
              "bert_embed_rows; dashed: what the operations grow by, attention's own included", points,
              "tokens of each text", dashed)


def warn():
    """The pictures in the repository are of whole runs on quiet machines."""
    missing = [label for name, label in LABELS.items() if name not in engines()]
    if missing:
        print(f"plots: this run lacks {', '.join(missing)}", file=sys.stderr)
    if others() > QUIET:
        print("plots: the machine was busy with other work in this run", file=sys.stderr)


if find("bulk", OURS):
    warn()
    engine_bars()
    curves()
