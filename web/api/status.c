#include <unistd.h>

#include "base/clock.h"
#include "base/self/libraries.h"
#include "base/thread.h"
#include "base/version.h"
#include "promql/engine/engine.h"
#include "scrape/config/config.h"
#include "tsdb/db.h"
#include "web/api/handlers.h"
#include "web/router/envelope.h"

#define PATH_BYTES_MAX 4096

static void api_status_write_text(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_cstr(j, value);
}

static void api_status_write_count(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_u64(j, value);
}

static void api_write_time(struct json *j, const char *key, int64_t ns)
{
	struct buf text = { 0 };

	time_print_rfc3339(&text, ns);
	json_key(j, key);
	json_str(j, buf_str(&text));
	buf_release(&text);
}

static void api_status_begin(struct http_out *out, struct json *j)
{
	api_begin(out, j);
	json_object(j);
}

static void api_status_end(struct json *j)
{
	json_object_end(j);
	api_end(j, NULL, 0, NULL, 0);
}

static void api_write_library(struct json *j, const struct library *l)
{
	const char *version = library_version(l);

	if (!version)
		return;
	json_object(j);
	api_status_write_text(j, "name", l->name);
	api_status_write_text(j, "package", l->package);
	api_status_write_text(j, "version", version);
	json_object_end(j);
}

/*
 * The fields are Prometheus's, since its clients read them, and the libraries; those about Go and
 * the builder are empty. The date is that of the commit.
 */
void api_buildinfo(struct web *w, struct http_in *in, struct http_out *out)
{
	struct json j;

	(void)w;
	(void)in;
	api_status_begin(out, &j);
	api_status_write_text(&j, "version", EPI_VERSION);
	api_status_write_text(&j, "revision", build_revision);
	api_status_write_text(&j, "branch", "");
	api_status_write_text(&j, "buildUser", "");
	api_status_write_text(&j, "buildDate", build_date);
	api_status_write_text(&j, "goVersion", "");
	json_key(&j, "libraries");
	json_array(&j);
	for (size_t i = 0; i < libraries_n; i++)
		api_write_library(&j, &libraries[i]);
	json_array_end(&j);
	api_status_end(&j);
}

static void api_write_flag(struct json *j, const char *key, const struct web *w, const char *name)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < w->o.flags_n; i++)
		if (str_is(str_of(w->o.flags[i].name), name))
			flag_print_value(&text, &w->o.flags[i]);
	json_key(j, key);
	json_str(j, buf_str(&text));
	buf_release(&text);
}

void api_runtimeinfo(struct web *w, struct http_in *in, struct http_out *out)
{
	char text[PATH_BYTES_MAX];
	size_t used = 0, max = 0;
	int64_t tried_ns = 0, at_ns = 0;
	struct db_status stored = { 0 };
	bool ok = false;
	struct json j;

	(void)in;
	db_status(w->o.db, &stored);
	w->o.reload_state(w->o.ctx, &ok, &tried_ns, &at_ns);
	api_status_begin(out, &j);
	api_write_time(&j, "startTime", w->started_ns);
	api_status_write_text(&j, "CWD", getcwd(text, sizeof(text)) ? text : "");
	api_status_write_text(&j, "hostname", gethostname(text, 256) ? "" : text);
	api_write_time(&j, "serverTime", clock_now_ns());
	if (stored.min_ns)
		api_write_time(&j, "oldestProfile", stored.min_ns);
	json_key(&j, "reloadConfigSuccess");
	json_bool(&j, ok);
	api_write_time(&j, "lastConfigTime", at_ns);
	api_status_write_text(&j, "externalURL", w->external_url);
	api_status_write_count(&j, "cores", cpu_count());
	api_write_flag(&j, "storageRetention", w, "storage.tsdb.retention.time");
	if (w->o.engine)
		engine_memory(w->o.engine, &used, &max);
	api_status_write_count(&j, "queryMemoryBytes", used);
	api_status_write_count(&j, "queryMemoryLimitBytes", max);
	api_status_end(&j);
}

void api_config(struct web *w, struct http_in *in, struct http_out *out)
{
	struct config *c = w->o.config(w->o.ctx);
	struct buf text = { 0 };
	struct json j;

	(void)in;
	if (c)
		config_print(&text, c);
	config_unref(c);
	api_status_begin(out, &j);
	json_key(&j, "yaml");
	json_str(&j, buf_str(&text));
	api_status_end(&j);
	buf_release(&text);
}

void api_flags(struct web *w, struct http_in *in, struct http_out *out)
{
	struct json j;

	(void)in;
	api_status_begin(out, &j);
	for (size_t i = 0; i < w->o.flags_n; i++)
		api_write_flag(&j, w->o.flags[i].name, w, w->o.flags[i].name);
	api_status_end(&j);
}

static const char *api_state_name(enum db_state s)
{
	return s == DB_READY ? "ready" : s == DB_FULL ? "disk full" : "reopening after an error";
}

