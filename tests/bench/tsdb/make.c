#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "tests/bench/tsdb/tsdb_bench.h"
#include "tsdb/rollup/cascade.h"

/*
 * Many days of a fleet's CPU profiles as blocks of a data directory, without a database in between:
 * rows by number, chunks of CHUNK_ROWS within an hour, rollups of series and groups by the cascade
 * that compaction uses, files by the block writer. Blocks are of the length and alignment that
 * joining gives, so that a server which opens the directory has nothing to join.
 *
 * Blocks share nothing but ids, which are a function of the service: they are made by processes
 * side by side.
 */
#define PROCESSES 2u
#define ROWS_MOST ((uint32_t)(NS_PER_HOUR / NS_PER_S))

struct record {
	bool functions;
	uint32_t group, level;
	int64_t step_ns;
	size_t at, len; /* in the list's bytes */
};
struct records {
	struct record *v;
	size_t n, cap;
	struct buf bytes;
};

struct making {
	struct fleet *fleet;
	struct fleet_scratch *scratch;
	const char *data;
	uint64_t services, pods;
	int64_t start_ns, interval_ns, block_ns; /* start: a day's, index 0 */
	enum value_kind kinds[FLEET_COLUMNS_MAX];
	/* of the block at hand */
	struct block_writer *writer;
	struct cascade *of_series, *of_group;
	struct chunk *chunk;
	struct buf chunk_bytes;
	struct arena rows_arena;
	struct records series_later, series_fine, groups; /* fine: level 0, for the group */
	uint32_t group;
	uint64_t rows, samples;
};

static enum err_code nomem(struct err *err)
{
	return err_set(err, ERR_NOMEM, "make: out of memory");
}

static enum err_code keep(
	struct records *r, const struct record *head, struct str bytes, struct err *err)
{
	if (r->n == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 256;
		struct record *v = realloc(r->v, cap * sizeof(*v));

		if (!v)
			return nomem(err);
		r->v = v;
		r->cap = cap;
	}
	r->v[r->n] = *head;
	r->v[r->n].at = r->bytes.len;
	r->v[r->n++].len = bytes.len;
	buf_add_str(&r->bytes, bytes);
	return buf_failed(&r->bytes) ? nomem(err) : ERR_OK;
}

static struct str kept(const struct records *r, size_t i)
{
	return (struct str){ r->bytes.ptr + r->v[i].at, r->v[i].len };
}

static void forget(struct records *r)
{
	r->n = 0;
	buf_clear(&r->bytes);
}

/* The order of a block: groups' sums, then functions; group, level, step. */
static int record_cmp(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->functions != y->functions)
		return x->functions ? 1 : -1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->level != y->level)
		return x->level < y->level ? -1 : 1;
	if (x->step_ns != y->step_ns)
		return x->step_ns < y->step_ns ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static void sort(struct records *r)
{
	if (r->n)
		qsort(r->v, r->n, sizeof(*r->v), record_cmp);
}

static enum err_code emit_series(
	void *ctx, bool functions, uint32_t level, int64_t step_ns, struct str bytes, struct err *err)
{
	struct making *m = ctx;
	const struct record head = { .level = level, .step_ns = step_ns };
	enum err_code rc;

	if (level)
		return keep(&m->series_later, &head, bytes, err);
	rc = block_writer_rollup(m->writer, level, step_ns, bytes, err);
	return rc ? rc : keep(&m->series_fine, &head, bytes, err);
}

static enum err_code emit_group(
	void *ctx, bool functions, uint32_t level, int64_t step_ns, struct str bytes, struct err *err)
{
	struct making *m = ctx;
	const struct record head = { functions, m->group, level, step_ns, 0, 0 };

	if (!functions && m->pods == 1)
		return ERR_OK; /* a group of one shows its series' */
	return keep(&m->groups, &head, bytes, err);
}

/* ---- rows ---- */

static const void *copy(struct arena *a, const void *from, size_t n, size_t size)
{
	void *to = arena_alloc_raw(a, n + 1, size);

	if (to && n)
		memcpy(to, from, n * size);
	return to;
}

