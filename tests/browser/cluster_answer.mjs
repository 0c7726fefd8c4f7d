// Answers of GET /api/v1/status/cluster as the page Cluster expects them: a query node with each state of a
// shard, and a server that publishes. tests/e2e/cluster_status.test.mjs compares the keys with those of servers.
export const QUERY_NODE = {
	mode: "query",
	bucket: "https://s3.example/profiles/production",
	shards: [
		{
			name: "shard-0", own: false, state: "running", host: "epi-0", through: "2026-11-22T11:59:40.000Z",
			lag_seconds: 20.4, late: false, stopped: false, windows: 2, segments: 147, blocks: 31, bytes: 2147483648,
			missing: 0,
		},
		{
			name: "shard-1", own: false, state: "late", host: "epi-1", through: "2026-11-22T11:48:00.000Z",
			lag_seconds: 720, late: true, stopped: false, windows: 1, segments: 80, blocks: 30, bytes: 1073741824,
			missing: 0,
		},
		{
			name: "shard-2", own: false, state: "failing", host: "epi-2", through: "2026-11-22T11:40:00.000Z",
			lag_seconds: 1200, late: true, stopped: false, windows: 1, segments: 3, blocks: 4, bytes: 1048576,
			missing: 2, error: "shards/shard-2/manifest: checksum does not match",
		},
		{
			name: "shard-3", own: false, state: "stopped", host: "epi-3", through: "2026-11-20T10:00:00.000Z",
			late: false, stopped: true, windows: 0, segments: 0, blocks: 12, bytes: 52428800, missing: 0,
		},
		{
			name: "shard-4", own: false, state: "unread", host: "", late: false, stopped: false, windows: 0,
			segments: 0, blocks: 0, bytes: 0, missing: 0,
		},
		{ name: "shard-5", own: true, state: "own" },
	],
	cache: {
		from_memory: 7000, from_disk: 2500, from_bucket: 500, hit_rate: 0.95, bytes: 536870912,
		max_bytes: 10737418240, damaged_pages: 1, off: "write /cache: No space left on device",
	},
	requests: {
		get: { requests: 12345, sent_bytes: 0, received_bytes: 805306368 },
		head: { requests: 3, sent_bytes: 0, received_bytes: 0 },
		put: { requests: 0, sent_bytes: 0, received_bytes: 0 },
		list: { requests: 60, sent_bytes: 0, received_bytes: 123456 },
		delete: { requests: 0, sent_bytes: 0, received_bytes: 0 },
	},
	cost: { since_start: 0.0053, requests_per_day: 0.127, month: 0.0765 },
};

export const SHARD = {
	mode: "server",
	bucket: "https://s3.example/profiles/production",
	shard: {
		name: "shard-0", state: "away", generation: 4242, through: "2026-11-22T11:59:40.000Z", lag_seconds: 95.2,
		waiting_blocks: 1, waiting_bytes: 3145728, blocks: 31, windows: 2, segments: 147, bytes: 2147483648, kept: 3,
		gone: 8, failures: 5, last_error: "put shards/shard-0/manifest: connection refused",
	},
	requests: { put: { requests: 9000, sent_bytes: 1073741824, received_bytes: 0 } },
	cost: { since_start: 0.045, month: 0.0494 },
};
