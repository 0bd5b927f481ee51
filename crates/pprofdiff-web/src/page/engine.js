// The engine that answers the page's questions: a WebAssembly worker, or the command behind `pprofdiff serve`. Both
// have `call` and `stop`. `stop` cancels all calls. After it, the worker has lost its files, but the server keeps them.

/** The engine in this page: a worker. The first call after a crash or a cancellation starts a new worker. */
class Worker_ {
  #worker;
  #waiting = new Map();
  #next = 0;
  /** The number of bytes of memory that the module uses. */
  memory = 0;

  call(operation, ...values) {
    if (!this.#worker) this.#start();
    const id = this.#next++;
    this.#worker.postMessage({ id, operation, values });
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  /** Cancels all calls and ends the worker, which loses its files. */
  stop(reason = "cancelled") {
    this.#worker?.terminate();
    this.#worker = undefined;
    for (const { reject } of this.#waiting.values()) reject(new Stopped(reason));
    this.#waiting.clear();
  }

  #start() {
    this.#worker = new Worker("worker.js", { type: "module" });
    this.#worker.onmessage = ({ data: { id, result, error, broken, memory } }) => {
      this.memory = memory ?? this.memory;
      const { resolve, reject } = this.#waiting.get(id) ?? {};
      this.#waiting.delete(id);
      if (error === undefined) resolve?.(result);
      else if (!broken) reject?.(new Error(error));
      else {
        reject?.(new Stopped(error));
        this.stop(error);
      }
    };
    this.#worker.onerror = (e) => { e.preventDefault(); this.stop(`the engine can't be loaded: ${e.message ?? "worker.js is missing"}`); };
  }
}

/** The engine in the pprofdiff command, which serves this page. */
class Server {
  #stop = new AbortController();
  #last = Promise.resolve();

  /** Sends calls one after another, because concurrent requests may arrive in any order. */
  call(operation, ...values) {
    const { signal } = this.#stop;
    this.#last = this.#last.catch(() => { /* its own caller handles the error */ }).then(() => this.#ask(signal, operation, ...values));
    return this.#last;
  }

  async #ask(signal, operation, session, first, second) {
    if (signal.aborted) throw new Stopped("cancelled");
    const [name, body] = operation === "add" ? [`add?name=${encodeURIComponent(first)}`, second]
      : [operation, JSON.stringify(operation === "answer" ? { question: first, format: second } : first ?? null)];
    const answer = await fetch(session ? `${session}/${name}` : name, { method: "POST", body, signal }).catch((e) => {
      throw e.name === "AbortError" ? new Stopped("cancelled") : new Error("pprofdiff serve does not answer; is it still running?");
    });
    if (!answer.ok) throw new Error(await answer.text());
    return operation === "answer" ? new Uint8Array(await answer.arrayBuffer()) : answer.json();
  }

  stop() {
    this.#stop.abort();
    this.#stop = new AbortController();
  }
}

/** The error of a call that was cancelled, or whose worker crashed. */
export class Stopped extends Error {}

export const isServed = document.body.dataset.engine === "server";
export const engine = isServed ? new Server() : new Worker_();
