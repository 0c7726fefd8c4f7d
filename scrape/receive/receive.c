#include "scrape/receive/receive.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/quote.h"
#include "proto/annotation.h"
#include "scrape/config/config.h"
#include "scrape/receive/admission.h"
#include "scrape/receive/latch.h"

METRIC_COUNTER(
	profiles, "epimetheus_ingested_profiles_total", "Profiles that were pushed.", "result");

/* Of the first profile of a series, if nothing says what it covers. */
#define INTERVAL_DEFAULT_NS NS_PER_S

static const struct push_config nothing;

struct receiver {
	struct receiver_options o;
	struct admission admission;
	struct senders *senders;
	struct senders_keeper *keeper; /* NULL: there is none */
};

static enum err_code receiver_open_senders(struct receiver *r, struct err *err)
{
	struct senders_keep_options o = {
		.path = r->o.senders_path, .put = r->o.put_senders, .ctx = r->o.ctx
	};
	enum err_code rc;

	if ((rc = senders_open(&r->senders, err)) || (!o.path && !o.put))
		return rc;
	o.senders = r->senders;
	return senders_keep_open(&o, &r->keeper, err);
}

enum err_code receiver_open(
	const struct receiver_options *o, struct receiver **out, struct err *err)
{
	struct receiver *r = calloc(1, sizeof(*r));
	enum err_code rc;

	if (!r)
		return err_nomem(err, "receiver");
	r->o = *o;
	admission_init(&r->admission);
	if ((rc = receiver_open_senders(r, err))) {
		receiver_close(r);
		return rc;
	}
	*out = r;
	return ERR_OK;
}

void receiver_stop(struct receiver *r)
{
	admission_stop(&r->admission);
}

size_t receiver_waiting(struct receiver *r)
{
	size_t n;

	mutex_lock(&r->admission.lock);
	n = r->admission.waiting;
	mutex_unlock(&r->admission.lock);
	return n;
}

void receiver_close(struct receiver *r)
{
	if (!r)
		return;
	admission_release(&r->admission);
	senders_keep_close(r->keeper);
	senders_close(r->senders);
	free(r);
}

enum err_code receive_begin(
	struct receiver *r, struct str sender, struct receive_turn *t, struct err *err)
{
	enum err_code rc;

	*t = (struct receive_turn){ .r = r, .config = r->o.config ? r->o.config(r->o.ctx) : NULL };
	t->push = t->config ? &t->config->push : &nothing;
	t->sender = admission_hash(sender);
	if ((rc = admission_begin(
			 &r->admission, t->sender, t->push->profiles_per_second, &t->retry_s, err))) {
		metric_add(&profiles, "busy", 1);
		config_unref(t->config);
		return rc;
	}
	arena_init(&t->arena, RECEIVE_ARENA_BYTES_MAX);
	return ERR_OK;
}

void receive_end(struct receive_turn *t)
{
	arena_release(&t->arena);
	config_unref(t->config);
	admission_end(&t->r->admission, t->sender, t->profiles);
}

void receiver_refuse(struct receiver *r, const struct refusal *refusal)
{
	senders_add_refused(r->senders, refusal, clock_now_ns());
}

struct senders *receiver_senders(struct receiver *r)
{
	return r->senders;
}

static struct str receive_job_of(struct labels labels)
{
	struct str job = labels_get(labels, STR("job"));

	return job.len ? job : labels_get(labels, STR("service_name"));
}

void receive_tell_labels(struct receive_turn *t, struct labels labels)
{
	t->from.job = receive_job_of(labels);
}

static void receive_turn_note_refusal(struct receive_turn *t, uint64_t n, const struct err *why)
{
	const struct refusal f = { t->from, n, why->code, str_of(why->msg) };

	metric_add(&profiles, "failed", (double)n);
	receiver_refuse(t->r, &f);
}

void receive_refuse(struct receive_turn *t, uint64_t n, const struct err *why)
{
	t->profiles += n;
	receive_turn_note_refusal(t, n, why);
}

/* ---- labels and times ---- */

bool receive_label(struct receive_turn *t, struct str *name)
{
	if (push_drops(t->push, *name))
		return false;
	*name = push_label_name(t->push, &t->arena, *name);
	return name->len > 0;
}

static enum err_code receive_check_label(const struct label *l, struct err *err)
{
	if (!label_name_valid(l->name))
		return err_set(err, ERR_INVALID, "%s cannot be the name of a label", QUOTED(l->name));
	if (l->name.len > RECEIVE_NAME_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "label name %s is longer than %u bytes", QUOTED(l->name),
			RECEIVE_NAME_BYTES_MAX);
	if (l->value.len > RECEIVE_VALUE_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the value of label " STR_FMT " is longer than %u bytes",
			STR_ARG(l->name), RECEIVE_VALUE_BYTES_MAX);
	if (!label_value_valid(l->value))
		return err_set(
			err, ERR_INVALID, "the value of label " STR_FMT " is not UTF-8", STR_ARG(l->name));
	return ERR_OK;
}

