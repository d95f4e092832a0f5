// What a picture is drawn from: one run, or the difference of two, in the units
// and with the filters of the state. Views know sources and nothing of runs.
(function (page) {
  'use strict';

  const cached =
    (make, cache = new Map()) =>
    (...key) => {
      const name = key.join();
      if (!cache.has(name)) cache.set(name, make(...key));
      return cache.get(name);
    };

  // Indices of units that a pair filter lets through: of queries or of keys.
  function passing(units, filter, side) {
    const part = filter === 'all' ? -1 : 'ab'.indexOf(filter[side]);
    return page.range(0, units.length).filter(i => part < 0 || units[i].part === part);
  }

  // A copy of weights [n, n] with 0 where the filters hide a cell: below the
  // threshold, not among the `top` largest of its row, or of another pair.
  function filtered(source, weights) {
    const { min, top } = page.get(),
      n = source.units.length,
      out = new Float32Array(n * n);
    for (const i of source.queries) {
      let limit = min;
      if (top > 0 && top < source.keys.length) {
        const row = source.keys.map(j => Math.abs(weights[i * n + j])).sort((a, b) => b - a);
        limit = Math.max(limit, row[top - 1]);
      }
      let left = top > 0 ? top : n;
      for (const j of source.keys) {
        const weight = weights[i * n + j];
        if (Math.abs(weight) < limit || weight === 0) continue;
        if (left-- > 0) out[i * n + j] = weight;
      }
    }
    return out;
  }

  function complete(source, filter = page.get().filter) {
    source.queries = passing(source.units, filter, 0);
    source.keys = passing(source.units, filter, 1);
    source.shown = cached((layer, head) => filtered(source, source.matrix(layer, head)));
    source.shownRollout = cached(layer => filtered(source, source.rollout(layer)));
    source.meanOf = cached((layer, heads) =>
      page.meanOf(
        heads.map(head => source.matrix(layer, head)),
        source.units.length
      )
    );
    source.hasHead = (layer, head) => layer < source.layers && head < source.heads;
    return source;
  }

  // All tokens of a run, whatever the state says about units and pairs.
  const tokenSource = run =>
    complete(
      {
        run,
        units: page.unitsOf(run, { words: false, special: true }),
        name: run.name,
        signed: false,
        plain: true,
        layers: run.layers,
        heads: run.heads,
        matrix: run.weights,
        rollout: layer => page.rolloutOf(run, layer)
      },
      'all'
    );

  function sourceOf(run) {
    const { words, special, renormalize } = page.get();
    const units = page.unitsOf(run, { words, special });
    const whole = units.length === run.count;
    const merge = weights =>
      whole ? weights : page.mergeUnits(units, weights, run.count, !special && renormalize);
    return complete({
      run,
      units,
      name: run.name,
      signed: false,
      layers: run.layers,
      heads: run.heads,
      plain: !words && special,
      matrix: cached((layer, head) => merge(run.weights(layer, head))),
      rollout: cached(layer => merge(page.rolloutOf(run, layer)))
    });
  }

  // A minus B over the units that both have, in their order.
  function differenceOf(a, b) {
    const pairs = page.alignUnits(a.units, b.units),
      n = pairs.length;
    const minus = (x, y) => {
      const out = new Float32Array(n * n);
      pairs.forEach(([ia, ib], i) =>
        pairs.forEach(([ja, jb], j) => {
          out[i * n + j] = x[ia * a.units.length + ja] - y[ib * b.units.length + jb];
        })
      );
      return out;
    };
    return complete({
      run: a.run,
      other: b,
      units: pairs.map(([i]) => a.units[i]),
      name: 'A − B',
      signed: true,
      plain: false,
      layers: Math.min(a.layers, b.layers),
      heads: Math.min(a.heads, b.heads),
      parts: [a, b],
      left: [a.units.length - n, b.units.length - n],
      matrix: cached((layer, head) => minus(a.matrix(layer, head), b.matrix(layer, head))),
      rollout: cached(layer => minus(a.rollout(layer), b.rollout(layer)))
    });
  }

  let key = null,
    all = null,
    links = null;

  // { runs: sources of every run, shown: those of the figures, tokens: the same for
  // views that only know tokens }. Made anew when something changed that they
  // depend on, so that matrices are computed once.
  page.sources = function () {
    const s = page.get();
    const now = [s.words, s.special, s.renormalize, s.filter, s.min, s.top, s.show].join();
    if (now === key) return all;
    const runs = page.runs.map(sourceOf);
    links = null;
    let shown = runs;
    if (s.show === 'a' || runs.length < 2) shown = [runs[0]];
    else if (s.show === 'b') shown = [runs[1]];
    else if (s.show === 'difference') shown = [differenceOf(runs[0], runs[1])];
    key = now;
    const tokens = [...new Set(shown.flatMap(source => source.parts || source))].map(source =>
      tokenSource(source.run)
    );
    all = { runs, shown, tokens };
    return all;
  };

  // The unit of a source that holds a token {run, index, key}, or the one that
  // stands for it in the other run; -1 if there is none.
  page.unitFor = function (source, token) {
    if (!token) return -1;
    let index = token.index;
    if (source.run.index !== token.run) {
      links =
        links ||
        page.alignUnits(
          page.unitsOf(page.runs[0], { words: false, special: true }),
          page.unitsOf(page.runs[1], { words: false, special: true })
        );
      const from = token.run,
        pair = links.find(p => p[from] === index);
      if (!pair) return -1;
      index = pair[1 - from];
    }
    return source.units.findIndex(u => u.first <= index && index < u.last);
  };

  page.tokenOf = (source, unit, key) => ({
    run: source.run.index,
    index: source.units[unit].first,
    key: Boolean(key)
  });

  // The heads that the head view draws, of those a source has.
  page.activeHeads = source => page.get().heads.filter(head => head < source.heads);
})(window.bertsql);
