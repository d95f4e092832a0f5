// What rows and columns stand for: tokens or words, with or without special
// tokens. Everything is computed here from the matrices of tokens.
(function (page) {
  'use strict';

  // Units of a run: runs of tokens [first, last).
  page.unitsOf = function (run, { words, special }) {
    const spans = words ? run.words : run.tokens.map((t, i) => [i, i + 1, t.label]);
    return spans
      .map(([first, last, label]) => {
        const tokens = run.tokens.slice(first, last);
        return {
          first,
          last,
          label: page.visible(label),
          segment: tokens[0].segment,
          part: tokens[0].part,
          special: tokens[0].special,
          separator: tokens.every(t => t.separator),
          punctuation: tokens.every(t => t.punctuation)
        };
      })
      .filter(unit => special || !unit.special);
  };

  // Weights of tokens [n, n] as weights of units [m, m]: summed over the keys of a
  // unit, averaged over its queries (Clark et al. 2019, section 4.1).
  page.mergeUnits = function (units, weights, n, renormalize) {
    const m = units.length,
      out = new Float32Array(m * m);
    units.forEach((query, i) => {
      let sum = 0;
      units.forEach((key, j) => {
        let mass = 0;
        for (let a = query.first; a < query.last; a++)
          for (let b = key.first; b < key.last; b++) mass += weights[a * n + b];
        sum += out[i * m + j] = mass / (query.last - query.first);
      });
      if (renormalize && sum > 0) for (let j = 0; j < m; j++) out[i * m + j] /= sum;
    });
    return out;
  };

  // The longest common subsequence of two lists of units: pairs [i, j].
  page.alignUnits = function (a, b) {
    const n = a.length,
      m = b.length,
      length = new Uint16Array((n + 1) * (m + 1));
    const same = (i, j) => a[i].label === b[j].label && a[i].part === b[j].part;
    for (let i = n - 1; i >= 0; i--)
      for (let j = m - 1; j >= 0; j--)
        length[i * (m + 1) + j] = same(i, j)
          ? length[(i + 1) * (m + 1) + j + 1] + 1
          : Math.max(length[(i + 1) * (m + 1) + j], length[i * (m + 1) + j + 1]);
    const pairs = [];
    for (let i = 0, j = 0; i < n && j < m;) {
      if (same(i, j)) pairs.push([i++, j++]);
      else if (length[(i + 1) * (m + 1) + j] >= length[i * (m + 1) + j + 1]) i++;
      else j++;
    }
    return pairs;
  };

  // Attention rollout (Abnar and Zuidema 2020) of tokens through layers 0 to
  // `layer`: the mean over heads plus the identity, rows divided by their sum,
  // multiplied through. Each layer is kept, since the next one builds on it.
  page.rolloutOf = function (run, layer) {
    run.rollouts = run.rollouts || [];
    for (let l = run.rollouts.length; l <= layer; l++) {
      const n = run.count,
        mean = new Float32Array(n * n),
        before = run.rollouts[l - 1];
      for (let h = 0; h < run.heads; h++) {
        const weights = run.weights(l, h);
        for (let i = 0; i < n * n; i++) mean[i] += weights[i] / run.heads;
      }
      for (let i = 0; i < n; i++) {
        mean[i * n + i] += 1;
        let sum = 0;
        for (let j = 0; j < n; j++) sum += mean[i * n + j];
        for (let j = 0; j < n; j++) mean[i * n + j] /= sum;
      }
      run.rollouts.push(before ? multiply(mean, before, n) : mean);
    }
    return run.rollouts[layer];
  };

  function multiply(a, b, n) {
    const out = new Float32Array(n * n);
    for (let i = 0; i < n; i++)
      for (let k = 0; k < n; k++) {
        const factor = a[i * n + k];
        for (let j = 0; j < n; j++) out[i * n + j] += factor * b[k * n + j];
      }
    return out;
  }
})(window.bertsql);
