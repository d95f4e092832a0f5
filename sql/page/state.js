// The one place that says what is shown. Everything drawn follows from it and from
// the data; it is written into the fragment of the page's address.
(function (page) {
  'use strict';

  const views = ['head', 'model', 'neuron', 'matrix', 'statistics', 'rollout'];
  const listeners = [];
  let defaults,
    current,
    layerGiven = false, // by an option, the address or a choice
    written = null,
    timer = 0;

  // How each field is read from the fragment; what does not fit is left out.
  const integer = high => text => (/^\d{1,6}$/.test(text) && Number(text) <= high() ? Number(text) : undefined);
  const oneOf = list => text => (list.includes(text) ? text : undefined);
  const flag = text => ({ 0: false, 1: true })[text];
  const fields = {
    view: oneOf(views),
    layer: integer(() => page.mostLayers() - 1),
    head: integer(() => page.mostHeads() - 1),
    heads: text => {
      const list = text === '' ? [] : [...new Set(text.split(',').map(integer(() => page.mostHeads() - 1)))];
      return list.includes(undefined) ? undefined : list.sort((a, b) => a - b);
    },
    token: text => {
      const m = /^([ab])(\d{1,6})(k?)$/.exec(text),
        run = m && page.runs['ab'.indexOf(m[1])];
      return run && Number(m[2]) < run.count
        ? { run: run.index, index: Number(m[2]), key: m[3] === 'k' }
        : undefined;
    },
    filter: oneOf(['all', 'aa', 'ab', 'ba', 'bb']),
    words: flag,
    special: flag,
    renormalize: flag,
    expanded: flag,
    zoom: flag,
    descending: flag,
    min: text => (/^(0|1|0?\.\d{1,4})$/.test(text) ? Number(text) : undefined),
    top: integer(() => 1000),
    theme: oneOf(['auto', 'light', 'dark']),
    show: oneOf(['both', 'a', 'b', 'difference']),
    thumbs: oneOf(['lines', 'matrix']),
    sort: text => (/^[a-z_]{1,20}$/.test(text) ? text : undefined)
  };

  const asText = value =>
    value === true
      ? '1'
      : value === false
        ? '0'
        : value === null
          ? ''
          : Array.isArray(value)
            ? value.join(',')
            : typeof value === 'object'
              ? 'ab'[value.run] + value.index + (value.key ? 'k' : '')
              : String(value);

  page.mostLayers = () => Math.max(...page.runs.map(run => run.layers));
  page.mostHeads = () => Math.max(...page.runs.map(run => run.heads));

  function readFragment() {
    const found = {};
    for (const [key, text] of new URLSearchParams(location.hash.slice(1))) {
      const value = Object.hasOwn(fields, key) ? fields[key](text) : undefined;
      if (value !== undefined) found[key] = value;
    }
    return found;
  }

  // Rollout is most telling through all layers; the other views begin at the first.
  const firstLayer = view => page.data.initial.layer ?? (view === 'rollout' ? page.mostLayers() - 1 : 0);

  // The state that the fragment of the address says.
  function stateOfAddress() {
    const found = readFragment(),
      state = { ...defaults, ...found };
    layerGiven = page.data.initial.layer !== null || found.layer !== undefined;
    if (found.layer === undefined) state.layer = firstLayer(state.view);
    return state;
  }

  function fragment() {
    const usual = { ...defaults, layer: firstLayer(current.view) };
    return Object.keys(fields)
      .filter(key => asText(current[key]) !== asText(usual[key]))
      .map(key => `${key}=${encodeURIComponent(asText(current[key])).replace(/%2C/g, ',')}`)
      .join('&');
  }

  // Browsers slow pages down that write their address at every step of a slider.
  function writeLater() {
    clearTimeout(timer);
    timer = setTimeout(page.writeFragment, 120);
  }

  page.writeFragment = function () {
    clearTimeout(timer);
    written = fragment();
    if (location.hash.slice(1) === written) return;
    try {
      history.replaceState(null, '', written === '' ? location.pathname + location.search : '#' + written);
    } catch (refused) {
      /* a frame without an address of its own: the state lives on without it */
    }
  };

  page.startState = function () {
    const initial = page.data.initial;
    defaults = {
      view: views[0],
      layer: 0,
      head: 0,
      heads: page.range(0, page.mostHeads()),
      token: null,
      filter: 'all',
      words: false,
      special: true,
      renormalize: false,
      min: 0.02,
      top: 0,
      theme: 'auto',
      show: page.runs.length > 1 ? 'both' : 'a',
      thumbs: 'lines',
      zoom: false,
      expanded: false,
      sort: 'layer',
      descending: false
    };
    for (const key of Object.keys(initial)) if (initial[key] !== null) defaults[key] = initial[key];
    if (initial.head !== null) defaults.heads = [initial.head];
    current = stateOfAddress();
    if (page.runs.length < 2) current.show = 'a';
    window.addEventListener('hashchange', () => {
      if (location.hash.slice(1) !== written) change(stateOfAddress());
    });
  };

  page.views = views;
  page.get = () => current;

  // Changes the state; listeners hear which fields have changed.
  function change(patch) {
    const changed = Object.keys(patch).filter(key => asText(patch[key]) !== asText(current[key]));
    if (changed.length === 0) return;
    current = { ...current, ...patch };
    writeLater();
    for (const listener of listeners) listener(new Set(changed));
  }
  page.set = function (patch) {
    if (patch.layer !== undefined) layerGiven = true;
    change(patch.view && !layerGiven ? { ...patch, layer: firstLayer(patch.view) } : patch);
  };
  page.whenChanged = listener => listeners.push(listener);

  // For tests and the curious: what is shown, as a copy.
  page.state = () => JSON.parse(JSON.stringify(current));
})(window.bertsql);
