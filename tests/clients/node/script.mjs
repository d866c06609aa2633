// SPDX-License-Identifier: Apache-2.0
// A scenario as steps: each prints one line, `NAME: what the client saw` in JSON, and none ends the program.

export const NAMESPACE = process.env.CLIENT_NAMESPACE;
const WAIT = Number(process.env.CLIENT_WAIT) * 1000;

const steps = [];

export function step(name, fn) {
    steps.push([name, fn]);
}

export async function run() {
    for (const [name, fn] of steps) {
        let seen;
        try {
            seen = show(await fn());
        } catch (e) {
            console.error(name, e);
            seen = `UNEXPECTED ${e.constructor.name}: ${String(e.message).replace(/\s+/g, ' ')}`;
        }
        console.log(`${name}: ${seen}`);
    }
    console.log(`end: ${steps.length} steps`);
    process.exit(0);
}

// Keys in order, so that equal objects read alike.
function show(value) {
    return JSON.stringify(value === undefined ? null : value, (_, v) =>
        v && typeof v === 'object' && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1))) : v);
}

// Calls fn until it gives something true, and gives that.
export async function eventually(fn, what) {
    const begin = Date.now();
    for (;;) {
        const value = await fn();
        if (value) return value;
        if (Date.now() - begin > WAIT) throw new Error(`waited for ${what}; last answer: ${JSON.stringify(value)}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
}
