// Makes the pages livelier; each of them works without it. What comes from the server as HTML was escaped there, and
// everything else is set as text.
"use strict";

(() => {
  const page = document.body.dataset;
  const $ = (id) => document.getElementById(id);
  const inSpace = (space) => `/s/${encodeURIComponent(space)}/`;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  // --- parts of pages ---

  async function part(address, signal) {
    const answer = await fetch(address, { signal, credentials: "same-origin", headers: { Accept: "text/html" } });
    if (answer.redirected && new URL(answer.url).pathname === "/login") location.assign("/login");
    if (!answer.ok || answer.redirected) return null;
    return new DOMParser().parseFromString(await answer.text(), "text/html").body;
  }

  // One request at a time for what is asked again and again; the last question wins.
  function renewing(address, into, pause) {
    let timer = 0, busy = false, again = false;
    const renew = async () => {
      timer = 0;
      if (busy) { again = true; return; }
      busy = true;
      try {
        const found = await part(address());
        if (found) into(found);
      } catch { /* the next event asks again */ }
      busy = false;
      if (again) { again = false; wanted(); }
    };
    const wanted = () => { if (!timer) timer = setTimeout(renew, pause); };
    return wanted;
  }

  const replaceIn = (id) => (found) => $(id).replaceChildren(...found.childNodes);

  // --- live notes ---

  const GLIDING = 40; // cards that are moved for the eye; nobody sees more of them

  const arriving = new Map(), waiting = [];

  const cardOf = (name) => [...waiting, ...$("notes").children].find((card) => card.dataset.name === name);

  function countBy(difference) {
    const total = $("total"), now = Math.max(0, Number(total.dataset.total) + difference);
    total.dataset.total = now;
    total.textContent = `${now.toLocaleString("en")} ${now === 1 ? "note" : "notes"} waiting`;
    $("empty").hidden = $("notes").children.length > 0;
  }

  // Notes come in above the others. Whoever has scrolled goes on reading where they were; at the top the others glide
  // down, which moves nothing but their picture. What arrives while they glide comes in with what else does.
  let gliding = false;

  function insertWaiting() {
    if (gliding || !waiting.length) return;
    const list = $("notes"), cards = waiting.splice(0), shown = [...list.children];
    const seen = shown.slice(0, GLIDING).map((one) => [one, one.getBoundingClientRect().top]);
    const anchor = seen.find(([, top]) => top >= 0), scrolled = scrollY;
    for (const card of cards) {
      list.insertBefore(card, [...list.children].find((one) => one.dataset.name < card.dataset.name) || null);
    }
    $("empty").hidden = true;
    if (scrolled > 0 && anchor && list.getBoundingClientRect().top < 0) {
      const moved = anchor[0].getBoundingClientRect().top - anchor[1];
      if (moved) scrollBy({ top: moved, behavior: "instant" });
      return;
    }
    // Held where they were for the frame that lays them out anew, and let go in the next one.
    const moved = seen.map(([one, top]) => [one, top - one.getBoundingClientRect().top]).filter(([, by]) => by);
    gliding = true;
    for (const [one, by] of moved) one.style.transform = `translateY(${by}px)`;
    for (const card of cards) card.style.opacity = "0";
    afterFrames(() => {
      for (const [one] of moved) one.style.transform = "";
      for (const card of cards) card.style.opacity = "";
      if (calm.matches) return glided();
      const timing = { duration: 200, easing: "ease-out" };
      const moves = cards.map((card) => card.animate([{ opacity: 0 }, { opacity: 1 }], timing));
      for (const [one, by] of moved) {
        moves.push(one.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], timing));
      }
      return Promise.allSettled(moves.map((move) => move.finished)).then(glided);
    });
  }

  const afterFrames = (work) => requestAnimationFrame(() => requestAnimationFrame(work));

  function glided() {
    afterFrames(() => { // the end of one movement is not to meet the beginning of the next
      gliding = false;
      insertWaiting();
    });
  }

  async function noteCame(about) {
    const known = cardOf(about.name);
    if (about.kind === "delete") {
      if (known && !known.classList.contains("gone")) {
        known.classList.add("gone");
        countBy(-1);
      }
      return;
    }
    if (!("newest" in $("notes").dataset) && !known) return;
    if (arriving.get(about.name) === about.etag) return;
    arriving.set(about.name, about.etag);
    const found = await part(`${inSpace(page.space)}note/${encodeURIComponent(about.name)}?part=card`);
    if (arriving.get(about.name) === about.etag) arriving.delete(about.name);
    const card = found && found.querySelector("li.note");
    if (!card) return;
    const now = cardOf(about.name);
    if (now) {
      if (now.classList.contains("gone")) countBy(1);
      if (waiting.includes(now)) waiting[waiting.indexOf(now)] = card;
      else now.replaceWith(card);
    } else {
      waiting.push(card);
      insertWaiting();
      countBy(1);
      $("told").textContent = `A new note by ${card.querySelector(".agent").textContent}`;
    }
  }

  // --- pages and what they listen to ---

  function bankChanged(about) {
    if (page.page === "bankfile" && about.name !== page.name) return;
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "Look again";
    $("notice").replaceChildren(page.page === "bank" ? "The bank has changed. " : "This file has changed. ", link);
  }

  const nothing = () => {};
  const listeners = {
    overview: () => {
      const renew = renewing(() => "/?part=spaces", replaceIn("overview"), 400);
      return { note: renew, bank: renew, run: renew, status: renew };
    },
    live: () => ({ note: noteCame }),
    bank: () => ({ bank: bankChanged }),
    bankfile: () => ({ bank: bankChanged }),
    consolidation: () => {
      const renew = renewing(() => `${inSpace(page.space)}consolidation?part=run`, replaceIn("run"), 100);
      return { run: renew };
    },
  };

  function pulse(state, word) {
    const shown = $("pulse");
    if (!shown) return;
    shown.dataset.state = state;
    shown.querySelector(".word").textContent = word;
  }

  let source = null, last = page.after || "";

  function listen(told) {
    if (source) return;
    const address = new URL("/events", location.origin);
    if (page.space) address.searchParams.set("space", page.space);
    if (last) address.searchParams.set("after", last);
    source = new EventSource(address);
    source.addEventListener("open", () => pulse("on", "live"));
    source.addEventListener("error", () => {
      pulse("wait", "waiting");
      if (source && source.readyState === EventSource.CLOSED) {
        source = null;
        setTimeout(() => { if (!document.hidden) listen(told); }, 3000);
      }
    });
    source.addEventListener("reset", () => location.reload());
    for (const kind of ["hello", "note", "bank", "run", "status"]) {
      source.addEventListener(kind, (event) => {
        if (event.lastEventId) last = event.lastEventId;
        (told[kind] || nothing)(JSON.parse(event.data));
      });
    }
  }

  function deaf() {
    if (!source) return;
    source.close();
    source = null;
    pulse("off", "paused");
  }

  // A browser has few connections to one server: only a page that is looked at keeps one.
  if (listeners[page.page]) {
    const told = listeners[page.page]();
    if (!document.hidden) listen(told);
    document.addEventListener("visibilitychange", () => (document.hidden ? deaf() : listen(told)));
    addEventListener("pagehide", deaf);
  } else if ($("pulse")) {
    $("pulse").dataset.state = "none";
  }

  // --- search ---

  const field = $("q");
  if (field && page.page === "search") {
    let timer = 0, asked = new AbortController();
    field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(async () => {
        asked.abort();
        asked = new AbortController();
        const address = new URL(field.form.action);
        address.searchParams.set("q", field.value);
        history.replaceState(null, "", address);
        address.searchParams.set("part", "results");
        try {
          const found = await part(address, asked.signal);
          if (found) replaceIn("results")(found);
        } catch { /* a later question has taken its place, or the next one will */ }
      }, 180);
    });
  }
  addEventListener("keydown", (event) => {
    const typing = event.target.closest && event.target.closest("input, textarea, select, [contenteditable]");
    if (!field || typing || event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
})();
