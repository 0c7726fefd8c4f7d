#include "cmd/epimetheus/server.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/metrics.h"
#include "base/self/starting.h"
#include "base/thread.h"
#include "cmd/epimetheus/assigned_shard.h"
#include "cmd/epimetheus/config_file.h"
#include "cmd/epimetheus/limits.h"
#include "cmd/epimetheus/modes.h"
#include "cmd/epimetheus/pushes.h"
#include "cmd/epimetheus/rules/rule_changes.h"
#include "cmd/epimetheus/rules/rule_files.h"
#include "cmd/epimetheus/rules/rules_state.h"
#include "cmd/epimetheus/shard_targets.h"
#include "cmd/epimetheus/side_parts.h"
#include "cmd/epimetheus/storage.h"
#include "cmd/epimetheus/symbol_requests.h"
#include "promql/engine/engine.h"
#include "promql/rules/manager.h"
#include "promql/rules/notify/notifier.h"
#include "scrape/debuginfod/debuginfod.h"
#include "scrape/manager.h"
#include "tsdb/db_sink.h"
#include "tsdb/debuginfo/shared/shared.h"
#include "web/http/listen.h"
#include "web/web.h"

METRIC_GAUGE(reload_ok, "epimetheus_config_last_reload_successful",
	"Whether the last attempt to read the configuration went well.", NULL);
METRIC_GAUGE(reload_time, "epimetheus_config_last_reload_success_timestamp_seconds",
	"When the configuration in force was read.", NULL);

struct server {
	struct options o;
	struct starting waiting; /* what the start waits for */
	bool builtin; /* no configuration file: the built-in one */
	struct config *checked; /* until the storage is open: what the start found */
	struct storage *storage;
	struct db *db; /* the storage's: answers queries */
	struct db_sink sink;
	struct pushes pushes; /* before the sink, for what is pushed */
	struct assigned_shard assigned; /* before the sink, for what is scraped */
	char *address; /* the default of --shard.address */
	struct side_parts side;
	struct debuginfod *debuginfod; /* fetches what it wants */
	struct engine *engine;
	struct notifier *notifier;
	struct config *alerting; /* the one the notifier has, referenced */
	struct rule_manager *rules;
	struct scrape_manager *manager;
	struct shard_targets *targets; /* of a shard */
	struct listen_bound bound, grpc_bound; /* until `web` has them */
	struct web *web;
	struct mutex reload_lock; /* one reload at a time */
	char *external_url; /* as the web server knows it */
	struct mutex lock; /* guards config, config_ok and their times */
	struct config *config;
	bool config_ok;
	int64_t config_tried_ns, config_at_ns;
};

/* log: warnings about it are logged. */
static enum err_code server_load(
	const struct server *s, bool log, struct config **out, struct err *err)
{
	enum err_code rc;

	if (s->builtin)
		return config_file_load_builtin(s->o.listen_address, s->web, out, err);
	if ((rc = config_file_load(&s->o, log, out, err)))
		return rc;
	rc = modes_check_config(&s->o, *out, err);
	if (!rc && s->storage && storage_is_other(s->storage, *out))
		rc = err_set(err, ERR_INVALID, "`bucket` changed: a restart is needed");
	if (rc) {
		config_unref(*out);
		*out = NULL;
	}
	return rc;
}

static enum err_code server_apply_alerting(struct server *s, struct config *c, struct err *err)
{
	enum err_code rc = notifier_apply(s->notifier, &c->alerting, c->global.external_labels, err);

	if (rc)
		return rc;
	config_unref(s->alerting);
	s->alerting = config_ref(c);
	return ERR_OK;
}

/* Query nodes neither scrape nor are pushed to. */
static bool server_takes_profiles(const struct server *s)
{
	return s->o.mode == MODE_SERVER;
}

static void server_begin_rules(void *ctx, struct db *db, bool (*may)(void *may_ctx), void *may_ctx)
{
	struct server *s = ctx;

	rules_state_begin(storage_rules_state(s->storage), s->rules, db, may, may_ctx);
}

static void server_tell_rules(void *ctx)
{
	struct server *s = ctx;

	rules_state_put(storage_rules_state(s->storage), s->rules);
}

static void server_drop_rules(void *ctx)
{
	rule_manager_end(((struct server *)ctx)->rules);
}

