// Keeps the page's files, so that it opens without a network after the first visit. A new version is a new cache.
const CACHE = "pprofdiff-{version}";
const FILES = {files};

addEventListener("install", (e) => {
  // Past the browser's own cache, whose files may be of another version. An open page keeps the one that it began with.
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
