/* GET /api/v1/symbols: the binaries, and what is known of the symbols of each. */
#include "base/clock.h"
#include "base/hidden.h"
#include "scrape/config/config.h"
#include "tsdb/db.h"
#include "tsdb/debuginfo/service/debuginfo.h"
#include "web/debuginfo/binaries.h"
#include "web/debuginfo/debuginfo.h"
#include "web/router/envelope.h"

#define LISTED_MAX 1000u
#define WARNINGS_MAX 16u
#define LISTING_MAX 4u /* each may take 64 MiB */
#define WINDOW_NS NS_PER_HOUR

struct web_debuginfo_list {
	struct web *w;
	struct http_in *in;
	struct debuginfo_store *store; /* NULL: none */
	struct db_querier *q; /* NULL: profiles are not asked for */
	struct binaries b;
	bool listing; /* counted in the web's */
	struct str warnings[WARNINGS_MAX + 3];
	size_t warnings_n;
};

/* ---- writing ---- */

static const char *web_debuginfo_list_state_of(const struct debuginfo_info *i)
{
	if (!i)
		return "unknown";
	if (i->extracting)
		return "extracting";
	if (i->queued)
		return "queued";
	if (i->uploading)
		return "uploading";
	if (i->present)
		return "named";
	if (i->why.len)
		return "failed";
	return i->missing_end_s > clock_now_ns() / NS_PER_S ? "missing" : "unknown";
}

static void web_debuginfo_list_write_time(struct json *j, const char *key, int64_t seconds)
{
	struct buf text = { 0 };

	if (seconds <= 0 || seconds > TIME_MAX_NS / NS_PER_S)
		return;
	time_print_rfc3339(&text, seconds * NS_PER_S);
	json_key(j, key);
	json_str(j, buf_str(&text));
	buf_release(&text);
}

static void web_debuginfo_list_write_text(struct json *j, const char *key, struct str text)
{
	if (!text.len)
		return;
	json_key(j, key);
	json_str(j, text);
}

static void web_debuginfo_list_write_number(struct json *j, const char *key, uint64_t n)
{
	json_key(j, key);
	json_u64(j, n);
}

static void web_debuginfo_list_write_info(struct json *j, const struct debuginfo_info *i)
{
	web_debuginfo_list_write_text(j, "why", i->why);
	if (i->present) {
		web_debuginfo_list_write_text(j, "quality", str_of(debuginfo_qualities[i->quality]));
		web_debuginfo_list_write_text(j, "content", str_of(debuginfo_kinds[i->kind]));
		web_debuginfo_list_write_text(j, "origin", str_of(debuginfo_origins[i->origin]));
		web_debuginfo_list_write_number(j, "indexBytes", i->index_bytes);
		web_debuginfo_list_write_number(j, "sourceBytes", i->source_bytes);
		web_debuginfo_list_write_time(j, "addedAt", i->added_s);
		web_debuginfo_list_write_time(j, "usedAt", i->used_s);
	} else if (i->waiting_bytes) {
		web_debuginfo_list_write_number(j, "sourceBytes", i->waiting_bytes);
	}
	web_debuginfo_list_write_time(j, "againAt", i->again_s ? i->again_s : i->missing_end_s);
}

static void web_debuginfo_list_write_binary(struct json *j, const struct web_binary *w)
{
	json_object(j);
	json_key(j, "id");
	json_str(j, debuginfo_id_text(&w->id));
	json_key(j, "kind");
	json_cstr(j, w->id.len ? debuginfo_id_kind_name(w->id.kind) : "");
	json_key(j, "path");
	json_str(j, w->path);
	json_key(j, "jobs");
	json_array(j);
	for (uint32_t i = 0; i < w->jobs_n; i++)
		json_str(j, w->jobs[i]);
	json_array_end(j);
	web_debuginfo_list_write_number(j, "addresses", w->addresses);
	json_key(j, "state");
	json_cstr(j, web_debuginfo_list_state_of(w->info));
	if (w->info)
		web_debuginfo_list_write_info(j, w->info);
	json_object_end(j);
}

static void web_debuginfo_list_warn(struct web_debuginfo_list *l, const char *text)
{
	l->warnings[l->warnings_n++] = str_of(text);
}

/* Where the server itself looks. */
static void web_debuginfo_list_write_config(struct json *j, struct web *w)
{
	struct config *config = w->o.config ? w->o.config(w->o.ctx) : NULL;
	struct buf url = { 0 };

	json_key(j, "debuginfod");
	json_array(j);
	for (size_t i = 0; config && i < config->debuginfod.n; i++) {
		buf_clear(&url);
		hidden_print_url(&url, config->debuginfod.v[i].url);
		json_str(j, buf_str(&url));
	}
	json_array_end(j);
	json_key(j, "directories");
	json_array(j);
	for (size_t i = 0; config && i < config->debuginfod.directories_n; i++)
		json_str(j, config->debuginfod.directories[i]);
	json_array_end(j);
	if (config)
		config_unref(config);
	buf_release(&url);
}