/*
 * Each part takes the new configuration whole or not at all. When one fails, those before it get
 * the old one back: all or none. `old` is NULL at the start, which then fails. A part that does not
 * take the old one back goes on with the new one, which then is never freed.
 */
static enum err_code server_apply(
	struct server *s, struct config *fresh, struct config *old, struct err *err)
{
	const struct rules_turns turns = { server_begin_rules, server_tell_rules, server_drop_rules,
		s };
	struct rule_set *rules = NULL;
	struct err again;
	enum err_code rc;

	mutex_assert_held(&s->reload_lock);
	if ((rc = rule_files_load_own(&s->o, fresh, s->side.saved, &rules, err)))
		return rc;
	if (server_takes_profiles(s) && (rc = config_file_tell_labels(fresh, s->db, err)))
		goto end;
	if ((rc = server_apply_alerting(s, fresh, err)))
		goto labels;
	if (server_takes_profiles(s) && (rc = scrape_manager_apply(s->manager, fresh, err)))
		goto notifier;
	if ((rc = debuginfod_apply(s->debuginfod, fresh, err)))
		goto scraping;
	if ((rc = rule_manager_apply(s->rules, rules, fresh->global.external_labels, err)))
		goto debuginfod;
	if (rules->rules_n && !server_takes_profiles(s) &&
		(rc = storage_want_rules(s->storage, &turns, err)))
		goto debuginfod;
	goto end;
debuginfod:
	if (old && debuginfod_apply(s->debuginfod, old, &again))
		log_error("main", "old debuginfod servers not restored", LOG_E(&again));
scraping:
	if (old && server_takes_profiles(s) && scrape_manager_apply(s->manager, old, &again))
		log_error("main", "old targets not restored", LOG_E(&again));
notifier:
	if (old && server_apply_alerting(s, old, &again))
		log_error("main", "old alertmanagers not restored", LOG_E(&again));
labels:
	if (old && server_takes_profiles(s) && config_file_tell_labels(old, s->db, &again))
		log_error("main", "old instance labels not restored", LOG_E(&again));
end:
	rule_set_unref(rules);
	return rc;
}

enum err_code server_reload(struct server *s, struct err *err)
{
	struct config *fresh = NULL, *old;
	enum err_code rc;

	mutex_lock(&s->reload_lock);
	if (!(rc = server_load(s, true, &fresh, err)))
		rc = server_apply(s, fresh, s->config, err); /* config changes under reload_lock only */
	mutex_lock(&s->lock);
	s->config_ok = rc == ERR_OK;
	s->config_tried_ns = clock_now_ns();
	old = s->config;
	/* At the start even a failed one is kept: parts may read it until they are closed. */
	if (!rc || !old) {
		s->config = fresh;
		fresh = old;
	}
	if (!rc) {
		engine_set_subquery_step(s->engine, s->config->global.evaluation_interval_ns);
		s->config_at_ns = s->config_tried_ns;
		metric_set(&reload_time, NULL, (double)s->config_at_ns / 1e9);
	}
	mutex_unlock(&s->lock);
	metric_set(&reload_ok, NULL, rc == ERR_OK);
	config_unref(fresh);
	mutex_unlock(&s->reload_lock);
	if (!rc)
		log_info("main", "configuration in force",
			LOG_S("file", s->builtin ? "built-in" : s->o.config_file));
	return rc;
}

bool server_is_fenced(struct server *s)
{
	return storage_is_fenced(s->storage);
}

/* ---- callbacks of the web server ---- */

static enum err_code web_reload(void *ctx, struct err *err)
{
	enum err_code rc = server_reload(ctx, err);

	if (rc)
		log_error("main", "reload failed, the old configuration stays", LOG_E(err));
	return rc;
}

static void web_quit(void *ctx)
{
	(void)ctx;
	kill(getpid(), SIGTERM);
}

static struct config *web_config(void *ctx)
{
	struct server *s = ctx;
	struct config *c;

	mutex_lock(&s->lock);
	c = s->config ? config_ref(s->config) : NULL;
	mutex_unlock(&s->lock);
	return c;
}

static void web_waiting(void *ctx, struct buf *out)
{
	starting_print(&((struct server *)ctx)->waiting, out);
}

static struct rule_manager *web_rules(void *ctx)
{
	return ((struct server *)ctx)->rules;
}

