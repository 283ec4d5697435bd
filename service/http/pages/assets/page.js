// Keeps what is marked data-live up to date (service/http/pages/page.h); without it every page is whole, and still.
(() => {
  const root = document.querySelector('[data-from]');
  if (!root) return;
  const kinds = ['session', 'budget', 'trial-taken', 'trial-ended', 'trial-returned', 'trial-lost', 'trials-imported',
    'shared'];
  const dot = document.getElementById('live-dot');
  let timer = 0, fetching = false, again = false, source = null;

  const tell = (alive) => {
    if (!dot) return;
    dot.hidden = false;
    dot.className = alive ? 'live' : 'live lost';
    dot.textContent = alive ? 'live' : 'reconnecting';
  };

  // What the reader has opened, scrolled to or focused stays so.
  const replace = (from, to) => {
    const opened = [...from.querySelectorAll('details')].map((d) => d.open);
    const scrolled = [...from.querySelectorAll('.scroll')].map((s) => s.scrollLeft);
    const focused = from.contains(document.activeElement) ? document.activeElement : null;
    const way = focused && (focused.getAttribute('href') || focused.getAttribute('value'));
    from.replaceWith(to);
    to.querySelectorAll('details').forEach((d, i) => { d.open = opened[i] ?? d.open; });
    to.querySelectorAll('.scroll').forEach((s, i) => { s.scrollLeft = scrolled[i] ?? 0; });
    const same = way && [...to.querySelectorAll('a,button')].find(
      (e) => (e.getAttribute('href') || e.getAttribute('value')) === way);
    if (same) same.focus({ preventScroll: true });
  };

  const refresh = async () => {
    if (fetching) { again = true; return; }
    fetching = true;
    try {
      const answer = await fetch(root.dataset.from, { cache: 'no-store' });
      if (!answer.ok) throw new Error(answer.statusText);
      const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const ended = fresh.querySelector('[data-ended]') && !document.querySelector('[data-ended]');
      document.querySelectorAll('[data-live]').forEach((old) => {
        const now = fresh.getElementById(old.id);
        if (now && now.innerHTML !== old.innerHTML) replace(old, document.adoptNode(now));
      });
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

  if (root.dataset.events) listen();
  else setInterval(() => { if (!document.hidden) refresh(); }, 1000 * root.dataset.every);
  addEventListener('pagehide', () => source && source.close());
})();
