// The numbers that attn_html wrote into the page. README.md describes the format.
// A head is decoded when it is first looked at.
(function (page) {
  'use strict';

  function bytesOf(base64) {
    const binary = atob(base64);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return new DataView(bytes.buffer);
  }

  // count row maxima in 16 bits, then count * count numbers, each a share of the
  // maximum of its row.
  page.decodeWeights = function (base64, count, bits) {
    const view = bytesOf(base64),
      weights = new Float32Array(count * count); // [count, count]
    const full = bits === 8 ? 255 : 65535;
    let at = 2 * count;
    for (let i = 0; i < count; i++) {
      const scale = view.getUint16(2 * i, true) / 65535 / full;
      for (let j = 0; j < count; j++, at += bits / 8)
        weights[i * count + j] = scale * (bits === 8 ? view.getUint8(at) : view.getUint16(at, true));
    }
    return weights;
  };

  // count float32 scales, then count * size numbers in 16 bits, each a share of
  // the largest magnitude of its vector.
  page.decodeVectors = function (base64, count, size) {
    const view = bytesOf(base64),
      vectors = new Float32Array(count * size); // [count, size]
    for (let i = 0, at = 4 * count; i < count; i++) {
      const scale = view.getFloat32(4 * i, true) / 32767;
      for (let d = 0; d < size; d++, at += 2) vectors[i * size + d] = scale * view.getInt16(at, true);
    }
    return vectors;
  };

  function makeRun(raw, index, data) {
    const count = raw.tokens.length,
      weights = new Map(),
      vectors = new Map();
    const kept = (map, key, make) => {
      if (!map.has(key)) map.set(key, make());
      return map.get(key);
    };
    const v = raw.vectors;
    const run = {
      index,
      name: data.runs.length > 1 ? 'AB'[index] : '',
      model: raw.model,
      text: raw.text,
      textB: raw.text_b,
      count,
      layers: raw.layers,
      heads: raw.heads,
      headSize: raw.head_size,
      truncated: raw.truncated,
      temperature: data.temperature,
      words: raw.words,
      statistics: raw.statistics,
      labels: raw.labels,
      neurons: v,
      tokens: raw.tokens.map(([label, segment, flags]) => ({
        label,
        segment,
        special: (flags & 1) !== 0,
        separator: (flags & 2) !== 0,
        punctuation: (flags & 4) !== 0
      })),
      weights: (layer, head) =>
        kept(weights, layer * raw.heads + head, () =>
          page.decodeWeights(raw.weights[layer][head], count, data.bits)
        ),
      hasVectors: (layer, head) => Boolean(v.data[layer - v.first_layer]?.[head - v.first_head]),
      // kind 0: queries, 1: keys; null where the page does not carry them
      vectors: (kind, layer, head) =>
        run.hasVectors(layer, head)
          ? kept(vectors, [kind, layer, head].join(), () =>
              page.decodeVectors(v.data[layer - v.first_layer][head - v.first_head][kind], count, raw.head_size)
            )
          : null
    };
    run.pair = run.tokens.some(t => t.segment === 1);
    // Special tokens belong to the text before them, so that pair filters have a
    // place for each token.
    let segment = 0;
    for (const t of run.tokens) {
      if (t.segment >= 0) segment = t.segment;
      t.part = segment;
    }
    return run;
  }

  page.readData = function (text) {
    page.data = JSON.parse(text);
    page.runs = page.data.runs.map((raw, index) => makeRun(raw, index, page.data));
  };
})(window.bertsql);
