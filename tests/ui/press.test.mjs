// What the server answers while the pointer is pressed is shown after the release.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { press } = page;
const event = (type, fields) => Object.assign(new Event(type), fields);
const turn = () => new Promise((done) => setTimeout(done));

test("answers wait while the primary button is down", async () => {
	const seen = [];
	const target = new EventTarget();
	press.watchPresses(target);
	const answer = (name) => press.released().then(() => seen.push(name));
	await answer("before");
	assert.deepEqual(seen, ["before"]);
	for (const [end, fields] of [
		["pointerup", {}],
		["pointercancel", {}],
		["pointermove", { buttons: 0 }],
	]) {
		seen.length = 0;
		target.dispatchEvent(event("pointerdown", { button: 0 }));
		const both = [answer("first"), answer("second")];
		target.dispatchEvent(event("pointermove", { buttons: 1 }));
		await turn();
		assert.deepEqual(seen, [], `not before ${end}`);
		target.dispatchEvent(event(end, fields));
		await Promise.resolve();
		assert.deepEqual(seen, [], "not before the click");
		await Promise.all(both);
		assert.deepEqual(seen, ["first", "second"]);
	}
	seen.length = 0;
	target.dispatchEvent(event("pointerdown", { button: 2 }));
	await answer("beside a menu");
	assert.deepEqual(seen, ["beside a menu"]);
});
