// Neuron view: where a weight comes from. Collapsed, the lines of one head;
// expanded, the query vector of one token with the key vector of every token, their
// elementwise product, its sum scaled as the model scales it, and the softmax.
// Always tokens and always all of them: vectors belong to tokens, and the softmax
// runs over all of them.
(function (page) {
  'use strict';

  const row = 22,
    top = 70;

  const chosen = source => ({
    layer: Math.min(page.get().layer, source.layers - 1),
    head: Math.min(page.get().head, source.heads - 1)
  });

  // Which token is expanded: the chosen one, else the first.
  const queryOf = source => Math.max(0, page.unitFor(source, page.get().token));

  function expandedLayout(source, width) {
    const { run } = source,
      narrow = width < 560;
    const w = Math.min(width, 1080);
    const longest = Math.max(...source.units.map(u => page.textWidth(u.label, 13)));
    const label = Math.min(Math.ceil(longest) + 6, Math.floor(w * (narrow ? 0.19 : 0.16)));
    const numbers = narrow ? 92 : 270,
      gap = narrow ? 6 : 18;
    const strip = Math.max(run.headSize, Math.floor((w - label - numbers - 3 * gap) / 2));
    return {
      expanded: true,
      width: Math.max(w, label + numbers + 3 * gap + 2 * strip),
      height: top + row * run.count + 8,
      narrow,
      label,
      strip,
      gap,
      key: label + gap,
      product: label + 2 * gap + strip,
      numbers: label + 3 * gap + 2 * strip,
      step: strip / run.headSize,
      y: position => top + row * (position + 0.5)
    };
  }

  // All that is shown of one query: per key the products, the score, the weight.
  function work(source) {
    const { run } = source,
      { layer, head } = chosen(source),
      query = queryOf(source),
      size = run.headSize;
    const q = run.vectors(0, layer, head),
      k = run.vectors(1, layer, head);
    if (!q) return null;
    const vector = q.subarray(query * size, (query + 1) * size),
      weights = run.weights(layer, head);
    const keys = page.range(0, run.count).map(j => {
      const key = k.subarray(j * size, (j + 1) * size),
        product = vector.map((v, d) => v * key[d]);
      return {
        key,
        product,
        score: product.reduce((sum, p) => sum + p, 0) / Math.sqrt(size),
        weight: weights[query * run.count + j]
      };
    });
    const most = list => Math.max(1e-9, ...list.map(v => v.reduce((m, x) => Math.max(m, Math.abs(x)), 0)));
    return {
      query,
      vector,
      keys,
      largest: most([vector, ...keys.map(k2 => k2.key)]),
      largestProduct: most(keys.map(k2 => k2.product)),
      largestScore: Math.max(...keys.map(k2 => Math.abs(k2.score)), 1e-9)
    };
  }

  const rgbOf = (value, largest) => page.weightRgb(value / largest, true);

  function strip(surface, x, y, layout, values, largest, height = row - 6) {
    surface.cells(x, y - height / 2, layout.strip, height, 1, values.length, (i, j) =>
      rgbOf(values[j], largest)
    );
  }

  function heading(surface, source, layout, w) {
    const soft = { color: page.color('soft'), size: 12 },
      { run } = source,
      root = run.headSize;
    const name = page.fitText(source.units[w.query].label, layout.label, 13);
    surface.text(layout.strip < 100 ? 'query q' : 'query vector q', layout.key, 10, soft);
    surface.text(name, layout.label, 29, {
      color: page.color('accent'),
      size: 13,
      weight: 650,
      align: 'right'
    });
    surface.frame(layout.key - 0.5, 20.5, layout.strip + 1, row - 5, page.color('accent'));
    strip(surface, layout.key, 29, layout, w.vector, w.largest);
    surface.text(layout.strip < 100 ? 'keys k' : 'key vectors k', layout.key, top - 12, soft);
    surface.text(layout.strip < 170 ? 'q × k' : 'elementwise product q × k', layout.product, top - 12, soft);
    surface.text(`q·k/√${root}`, layout.numbers + (layout.narrow ? 42 : 132), top - 12, {
      ...soft,
      align: 'right'
    });
    surface.text(layout.narrow ? 'soft' : 'softmax', layout.numbers + (layout.narrow ? 90 : 268), top - 12, {
      ...soft,
      align: 'right'
    });
  }

  function drawExpanded(surface, source, layout, w) {
    const units = source.units;
    heading(surface, source, layout, w);
    w.keys.forEach(({ key, product, score, weight }, j) => {
      const y = layout.y(j),
        u = units[j];
      surface.text(page.fitText(u.label, layout.label, 13), layout.label, y, {
        color: page.color(u.special ? 'soft' : 'ink'),
        size: 13,
        align: 'right'
      });
      strip(surface, layout.key, y, layout, key, w.largest);
      strip(surface, layout.product, y, layout, product, w.largestProduct);
      const number = { color: page.color('ink'), size: 12, align: 'right' };
      if (layout.narrow) {
        surface.text(page.number(score, 2), layout.numbers + 42, y, number);
        surface.rect(layout.numbers + 48, y - 7, 42 * weight, 14, page.color('accent'), 0.35);
        surface.text(page.number(weight, 2), layout.numbers + 90, y, number);
        return;
      }
      const middle = layout.numbers + 40,
        length = (38 * score) / w.largestScore;
      surface.rect(
        Math.min(middle, middle + length),
        y - 6,
        Math.abs(length),
        12,
        page.color(score < 0 ? 'minus' : 'plus')
      );
      surface.text(page.number(score, 2), layout.numbers + 132, y, number);
      surface.rect(layout.numbers + 152, y - 6, 72 * weight, 12, page.color('accent'));
      surface.text(page.number(weight, 3), layout.numbers + 268, y, number);
    });
  }

  page.addView({
    name: 'neuron',
    title: 'Neurons',
    uses: ['layer', 'head', 'expand', 'limits'],
    wide: () => page.get().expanded,
    tokensOnly: true,
    layout(source, width) {
      const { layer, head } = chosen(source);
      return page.get().expanded && source.run.hasVectors(layer, head)
        ? expandedLayout(source, width)
        : page.linesPicture.layout(source, width);
    },
    base(surface, source, layout) {
      const { layer, head } = chosen(source);
      if (!layout.expanded) {
        page.linesPicture.base(surface, source, layout, layer, [head]);
        return;
      }
      layout.work = work(source);
      drawExpanded(surface, source, layout, layout.work);
    },
    over(surface, source, layout, active, pointed) {
      const { layer, head } = chosen(source);
      if (!layout.expanded) page.linesPicture.over(surface, source, layout, layer, [head], active);
      else if (pointed)
        surface.frame(
          0.5,
          layout.y(pointed.unit) - row / 2 + 0.5,
          layout.width - 1,
          row - 1,
          page.color('accent')
        );
    },
    dims: (active, layout) => Boolean(active) && !layout.expanded,
    hit(source, layout, x, y) {
      if (!layout.expanded) return page.linesPicture.hit(source, layout, x, y);
      const unit = Math.floor((y - top) / row);
      if (unit < 0 || unit >= source.run.count) return null;
      const at = [layout.key, layout.product].map(from => Math.floor((x - from) / layout.step));
      return { unit, key: true, dim: at.find(d => d >= 0 && d < source.run.headSize), stay: x >= layout.key };
    },
    click(hit, source) {
      // the name of a token: that one's query instead
      if (!hit.stay) page.set({ token: page.tokenOf(source, hit.unit, false), expanded: true });
      return true;
    },
    steady: layout => layout.expanded,
    tip(source, hit, layout) {
      if (!layout.expanded || hit.dim === undefined) return null;
      const { vector, keys } = layout.work,
        k = keys[hit.unit];
      return `dimension ${hit.dim}\nq ${page.number(vector[hit.dim])} × k ${page.number(k.key[hit.dim])} = ${page.number(k.product[hit.dim])}`;
    },
    record: layout => ({
      lines: layout.lines,
      expanded: Boolean(layout.expanded),
      query: layout.work?.query,
      scores: layout.work?.keys.map(k => k.score),
      weights: layout.work?.keys.map(k => k.weight),
      products: layout.work?.keys.map(k => Array.from(k.product))
    }),
    matrix: source => source.matrix(chosen(source).layer, chosen(source).head),
    describe: source => `layer ${chosen(source).layer}, head ${chosen(source).head}`,
    // What the page has to say about this picture, a line each.
    notes(source) {
      const { run } = source,
        { layer, head } = chosen(source),
        { expanded, words, special } = page.get(),
        notes = [];
      const v = run.neurons,
        many = (first, count, what) =>
          count === 1 ? `${what} ${first}` : `${what}s ${first} to ${first + count - 1}`;
      if (!run.hasVectors(layer, head))
        notes.push(
          v.layers === 0
            ? 'This page carries no query and key vectors; write it with the option neurons "all" to have them.'
            : `To stay small, this page carries query and key vectors of ${many(v.first_layer, v.layers, 'layer')}, ` +
                `${many(v.first_head, v.heads, 'head')} only. Choose one of these, or write the page with the option neurons "all".`
        );
      if (words || !special)
        notes.push('Queries and keys belong to single tokens, so this view always shows all tokens.');
      if (expanded && run.hasVectors(layer, head))
        notes.push(
          `Scores are q·k divided by √${run.headSize}, as the model scales them; the softmax runs over ` +
            (run.temperature === 1
              ? 'each row.'
              : `each row, after division by the temperature ${run.temperature}.`)
        );
      return notes;
    }
  });
})(window.bertsql);
