// The tiles of the head view: which heads are drawn.
(function (page) {
  'use strict';

  page.toggleHead = function (head) {
    const { heads } = page.get();
    page.set({
      head,
      heads: heads.includes(head) ? heads.filter(h => h !== head) : [...heads, head].sort((a, b) => a - b)
    });
  };
  // Alone; or, if it is alone already, with all others again.
  page.isolateHead = function (head) {
    const { heads } = page.get(),
      alone = heads.length === 1 && heads[0] === head;
    page.set({ head, heads: alone ? page.range(0, page.mostHeads()) : [head] });
  };

  // A tile answers to a click and to a double click; a click acts at once, and the
  // second one of a double click starts from the heads before the first.
  page.buildTiles = function (syncs) {
    let before = null;
    const tiles = page.range(0, page.mostHeads()).map(head =>
      page.el(
        'button',
        {
          type: 'button',
          class: 'tile',
          'data-head': head,
          'aria-label': `Head ${head}`,
          onclick: event => {
            if (event.shiftKey) {
              page.isolateHead(head);
              return;
            }
            if (event.detail < 2) before = page.get().heads;
            page.toggleHead(head);
          },
          ondblclick: () => {
            if (before) page.set({ heads: before });
            page.isolateHead(head);
          }
        },
        String(head)
      )
    );
    tiles.forEach(tile => tile.style.setProperty('--color', `var(--head-${tile.dataset.head % 12})`));
    const all = page.el('button', {
      type: 'button',
      id: 'all-heads',
      onclick: () =>
        page.set({ heads: page.get().heads.length === page.mostHeads() ? [] : page.range(0, page.mostHeads()) })
    });
    const holder = page.byId('tiles');
    holder.append(
      page.el('span', { class: 'tiles-name' }, 'Heads'),
      ...tiles,
      all,
      page.el('span', { class: 'tiles-hint' }, 'click: show or hide · double click: only this one')
    );
    syncs.push(() => {
      holder.hidden = !page.view().tiles;
      tiles.forEach(tile => {
        const head = Number(tile.dataset.head),
          label = page.runs[0].labels[page.get().layer]?.[head];
        tile.setAttribute('aria-pressed', String(page.get().heads.includes(head)));
        tile.title = `Head ${head}${label ? `: ${label}` : ''}`;
      });
      all.textContent = page.get().heads.length === page.mostHeads() ? 'None' : 'All';
    });
  };
})(window.bertsql);