static enum err_code receive_check_labels(struct labels labels, struct err *err)
{
	enum err_code rc;

	if (!label_name_valid(labels_get(labels, STR(LABEL_NAME))))
		return err_set(err, ERR_INVALID, "%s cannot be the name of a profile",
			QUOTED(labels_get(labels, STR(LABEL_NAME))));
	if (labels.n > RECEIVE_LABELS_MAX)
		return err_set(err, ERR_LIMIT, "%zu labels, limit %u", labels.n, RECEIVE_LABELS_MAX);
	for (size_t i = 0; i < labels.n; i++)
		if ((rc = receive_check_label(&labels.v[i], err)))
			return rc;
	return ERR_OK;
}

/* Names for relabelling alone. */
static void receive_drop_hidden(struct labels_builder *b)
{
	for (size_t i = b->n; i-- > 0;)
		if (str_has_prefix(b->v[i].name, STR("__")) && !str_is(b->v[i].name, LABEL_NAME))
			labels_builder_del(b, b->v[i].name);
}

static enum err_code receive_turn_relabel(
	struct receive_turn *t, struct received *r, struct err *err)
{
	const struct push_config *c = t->push;
	struct labels_builder b;
	enum err_code rc;
	bool keep;

	labels_builder_init(&b, &t->arena, r->labels);
	for (size_t i = 0; i < c->labels.n; i++)
		if (!labels_builder_get(&b, c->labels.v[i].name).len)
			labels_builder_set(&b, c->labels.v[i].name, c->labels.v[i].value);
	if ((rc = relabel_apply(&c->relabel, &b, &keep, NULL, err)))
		return rc;
	r->dropped = !keep;
	if (r->dropped)
		return ERR_OK;
	receive_drop_hidden(&b);
	if ((rc = labels_builder_build(&b, &r->labels, err)))
		return rc;
	return receive_check_labels(r->labels, err);
}

/* The profile's own length, 0 if it has none. */
static int64_t receive_duration_of(const struct pprof *p)
{
	return p->duration_nanos > 0 && p->duration_nanos < RECEIVE_INTERVAL_MAX_NS ?
		p->duration_nanos :
		0;
}

/* A sender's clock may be wrong. Times ahead of ours are the database's to refuse. */
static enum err_code receiver_check_age(
	const struct receiver *r, int64_t ts_ns, int64_t now_ns, struct err *err)
{
	struct buf t = { 0 }, limit = { 0 };
	enum err_code rc = ERR_OK;

	if (r->o.retention_ns && ts_ns < now_ns - r->o.retention_ns) {
		time_print_rfc3339(&t, ts_ns);
		time_print_rfc3339(&limit, now_ns - r->o.retention_ns);
		rc = err_set(err, ERR_INVALID,
			"profile of " STR_FMT " is older than the retention, which ends at " STR_FMT,
			STR_ARG(buf_str(&t)), STR_ARG(buf_str(&limit)));
	}
	buf_release(&t);
	buf_release(&limit);
	return rc;
}

/* Nobody's nanoseconds end in so many zeros. The end of a window that ends with it stays the end.
 */
static void receive_turn_spread(const struct receive_turn *t, struct received *r)
{
	uint64_t source = r->process ? r->process : t->sender;
	uint64_t hash = hash_bytes((const char *)&source, sizeof(source), r->body);

	if (r->body && r->ts_ns > 0 && (r->process || r->ts_ns % NS_PER_MS == 0))
		r->ts_ns -= (int64_t)(hash % NS_PER_MS);
}

static enum err_code receive_turn_set_times(
	const struct receive_turn *t, struct received *received, struct err *err)
{
	const struct pprof *own = received->profile;

	if (!received->ts_ns && own->time_nanos > 0 && own->time_nanos < TIME_MAX_NS)
		received->ts_ns = own->time_nanos + receive_duration_of(own);
	if (received->ts_ns)
		receive_turn_spread(t, received);
	else
		received->ts_ns = t->now_ns;
	if (received->ts_ns < 0 || received->ts_ns >= TIME_MAX_NS)
		return err_set(err, ERR_INVALID, "the profile's time is before 1970 or after 2116");
	if (received->interval_ns < 0 || received->interval_ns > RECEIVE_INTERVAL_MAX_NS)
		return err_set(err, ERR_INVALID, "a profile covers more than 0 s and at most a day");
	if (!received->interval_ns)
		received->interval_ns = receive_duration_of(own);
	return receiver_check_age(t->r, received->ts_ns, t->now_ns, err);
}

