// Rollout view: attention followed through the layers (Abnar and Zuidema 2020).
(function (page) {
  'use strict';

  const layerOf = source => Math.min(page.get().layer, source.layers - 1);

  page.addView({
    name: 'rollout',
    title: 'Rollout',
    uses: ['layer', 'filter', 'units', 'limits'],
    layout: (source, width) => page.matrixPicture.layout(source, width),
    base(surface, source, layout) {
      page.matrixPicture.base(surface, source, layout, source.shownRollout(layerOf(source)));
    },
    over: (surface, source, layout, active, pointed) =>
      page.matrixPicture.over(surface, source, layout, active, pointed),
    dims: () => false,
    relations: ['draws from', 'reaches'],
    hit: (source, layout, x, y) => page.matrixPicture.hit(source, layout, x, y),
    tip: (source, hit) => page.matrixPicture.tip(source, hit, source.rollout(layerOf(source))),
    record: layout => ({ filled: layout.filled, weights: Array.from(layout.weights) }),
    matrix: source => source.rollout(layerOf(source)),
    describe: source => `rollout through layers 0 to ${layerOf(source)}`,
    notes: () => [
      'Rollout multiplies the mean of the heads, with the residual path as identity, through the layers: how much of ' +
        'each token (column) may have reached each place (row) by this layer.'
    ]
  });
})(window.bertsql);
