// The server cannot be reached: delays, one probe for all, and who asks again.
import assert from "node:assert/strict";
import test from "node:test";
import { fakeTimers } from "./fake_timers.mjs";
import { page } from "./page.mjs";

const { outage, api } = page;
const gone = () => new api.ApiError(0, "unavailable", "the server cannot be reached");
/** Lets what was promised happen. */
const turns = async () => {
	for (let i = 0; i < 5; i++) await Promise.resolve();
};

test("what counts as unreachable", () => {
	const is = (status, type) => outage.unreachable(new api.ApiError(status, type, "x"));
	assert.ok(is(0, "unavailable"));
	assert.ok(is(502, "bad_response"), "a gateway answers for it");
	assert.ok(!is(404, "bad_response"));
	assert.ok(!is(503, "timeout"), "the server itself answers");
});

const starting = (why) => new api.ApiError(503, "unavailable", `not ready: ${why}`);

test("a server that is not ready says what it waits for, and is asked every five seconds", async () => {
	assert.ok(outage.unreachable(starting("reads shards: 3 of 5")));
	assert.ok(!outage.unreachable(new api.ApiError(503, "unavailable", "too many requests at once: try again later")));
	const timers = fakeTimers();
	try {
		let n = 0;
		let asked = 0;
		const store = new outage.OutageStore(async () => {
			if (n++ < 4) throw starting(`reads shards: ${n} of 5`);
		});
		store.wait(() => asked++, starting("lists the shards"));
		assert.equal(store.get().waitsFor, "lists the shards");
		for (const [i, s] of [3, 5, 5, 5].entries()) {
			timers.tick(1000 * s);
			await turns();
			assert.equal(store.get().waitsFor, `reads shards: ${i + 1} of 5`);
		}
		assert.equal(asked, 0);
		timers.tick(5000);
		await turns();
		assert.equal(store.get(), null);
		assert.equal(asked, 1);
	} finally {
		timers.reset();
	}
});

test("all wait for one probe, which is repeated ever more slowly", async () => {
	const timers = fakeTimers();
	try {
		let probes = 0;
		let up = false;
		const store = new outage.OutageStore(async () => {
			probes++;
			if (!up) throw gone();
		});
		const asked = [];
		store.wait(() => asked.push("a"));
		const leave = store.wait(() => asked.push("b"));
		store.wait(() => asked.push("c"));
		leave();
		assert.notEqual(store.get(), null);
		assert.equal(store.get().lastAnswer, null);
		for (const [i, s] of [3, 5, 10, 20, 30, 30].entries()) {
			assert.equal(outage.delaySeconds(i), s);
			timers.tick(1000 * s - 1);
			assert.equal(probes, i);
			timers.tick(1);
			assert.equal(probes, i + 1);
			assert.equal(store.get().retryAt, null, "under way");
			await turns();
		}
		assert.deepEqual(asked, []);
		up = true;
		store.now();
		await turns();
		assert.equal(store.get(), null);
		assert.deepEqual(asked, ["a", "c"], "each once");
		timers.tick(100000);
		assert.equal(probes, 7, "and nothing is left");
		// One that fails again at once has to wait longer: it is the same outage.
		store.wait(() => asked.push("a again"));
		timers.tick(29999);
		assert.equal(probes, 7);
		timers.tick(1);
		await turns();
		assert.equal(probes, 8);
		assert.deepEqual(asked, ["a", "c", "a again"]);
		assert.notEqual(store.get(), undefined);
	} finally {
		timers.reset();
	}
});

test("an error that is not the network's ends the outage too", async () => {
	const timers = fakeTimers();
	try {
		const store = new outage.OutageStore(async () => {
			throw new api.ApiError(500, "internal", "x");
		});
		let again = 0;
		store.wait(() => again++);
		timers.tick(3000);
		await turns();
		assert.deepEqual([store.get(), again], [null, 1]);
	} finally {
		timers.reset();
	}
});