static enum err_code hold(struct making *m, struct row *r, struct err *err)
{
	struct arena *a = &m->rows_arena;

	r->stacks = copy(a, r->stacks, r->n, sizeof(*r->stacks));
	r->values = copy(a, r->values, (size_t)r->n * r->columns_n, sizeof(*r->values));
	if (r->label_sets)
		r->label_sets = copy(a, r->label_sets, r->n, sizeof(*r->label_sets));
	m->rows++;
	m->samples += r->n;
	return r->stacks && r->values ? ERR_OK : nomem(err);
}

static enum err_code write_chunk(struct making *m, int64_t step_ns, const int64_t *ts,
	const struct row *rows, uint32_t n, struct err *err)
{
	enum err_code rc;

	buf_clear(&m->chunk_bytes);
	if ((rc = chunk_encode(ts, rows, n, m->kinds, &m->chunk_bytes, err)) ||
		(rc = block_writer_chunk(m->writer, buf_str(&m->chunk_bytes), err)) ||
		(rc = chunk_parse(m->chunk, buf_str(&m->chunk_bytes), err)))
		return rc;
	return cascade_chunk(m->of_series, step_ns, m->chunk, true, err);
}

/* Rows in (step, step + 1h], evenly in chunks. */
static enum err_code make_step(struct making *m, const struct fleet_symbols *symbols,
	uint32_t service, uint32_t pod, int64_t step_ns, struct err *err)
{
	static struct row rows[ROWS_MOST];
	static int64_t ts[ROWS_MOST];
	int64_t late = (int64_t)pod * m->interval_ns / (int64_t)m->pods;
	int64_t k = (step_ns - m->start_ns - late + m->interval_ns) / m->interval_ns;
	enum err_code rc = ERR_OK;
	uint32_t n = 0, chunks;

	arena_reset(&m->rows_arena);
	for (k = k < 1 ? 1 : k; !rc && n < ROWS_MOST; k++) {
		int64_t at = m->start_ns + k * m->interval_ns + late;

		if (at <= step_ns)
			continue;
		if (at > step_ns + NS_PER_HOUR)
			break;
		fleet_row(m->fleet, symbols, m->scratch, service, pod, (uint64_t)k, m->start_ns, &rows[n]);
		ts[n] = at;
		rc = hold(m, &rows[n++], err);
	}
	chunks = (n + CHUNK_ROWS - 1) / CHUNK_ROWS;
	for (uint32_t i = 0; i < chunks && !rc; i++)
		rc = write_chunk(m, step_ns, ts + n * i / chunks, rows + n * i / chunks,
			n * (i + 1) / chunks - n * i / chunks, err);
	return rc;
}

static enum err_code make_series(struct making *m, const struct fleet_symbols *symbols,
	uint32_t slot, uint32_t service, uint32_t pod, int64_t block_ns, struct err *err)
{
	char name[32], instance[32];
	struct label v[3], group[2];
	enum err_code rc;
	uint32_t id;

	snprintf(instance, sizeof(instance), "pod%02" PRIu32, pod);
	v[0] = group[0] = (struct label){ STR(LABEL_NAME), str_of(fleet_profile_name(m->fleet)) };
	v[1] = (struct label){ STR("instance"), str_of(instance) };
	v[2] = group[1] = (struct label){ STR("job"), str_of(fleet_service_name(service, name)) };
	if ((rc = block_writer_series(m->writer, slot, (struct labels){ v, 3 },
			 (struct labels){ group, 2 }, &id, &m->group, err)))
		return rc;
	for (int64_t at = block_ns; at < block_ns + m->block_ns && !rc; at += NS_PER_HOUR)
		rc = make_step(m, symbols, service, pod, at, err);
	if (rc || (rc = cascade_end(m->of_series, err)))
		return rc;
	sort(&m->series_later);
	for (size_t i = 0; i < m->series_later.n && !rc; i++)
		rc = block_writer_rollup(m->writer, m->series_later.v[i].level,
			m->series_later.v[i].step_ns, kept(&m->series_later, i), err);
	forget(&m->series_later);
	return rc;
}

