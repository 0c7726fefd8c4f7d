// The client of the API: every failure becomes an error that the page can show.
import assert from "node:assert/strict";
import { test } from "node:test";
import { page } from "./page.mjs";

const { api } = page;

async function failure(t, answer) {
	globalThis.document = { baseURI: "http://epi.test/" };
	t.mock.method(globalThis, "fetch", answer);
	return api.call("query", {}).then(
		() => assert.fail("it has an answer"),
		(e) => e,
	);
}

test("an answer that breaks off, or never comes, is an unreachable server", async (t) => {
	const broken = { status: 200, text: async () => Promise.reject(new TypeError("network")) };
	for (const answer of [async () => broken, async () => Promise.reject(new TypeError("no"))]) {
		const e = await failure(t, answer);
		assert.ok(e instanceof api.ApiError, String(e));
		assert.equal(e.errorType, "unavailable");
		assert.equal(e.detail, "the server cannot be reached");
	}
});

test("what is no JSON is said with its status", async (t) => {
	const e = await failure(t, async () => new Response("<h1>gateway</h1>", { status: 502 }));
	assert.equal(e.errorType, "bad_response");
	assert.match(e.message, /^502 .*: <h1>gateway<\/h1>$/);
});

test("giving up is no error of the server", async (t) => {
	const gone = new DOMException("gone", "AbortError");
	const e = await failure(t, async () => ({ status: 200, text: () => Promise.reject(gone) }));
	assert.equal(e, gone);
});
