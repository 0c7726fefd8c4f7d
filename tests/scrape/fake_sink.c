#include "tests/scrape/fake_sink.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/wait.h"

static enum err_code append(
	struct sink *s, const struct sink_profile *p, sink_done_fn done, void *ctx, struct err *err)
{
	struct fake_sink *f = (struct fake_sink *)s;
	struct fake_append a = { .ts_ns = p->ts_ns, .done = done, .ctx = ctx };
	struct err why;
	struct buf b = { 0 };
	enum fake_mode mode;

	labels_print(&b, p->labels);
	buf_printf(
		&b, " every %dms, %u samples:", (int)(p->interval_ns / 1000000), p->profile->samples_n);
	for (uint32_t i = 0; i < p->profile->types_n; i++)
		buf_printf(&b, " " STR_FMT "=%s", STR_ARG(p->profile->strings[p->profile->types[i].type]),
			value_kind_name(p->kinds[i]));
	if (p->profile->duration_nanos)
		buf_printf(&b, " in %" PRId64 "ms", p->profile->duration_nanos / NS_PER_MS);
	snprintf(a.text, sizeof(a.text), STR_FMT, STR_ARG(buf_str(&b)));
	buf_release(&b);
	mutex_lock(&f->lock);
	mode = f->mode;
	if (mode != FAKE_HOLD)
		a.done = NULL;
	if (mode != FAKE_REFUSE && f->n < FAKE_SINK_MAX)
		f->v[f->n++] = a;
	cond_broadcast(&f->appended);
	mutex_unlock(&f->lock);
	if (mode == FAKE_REFUSE)
		return err_set(err, ERR_UNAVAILABLE, "disk is full");
	err_set(&why, ERR_IO, "sync failed");
	if (mode == FAKE_ACK_INSIDE)
		done(ctx, ERR_OK, NULL);
	else if (mode == FAKE_ACK_ERROR)
		done(ctx, ERR_IO, &why);
	return ERR_OK;
}

/* FAKE_HOLD does not hold them back. */
static enum err_code append_numbers(struct sink *s, const struct sink_number *v, size_t n,
	sink_done_fn done, void *ctx, struct err *err)
{
	struct fake_sink *f = (struct fake_sink *)s;
	uint64_t bits;
	enum fake_mode mode;
	bool clash = false;
	struct err why;

	mutex_lock(&f->lock);
	mode = f->mode;
	f->number_batches++;
	for (size_t i = 0; i < n && f->clash; i++)
		clash = clash || str_is(labels_get(v[i].labels, STR(LABEL_NAME)), f->clash);
	for (size_t i = 0; i < n && mode != FAKE_REFUSE && !clash; i++) {
		memcpy(&bits, &v[i].value, sizeof(bits));
		labels_print(&f->numbers, v[i].labels);
		if (bits == SINK_STALE_BITS)
			buf_add_cstr(&f->numbers, " stale\n");
		else
			buf_printf(&f->numbers, " %.17g @%" PRId64 "\n", v[i].value, v[i].ts_ns / NS_PER_MS);
	}
	mutex_unlock(&f->lock);
	if (clash)
		return err_set(err, ERR_INVALID, "%s is a name of profiles", f->clash);
	if (mode == FAKE_REFUSE)
		return err_set(err, ERR_UNAVAILABLE, "disk is full");
	err_set(&why, ERR_IO, "sync failed");
	done(ctx, mode == FAKE_ACK_ERROR ? ERR_IO : ERR_OK, mode == FAKE_ACK_ERROR ? &why : NULL);
	return ERR_OK;
}

size_t fake_sink_numbers(struct fake_sink *f, const char *text_part)
{
	struct str rest, part = str_of(text_part);
	size_t n = 0;
	ptrdiff_t at;

	mutex_lock(&f->lock);
	for (rest = buf_str(&f->numbers); rest.len && (at = str_find(rest, part)) >= 0; n++) {
		rest.ptr += (size_t)at + part.len;
		rest.len -= (size_t)at + part.len;
	}
	mutex_unlock(&f->lock);
	return n;
}

bool fake_sink_wait_numbers(struct fake_sink *f, const char *text_part, size_t n)
{
	return WAIT_FOR(fake_sink_numbers(f, text_part) >= n);
}

static const struct sink_ops ops = { .append = append, .append_numbers = append_numbers };

void fake_sink_init(struct fake_sink *f)
{
	*f = (struct fake_sink){ .sink = { &ops },
		.v = calloc(FAKE_SINK_MAX, sizeof(struct fake_append)) };
	mutex_init(&f->lock);
	cond_init(&f->appended);
	if (!f->v)
		abort();
}

void fake_sink_release(struct fake_sink *f)
{
	free(f->v);
	buf_release(&f->numbers);
	mutex_destroy(&f->lock);
	cond_destroy(&f->appended);
}

void fake_sink_set(struct fake_sink *f, enum fake_mode mode)
{
	mutex_lock(&f->lock);
	f->mode = mode;
	mutex_unlock(&f->lock);
}

void fake_sink_ack_all(struct fake_sink *f)
{
	struct fake_append a;

	for (size_t i = 0; i < FAKE_SINK_MAX; i++) {
		mutex_lock(&f->lock);
		a = i < f->n ? f->v[i] : (struct fake_append){ 0 };
		if (i < f->n)
			f->v[i].done = NULL;
		mutex_unlock(&f->lock);
		if (a.done)
			a.done(a.ctx, ERR_OK, NULL);
	}
}

static size_t count(const struct fake_sink *f, const char *text_part)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		n += strstr(f->v[i].text, text_part) != NULL;
	return n;
}

size_t fake_sink_count(struct fake_sink *f, const char *text_part)
{
	size_t n;

	mutex_lock(&f->lock);
	n = count(f, text_part);
	mutex_unlock(&f->lock);
	return n;
}

bool fake_sink_wait(struct fake_sink *f, const char *text_part, size_t n)
{
	int64_t deadline = clock_monotonic_ns() + WAIT_NS;
	bool enough;

	mutex_lock(&f->lock);
	while (
		!(enough = count(f, text_part) >= n) && cond_wait_until(&f->appended, &f->lock, deadline))
		;
	mutex_unlock(&f->lock);
	return enough;
}
