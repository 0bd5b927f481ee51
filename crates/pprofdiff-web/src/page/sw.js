// The service worker. It caches the page's files, so that the page opens offline after the first visit. Each version
// has its own cache.
const CACHE = "pprofdiff-{version}";
const FILES = {files};

addEventListener("install", (e) => {
  // Bypass the browser's cache, which may contain files of another version. A page that is already open keeps its
  // version.
  e.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES.map((name) => new Request(name, { cache: "reload" })))));
});
addEventListener("activate", (e) => {
  const old = (names) => names.filter((name) => name.startsWith("pprofdiff-") && name !== CACHE);
  e.waitUntil(caches.keys().then((names) => Promise.all(old(names).map((name) => caches.delete(name)))).then(() => clients.claim()));
});
addEventListener("fetch", (e) => {
  if (e.request.method !== "GET" || new URL(e.request.url).origin !== location.origin) return;
  e.respondWith(caches.open(CACHE).then((cache) => cache.match(e.request, { ignoreSearch: true })).then((kept) => kept ?? fetch(e.request)));
});
