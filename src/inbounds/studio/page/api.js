// What the server is asked. A refusal becomes an error with the server's own sentence.

const UNREACHED = "the studio's server does not answer; what it confirmed is kept: start it again and reload this page";

async function reach(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Error(UNREACHED);
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  const error = new Error(said.error ?? `the server answered ${answer.status}`);
  error.status = answer.status;
  throw error;
}

export const get = async (path) => (await reach(path)).json();

export const post = async (path, body = {}) =>
  (await reach(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })).json();

export async function upload(path, fields) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return (await reach(path, { method: "POST", body: form })).json();
}

/** A slice as bytes; `null` where there is none. */
export async function bytes(path, signal) {
  try {
    for (;;) {
      const answer = await reach(path, { signal });
      if (answer.status !== 202) return new Uint8Array(await answer.arrayBuffer());
      await new Promise((resolve) => setTimeout(resolve, 150)); // its scan is being read
    }
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

/** A scan's planes and facts; waits while its voxels are read, and tells how far that is. */
export async function opened(scan, show) {
  for (;;) {
    const answer = await reach(`/api/scans/${scan}`);
    const said = await answer.json();
    if (answer.status !== 202) return said;
    show(said.loading ?? 0);
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
}

/** What others do, and how training goes; the browser connects again by itself. */
export function listen(after, told, lost) {
  const source = new EventSource(`/api/events?after=${after}`);
  source.onmessage = (event) => told(JSON.parse(event.data));
  source.onerror = () => lost(source.readyState === EventSource.CLOSED);
  return source;
}
