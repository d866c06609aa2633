// SPDX-License-Identifier: Apache-2.0
// Shows what /fleet/events sends. Names in it are chosen by tenants: they become text, never markup.
"use strict";

const RETRY_MS = 3000;
const SILENT_MS = 45000; // three signs of life that did not come
const byId = id => document.getElementById(id);

// --- elements ---

function element(name, className, text) {
    const e = document.createElement(name);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
}

// parts: [class, amount]; whole: what the full width stands for.
function bar(parts, whole) {
    const e = element("div", "bar");
    for (const [className, amount] of parts) {
        if (!(amount > 0) || !(whole > 0)) continue;
        const part = element("div", className);
        part.style.width = `${Math.min(100, 100 * amount / whole)}%`;
        e.append(part);
    }
    return e;
}

// A cell is an element, a text, or {n: text} for a number.
function show(id, rows, none) {
    const body = byId(id).tBodies[0];
    const columns = byId(id).tHead.rows[0].cells.length;
    body.replaceChildren(...rows.map(cells => {
        const row = element("tr");
        for (const cell of cells) {
            const td = element("td", cell !== null && cell.n !== undefined ? "n" : "");
            if (cell instanceof Node) td.append(cell);
            else td.textContent = cell.n !== undefined ? cell.n : cell;
            row.append(td);
        }
        return row;
    }));
    if (rows.length) return;
    const row = element("tr"), td = element("td", "", none);
    td.colSpan = columns;
    row.append(td);
    body.append(row);
}

// --- figures ---

// Decimals without the zeros at their end.
const plain = text => text.includes(".") ? text.replace(/\.?0+$/, "") : text;
const number = text => ({n: text === undefined ? "" : plain(text)});
const sum = (list, of) => list.reduce((all, item) => all + of(item), 0);
const round = value => plain(value.toFixed(3));

const POOL_STATES = {cordoned: "cordoned: no new pods", draining: "draining", drained: "drained",
    converting: "draining, to be converted", "waiting-for-nodes": "waiting for nodes to be converted"};

// In words, below the name; empty: it is as usual.
function poolState(p) {
    if (!p.state) return "";
    return (POOL_STATES[p.state] || p.state) + (p.reason ? `: ${p.reason}` : "") +
        (p.until ? `, ${p.overdue ? "overdue since" : "until"} ${p.until}` : "");
}

function poolName(p) {
    const e = element("span", "", p.name);
    if (p.state) e.append(element("div", p.overdue ? "trouble" : "state", poolState(p)));
    return e;
}

function showPools(s) {
    show("pools", s.pools.map(p => {
        const borrowed = Math.min(+p.held, +(p.borrowed || 0));
        const absent = +(p.absent || 0);
        const whole = Math.max(+p.capacity + absent, +p.held + +p.idle + +p.unhealthy);
        return [poolName(p), bar([["guaranteed", p.held - borrowed], ["borrowed", borrowed], ["idle", +p.idle],
            ["unhealthy", +p.unhealthy]], whole), {n: plain(p.capacity) + (absent ? ` of ${round(+p.capacity + absent)}` : "")},
        number(p.held), {n: p.borrowed === undefined ? "" : round(borrowed)}, number(p.idle), number(p.unhealthy),
        number(p.guaranteed)];
    }), "No pools.");
}

function stateOf(b) {
    if (b.state !== "Granted") return `refused: ${b.state}`;
    if (b.reclaimAt) return `to give back ${round(Math.max(0, b.holds - b.grant))} from ${b.reclaimAt}`;
    return +b.grant > +b.guarantee ? "may borrow" : +b.grant < +b.guarantee ? "lends" : "";
}

function showTenants(s) {
    const bound = new Set(s.bindings.map(b => JSON.stringify([b.tenant, b.pool])));
    const rows = s.bindings.map(b => {
        const within = Math.min(+b.placed, +b.guarantee);
        return [b.tenant, b.pool, bar([["guaranteed", within], ["borrowed", b.placed - within],
            ["idle", b.grant - b.placed]], Math.max(+b.grant, +b.placed)), number(b.placed),
        {n: round(b.holds - b.placed)}, number(b.grant), number(b.guarantee), number(b.wants), stateOf(b)];
    });
    for (const h of s.holders)
        if (!bound.has(JSON.stringify([h.tenant, h.pool])))
            rows.push([h.tenant, h.pool, bar([["guaranteed", 1]], 1), number(h.held), "", "", "", "",
                s.bindings.length && !s.notShown ? "without a binding" : ""]);
    show("tenants", rows, "No tenant holds GPUs, and there are no bindings.");
}