static void api_write_block(struct json *j, const struct db_block_status *b)
{
	json_object(j);
	if (b->shard)
		api_status_write_text(j, "shard", b->shard);
	api_status_write_text(j, "ulid", b->ulid);
	api_status_write_count(j, "level", b->level);
	json_key(j, "minTime");
	json_i64(j, b->min_ns / NS_PER_MS);
	json_key(j, "maxTime");
	json_i64(j, b->max_ns / NS_PER_MS);
	api_status_write_count(j, "numSeries", b->series);
	api_status_write_count(j, "numRows", b->rows);
	api_status_write_count(j, "numSamples", b->samples);
	api_status_write_count(j, "bytes", b->bytes);
	json_key(j, "raw");
	json_bool(j, b->raw);
	json_key(j, "damaged");
	json_bool(j, b->damaged);
	json_object_end(j);
}

static void api_write_loss(struct json *j, const struct loss *l)
{
	struct buf text = { 0 };

	loss_print(l, &text);
	json_object(j);
	if (l->shard.len) {
		json_key(j, "shard");
		json_str(j, l->shard);
	}
	api_status_write_count(j, "number", l->number);
	api_status_write_text(j, "what", loss_name(l->what));
	json_key(j, "where");
	json_str(j, l->where);
	json_key(j, "minTime");
	json_i64(j, l->min_ns / NS_PER_MS);
	json_key(j, "maxTime");
	json_i64(j, l->max_ns / NS_PER_MS);
	json_key(j, "found");
	json_i64(j, l->found_ns / NS_PER_MS);
	api_status_write_count(j, "count", l->count);
	json_key(j, "text");
	json_str(j, buf_str(&text));
	json_key(j, "accepted");
	json_bool(j, l->accepted);
	json_object_end(j);
	buf_release(&text);
}

static void api_write_losses(struct json *j, const struct loss *l, size_t n)
{
	json_key(j, "losses");
	json_array(j);
	for (size_t i = 0; i < n; i++)
		api_write_loss(j, &l[i]);
	json_array_end(j);
}

static void api_write_head(struct json *j, struct db *db, const struct db_status *s)
{
	struct buf job = { 0 };

	db_largest_job(db, &job);
	json_object(j);
	api_status_write_count(j, "numSeries", s->series);
	if (s->series_max)
		api_status_write_count(j, "maxSeries", s->series_max);
	json_key(j, "largestJob");
	json_str(j, buf_str(&job));
	api_status_write_count(j, "largestJobSeries", s->largest_job_series);
	if (s->job_series_max)
		api_status_write_count(j, "maxSeriesPerJob", s->job_series_max);
	json_key(j, "minTime");
	json_i64(j, s->min_ns / NS_PER_MS);
	json_key(j, "maxTime");
	json_i64(j, s->max_ns / NS_PER_MS);
	json_object_end(j);
	buf_release(&job);
}

void api_tsdb(struct web *w, struct http_in *in, struct http_out *out)
{
	struct db_block_status *blocks;
	struct loss *losses;
	struct db_status s = { 0 };
	struct err why = { 0 };
	struct json j;
	enum db_state state = db_state(w->o.db, &why);
	enum err_code rc;
	struct err err;
	size_t n = 0, losses_n = 0;

	if ((rc = db_list(w->o.db, &in->arena, &blocks, &n, &err)) ||
		(rc = db_losses(w->o.db, &in->arena, &losses, &losses_n, &err))) {
		api_fail(out, rc, &err);
		return;
	}
	db_status(w->o.db, &s);
	api_status_begin(out, &j);
	api_status_write_text(&j, "state", api_state_name(state));
	if (state != DB_READY)
		api_status_write_text(&j, "reason", why.msg);
	json_key(&j, "headStats");
	api_write_head(&j, w->o.db, &s);
	api_status_write_count(&j, "windows", s.windows);
	api_status_write_count(&j, "numBlocks", s.blocks);
	api_status_write_count(&j, "diskBytes", s.disk_bytes);
	api_status_write_count(&j, "partitions", s.partitions);
	api_status_write_count(&j, "stackNodes", s.nodes);
	api_status_write_count(&j, "strings", s.strings);
	api_status_write_count(&j, "symbolBytes", s.symbol_bytes);
	api_status_write_count(&j, "deltaBytes", s.delta_bytes);
	api_status_write_count(&j, "indexBytes", s.index_bytes);
	api_status_write_count(&j, "rowsAppended", s.rows);
	api_status_write_count(&j, "samplesAppended", s.samples);
	api_status_write_count(&j, "openLosses", s.losses);
	json_key(&j, "blocks");
	json_array(&j);
	for (size_t i = 0; i < n; i++)
		api_write_block(&j, &blocks[i]);
	json_array_end(&j);
	api_write_losses(&j, losses, losses_n);
	api_status_end(&j);
}

/* ---- what Prometheus's clients ask a server with a write-ahead log ---- */