/* ---- profiles of one series and time ---- */

static int receive_period_cmp(const struct pprof *a, const struct pprof *b)
{
	int c = str_cmp(a->strings[a->period_type.type], b->strings[b->period_type.type]);

	return c ? c : str_cmp(a->strings[a->period_type.unit], b->strings[b->period_type.unit]);
}

/* Equal ones are one row. The names of types have the period's. */
static int received_row_cmp(const struct received *a, const struct received *b)
{
	int c = labels_cmp(a->labels, b->labels);

	if (c || (c = a->ts_ns < b->ts_ns ? -1 : a->ts_ns > b->ts_ns) || (c = a->convert - b->convert))
		return c;
	return receive_period_cmp(a->profile, b->profile);
}

static int received_cmp(const void *left, const void *right)
{
	const struct received *a = *(struct received *const *)left,
						  *b = *(struct received *const *)right;
	int c = received_row_cmp(a, b);

	return c ? c : a < b ? -1 : a > b; /* in the sender's order */
}

/* ---- storing ---- */

/* Profiles that become one row. */
struct receive_row {
	struct latch *all; /* rows that are not acknowledged yet */
	struct received **v;
	size_t n;
	enum err_code rc;
	struct err err;
	struct sink_stored stored;
};

static void receive_acked(void *ctx, enum err_code rc, const struct err *err)
{
	struct receive_row *row = ctx;

	row->rc = rc;
	if (rc && err)
		row->err = *err;
	latch_down(row->all);
}

static enum err_code receive_turn_unite(
	struct receive_turn *t, struct receive_row *row, const struct pprof **out)
{
	const struct pprof **v = arena_array(&t->arena, const struct pprof *, row->n);
	struct pprof *all;
	enum err_code rc;

	*out = row->v[0]->profile;
	if (row->n == 1)
		return ERR_OK;
	if (!v)
		return arena_fail(&t->arena, "profiles", &row->err);
	for (size_t i = 0; i < row->n; i++)
		v[i] = row->v[i]->profile;
	if (!(rc = pprof_concat(&t->arena, v, row->n, &all, &row->err)))
		*out = all;
	return rc;
}

/* Of each column of the row's profile, by the first that has it. */
static enum err_code receive_turn_find_kinds(struct receive_turn *t, const struct receive_row *row,
	const struct pprof *all, enum value_kind *kinds, struct err *err)
{
	struct str name = labels_get(row->v[0]->labels, STR(LABEL_NAME));

	for (size_t i = row->n; i-- > 0;) {
		const struct pprof *p = row->v[i]->profile;
		enum value_kind *own = arena_array(&t->arena, enum value_kind, p->types_n + 1);

		if (!own)
			return arena_fail(&t->arena, "profiles", err);
		pprof_kinds(p, name, NULL, own);
		for (uint32_t c = 0; c < p->types_n; c++)
			kinds[pprof_same_type(all, p, c)] = row->v[i]->kinds ? row->v[i]->kinds[c] : own[c];
	}
	return ERR_OK;
}

/* Such columns are sums since the process began in what is scraped. */
static void receive_row_doubt(
	struct receive_row *row, const struct pprof *p, const enum value_kind *kinds)
{
	for (uint32_t c = 0; c < p->types_n; c++)
		row->v[0]->doubted |= !row->v[0]->convert && kinds[c] == KIND_CUMULATIVE;
}

static enum err_code receive_turn_put(struct receive_turn *t, struct receive_row *row)
{
	const struct received *first = row->v[0];
	struct sink_profile to = { .labels = first->labels,
		.ts_ns = first->ts_ns,
		.as_sent = !first->convert,
		.stored = &row->stored };
	struct sink *sink = t->r->o.sink;
	enum value_kind *kinds;
	enum err_code rc;

	if ((rc = receive_turn_unite(t, row, &to.profile)))
		return rc;
	if (!(kinds = arena_array(&t->arena, enum value_kind, to.profile->types_n + 1)))
		return arena_fail(&t->arena, "profile", &row->err);
	if ((rc = receive_turn_find_kinds(t, row, to.profile, kinds, &row->err)))
		return rc;
	to.kinds = kinds;
	receive_row_doubt(row, to.profile, kinds);
	for (size_t i = 0; i < row->n; i++)
		if (row->v[i]->interval_ns > to.interval_ns)
			to.interval_ns = row->v[i]->interval_ns;
	if (!to.interval_ns) { /* a level lasts since the one before, unless the sender was away */
		to.interval_ns = INTERVAL_DEFAULT_NS;
		to.gap_max_ns = t->r->o.gap_max_ns;
	}
	return sink->ops->append(sink, &to, receive_acked, row, &row->err);
}

