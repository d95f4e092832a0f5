// Statistics of one head. bertsql computes them for tokens from unrounded weights
// and they come with the page; for words, or without special tokens, they are
// computed here, by the same formulas, from the weights of the page.
(function (page) {
  'use strict';

  // In the order of the data. The texts are the hints of the table's columns.
  page.statisticColumns = [
    ['entropy', 'mean entropy of a row, in nats (Clark et al. 2019)'],
    ['entropy_norm', 'entropy divided by ln n: 1 is an even spread'],
    ['diag', 'mean weight of a token on itself'],
    ['prev', 'mean weight on the token before'],
    ['next', 'mean weight on the token after'],
    ['first', 'mean weight on the first token'],
    ['sep', 'mean weight on separators'],
    ['punct', 'mean weight on punctuation'],
    ['mean_distance', 'mean distance between query and key (Vig and Belinkov 2019)'],
    ['signed_distance', 'the same with direction: negative looks back'],
    ['max_prob', 'mean of the largest weight of a row (Voita et al. 2019)'],
    ['positional', 'share of rows whose largest weight is at distance one'],
    ['norm_mean', 'mean weight times norm of the transformed value (Kobayashi et al. 2020); for tokens only'],
    ['collapsed', '1: nearly all rows put nearly all weight on one key']
  ];

  // weights [n, n] in the units given.
  page.summarize = function (weights, units) {
    const n = units.length,
      s = Object.fromEntries(page.statisticColumns.map(([name]) => [name, 0]));
    const best = new Array(n).fill(0);
    let mass = 0,
      distance = 0,
      signed = 0;
    for (let i = 0; i < n; i++) {
      let largest = 0;
      for (let j = 0; j < n; j++) {
        const a = weights[i * n + j];
        if (a > 0) s.entropy -= (a * Math.log(a)) / n;
        if (a > weights[i * n + largest]) largest = j;
        if (units[j].separator) s.sep += a / n;
        if (units[j].punctuation) s.punct += a / n;
        mass += a;
        distance += a * Math.abs(i - j);
        signed += a * (j - i);
      }
      const max = weights[i * n + largest];
      s.diag += weights[i * n + i] / n;
      s.first += weights[i * n] / n;
      s.max_prob += max / n;
      if (Math.abs(i - largest) === 1) s.positional += 1 / n;
      if (max >= 0.9) best[largest]++;
      if (i > 0) s.prev += weights[i * n + i - 1] / (n - 1);
      if (i < n - 1) s.next += weights[i * n + i + 1] / (n - 1);
    }
    s.entropy_norm = n > 1 ? s.entropy / Math.log(n) : 0;
    s.mean_distance = mass > 0 ? distance / mass : 0;
    s.signed_distance = mass > 0 ? signed / mass : 0;
    s.collapsed = best.some(rows => rows >= 0.9 * n) ? 1 : 0;
    s.norm_mean = NaN;
    return s;
  };

  // Of every head of a source, by layer and head: [{ layer, head, label, entropy, … }].
  page.statisticRows = function (source) {
    const rows = [],
      { run, units } = source;
    for (let layer = 0; layer < run.layers; layer++)
      for (let head = 0; head < run.heads; head++) {
        const given = run.statistics[layer][head];
        const values =
          source.plain && given
            ? Object.fromEntries(
                page.statisticColumns.map(([name], i) => [name, given[i] === null ? NaN : given[i]])
              )
            : page.summarize(source.matrix(layer, head), units);
        rows.push({ layer, head, label: run.labels[layer][head], ...values });
      }
    return rows;
  };
})(window.bertsql);