static enum err_code web_rules_report(
	void *ctx, struct arena *a, struct rules_report *out, struct err *err)
{
	struct server *s = ctx;

	return rules_state_answer(storage_rules_state(s->storage),
		storage_rules_lease_state(s->storage), s->rules, a, out, err);
}

static enum err_code web_change_rules(
	void *ctx, const struct saved_change *c, struct arena *a, struct err *err)
{
	struct server *s = ctx;
	enum err_code rc;

	mutex_lock(&s->reload_lock);
	rc = rule_changes_make(&(struct rule_changes){ s->config, s->side.saved, s->rules }, c, a, err);
	mutex_unlock(&s->reload_lock);
	return rc;
}

static enum err_code web_cluster(
	void *ctx, struct arena *a, struct cluster_view *out, struct err *err)
{
	return storage_view(((struct server *)ctx)->storage, a, out, err);
}

static enum err_code web_shard_lists(void *ctx, enum shard_list which, struct arena *a,
	struct shard_list_view **out, size_t *n, struct err *err)
{
	return storage_lists(((struct server *)ctx)->storage, which, a, out, n, err);
}

static enum err_code web_put_senders(void *ctx, struct str text, struct err *err)
{
	return storage_put_list(((struct server *)ctx)->storage, SHARD_SENDERS, text, err);
}

static enum err_code server_put_targets(void *ctx, struct str text, struct err *err)
{
	return storage_put_list(((struct server *)ctx)->storage, SHARD_TARGETS, text, err);
}

static void web_reload_state(void *ctx, bool *ok, int64_t *tried_ns, int64_t *at_ns)
{
	struct server *s = ctx;

	mutex_lock(&s->lock);
	*ok = s->config_ok;
	*tried_ns = s->config_tried_ns;
	*at_ns = s->config_at_ns;
	mutex_unlock(&s->lock);
}

/* ---- opening ---- */

static uint32_t server_clamp_u32(uint64_t value)
{
	return value > INT32_MAX ? INT32_MAX : (uint32_t)value;
}

static enum err_code server_open_storage(struct server *s, struct err *err)
{
	enum err_code rc;

	if ((rc = assigned_shard_address(&s->o, s->web, &s->address, err)) ||
		(rc = storage_open(&s->o, s->checked, &s->waiting, &s->storage, err)))
		return rc;
	s->db = storage_db(s->storage);
	db_sink_init(&s->sink, s->db);
	assigned_shard_init(&s->assigned, &s->sink.sink, storage_assignment(s->storage));
	return pushes_open(&s->pushes, server_takes_profiles(s) ? &s->sink.sink : NULL, s->storage,
		s->o.shard_ca_file, err);
}

static void server_walk(void *ctx)
{
	struct server *s = ctx;

	symbol_requests_walk(s->db, s->side.debuginfo);
}

static bool server_ask_bucket(void *ctx, const struct debuginfo_id *id)
{
	return shared_symbols_fetch(((struct server *)ctx)->side.shared, id);
}

static enum err_code server_open_debuginfod(struct server *s, struct err *err)
{
	const struct debuginfod_options o = { .debuginfo = s->side.debuginfo,
		.walk = server_walk,
		.ask_first = s->side.shared ? server_ask_bucket : NULL,
		.ctx = s };

	return debuginfod_open(&o, &s->debuginfod, err);
}

static enum err_code server_open_engine(struct server *s, struct err *err)
{
	const struct options *o = &s->o;
	const struct engine_options e = {
		.db = s->db,
		.indexes = s->side.indexes,
		.timeout_ns = o->query_timeout_ns,
		.lookback_ns = o->lookback_ns,
		.concurrency_max = (unsigned)o->concurrency_max,
		.threads_max = server_clamp_u32(o->query_threads_max),
		.samples_max = o->samples_max,
		.memory_bytes_max = o->query_memory_max,
		.memory_total_max = o->query_memory_total,
	};

	return engine_open(&e, &s->engine, err);
}

