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

  // --- times ---

  const UNITS = [["min", 60, 60], ["h", 3600, 24], ["d", 86400, 7]];
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

  // As the server writes them.
  function ago(moment) {
    const passed = (Date.now() - moment) / 1000, length = Math.abs(passed);
    if (length < 60) return "just now";
    for (const [unit, seconds, most] of UNITS) {
      if (length < seconds * most) {
        const many = `${Math.floor(length / seconds)} ${unit}`;
        return passed < 0 ? `in ${many}` : `${many} ago`;
      }
    }
    const day = `${moment.getUTCDate()} ${MONTHS[moment.getUTCMonth()]}`;
    return moment.getUTCFullYear() === new Date().getUTCFullYear() ? day : `${day} ${moment.getUTCFullYear()}`;
  }

  setInterval(() => {
    for (const shown of document.querySelectorAll("time[datetime][title]:not(.exact)")) {
      const words = ago(new Date(shown.dateTime));
      if (shown.textContent !== words) shown.textContent = words;
    }
  }, 20000);

  // --- the feed ---

  const GLIDING = 40; // cards that are moved for the eye; nobody sees more of them

  const waiting = [];

  const nameOf = (card) => `${card.dataset.space}/${card.dataset.key}`;
  const cards = () => [...waiting, ...$("feed").children];

  // The first page of the list is asked for again, and what is new or different in it is taken over. So the filters of
  // the page hold, and what arrives in a crowd costs one request.
  function merge(found) {
    const total = found.querySelector("#total"), list = found.querySelector("#feed");
    if (total && $("total")) $("total").textContent = total.textContent;
    if (!list) return;
    const known = new Map(cards().map((card) => [nameOf(card), card]));
    for (const card of [...list.children]) {
      const before = known.get(nameOf(card));
      if (!before) {
        if ("newest" in $("feed").dataset) waiting.push(card);
      } else if (before.dataset.etag !== card.dataset.etag || before.classList.contains("gone")) {
        if (waiting.includes(before)) waiting[waiting.indexOf(before)] = card;
        else before.replaceWith(card);
      }
    }
    const came = waiting.length && waiting[0];
    insertWaiting();
    if (came) $("news").textContent = `New: ${came.querySelector("header").innerText}`;
  }

  function went(about) {
    const name = `${about.space}/${about.key}`;
    for (const card of cards()) if (nameOf(card) === name) card.classList.add("gone");
  }

  // Things come in above the others. Whoever has scrolled goes on reading where they were; at the top the others glide
  // down, which moves nothing but their picture. What arrives while they glide comes in with what else does.
  let gliding = false;

  function insertWaiting() {
    if (gliding || !waiting.length) return;
    const list = $("feed"), cards = waiting.splice(0), shown = [...list.children];
    const seen = shown.slice(0, GLIDING).map((one) => [one, one.getBoundingClientRect().top]);
    const anchor = seen.find(([, top]) => top >= 0), scrolled = scrollY;
    for (const card of cards) {
      list.insertBefore(card, [...list.children].find((one) => one.dataset.at < card.dataset.at) || null);
    }
    if ($("empty")) $("empty").hidden = true;
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

  // --- pages and what they listen to ---

  const OBJECTS = ["note", "bank", "observation", "memory", "session", "summary", "space"];
  const KINDS = ["hello", ...OBJECTS, "conflict", "run", "status"];
  const nothing = () => {};
  const here = () => location.pathname + location.search;
  const every = (kinds, told) => Object.fromEntries(kinds.map((kind) => [kind, told]));

  // A part of the page that is asked for again: never under somebody's hands.
  function renewLive(found) {
    const live = found.querySelector("#live"), there = $("live");
    if (!live || there.querySelector("form:focus-within")) return offer("This has changed.");
    const open = [...there.querySelectorAll("details")].map((one) => one.open);
    there.replaceChildren(...live.childNodes);
    [...there.querySelectorAll("details")].forEach((one, index) => { one.open = open[index] || false; });
  }

  function offer(words) {
    const link = document.createElement("a");
    link.href = here();
    link.textContent = "Look again";
    $("news").replaceChildren(`${words} `, link);
  }

  const listeners = {
    overview: () => {
      const renew = renewing(() => "/?part=spaces", replaceIn("overview"), 400);
      return every(["note", "bank", "run", "status", "conflict", "space"], renew);
    },
    feed: () => {
      if (!$("feed") || !$("feed").hasAttribute("aria-label")) return {};
      const renew = renewing(here, merge, 30);
      const told = (about) => {
        if (page.prefix && !(about.key || "").startsWith(page.prefix)) return;
        if (about.kind === "delete") went(about);
        renew();
      };
      return every(page.only ? [page.only] : ["note", "observation", "memory", "summary", "run", "conflict"], told);
    },
    one: () => {
      const renew = renewing(here, renewLive, 30);
      return every(OBJECTS, (about) => {
        if (about.key !== page.key) return;
        if (about.kind === "delete") { $("news").textContent = "It was removed."; $("live").classList.add("gone"); }
        else { $("live").classList.remove("gone"); $("news").textContent = ""; renew(); }
      });
    },
    renewed: () => {
      const renew = renewing(here, renewLive, 100);
      return every(page.on.split(" "), (about) => { if (!page.key || page.key === about.key) renew(); });
    },
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
    for (const kind of KINDS) {
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
  // --- forms ---

  const address = new URL(location);
  if (address.searchParams.has("did")) { // what was just done is not said again
    address.searchParams.delete("did");
    history.replaceState(null, "", address);
  }

  for (const form of document.querySelectorAll(".filters")) {
    form.classList.add("quick");
    form.addEventListener("change", () => form.requestSubmit());
    form.addEventListener("submit", () => { // addresses without what is empty
      for (const one of form.elements) if (one.name && !one.value) one.disabled = true;
    });
    addEventListener("pageshow", () => { for (const one of form.elements) one.disabled = false; });
  }

  const write = $("write");
  function openWrite() {
    write.open = true;
    write.querySelector("textarea").focus();
  }

  let changed = false;
  addEventListener("input", (event) => { if (event.target.matches("textarea")) changed = true; });
  addEventListener("submit", () => { changed = false; });
  addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });

  // --- tabs ---

  const tab = document.querySelector(".tabs [aria-current]");
  if (tab) {
    const strip = tab.parentElement;
    strip.scrollLeft = tab.offsetLeft - (strip.clientWidth - tab.offsetWidth) / 2;
  }

  // --- keys ---

  const keys = $("keys"), tabs = [...document.querySelectorAll(".tabs [data-go]")];
  if (keys) {
    $("help").hidden = false;
    $("help").addEventListener("click", () => keys.showModal());
    $("tab-keys").textContent = tabs.map((one) => `${one.dataset.go} ${one.textContent}`).join(", ");
  }
  let going = 0;

  function step(by) {
    const links = [...document.querySelectorAll("main a.open")];
    if (!links.length) return;
    const here = document.activeElement;
    const at = links.findIndex((one) => one === here || (one.closest("li") || one).contains(here));
    const next = links[Math.min(links.length - 1, Math.max(0, at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by))];
    next.focus({ preventScroll: true });
    (next.closest("li") || next).scrollIntoView({ block: "nearest", behavior: calm.matches ? "instant" : "smooth" });
  }

  addEventListener("keydown", (event) => {
    const typing = event.target.closest && event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && typing && typing.form) {
      event.preventDefault();
      typing.form.requestSubmit(typing.form.querySelector("button.main"));
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (going && event.timeStamp - going < 1500) {
      going = 0;
      const to = tabs.find((one) => one.dataset.go === event.key);
      if (to) { event.preventDefault(); to.click(); }
      return;
    }
    const one = [...document.querySelectorAll("[data-does]")].find((each) => each.dataset.does === event.key);
    if (event.key === "/" && field) { field.focus(); field.select(); }
    else if (event.key === "g") going = event.timeStamp;
    else if (event.key === "?" && keys) keys.showModal();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (one && write && write.contains(one)) openWrite();
    else if (one) one.click();
    else return;
    event.preventDefault();
  });
})();
