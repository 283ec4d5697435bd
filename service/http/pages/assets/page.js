// Keeps what is marked data-live up to date (service/http/pages/page.h), and gives numbers a slider (what_if.c). Without
// it every page is whole, and still.
(() => {
  const root = document.querySelector('[data-from]');
  const kinds = ['session', 'budget', 'trial-taken', 'trial-ended', 'trial-returned', 'trial-lost', 'trials-imported',
    'shared', 'bench-taken', 'bench-ended'];
  const quiet = 3000; // ms between two sentences for a screen reader
  const dot = document.getElementById('live-dot');
  const said = document.getElementById('said');
  let timer = 0, fetching = false, again = false, source = null, saying = 0, spoken = 0;

  const tell = (alive) => {
    if (!dot) return;
    const words = alive ? 'live' : 'reconnecting';
    dot.hidden = false;
    dot.className = alive ? 'live' : 'live lost';
    if (dot.textContent !== words) dot.textContent = words;
  };

  // The newest sentence, and not more often than one can listen to.
  const say = (words) => {
    clearTimeout(saying);
    saying = setTimeout(() => {
      spoken = Date.now();
      if (said.textContent !== words) said.textContent = words;
    }, Math.max(0, spoken + quiet - Date.now()));
  };

  // What the reader has opened, scrolled to or focused stays so.
  const replace = (from, to) => {
    const opened = [...from.querySelectorAll('details')].map((d) => d.open);
    const scrolled = [...from.querySelectorAll('.scroll')].map((s) => s.scrollLeft);
    const focused = from.contains(document.activeElement) ? document.activeElement : null;
    const kept = ['href', 'value', 'aria-label'];
    const way = focused && kept.map((name) => focused.getAttribute(name)).find((x) => x);
    from.replaceWith(to);
    to.querySelectorAll('details').forEach((d, i) => { d.open = opened[i] ?? d.open; });
    to.querySelectorAll('.scroll').forEach((s, i) => { s.scrollLeft = scrolled[i] ?? 0; });
    const same = way && [...to.querySelectorAll('a,button,[tabindex]')].find(
      (e) => kept.some((name) => e.getAttribute(name) === way));
    if (same) same.focus({ preventScroll: true });
  };

  // A page that is an answer to `url`, also one that says what is wrong.
  const take = async (url, refused) => {
    const answer = await fetch(url, { cache: 'no-store' });
    if (!answer.ok && answer.status !== refused) throw new Error(answer.statusText);
    return new DOMParser().parseFromString(await answer.text(), 'text/html');
  };

  const renew = (fresh) => {
    document.querySelectorAll('[data-live]').forEach((old) => {
      const now = fresh.getElementById(old.id);
      if (!now || now.innerHTML === old.innerHTML) return;
      if (now.dataset.say && now.dataset.say !== old.dataset.say) say(now.dataset.say);
      replace(old, document.adoptNode(now));
    });
  };

  const refresh = async () => {
    if (fetching) { again = true; return; }
    fetching = true;
    try {
      const fresh = await take(root.dataset.from);
      const ended = fresh.querySelector('[data-ended]') && !document.querySelector('[data-ended]');
      renew(fresh);
      if (!source) tell(true);
      if (ended) location.reload();
    } catch {
      tell(false);
      again = true;
    }
    fetching = false;
    if (again) { again = false; soon(2000); }
  };

  const soon = (ms) => {
    clearTimeout(timer);
    timer = setTimeout(refresh, ms);
  };

  const listen = () => {
    source = new EventSource(root.dataset.events);
    source.onopen = () => tell(true);
    source.onerror = () => {
      tell(false);
      if (source.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
    };
    kinds.forEach((kind) => source.addEventListener(kind, () => soon(250)));
  };

  // How often changes, so it is read again each time.
  const poll = () => setTimeout(async () => {
    if (!document.hidden) await refresh();
    poll();
  }, 1000 * (document.querySelector('[data-every]') || root).dataset.every);

  if (root && root.dataset.events) listen();
  else if (root) poll();
  addEventListener('pagehide', () => source && source.close());

  // ---- sliders ----

  const form = document.querySelector('form[data-redraws]');
  if (!form) return;
  let asking = false, changed = false, waiting = 0;

  // One question at a time; the last one wins.
  const redraw = async () => {
    if (asking) { changed = true; return; }
    asking = true;
    const url = form.getAttribute('action') + '?' + new URLSearchParams(new FormData(form));
    const shown = document.querySelector('[data-live]');
    shown.setAttribute('aria-busy', 'true');
    try {
      renew(await take(url, 422));
      history.replaceState(null, '', url);
    } catch {
      say('The service does not answer.');
    }
    document.querySelector('[data-live]').removeAttribute('aria-busy');
    asking = false;
    if (changed) { changed = false; redraw(); }
  };

  const later = () => {
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 120);
  };

  // A slider from `least` to `most` beside a number: in whole steps, or in 120 equal ratios.
  form.querySelectorAll('input[type=number]').forEach((number) => {
    const least = +number.dataset.least, most = +number.dataset.most, log = 'log' in number.dataset;
    const range = document.createElement('input');
    const of = (x) => (log ? Math.round(120 * Math.log(x / least) / Math.log(most / least)) : x);
    const at = (step) => (log ? +(least * (most / least) ** (step / 120)).toPrecision(2) : step);
    const words = () => range.setAttribute('aria-valuetext', `${number.value} ${number.dataset.unit}`);
    const follow = () => { range.value = of(+number.value || least); words(); };
    Object.assign(range, { type: 'range', min: log ? 0 : least, max: log ? 120 : most, step: 1 });
    range.setAttribute('aria-label', number.previousElementSibling.textContent);
    number.closest('label').after(range);
    follow();
    range.addEventListener('input', () => { number.value = at(+range.value); words(); later(); });
    number.addEventListener('input', () => { follow(); if (number.checkValidity()) later(); });
  });
  form.addEventListener('submit', (event) => { event.preventDefault(); redraw(); });
})();