/* First without the parts that need the storage, then with them. */
static enum err_code server_give_web(struct server *s, struct err *err)
{
	const struct options *o = &s->o;
	const struct web_options w = {
		.listen_address = o->listen_address,
		.otlp_grpc_listen_address = o->otlp_grpc_listen_address,
		.bound = &s->bound,
		.otlp_grpc_bound = &s->grpc_bound,
		.external_url = o->external_url,
		.route_prefix = o->route_prefix,
		.config_file = o->web_config_file,
		.cors_origin = o->cors_origin,
		.allowed_hosts = &s->o.allowed_hosts,
		.lookback_ns = o->lookback_ns,
		.retention_ns = o->retention_ns,
		.connections_max = o->connections_max,
		.read_timeout_ns = o->read_timeout_ns,
		.body_timeout_ns = o->body_timeout_ns,
		.bodies_bytes_max = o->bodies_bytes_max,
		.address_bodies_bytes_max = o->address_bodies_bytes_max,
		.address_checks_max = o->address_checks_max,
		.enable_lifecycle = o->enable_lifecycle,
		.enable_admin_api = o->enable_admin_api,
		.enable_ingest = o->enable_ingest,
		.enable_files = o->enable_files,
		.enable_rules = o->enable_rules,
		.enable_mcp = o->enable_mcp,
		.elsewhere = modes_elsewhere(o),
		.db = s->db,
		.sink = s->pushes.sink,
		.assignment = s->pushes.shard_sink ? &s->pushes.assignment : NULL,
		.shard_sink = s->pushes.shard_sink,
		.engine = s->engine,
		.manager = s->manager,
		.debuginfo = s->side.debuginfo,
		.debuginfod = s->debuginfod,
		.files = s->side.files,
		.notifier = s->notifier,
		.flags = o->flags,
		.flags_n = o->flags_n,
		.book = o->book,
		.book_n = o->book_n,
		.ctx = s,
		.waiting = web_waiting,
		.reload = web_reload,
		.quit = web_quit,
		.config = web_config,
		.rules = web_rules,
		.rules_report = s->storage && storage_rules_state(s->storage) ? web_rules_report : NULL,
		.rules_warning = rule_files_why_not(o),
		.saved_rules = s->side.saved,
		.saved_rules_why_not = rule_changes_why_not(o, s->checked),
		.change_rules = web_change_rules,
		.cluster = web_cluster,
		.shard_lists = web_shard_lists,
		.senders_path = s->storage ? storage_senders_path(s->storage) : NULL,
		.put_senders = s->storage && storage_is_shard(s->storage) ? web_put_senders : NULL,
		.reload_state = web_reload_state,
	};

	return s->web ? web_set_parts(s->web, &w, err) : web_open(&w, &s->web, err);
}

static void server_log_address(const struct server *s, const char *event)
{
	log_info("main", event, LOG_S("scheme", web_scheme(s->web)),
		LOG_S("address", s->o.listen_address), LOG_I("port", web_port(s->web)),
		LOG_S("prefix", web_prefix(s->web)));
}

/* Whoever probes the server is answered while it waits for the storage, which may take minutes. */
static enum err_code server_open_web(struct server *s, struct err *err)
{
	enum err_code rc = server_give_web(s, err);

	if (rc)
		return rc;
	if (s->o.sandbox)
		limits_calls();
	server_log_address(s, "listening");
	if (web_grpc_port(s->web))
		log_info("main", "OTLP over gRPC", LOG_S("address", s->o.otlp_grpc_listen_address),
			LOG_I("port", web_grpc_port(s->web)));
	return ERR_OK;
}

static enum err_code server_open_rules(struct server *s, struct err *err)
{
	const struct options *o = &s->o;
	struct rule_manager_options r = {
		.engine = s->engine,
		.db = server_takes_profiles(s) ? s->db : NULL, /* else storage_want_rules finds it one */
		.notifier = s->notifier,
		.workers = server_clamp_u32(o->rule_workers),
		.resend_delay_ns = o->resend_delay_ns,
		.outage_tolerance_ns = o->outage_tolerance_ns,
		.grace_period_ns = o->grace_period_ns,
	};

	if (!(s->external_url = strdup(web_external_url(s->web)))) /* web is closed first */
		return err_nomem(err, "rules");
	r.external_url = s->external_url;
	return rule_manager_open(&r, &s->rules, err);
}

/* Query nodes show what all shards scrape. */
static enum err_code server_open_targets(struct server *s, struct err *err)
{
	const struct shard_targets_options o = {
		.manager = s->manager, .put = server_put_targets, .ctx = s
	};

	return storage_is_shard(s->storage) ? shard_targets_open(&o, &s->targets, err) : ERR_OK;
}

/* Reports a bad configuration before anything is opened. */
static enum err_code server_check_config(struct server *s, struct err *err)
{
	struct rule_set *rules = NULL;
	struct config *c = NULL;
	enum err_code rc;

