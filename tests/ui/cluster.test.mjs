// The page Cluster: states, troubles, totals and money in words.
import assert from "node:assert/strict";
import test from "node:test";
import { QUERY_NODE, SHARD } from "../browser/cluster_answer.mjs";
import { page } from "./page.mjs";

const { cluster } = page;
const shard = (name) => QUERY_NODE.shards.find((s) => s.name === name);

test("each state of a shard is a chip with a sentence; the worst comes first", () => {
	const rows = [
		["shard-2", "failing", "down", /^Not readable: shards\/shard-2\/manifest: checksum/],
		["shard-1", "late", "down", /newest profiles are missing/],
		["shard-4", "not read yet", "wait", /not read yet/],
		["shard-0", "up to date", "up", /can be queried/],
		["shard-3", "stopped", "", /^Clean shutdown/],
		["shard-5", "this server", "up", /in this process/],
	];
	for (const [name, text, mark, hint] of rows) {
		const chip = cluster.shardChip(shard(name));
		assert.deepEqual([chip.text, chip.mark], [text, mark], name);
		assert.match(chip.hint, hint, name);
	}
	const ranks = rows.map(([name]) => cluster.shardChip(shard(name)).rank);
	assert.deepEqual(ranks, ranks.slice().sort((a, b) => a - b));
	const strange = cluster.shardChip({ name: "x", state: "burning" });
	assert.deepEqual([strange.text, strange.mark], ["burning", ""]);
});

const reading = (read, all, left_seconds) => ({
	...shard("shard-0"),
	state: "reading",
	reading: { read_segments: read, segments: all, read_bytes: read * 1000, bytes: all * 1000, left_seconds },
});

test("a shard whose windows are being read says how far that is, and how long it takes", () => {
	const chip = cluster.shardChip(reading(1200, 4800, 900));
	assert.deepEqual([chip.text, chip.mark], ["reading 25 %", "wait"]);
	assert.equal(chip.hint, "Blocks can be queried. Open windows are being read, the newest first. 1,200 of 4,800 segments. About 15 min left.");
	const late = cluster.shardChip(reading(999, 1000));
	assert.deepEqual([late.text, late.hint.endsWith("999 of 1,000 segments.")], ["reading 99 %", true]);
	assert.equal(cluster.shardChip({ ...reading(0, 0), error: "no answer" }).text, "reading 0 %");
	assert.ok(late.rank > cluster.shardChip(shard("shard-4")).rank && late.rank < cluster.shardChip(shard("shard-0")).rank);
	const says = (...shards) => cluster.troublesOf({ mode: "query", shards });
	assert.deepEqual(says(reading(1, 4, 90)), ["1 shard is being read, 25 % so far, about 90 s left: answers that meet unread windows have a warning."]);
	assert.deepEqual(says(reading(1, 4, 90), reading(3, 4, 900), shard("shard-0")), [
		"2 shards are being read, 50 % so far, about 15 min left: answers that meet unread windows have a warning.",
	]);
	assert.deepEqual(says(reading(1, 4, 90), reading(0, 4)), ["2 shards are being read, 12 % so far: answers that meet unread windows have a warning."]);
});

test("states of the shard of this server", () => {
	for (const [state, text, mark] of [
		["waiting", "waiting", "wait"],
		["running", "publishing", "up"],
		["away", "bucket away", "down"],
		["fenced", "fenced", "down"],
		["burning", "burning", ""],
	]) {
		const chip = cluster.ownChipOf({ ...SHARD.shard, state });
		assert.deepEqual([chip.text, chip.mark], [text, mark]);
	}
});

