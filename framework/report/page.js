'use strict';
(() => {
  const data = id => { const at = document.getElementById(id); return at ? JSON.parse(at.textContent) : null; };
  const make = (name, attributes = {}, parent = null, text = null) => {
    const svg = ['svg', 'rect', 'text', 'path', 'g', 'title'].includes(name);
    const at = svg ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) at.setAttribute(key, value);
    if (text !== null) at.textContent = text;
    if (parent) parent.append(at);
    return at;
  };
  const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
  // The same ramp as the matrices of the page: pale, sky, navy; over the root, so that weak weights show too.
  const shade = w => {
    const stops = [[247, 249, 252], [116, 173, 209], [8, 48, 107]], s = Math.sqrt(Math.min(Math.max(w, 0), 1)) * 2, i = s < 1 ? 0 : 1;
    return stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * (s - i)));
  };

  const visible = token => token.replace(/ /g, '␣').replace(/\n/g, '↵').replace(/[\t\r]/g, '⇥');
  const longest = tokens => Math.max(...tokens.map(t => t.length), 1);

  function attention(root, maps) {
    const state = { example: 0, layer: 0, head: 0, query: null };
    root.replaceChildren();
    for (const example of maps.examples) {
      for (const layer of example.layers) { layer.queries = layer.queries.map(visible); layer.keys = layer.keys.map(visible); }
    }
    const controls = make('div', { class: 'controls' }, root);
    const label = make('label', {}, controls, 'Example ');
    const picker = make('select', { id: 'example-picker' }, label);
    maps.examples.forEach((e, i) => make('option', { value: i }, picker, String(e.example)));
    make('span', { class: 'note' }, controls, 'Pick a head below; point at a token, or move with the arrow keys. Dark: much attention (shades follow the root of the weight).');
    const overview = make('div', { class: 'heads', role: 'group', 'aria-label': 'heads' }, root);
    const said = make('p', { class: 'said', 'aria-live': 'polite', id: 'attention-said' }, root);
    const panes = make('div', { class: 'panes' }, root);
    const arcs = make('div', { class: 'pane', id: 'arcs' }, panes), matrix = make('div', { class: 'pane', id: 'matrix', tabindex: 0 }, panes);

    const current = () => maps.examples[state.example].layers[state.layer];
    const weights = (layer, head) => {
      layer.shades = layer.shades || bytes(layer.weights);
      const n = layer.queries.length * layer.keys.length;
      return layer.shades.subarray(head * n, (head + 1) * n);
    };
    const name = (l, h) => l + '.' + h;
    const role = (l, h) => (maps.roles || {})[name(l, h)] || '';

    function drawOverview() {
      overview.replaceChildren();
      maps.examples[state.example].layers.forEach((layer, l) => {
        const row = make('div', { class: 'row' }, overview);
        make('span', { class: 'note' }, row, layer.layer);
        for (let h = 0; h < layer.heads; ++h) {
          const at = layer.layer_index === undefined ? l : layer.layer_index;
          const button = make('button', { type: 'button', 'data-head': name(at, h), 'aria-pressed': l === state.layer && h === state.head,
            'aria-label': 'head ' + name(at, h) + ' ' + role(at, h), title: layer.layer + ', head ' + h + (role(at, h) ? ': ' + role(at, h) : '') }, row);
          const canvas = make('canvas', { width: layer.keys.length, height: layer.queries.length }, button);
          const picture = canvas.getContext('2d'), image = picture.createImageData(canvas.width, canvas.height);
          weights(layer, h).forEach((w, i) => { const c = shade(w / 255); image.data.set([c[0], c[1], c[2], 255], i * 4); });
          picture.putImageData(image, 0, 0);
          button.append(name(at, h));
          button.addEventListener('click', () => { state.layer = l; state.head = h; state.query = null; draw(); });
        }
      });
    }
    function say() {
      const layer = current(), w = weights(layer, state.head), n = layer.keys.length;
      if (state.query === null) {
        said.textContent = layer.layer + ', head ' + state.head + (role(state.layer, state.head) ? ' (' + role(state.layer, state.head) + ')' : '') + ': ' +
          layer.queries.length + ' queries, ' + n + ' keys.';
        return;
      }
      const row = [...w.subarray(state.query * n, (state.query + 1) * n)].map((x, j) => [x / 255, j]).filter(x => x[0] > 0.004).sort((a, b) => b[0] - a[0]);
      said.textContent = 'Query ' + state.query + ' “' + layer.queries[state.query] + '” looks at ' +
        (row.slice(0, 5).map(([x, j]) => '“' + layer.keys[j] + '” (' + j + ') ' + x.toFixed(2)).join(', ') || 'nothing') + (row.length > 5 ? ' …' : '') + '.';
    }
    function drawMatrix() {
      const layer = current(), w = weights(layer, state.head), nq = layer.queries.length, nk = layer.keys.length;
      const cell = Math.max(8, Math.min(24, Math.floor(Math.min(580, root.clientWidth - 60) / Math.max(nq, nk)))), size = Math.min(12, cell), letter = 0.62 * size;
      const x0 = 10 + letter * longest(layer.queries), y0 = 10 + letter * longest(layer.keys);
      matrix.replaceChildren();
      const svg = make('svg', { width: x0 + cell * nk + 8, height: y0 + cell * nq + 8, role: 'img', 'aria-label': 'attention matrix', style: `font-size:${size}px` }, matrix);
      const upright = layer.keys.every(t => t.length <= 2);
      // No weight is as pale on a dark page as on a light one.
      make('rect', { x: x0, y: y0, width: cell * nk, height: cell * nq, fill: `rgb(${shade(0)})` }, svg);
      layer.keys.forEach((t, j) => make('text', upright ? { x: x0 + cell * (j + 0.5), y: y0 - 4, 'text-anchor': 'middle' } : { transform: `translate(${x0 + cell * (j + 0.75)} ${y0 - 4}) rotate(-90)` }, svg, t));
      layer.queries.forEach((t, i) => {
        make('text', { x: x0 - 4, y: y0 + cell * (i + 0.8), 'text-anchor': 'end', class: i === state.query ? 'here' : '' }, svg, t);
        for (let j = 0; j < nk; ++j) {
          const x = w[i * nk + j];
          if (x === 0 && state.query !== i) continue;
          const c = shade(x / 255), r = make('rect', { x: x0 + cell * j, y: y0 + cell * i, width: cell - 1, height: cell - 1, fill: `rgb(${c})` }, svg);
          make('title', {}, r, layer.queries[i] + ' → ' + layer.keys[j] + ': ' + (x / 255).toFixed(2));
        }
      });
      svg.addEventListener('mousemove', e => {
        const i = Math.floor((e.offsetY - y0) / cell);
        if (i >= 0 && i < nq && i !== state.query) { state.query = i; say(); drawArcs(); }
      });
    }
    function drawArcs() {
      const layer = current(), w = weights(layer, state.head), nq = layer.queries.length, nk = layer.keys.length;
      const line = Math.max(8, Math.min(18, Math.floor(620 / Math.max(nq, nk)))), size = Math.min(12, line), letter = 0.62 * size;
      const wide = 8 + letter * longest(layer.queries), x1 = wide + 150;
      arcs.replaceChildren();
      const svg = make('svg', { width: x1 + 16 + letter * longest(layer.keys), height: line * Math.max(nq, nk) + 12, role: 'img', 'aria-label': 'arcs from queries to keys', style: `font-size:${size}px` }, arcs);
      for (let i = 0; i < nq; ++i) {
        for (let j = 0; j < nk; ++j) {
          const x = w[i * nk + j] / 255;
          if (x < 0.03) continue;
          const faint = state.query !== null && state.query !== i;
          make('path', { class: 'arc', d: `M${wide} ${line * i + 12}C${wide + 60} ${line * i + 12} ${x1 - 60} ${line * j + 12} ${x1} ${line * j + 12}`,
            'stroke-width': (0.5 + 3 * x).toFixed(2), 'stroke-opacity': (faint ? 0.06 : Math.max(0.08, x)).toFixed(2) }, svg);
        }
      }
      layer.queries.forEach((t, i) => {
        const at = make('text', { x: wide - 4, y: line * i + 12 + size / 3, 'text-anchor': 'end', class: i === state.query ? 'here' : '', style: 'cursor:pointer', 'data-query': i }, svg, t);
        at.addEventListener('mouseenter', () => { if (state.query !== i) { state.query = i; say(); drawArcs(); } });
      });
      layer.keys.forEach((t, j) => make('text', { x: x1 + 6, y: line * j + 12 + size / 3 }, svg, t));
    }
    function draw() {
      const layers = maps.examples[state.example].layers;
      state.layer = Math.min(state.layer, layers.length - 1);
      overview.querySelectorAll('button').forEach(b => b.setAttribute('aria-pressed', b.dataset.head === name(state.layer, state.head)));
      say(); drawArcs(); drawMatrix();
    }
    picker.addEventListener('change', () => { state.example = Number(picker.value); state.query = null; drawOverview(); draw(); });
    root.addEventListener('keydown', e => {
      if (e.target === picker) return;
      const step = { ArrowDown: 1, ArrowUp: -1 }[e.key], turn = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
      if (step) { const n = current().queries.length; state.query = ((state.query === null ? (step > 0 ? -1 : 0) : state.query) + step + n) % n; say(); drawArcs(); drawMatrix(); e.preventDefault(); }
      if (turn) {
        const buttons = [...overview.querySelectorAll('button')], at = buttons.findIndex(b => b.getAttribute('aria-pressed') === 'true');
        const next = buttons[(at + turn + buttons.length) % buttons.length];
        next.click(); next.focus(); e.preventDefault();
      }
    });
    drawOverview(); draw();
  }

  // Frames of a course, one shown at a time: <div class="slider"><div data-step="…">…</div>…</div>.
  function slider(root) {
    const frames = [...root.querySelectorAll('[data-step]')];
    if (frames.length < 2) return;
    const controls = document.createElement('p');
    const label = make('label', {}, controls, root.dataset.label + ' ');
    const range = make('input', { type: 'range', min: 0, max: frames.length - 1, value: frames.length - 1, step: 1 }, label);
    const out = make('output', {}, controls);
    const show = () => { frames.forEach((f, i) => { f.hidden = i !== Number(range.value); }); out.textContent = ' ' + frames[range.value].dataset.step; };
    range.addEventListener('input', show);
    root.prepend(controls);
    show();
  }

  // On paper nothing can be unfolded.
  addEventListener('beforeprint', () => document.querySelectorAll('details').forEach(d => { d.dataset.was = d.open; d.open = true; }));
  addEventListener('afterprint', () => document.querySelectorAll('details').forEach(d => { d.open = d.dataset.was === 'true'; }));

  document.querySelectorAll('[data-attention]').forEach(root => attention(root, data(root.dataset.attention)));
  document.querySelectorAll('.slider').forEach(slider);
})();
