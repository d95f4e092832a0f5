// Head view: all active heads of one layer, each in its colour.
(function (page) {
  'use strict';

  page.addView({
    name: 'head',
    title: 'Heads',
    tiles: true,
    uses: ['layer', 'filter', 'units', 'limits'],
    heads: source => page.activeHeads(source),
    layer: source => Math.min(page.get().layer, source.layers - 1),
    layout: (source, width) => page.linesPicture.layout(source, width),
    base(surface, source, layout) {
      page.linesPicture.base(surface, source, layout, this.layer(source), this.heads(source));
    },
    over(surface, source, layout, active) {
      page.linesPicture.over(surface, source, layout, this.layer(source), this.heads(source), active);
    },
    dims: active => Boolean(active),
    hit: (source, layout, x, y) => page.linesPicture.hit(source, layout, x, y),
    record: layout => ({ lines: layout.lines, activeLines: layout.activeLines }),
    // The matrix that the numbers beside the picture speak of, and its name.
    matrix(source) {
      return source.meanOf(this.layer(source), this.heads(source));
    },
    describe(source) {
      const heads = this.heads(source),
        layer = this.layer(source);
      if (heads.length === 0) return `layer ${layer}, no head chosen`;
      if (heads.length === 1) return `layer ${layer}, head ${heads[0]}`;
      return `layer ${layer}, ${heads.length === source.heads ? `all ${source.heads}` : heads.length} heads; numbers are their mean`;
    }
  });
})(window.bertsql);