/* ---- blocks ---- */

static unsigned levels_of(const struct making *m)
{
	return m->block_ns >= NS_PER_DAY ? 3 : 1;
}

static enum err_code make_service(struct making *m, struct partition *p,
	const struct fleet_symbols *symbols, uint32_t service, int64_t block_ns, struct err *err)
{
	enum err_code rc;
	uint32_t slot;

	if ((rc = cascade_open(p, levels_of(m), false, emit_series, m, &m->of_series, err)) ||
		(rc = cascade_open(p, levels_of(m), true, emit_group, m, &m->of_group, err)) ||
		(rc = block_writer_partition(m->writer, p, &slot, err)))
		goto done;
	for (uint32_t pod = 0; pod < m->pods && !rc; pod++)
		rc = make_series(m, symbols, slot, service, pod, block_ns, err);
	sort(&m->series_fine);
	for (size_t i = 0; i < m->series_fine.n && !rc; i++)
		rc = cascade_record(m->of_group, m->series_fine.v[i].step_ns, kept(&m->series_fine, i),
			(struct str){ 0 }, err);
	forget(&m->series_fine);
	if (!rc)
		rc = cascade_end(m->of_group, err);
done:
	cascade_close(m->of_series);
	cascade_close(m->of_group);
	m->of_series = m->of_group = NULL;
	return rc;
}

static enum err_code make_services(struct making *m, struct partition **partitions, struct arena *a,
	int64_t block_ns, struct err *err)
{
	const struct symbol_limits limits = { 1u << 24, 1u << 24, 1u << 20, UINT64_C(1) << 32 };
	struct fleet_symbols symbols;
	enum err_code rc = ERR_OK;
	char name[32];

	for (uint32_t i = 0; i < m->services && !rc; i++)
		if (!(rc = partition_open(
				  str_of(fleet_service_name(i, name)), i, i, &limits, &partitions[i], err)) &&
			!(rc = fleet_symbols(m->fleet, i, (uint32_t)m->pods, partitions[i], a, &symbols, err)))
			rc = make_service(m, partitions[i], &symbols, i, block_ns, err);
	sort(&m->groups);
	for (size_t i = 0; i < m->groups.n && !rc; i++) {
		const struct record *r = &m->groups.v[i];

		rc = block_writer_group_rollup(m->writer, r->functions ? ROLLUP_FUNCTIONS : ROLLUP_GROUP,
			r->group, r->level, r->step_ns, kept(&m->groups, i), err);
	}
	forget(&m->groups);
	return rc;
}

static enum err_code make_block(struct making *m, int64_t block_ns, struct err *err)
{
	struct block_meta meta = { .level = 4 };
	struct block_write_options o = { .fs = &fs_posix,
		.ulid = ulid_new(clock_now_ns()),
		.min_ns = block_ns,
		.max_ns = block_ns + m->block_ns,
		.levels = levels_of(m),
		.raw = true };
	struct partition **partitions = NULL;
	enum err_code rc = ERR_OK;
	struct arena a;
	char *dir, *tmp;

	arena_init(&a, 0);
	dir = arena_printf(&a, "%s/blocks/%s", m->data, o.ulid.text);
	o.dir = tmp = arena_printf(&a, "%s/blocks/%s.tmp", m->data, o.ulid.text);
	partitions = calloc(m->services, sizeof(struct partition *));
	if (!dir || !tmp || !partitions)
		rc = nomem(err);
	if (!rc && !(rc = block_writer_open(&o, &m->writer, err)) &&
		!(rc = make_services(m, partitions, &a, block_ns, err)) &&
		!(rc = block_writer_finish(m->writer, &meta, err)))
		rc = fs_posix.ops->rename(&fs_posix, tmp, dir, err);
	block_writer_close(m->writer);
	m->writer = NULL;
	for (uint64_t i = 0; i < m->services && partitions; i++)
		partition_close(partitions[i]);
	free(partitions);
	arena_release(&a);
	return rc;
}