static void web_debuginfo_list_write(struct web_debuginfo_list *l, struct http_out *out)
{
	struct debuginfo_totals totals = { 0 };
	size_t total = 0;
	const struct str *damage = l->q ? db_querier_warnings(l->q, &total) : NULL;
	struct json j;

	while (l->warnings_n < total && l->warnings_n < WARNINGS_MAX) {
		l->warnings[l->warnings_n] = damage[l->warnings_n];
		l->warnings_n++;
	}
	if (l->b.cut || l->b.n > LISTED_MAX)
		web_debuginfo_list_warn(l, "there are more binaries than are listed");
	if (l->b.uncounted)
		web_debuginfo_list_warn(l, "there are more addresses than are counted");
	if (l->store)
		totals = debuginfo_totals(l->store);
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "enabled");
	json_bool(&j, l->store && debuginfo_extracts(l->w->o.debuginfo));
	json_key(&j, "uploadEnabled");
	json_bool(&j, l->store && l->w->o.enable_ingest);
	web_debuginfo_list_write_number(&j, "bytes", totals.bytes);
	web_debuginfo_list_write_number(&j, "bytesMax", totals.bytes_max);
	web_debuginfo_list_write_config(&j, l->w);
	json_key(&j, "binaries");
	json_array(&j);
	for (size_t i = 0; i < l->b.n && i < LISTED_MAX; i++)
		web_debuginfo_list_write_binary(&j, &l->b.v[i]);
	json_array_end(&j);
	json_object_end(&j);
	api_end(&j, l->warnings, l->warnings_n, NULL, 0);
}

/* ---- reading ---- */

/* Only the infos of this id. */
static size_t web_debuginfo_list_keep_id(struct debuginfo_info *d, size_t n, struct str id)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (str_eq_nocase(debuginfo_id_text(&d[i].id), id))
			d[kept++] = d[i];
	return kept;
}

static enum err_code web_debuginfo_list_read_store(struct web_debuginfo_list *l, struct err *err)
{
	struct str id = http_param(l->in, "id");
	struct debuginfo_info *v;
	enum err_code rc;
	size_t n;

	if ((rc = debuginfo_list(l->store, &l->in->arena, &v, &n, err)))
		return rc;
	return binaries_add_infos(&l->b, v, id.len ? web_debuginfo_list_keep_id(v, n, id) : n, err);
}

static enum err_code web_debuginfo_list_walk_profiles(struct web_debuginfo_list *l, struct err *err)
{
	int64_t end_ns = clock_now_ns(), start_ns;
	bool has_start = false;
	enum err_code rc;

	if ((rc = api_time(l->in, "end", &end_ns, NULL, err)))
		return rc;
	start_ns = end_ns - WINDOW_NS;
	if ((rc = api_time(l->in, "start", &start_ns, &has_start, err)))
		return rc;
	if (end_ns < start_ns)
		return err_set(err, ERR_INVALID,
			"invalid parameter \"end\": end timestamp must not be before start time");
	if ((rc = db_querier_open_limited(
			 l->w->o.db, l->in->user.limits, start_ns - 1, end_ns, &l->in->canceled, &l->q, err)))
		return rc;
	return binaries_add_profiles(&l->b, l->q, err);
}

static enum err_code web_debuginfo_list_read_profiles(struct web_debuginfo_list *l, struct err *err)
{
	struct web *w = l->w;

	mutex_lock(&w->lock);
	l->listing = w->listing < LISTING_MAX;
	w->listing += l->listing;
	mutex_unlock(&w->lock);
	if (!l->listing)
		return err_set(err, ERR_UNAVAILABLE, "too many lists of binaries at once: try again later");
	return web_debuginfo_list_walk_profiles(l, err);
}

void debuginfo_symbols(struct web *w, struct http_in *in, struct http_out *out)
{
	struct web_debuginfo_list l = {
		.w = w, .in = in, .store = w->o.debuginfo ? debuginfo_store(w->o.debuginfo) : NULL
	};
	enum err_code rc = ERR_OK;
	struct err err;

	binaries_init(&l.b, l.store, &in->arena);
	if (l.store)
		rc = web_debuginfo_list_read_store(&l, &err);
	if (!rc && !http_param(in, "id").len)
		rc = web_debuginfo_list_read_profiles(&l, &err);
	if (rc) {
		api_fail(out, rc, &err);
		if (rc == ERR_UNAVAILABLE)
			http_add_header(out, "Retry-After", STR("1"));
	} else {
		binaries_order(&l.b);
		web_debuginfo_list_write(&l, out);
	}
	if (l.q)
		db_querier_close(l.q);
	binaries_release(&l.b);
	mutex_lock(&w->lock);
	w->listing -= l.listing;
	mutex_unlock(&w->lock);
}
