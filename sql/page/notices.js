// Lines above the picture: what a reader must know to read it right.
(function (page) {
  'use strict';

  // The smallest and largest sum of the rows that the numbers speak of.
  function rowSums(source) {
    const matrix = page.view().matrix(source);
    if (!matrix || source.signed || source.queries.length === 0) return null;
    const n = source.units.length;
    const sums = source.queries.map(i => source.keys.reduce((sum, j) => sum + matrix[i * n + j], 0));
    return [Math.min(...sums), Math.max(...sums)];
  }

  function whereTheRestIs() {
    const { special, renormalize, filter } = page.get();
    if (filter === 'all') return 'hidden special tokens hold the rest';
    return special || renormalize
      ? 'the pairs that are not shown hold the rest'
      : 'hidden special tokens and pairs hold the rest';
  }

  // What is said about rows that do not, or not by themselves, sum to 1.
  function aboutSums(add, sources) {
    const { special, renormalize, filter } = page.get();
    if (page.view().tokensOnly || (special && filter === 'all')) return;
    const sums = sources.map(rowSums).filter(s => s && s[0] < 0.995);
    if (sums.length > 0) {
      const low = page.number(Math.min(...sums.map(s => s[0])), 2),
        high = page.number(Math.max(...sums.map(s => s[1])), 2);
      const button =
        special || renormalize
          ? null
          : page.el(
              'button',
              { type: 'button', id: 'renormalize-now', onclick: () => page.set({ renormalize: true }) },
              'Renormalize'
            );
      add(`Rows no longer sum to 1: ${whereTheRestIs()}. They sum to ${low} to ${high}.`, false, button);
    }
    if (!special && renormalize)
      add(
        'Rows are divided by their sum, since special tokens are hidden. Where these held nearly all of a row, ' +
          'what is left of it is coarse.',
        true
      );
  }

  function aboutTruncation(add) {
    for (const run of page.runs.filter(r => r.truncated))
      add(
        `${run.name ? `${run.name}: the` : 'The'} text was longer than the model or the option max_tokens allows: ` +
          `what you see is its beginning, ${page.many(run.count, 'token')}.`
      );
  }

  // Two models may differ in layers and heads.
  function aboutPlace(add, sources) {
    const { layer, head } = page.get(),
      usesHead = page.view().uses.includes('head');
    for (const s of sources.filter(one => layer >= one.layers || (usesHead && head >= one.heads)))
      add(
        `${s.name || s.run.model} has layers 0 to ${s.layers - 1} and heads 0 to ${s.heads - 1}; the last of these is shown.`
      );
  }

  page.drawNotices = function () {
    const lines = [],
      sources = page.figureSources(),
      view = page.view();
    const add = (text, plain, ...more) =>
      lines.push(page.el('p', { class: plain ? 'notice plain' : 'notice' }, text, ...more));
    aboutTruncation(add);
    aboutSums(add, sources);
    if (page.data.temperature !== 1)
      add(`Weights are those of temperature ${page.data.temperature}, not the model’s own.`, true);
    aboutPlace(add, sources);
    if (sources.some(s => s.queries.length === 0 || s.keys.length === 0))
      add('There is nothing to show with these filters.');
    if (view.notes) for (const text of new Set(sources.flatMap(s => view.notes(s)))) add(text, true);
    page.byId('notices').replaceChildren(...lines);
  };
})(window.bertsql);
