// The figures: each has two canvases, the picture below and names and highlights
// above, so that a hover never draws the picture again.
(function (page) {
  'use strict';

  let figures = []; // { source, layout, lower, upper, … }
  let hover = null; // token {run, index, key} under the pointer, or null
  let pointed = null; // { figure, hit }
  let frame = 0;
  const times = []; // of the last hover drawings, in milliseconds

  // The token whose lines are shown: under the pointer, else the chosen one.
  page.activeToken = () => hover || page.get().token;
  page.activeIn = function (source) {
    const token = page.activeToken(),
      unit = page.unitFor(source, token);
    return unit < 0 ? null : { unit, key: Boolean(token.key) };
  };

  // ---- Drawing --------------------------------------------------------------

  // Sharp on dense screens, within what browsers allow a canvas to be.
  function scaleFor(width, height) {
    const wanted = window.devicePixelRatio || 1,
      most = Math.sqrt(5e7 / (width * height));
    return Math.max(0.5, Math.min(wanted, most, 30000 / Math.max(width, height)));
  }

  function contextOf(canvas, { width, height }) {
    const scale = scaleFor(width, height),
      w = Math.round(width * scale),
      h = Math.round(height * scale);
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w;
      canvas.height = h;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    return context;
  }

  function drawBase(figure) {
    const view = page.view();
    figure.room = figure.box.clientWidth;
    figure.layout = view.layout(figure.source, figure.room || 600);
    view.base(page.canvasSurface(contextOf(figure.lower, figure.layout)), figure.source, figure.layout);
  }

  function drawOver(figure) {
    const view = page.view(),
      active = page.activeIn(figure.source);
    const hit = pointed && pointed.figure === figure ? pointed.hit : null;
    view.over(
      page.canvasSurface(contextOf(figure.upper, figure.layout)),
      figure.source,
      figure.layout,
      active,
      hit
    );
    figure.lower.classList.toggle('is-dim', view.dims(active, figure.layout));
    figure.upper.classList.toggle('is-pointing', Boolean(hit));
  }

  function overAll() {
    frame = 0;
    const start = performance.now();
    figures.forEach(drawOver);
    page.drawActive();
    page.drawNumbers();
    times.push(performance.now() - start);
    if (times.length > 240) times.shift();
  }
  page.redrawOver = () => {
    frame = frame || requestAnimationFrame(overAll);
  };

  // ---- Pointer --------------------------------------------------------------

  function sameToken(a, b) {
    return a === b || (a && b && a.run === b.run && a.index === b.index && a.key === b.key);
  }

  page.setHover = function (token, at = null) {
    const same =
      sameToken(token, hover) &&
      JSON.stringify(at?.hit) === JSON.stringify(pointed?.hit) &&
      at?.figure === pointed?.figure;
    hover = token;
    pointed = at;
    if (!same) page.redrawOver();
  };

  function hitAt(figure, event) {
    const box = figure.upper.getBoundingClientRect();
    return page.view().hit(figure.source, figure.layout, event.clientX - box.left, event.clientY - box.top);
  }
  const tokenAt = (figure, hit) =>
    hit && hit.unit !== undefined ? page.tokenOf(figure.source, hit.unit, hit.key) : null;

  function showTip(text, event) {
    const tip = page.byId('tooltip');
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const x = event.clientX + 14,
      y = event.clientY + 16,
      { offsetWidth: w, offsetHeight: h } = tip;
    tip.style.left = `${page.clamp(x, 4, Math.max(4, innerWidth - w - 6))}px`;
    tip.style.top = `${y + h > innerHeight ? Math.max(4, event.clientY - h - 12) : y}px`;
  }
  page.hideTip = () => {
    page.byId('tooltip').hidden = true;
  };

  function onMove(figure, event) {
    const hit = hitAt(figure, event),
      view = page.view();
    const steady = view.steady && view.steady(figure.layout);
    page.setHover(steady ? null : tokenAt(figure, hit), hit ? { figure, hit } : null);
    showTip(hit && view.tip ? view.tip(figure.source, hit, figure.layout) : null, event);
  }

  function onLeave() {
    page.setHover(null);
    page.hideTip();
  }

  function onClick(figure, event) {
    const hit = hitAt(figure, event),
      token = tokenAt(figure, hit),
      view = page.view(),
      finger = figure.pointer === 'touch';
    // A finger has no hover: what it touches shows its number until the next touch.
    if (finger) page.setHover(null, hit ? { figure, hit } : null);
    if (finger || !hit) showTip(hit && view.tip ? view.tip(figure.source, hit, figure.layout) : null, event);
    if (!hit) page.set({ token: null });
    else if (view.click && view.click(hit, figure.source)) page.hideTip();
    else if (token) page.set({ token: sameToken(token, page.get().token) ? null : token });
  }

  // ---- Figures --------------------------------------------------------------

  function caption(source) {
    const view = page.view(),
      { run } = source,
      two = page.runs.length > 1;
    const parts = [page.el('b', {}, view.describe(source))];
    if (source.signed) {
      parts.push(page.el('span', {}, 'A minus B'));
      if (source.left[0] + source.left[1] > 0)
        parts.push(
          page.el(
            'span',
            {},
            `${page.many(source.units.length, 'place')} that both have; ${source.left[0]} only in A, ${source.left[1]} only in B`
          )
        );
    } else if (two)
      parts.push(
        page.el(
          'span',
          {},
          `${run.name}: `,
          page.el('bdi', {}, page.visible(run.text)),
          ` (${page.visible(run.model)})`
        )
      );
    return page.el('figcaption', {}, ...parts);
  }

  // What a picture is to those who do not see it.
  function describe(source) {
    const view = page.view(),
      rows = source.queries.length,
      columns = source.keys.length;
    return (
      `${view.title} picture: ${view.describe(source)}${source.name ? `, ${source.name}` : ''}; ` +
      `${page.many(rows, 'query', 'queries')} by ${page.many(columns, 'key')}. ` +
      'The same numbers stand in the panel and in the table of this page; j and k choose a token.'
    );
  }

  function makeFigure(source) {
    const lower = page.el('canvas', { class: 'lower', 'aria-hidden': 'true' });
    const upper = page.el('canvas', { class: 'upper', role: 'img', 'aria-label': describe(source) });
    const canvases = page.el('div', { class: 'canvases' }, lower, upper);
    const box = page.el('div', { class: 'scroller' }, canvases);
    const node = page.el('figure', {}, caption(source), box);
    const figure = { source, lower, upper, box, node };
    upper.addEventListener('pointerdown', event => {
      figure.pointer = event.pointerType;
    });
    upper.addEventListener('pointermove', event => {
      if (event.pointerType !== 'touch') onMove(figure, event);
    });
    upper.addEventListener('pointerleave', event => {
      if (event.pointerType !== 'touch') onLeave();
    });
    upper.addEventListener('click', event => onClick(figure, event));
    return figure;
  }

  // Draws everything anew.
  page.drawStage = function () {
    const view = page.view(),
      sources = page.figureSources(),
      holder = page.byId('figures');
    hover = pointed = null;
    page.hideTip();
    page.byId('stage').classList.toggle('is-wide', Boolean(view.wide && view.wide()));
    holder.classList.toggle('two', sources.length > 1);
    figures = sources.map(makeFigure);
    const focused =
      document.activeElement && holder.contains(document.activeElement)
        ? document.activeElement.dataset.sort
        : null;
    holder.replaceChildren(...figures.map(f => f.node));
    figures.forEach(figure => {
      drawBase(figure);
      if (view.below) figure.node.append(view.below(figure.source));
    });
    if (focused) holder.querySelector(`[data-sort="${focused}"]`)?.focus();
    overAll();
  };

  // The same figures in other sizes or colours.
  page.resizeStage = function () {
    if (figures.length === 0) return;
    figures.forEach(drawBase);
    overAll();
  };

  // Drawn anew only where the width is another than it was drawn for: height follows
  // from what is drawn, and the picture itself may bring a scrollbar.
  page.fitStage = function () {
    if (figures.some(figure => figure.room !== figure.box.clientWidth)) page.resizeStage();
  };

  page.figures = () => figures;

  // For tests: what was drawn last, and how long hovers took to draw.
  page.drawn = () =>
    figures.map(({ source, layout }) => ({
      view: page.view().name,
      units: source.units.map(u => u.label),
      queries: [...source.queries],
      keys: [...source.keys],
      width: layout.width,
      height: layout.height,
      active: page.activeIn(source),
      describe: page.view().describe(source),
      ...page.view().record(layout, source)
    }));
  page.hoverTimes = () => [...times];
})(window.bertsql);