/* As Prometheus writes a block's meta; a block here has no chunks and does not keep its sources. */
static void api_write_block_meta(struct json *j, const struct db_block_status *b)
{
	json_object(j);
	api_status_write_text(j, "ulid", b->ulid);
	json_key(j, "minTime");
	json_i64(j, b->min_ns / NS_PER_MS);
	json_key(j, "maxTime");
	json_i64(j, b->max_ns / NS_PER_MS);
	json_key(j, "stats");
	json_object(j);
	api_status_write_count(j, "numSamples", b->samples);
	api_status_write_count(j, "numSeries", b->series);
	json_object_end(j);
	json_key(j, "compaction");
	json_object(j);
	api_status_write_count(j, "level", b->level);
	json_object_end(j);
	api_status_write_count(j, "version", 1);
	json_object_end(j);
}

void api_tsdb_blocks(struct web *w, struct http_in *in, struct http_out *out)
{
	struct db_block_status *blocks;
	struct json j;
	struct err err;
	size_t n = 0;
	enum err_code rc = db_list(w->o.db, &in->arena, &blocks, &n, &err);

	if (rc) {
		api_fail(out, rc, &err);
		return;
	}
	api_status_begin(out, &j);
	json_key(&j, "blocks");
	json_array(&j);
	for (size_t i = 0; i < n; i++)
		if (blocks[i].ulid[0]) /* a window of the head has none */
			api_write_block_meta(&j, &blocks[i]);
	json_array_end(&j);
	api_status_end(&j);
}

/* No segment is left to replay: requests are answered once the head is open. */
void api_walreplay(struct web *w, struct http_in *in, struct http_out *out)
{
	static const char *const keys[] = { "min", "max", "current" };
	struct json j;

	(void)w;
	(void)in;
	api_status_begin(out, &j);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		api_status_write_count(&j, keys[i], 0);
	api_status_end(&j);
}

/* ---- notifications ---- */

/* text is of the arena; NULL: there was no memory. */
static void api_write_notification(struct json *j, const char *text, int64_t since_ns)
{
	json_object(j);
	api_status_write_text(j, "text", text ? text : "out of memory for the details");
	api_write_time(j, "date", since_ns / NS_PER_MS * NS_PER_MS);
	json_key(j, "active");
	json_bool(j, true);
	json_object_end(j);
}

static void api_notify_of_clock(struct http_in *in, struct db *db, struct json *j)
{
	struct buf step = { 0 }, until = { 0 };
	int64_t step_ns = clock_step_ns(), until_ns, since_ns;

	if (step_ns) {
		/* clocks drift all the time; the text is the same one while the step is */
		duration_print(
			&step, ((step_ns < 0 ? -step_ns : step_ns) + NS_PER_S / 2) / NS_PER_S * NS_PER_S);
		api_write_notification(j,
			arena_printf(&in->arena, "The system's clock is " STR_FMT " %s this server's own time.",
				STR_ARG(buf_str(&step)), step_ns < 0 ? "behind" : "ahead of"),
			clock_step_since_ns());
	}
	if (db_retention_is_held(db, &until_ns, &since_ns)) {
		time_print_rfc3339(&until, until_ns / NS_PER_S * NS_PER_S);
		api_write_notification(j,
			arena_printf(&in->arena,
				"Profiles up to " STR_FMT " " OVERDUE_WHY ": they are dropped after 5m.",
				STR_ARG(buf_str(&until))),
			since_ns);
	}
	buf_release(&step);
	buf_release(&until);
}

/* What is wrong with the server now, as Prometheus's page shows it in its header. */
void api_notifications(struct web *w, struct http_in *in, struct http_out *out)
{
	int64_t tried_ns = 0, at_ns = 0;
	struct err why = { 0 };
	bool ok = false;
	enum db_state state = db_state(w->o.db, &why);
	struct json j;

	w->o.reload_state(w->o.ctx, &ok, &tried_ns, &at_ns);
	api_begin(out, &j);
	json_array(&j);
	if (!ok)
		api_write_notification(&j, "Configuration reload has failed.", tried_ns);
	if (state != DB_READY)
		api_write_notification(&j,
			state == DB_FULL ? arena_printf(&in->arena, "Profiles are refused: %s.", why.msg) :
							   arena_printf(&in->arena, "Profiles are refused, %s: %s.",
								   api_state_name(state), why.msg),
			db_state_since_ns(w->o.db));
	api_notify_of_clock(in, w->o.db, &j);
	json_array_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}

/*
 * Prometheus answers so when it takes no more subscribers: an EventSource that gets 204 does not
 * connect again, and Prometheus's page asks for the list from time to time instead. A stream would
 * hold a worker for as long as a page is open.
 */
void api_notifications_live(struct web *w, struct http_in *in, struct http_out *out)
{
	(void)w;
	(void)in;
	out->status = 204;
	out->content_type = NULL;
}