test("troubles are sentences that name the shard and the reason", () => {
	const [failing, missing, late, off, ...more] = cluster.troublesOf({
		...QUERY_NODE,
		shards: [shard("shard-1"), shard("shard-2")],
	});
	assert.match(failing, /^Shard shard-2 cannot be read, and answers lack its profiles after 2026-.*: shards\/shard-2\/manifest: checksum does not match$/);
	assert.equal(missing, "Shard shard-2: 2 objects of the manifest missing in the bucket; affected answers have a warning.");
	assert.match(late, /^Shard shard-1 is late: answers lack its profiles after 2026-11-22 .*\.$/);
	assert.match(off, /^The disk cache stores no pages.*: write \/cache: No space left on device$/);
	assert.deepEqual(more, []);
	assert.deepEqual(cluster.troublesOf({ mode: "query", bucket: "b", shards: [shard("shard-0"), shard("shard-3"), shard("shard-5")] }), []);
	const [one] = cluster.troublesOf({ mode: "query", shards: [{ ...shard("shard-0"), missing: 1 }] });
	assert.match(one, /: 1 object of the manifest missing/);
	const [never] = cluster.troublesOf({ mode: "query", shards: [{ name: "n", state: "failing", late: true }] });
	assert.equal(never, "Shard n cannot be read, and answers lack its profiles.");
	const refused = cluster.troublesOf({ mode: "server", shard: { ...SHARD.shard, state: "running", last_error: undefined, refuses_pushes: "old lease" } });
	assert.deepEqual(refused, [`Shard ${SHARD.shard.name} of this server acknowledges no pushes: old lease`]);
	const [down] = cluster.troublesOf({ mode: "query", cache: { ...QUERY_NODE.cache, off: undefined, down: "refused" } });
	assert.equal(down, "The bucket did not answer the last read: refused");

	const own = (s) => cluster.troublesOf({ ...SHARD, shard: { ...SHARD.shard, ...s } });
	assert.deepEqual(own({}), [
		"Shard shard-0 of this server cannot reach the bucket: profiles are stored here and uploaded later: put shards/shard-0/manifest: connection refused",
	]);
	assert.match(own({ state: "fenced", last_error: undefined })[0], /taken over by another server.*not uploaded\.$/);
	assert.deepEqual(own({ state: "running", last_error: "upload: x" }), ["Shard shard-0 of this server: upload: x"]);
	assert.deepEqual(own({ state: "running", last_error: undefined }), []);
});

test("totals are of all that the server knows", () => {
	assert.deepEqual(cluster.clusterTotals(QUERY_NODE), {
		shards: 6,
		late: 2,
		bytes: 2147483648 + 1073741824 + 1048576 + 52428800,
		requests: 12408,
	});
	assert.deepEqual(cluster.clusterTotals(SHARD), { shards: 0, late: 0, bytes: 2147483648, requests: 9000 });
	assert.deepEqual(cluster.clusterTotals({ mode: "server" }), { shards: 0, late: 0, bytes: 0, requests: 0 });
});

test("money, lag and rate", () => {
	for (const [v, text] of [[0, "0"], [0.0001, "under 0.01"], [0.127, "0.13"], [12.345, "12.35"], [1234.5, "1,235"]])
		assert.equal(cluster.money(v), text);
	for (const [v, text] of [[undefined, "–"], [0, "0 s"], [20.4, "20.4 s"], [95.2, "95.2 s"], [720, "12 min"], [9000, "3 h"], [864000, "10 d"]])
		assert.equal(cluster.lag(v), text);
	assert.equal(cluster.hitRate(QUERY_NODE.cache), "95.00%");
	assert.equal(cluster.hitRate({ ...QUERY_NODE.cache, hit_rate: undefined }), "nothing read yet");
});

test("members that share targets are named with what they follow", () => {
	const m = (over) => cluster.memberState({ name: "a", member: true, drained: false, ended: false, follows: 7, ...over }, 7);
	assert.deepEqual(
		[m({}), m({ follows: 6 }), m({ follows: 0 }), m({ ended: true }), m({ drained: true, ended: true })],
		["follows", "follows 6", "follows none yet", "not running", "drained"],
	);
	const behind = { name: "b", own: false, state: "running", assignment: 3, behind: true };
	assert.deepEqual(cluster.troublesOf({ mode: "query", shards: [behind] }), [
		"Shard b follows an old assignment: profiles of targets that moved may be there twice.",
	]);
});