const ENFORCED = {Queue: ": nothing beyond the guarantee", Stop: ": nothing new"};

function budgetState(b) {
    if (b.percent >= 100) return "spent" + (ENFORCED[b.enforcement] || "");
    return +b.forecast > +b.amount ? "will be exceeded at this rate" : "";
}

// The full width is the greatest of the three; what is beyond the budget is to the right of it.
function budgetBar(b) {
    const amount = +b.amount, spent = +b.spent, most = Math.max(+(b.forecast || 0), spent);
    const within = Math.min(spent, amount), over = Math.max(spent, amount);
    return bar([["guaranteed", within], ["forecast", Math.min(most, amount) - within], ["unhealthy", spent - within],
        ["beyond", most - over], ["idle", amount - most]], Math.max(amount, most));
}

function showBudgets(s) {
    const rows = s.bindings.filter(b => b.budget);
    byId("planned").hidden = !rows.length;
    show("budgets", rows.map(({tenant, pool, budget: b}) => [tenant, pool, budgetBar(b), {n: b.spent}, {n: b.forecast || ""},
        {n: `${b.amount} ${b.currency}`}, {n: `${b.percent}%`}, budgetState(b)]), "");
}

const STATES = {"not-ready": "node not Ready", unhealthy: "unhealthy", cordoned: "cordoned",
    untainted: "no taint: any pod can land there", unmatched: "GPUs in no pool"};

const EXPORTERS = {absent: "no DCGM exporter", failing: "DCGM exporter does not answer", new: "DCGM exporter is not read yet"};

function showFaults(s) {
    const rows = s.faults.map(f => [f.node, f.pool, number(f.unhealthy), number(f.total),
        f.ready ? "GPUs not allocatable" : "node not Ready"]);
    for (const n of s.nodes)
        rows.push([n.node, n.pool || "", "", "", n.states.map(state => STATES[state] || state).join("; ") +
            (n.conditions ? `: ${n.conditions}` : "")]);
    for (const p of s.pools)
        if (!p.metered && +p.unhealthy > 0)
            rows.push(["", p.name, number(p.unhealthy), "", "GPUs of a pool that is not metered"]);
    for (const x of s.exporters || [])
        rows.push([x.node, x.pool, "", "", EXPORTERS[x.state] + (x.reason ? `: ${x.reason}` : "") +
            (x.since ? `, since ${x.since}` : "")]);
    show("faults", rows, "All GPUs are healthy.");
}

// Without telemetry nothing is known of it, which is not the same as nobody.
function showHoarders(s) {
    byId("measured").hidden = !s.hoarders;
    show("hoarders", (s.hoarders || []).map(h => [h.tenant, h.pod, h.pool, h.node, number(h.gpus), h.since,
        h.state === "warm" ? "memory in use" : "unused"]), "Every pod that was measured uses its GPUs.");
}

function showMisuse(s) {
    show("misuse", s.misuse.map(m => [m.tenant, m.pool, {n: String(m.pods)}, {n: round(m.cpuMilli / 1000)},
        {n: round(m.memoryMiB / 1024)}]), "No pods without GPUs run on nodes of a pool.");
}

function showMonth(s) {
    const lines = (s.month.lines || []).slice().sort((a, b) => b.gpuHours - a.gpuHours);
    const most = lines.length ? +lines[0].gpuHours : 0;
    byId("period").textContent = (s.month.from ? `From ${s.month.from} to ${s.month.until}. ` : "") +
        (s.month.trouble ? `Not up to date: ${s.month.trouble}` : "");
    show("month", lines.map(l => [l.tenant, l.pool, bar([["guaranteed", +l.gpuHours]], most), {n: l.gpuHours},
        {n: l.cost === undefined ? "" : `${l.cost} ${l.currency}`}]),
    s.month.lines ? "Nothing was held this month." : s.month.trouble ? "" : "Being computed.");
}