	s->builtin = !options_has_config_file(&s->o) && !fs_exists(s->o.config_file);
	if (s->builtin) {
		log_info("main", "no configuration file: the built-in one scrapes this server itself",
			LOG_S("looked_for", s->o.config_file));
		return modes_check_config(&s->o, NULL, err);
	}
	if (!(rc = server_load(s, false, &c, err)))
		rc = rule_files_load(c, NULL, STR(""), &rules, err);
	rule_set_unref(rules);
	s->checked = c;
	/* A file that cannot be opened, such as a directory, is a bad configuration too. */
	return rc == ERR_IO ? ERR_INVALID : rc;
}

/* Ports below 1024 want a right that the threads shall not have. */
static enum err_code server_bind(struct server *s, struct err *err)
{
	enum err_code rc = listen_bind(s->o.listen_address, &s->bound, err);

	if (rc || !s->o.otlp_grpc_listen_address[0])
		return rc;
	rc = listen_bind(s->o.otlp_grpc_listen_address, &s->grpc_bound, err);
	return rc ? err_wrap(err, rc, "OTLP over gRPC") : ERR_OK;
}

enum err_code server_open(
	const struct options *o, struct extractor *extractor, struct server **out, struct err *err)
{
	const struct notifier_options n = { .queue_max = o->notification_queue_max };
	struct scrape_manager_options m = { 0 };
	struct server *s = calloc(1, sizeof(*s));
	enum err_code rc;

	if (!s)
		return err_nomem(err, "server");
	s->o = *o;
	s->bound.fd = s->grpc_bound.fd = -1;
	mutex_init(&s->lock);
	mutex_init(&s->reload_lock);
	starting_init(&s->waiting);
	if ((rc = server_check_config(s, err)) || (rc = server_bind(s, err)))
		goto fail;
	if (o->sandbox)
		limits_open(o->data_dir, /* no thread has been started yet */
			s->checked && s->checked->bucket.present ? o->bucket_cache_path : NULL);
	if ((rc = server_open_web(s, err)) || (rc = server_open_storage(s, err)) ||
		(rc = side_parts_open(o, extractor, s->storage, &s->side, err)) ||
		(rc = server_open_engine(s, err)) || (rc = server_open_debuginfod(s, err)))
		goto fail;
	if ((rc = notifier_open(&n, &s->notifier, err)))
		goto fail;
	m.sink = &s->assigned.sink;
	m.listen_address = o->listen_address;
	m.external_url = o->external_url;
	m.shard = o->shard;
	if ((rc = assigned_shard_open_manager(
			 &s->assigned, storage_shard(s->storage), &m, &s->manager, err)))
		goto fail;
	starting_say(&s->waiting, "applies the configuration");
	if ((rc = server_give_web(s, err)) || (rc = server_open_rules(s, err)) ||
		(rc = server_reload(s, err)) || (rc = server_open_targets(s, err)))
		goto fail;
	web_set_ready(s->web, true);
	server_log_address(s, "ready");
	*out = s;
	return ERR_OK;
fail:
	server_close(s);
	return rc;
}

/*
 * The user of a part is closed before it. Requests read everything; rules ask the engine and the
 * notifier, which sends its queue; scraping writes to the database, which answers all
 * acknowledgements before it is gone. The engine reads symbols.
 */
void server_close(struct server *s)
{
	if (!s)
		return;
	starting_say(&s->waiting, "the server is ending");
	if (s->web)
		web_set_ready(s->web, false);
	pushes_stop(&s->pushes);
	web_close(s->web);
	pushes_close(&s->pushes);
	listen_unbind(&s->bound);
	listen_unbind(&s->grpc_bound);
	storage_end_rules(s->storage);
	rule_manager_close(s->rules);
	notifier_close(s->notifier);
	shard_targets_close(s->targets);
	assigned_shard_end(&s->assigned);
	scrape_manager_close(s->manager);
	side_parts_stop(&s->side);
	debuginfod_close(s->debuginfod);
	engine_close(s->engine);
	side_parts_close(&s->side);
	storage_close(s->storage);
	config_unref(s->checked);
	config_unref(s->alerting);
	config_unref(s->config);
	free(s->external_url);
	free(s->address);
	mutex_destroy(&s->lock);
	mutex_destroy(&s->reload_lock);
	starting_release(&s->waiting);
	free(s);
}