static void receive_turn_put_all(struct receive_turn *t, struct receive_row *rows, size_t n)
{
	struct latch all;
	enum err_code rc;

	latch_init(&all, (uint32_t)n);
	for (size_t i = 0; i < n; i++) {
		rows[i].all = &all;
		if ((rc = receive_turn_put(t, &rows[i])))
			receive_acked(&rows[i], rc, NULL);
	}
	latch_wait(&all);
}

static void receive_row_answer(const struct receive_row *row)
{
	for (size_t i = 0; i < row->n; i++) {
		struct received *p = row->v[i];

		if ((p->rc = row->rc))
			p->err = row->err;
		p->samples = i ? 0 : row->stored.samples;
		p->overflow = row->stored.overflow;
		p->links_dropped = i ? 0 : row->stored.links_dropped;
	}
}

/* Leaves those that try the next nanosecond. */
static size_t receive_rows_answer(struct receive_row *rows, size_t n, bool more)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		if (rows[i].rc != ERR_EXISTS || !more) {
			receive_row_answer(&rows[i]);
			continue;
		}
		for (size_t k = 0; k < rows[i].n; k++)
			rows[i].v[k]->ts_ns++;
		rows[left++] = (struct receive_row){ .v = rows[i].v, .n = rows[i].n };
	}
	return left;
}

/* Neighbours in the order of received_cmp that are equal but for their place. */
static size_t received_make_rows(struct received **r, size_t n, struct receive_row *rows)
{
	size_t rows_n = 0;

	for (size_t i = 0; i < n; i++) {
		struct receive_row *last = rows_n ? &rows[rows_n - 1] : NULL;

		if (last && !received_row_cmp(last->v[0], r[i]))
			last->n++;
		else
			rows[rows_n++] = (struct receive_row){ .v = &r[i], .n = 1 };
	}
	return rows_n;
}

static void receive_turn_note_stored(struct receive_turn *t, const struct received *r, size_t n)
{
	const struct sender_stored what = { .type = labels_get(r->labels, STR(LABEL_NAME)),
											.samples = r->samples, .bytes = t->bytes / n,
											.dropped = r->dropped };

	metric_add(&profiles, r->dropped ? "dropped" : "ok", 1);
	receive_tell_labels(t, r->labels);
	if (!annotation_is(r->labels)) /* who marks a deploy is no sender that may stop */
		senders_add_stored(t->r->senders, &t->from, &what, t->now_ns);
}

/* Neighbours of one job and reason are one refusal. */
static void receive_turn_count_refused(
	struct receive_turn *t, const struct received *r, size_t n, size_t *at)
{
	const struct received *first = &r[*at];
	uint64_t refused = 0;

	receive_tell_labels(t, first->labels);
	while (
		*at < n && r[*at].rc == first->rc && str_eq(receive_job_of(r[*at].labels), t->from.job)) {
		refused++;
		(*at)++;
	}
	receive_turn_note_refusal(t, refused, &first->err);
}

static void receive_turn_count(struct receive_turn *t, const struct received *r, size_t n)
{
	size_t i = 0;

	while (i < n) {
		if (r[i].rc)
			receive_turn_count_refused(t, r, n, &i);
		else
			receive_turn_note_stored(t, &r[i++], n);
	}
}

void receive_store(struct receive_turn *t, struct received *r, size_t n)
{
	struct received **good = arena_array(&t->arena, struct received *, n + 1);
	struct receive_row *rows = arena_array(&t->arena, struct receive_row, n + 1);
	size_t good_n = 0, rows_n;

	t->now_ns = clock_now_ns();
	t->profiles += n;
	for (size_t i = 0; i < n; i++) {
		struct received *p = &r[i];

		p->convert |= t->push->cumulative;
		p->rc = good && rows ? ERR_OK : arena_fail(&t->arena, "profiles", &p->err);
		if (p->rc || (p->rc = receive_turn_set_times(t, p, &p->err)) ||
			(p->rc = receive_turn_relabel(t, p, &p->err)) || p->dropped)
			continue;
		good[good_n++] = p;
	}
	if (good_n)
		qsort(good, good_n, sizeof(struct received *), received_cmp);
	rows_n = good_n ? received_make_rows(good, good_n, rows) : 0;
	for (unsigned i = 0; i < RECEIVE_TWINS_MAX && rows_n; i++) {
		receive_turn_put_all(t, rows, rows_n);
		rows_n = receive_rows_answer(rows, rows_n, i + 1 < RECEIVE_TWINS_MAX);
	}
	receive_turn_count(t, r, n);
}