function showState(s) {
    byId("state").hidden = !s.observed;
    if (!s.observed) return;
    showPools(s);
    showTenants(s);
    showBudgets(s);
    showFaults(s);
    showHoarders(s);
    showMisuse(s);
    showMonth(s);
    byId("more").textContent = s.notShown ? `${s.notShown} more rows are not shown.` : "";
}

function clear() {
    last = null;
    byId("state").hidden = true;
    for (const body of document.querySelectorAll("#state tbody")) body.replaceChildren();
    byId("period").textContent = byId("more").textContent = "";
}

// --- the stream ---

let last = null;      // the state that is shown
let observed = "";    // until then the host was observed
let stalled = false;  // it did not advance between two signs of life
let failed = false;   // the process could not write a newer state
let controller = null;
let generation = 0;   // of run(): a later one replaces those before
let silence = 0;

function say(text, trouble) {
    const status = byId("status");
    status.textContent = text;
    status.className = trouble ? "trouble" : "";
}

function listen() {
    clearTimeout(silence);
    silence = setTimeout(() => controller && controller.abort(), SILENT_MS);
}

function sayHowLive() {
    const until = observed ? ` Observed until ${observed}.` : "";
    if (!last) say("Connected; no state yet.", true);
    else if (failed) say(`Not up to date: the process cannot compute its state.${until}`, true);
    else if (!last.observed) say(last.leader ? "The host is not read yet." : "This process does not hold the Lease.", true);
    else if (stalled) say(`Not up to date: the host is not observed.${until}`, true);
    else if (!last.grantsCurrent) say(`Not up to date: GPUPools, GPUBindings or quotas are not observed.${until}`, true);
    else say(`Live.${until}`);
}

class Refused extends Error {}

function take(event, data) {
    listen();
    if (event === "refused") throw new Refused(JSON.parse(data).message);
    if (event === "state") {
        last = JSON.parse(data);
        failed = false;
        showState(last);
    } else {
        failed = event === "failed";
        stalled = data === observed;
        observed = data;
    }
    sayHowLive();
}

// Events end with an empty line; each has at most one line of data.
async function read(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
        const {value, done} = await reader.read();
        if (done) return;
        const events = (text + value).split("\n\n");
        text = events.pop();
        for (const one of events) {
            const fields = new Map(one.split("\n").map(line => [line.slice(0, line.indexOf(":")),
                line.slice(line.indexOf(":") + 2)]));
            take(fields.get("event"), fields.get("data"));
        }
    }
}

async function connect(token) {
    controller = new AbortController();
    listen();
    const answer = await fetch("/fleet/events", {headers: {authorization: `Bearer ${token}`}, signal: controller.signal,
        cache: "no-store", credentials: "omit", redirect: "error"});
    if (answer.ok) {
        byId("login").hidden = true;
        return read(answer.body);
    }
    const status = await answer.json().catch(() => ({message: `the answer is ${answer.status}`}));
    if (answer.status === 401 || answer.status === 403) throw new Refused(status.message);
    throw new Error(status.message);
}

function askForToken(why) {
    clear();
    byId("login").hidden = false;
    say(why, true);
}

async function run(token) {
    const mine = ++generation;
    if (controller) controller.abort();
    while (mine === generation) {
        let why = "the connection ended";
        try {
            await connect(token);
        } catch (e) {
            if (mine !== generation) return;
            if (e instanceof Refused) {
                clearTimeout(silence);
                askForToken(e.message);
                return;
            }
            why = e.name === "AbortError" ? "nothing came for a while" : e.message;
        }
        if (mine !== generation) return;
        clearTimeout(silence);
        say(`Not live: ${why}. ${last ? "What is shown is of before; trying" : "Trying"} again.`, true);
        await new Promise(done => setTimeout(done, RETRY_MS));
    }
}

// The token is in the memory of this page alone: a reload needs it again.
byId("login").addEventListener("submit", event => {
    event.preventDefault();
    const token = byId("token").value.trim();
    byId("token").value = "";
    run(token);
});

askForToken("A token is needed.");