/* Every PROCESSES-th block. */
static enum err_code make_blocks(struct making *m, uint64_t from, uint64_t blocks, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (!(m->chunk = chunk_open()))
		return nomem(err);
	for (uint64_t i = from; i < blocks && !rc; i += PROCESSES) {
		rc = make_block(m, m->start_ns + (int64_t)i * m->block_ns, err);
		fprintf(stderr, "block %" PRIu64 " of %" PRIu64 " made\n", i + 1, blocks);
	}
	return rc;
}

static enum err_code in_processes(struct making *m, uint64_t blocks, struct err *err)
{
	pid_t pids[PROCESSES];
	bool failed = false;

	fflush(stdout);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		if ((pids[i] = fork()) < 0)
			return err_set(err, ERR_NOMEM, "fork failed");
		if (pids[i] == 0) {
			struct err why = { 0 };
			enum err_code rc = make_blocks(m, i, blocks, &why);

			if (rc)
				fprintf(stderr, "tsdb_bench make: %s\n", why.msg);
			printf("{\"name\":\"made\",\"rows\":%" PRIu64 ",\"samples\":%" PRIu64 "}\n", m->rows,
				m->samples);
			fflush(stdout);
			_exit(rc != ERR_OK);
		}
	}
	for (uint32_t i = 0; i < PROCESSES; i++) {
		int status;

		if (waitpid(pids[i], &status, 0) < 0 || status != 0)
			failed = true;
	}
	return failed ? err_set(err, ERR_IO, "a block was not made") : ERR_OK;
}

enum err_code bench_make(int argc, char **argv, struct err *err)
{
	struct making m = { 0 };
	const char *set;
	uint64_t days;
	/* clang-format off */
	struct flag flags[] = {
		{ "data", FLAG_STRING, &m.data, NULL, "The data directory; made where missing." },
		{ "set", FLAG_STRING, &set, "fleet-cpu", "The set of the profiles; a CPU one." },
		{ "service", FLAG_UINT, &m.services, "1", "How many services." },
		{ "pods", FLAG_UINT, &m.pods, "10", "Pods of each." },
		{ "days", FLAG_UINT, &days, "30",
			"Days, up to the last midnight that begins a block." },
	};
	/* clang-format on */
	enum err_code rc;
	size_t args_n = 0;
	struct arena a;
	char *blocks_dir, *head_dir;

	if ((rc = command_flags(flags, sizeof(flags) / sizeof(flags[0]),
			 "Days of profiles as blocks of 3 days, or of 1 where 3 do not fit.", argc, argv, NULL,
			 0, &args_n, err)))
		return rc;
	if (!m.data || !fleet_set(set) || !m.services || !m.pods || m.pods > 100 || !days)
		return err_set(err, ERR_INVALID, "--data, --set and sizes are needed");
	arena_init(&a, 0);
	arena_init(&m.rows_arena, 0);
	m.block_ns = (days % 3 ? 1 : 3) * NS_PER_DAY;
	m.start_ns = clock_now_ns() / m.block_ns * m.block_ns - (int64_t)days * NS_PER_DAY;
	blocks_dir = arena_printf(&a, "%s/blocks", m.data);
	head_dir = arena_printf(&a, "%s/head", m.data);
	if ((rc = fleet_open(fleet_set(set), &m.fleet, err)) ||
		(rc = fleet_scratch_open(m.fleet, &m.scratch, err)) ||
		(rc = fs_mkdir_all(&fs_posix, blocks_dir, err)) ||
		(rc = fs_mkdir_all(&fs_posix, head_dir, err))) /* reading only makes none */
		goto done;
	m.interval_ns = fleet_params(m.fleet)->interval_ns;
	for (uint32_t i = 0, n = fleet_kinds(m.fleet, m.kinds); i < n; i++)
		m.kinds[i] = m.kinds[i] == KIND_CUMULATIVE ? KIND_DELTA : m.kinds[i];
	rc = in_processes(&m, (uint64_t)((int64_t)days * NS_PER_DAY / m.block_ns), err);
done:
	fleet_scratch_close(m.scratch);
	fleet_close(m.fleet);
	arena_release(&m.rows_arena);
	arena_release(&a);
	return rc;
}
