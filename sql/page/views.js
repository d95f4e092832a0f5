// The list of views. A view is an object:
//
//   name, title        in the state and on its button
//   uses               which groups of controls it has: layer, head, filter, units,
//                      limits, thumbs, zoom, expand
//   layout(source, width)                     sizes, in CSS pixels; width and height at least
//   base(surface, source, layout)             the picture, drawn when the state changes
//   over(surface, source, layout, active, pointed)  names and highlights, drawn on each
//                      hover: `active` is { unit, key }, `pointed` what hit() gave
//   dims(active, layout)                      true: the base fades behind a highlight
//   hit(source, layout, x, y)                 what is there: unit and key for a token,
//                      layer and head for a head; null for nothing
//   click(hit, source) where a click may do more than choose the token: true if it did
//   steady(layout)     true: pointing does not change the active token
//   tip(source, hit, layout)                  text of the tooltip, or null
//   matrix(source), describe(source)          the matrix [n, n] whose numbers stand beside
//                      the picture, and its name
//   relations          what rows and columns are to a token, if not attention
//   record(layout, source)                    what was drawn, for tests
//   notes(source), below(source)              lines above the picture, an element below it
//   tiles, wide, tokensOnly                   shows tiles of heads; has no room beside it;
//                      knows nothing of words
(function (page) {
  'use strict';

  const list = [];
  page.addView = view => list.push(view);
  page.viewList = list;
  page.view = () => list.find(view => view.name === page.get().view);

  // The sources of the figures: one, or two side by side.
  page.figureSources = () => (page.view().tokensOnly ? page.sources().tokens : page.sources().shown);

  // The mean of matrices [n, n].
  page.meanOf = function (matrices, n) {
    if (matrices.length === 1) return matrices[0];
    const out = new Float32Array(n * n);
    for (const m of matrices) for (let i = 0; i < out.length; i++) out[i] += m[i] / matrices.length;
    return out;
  };
})(window.bertsql);
