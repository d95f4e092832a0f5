// Starts the page: data, state, controls; then draws whenever the state changes.
(function (page) {
  'use strict';

  // Fields whose change leaves the figures as they are.
  const light = new Set(['token']);
  let version = 0;

  function redraw(changed) {
    page.stateKey = ++version;
    if (changed.has('theme')) page.applyTheme();
    page.syncControls();
    const neuron = page.get().view === 'neuron' && page.get().expanded;
    if ([...changed].every(key => light.has(key)) && !neuron) page.redrawOver();
    else {
      page.drawStrip();
      page.drawNotices();
      page.drawStage();
    }
    page.drawTable();
  }

  function start() {
    page.readData(page.byId('data').textContent);
    page.startState();
    page.applyTheme();
    page.buildControls();
    page.startExport();
    page.startKeyboard();
    page.byId('table').addEventListener('toggle', page.drawTable);
    page.whenChanged(redraw);
    window.addEventListener('scroll', page.hideTip, { passive: true });
    page.whenSystemTheme(() => {
      if (page.get().theme === 'auto') redraw(new Set(['theme']));
    });
    redraw(new Set(['theme']));
    new ResizeObserver(page.fitStage).observe(page.byId('figures'));
  }

  start();
})(window.bertsql);
