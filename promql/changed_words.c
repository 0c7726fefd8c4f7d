#include "promql/changed_words.h"

#include <math.h>

#include "base/clock.h"

#define SINCE_MAX 3 /* functions are named */
#define ALONE_MAX 3 /* likewise */
#define LONGER_MAX 100 /* windows so many times as long are no advice */

const char *change_word_name(enum change_word w)
{
	static const char *const names[] = { [CHANGE_CHANGED] = "changed",
		[CHANGE_SAME] = "not changed",
		[CHANGE_UNKNOWN] = "cannot tell",
		[CHANGE_RISES] = "rises",
		[CHANGE_FALLS] = "falls" };

	return names[w];
}

struct str changed_function_name(struct frames *frames, const struct change *c)
{
	return frames_group(frames, c->function)->v[FRAME_FUNCTION];
}

/* ---- too little to judge ---- */

/* A side that began a while ago and goes on: more time will tell. */
static void changed_words_add_wait(
	const struct changed_words *w, const struct changed_slices *s, struct buf *out)
{
	if (s->present == 0 || s->first == 0 || s->first + s->present != s->all ||
		s->all < CHANGE_SLICES_MIN)
		return;
	buf_add_cstr(out, "; about ");
	duration_print(out, (int64_t)(CHANGE_SLICES_MIN - s->present) * w->slice_ns);
	buf_add_cstr(out, " more");
}

static void changed_words_too_short(const struct changed_words *w, unsigned side, struct buf *out)
{
	const struct changed_slices *s = &w->side[side];

	buf_printf(out, "not enough data yet: the %s window has costs in %u slices of ",
		side ? "base" : "new", s->present);
	duration_print(out, w->slice_ns);
	buf_printf(out, ", %u are needed", CHANGE_SLICES_MIN);
	changed_words_add_wait(w, s, out);
}

/* ---- a verdict ---- */

/*
 * The factor by which windows would have to be longer for the interval to shrink to what matters.
 */
static double changed_words_times_longer(const struct change *c)
{
	double width = (c->high - c->low) / 2, middle = fabs(c->low + c->high) / 2;
	double wanted = fmax(middle, CHANGE_MATTERS - middle);

	return ceil(width / wanted * (width / wanted));
}

static void changed_words_judged(const struct changed_words *w, struct buf *out)
{
	const struct change_output *f = w->found;
	const struct change *v = &f->v[f->changed_n];
	size_t others = f->n - f->changed_n, unknown = 0;

	if (f->changed_n)
		buf_printf(out, "%zu of %zu function%s changed", f->changed_n, f->n, f->n > 1 ? "s" : "");
	if (others == 0)
		return;
	while (unknown < others && v[unknown].word == CHANGE_UNKNOWN)
		unknown++;
	if (unknown == 0) {
		buf_printf(out,
			f->changed_n ? ", the others not by more than %.2f points" :
						   "no function changed by more than %.2f points",
			100 * change_reach(v));
		return;
	}
	buf_printf(out,
		"%snot enough data yet for %zu function%s: " STR_FMT " moved by %+.1f to %+.1f points",
		f->changed_n ? "; " : "", unknown, unknown > 1 ? "s" : "",
		STR_ARG(changed_function_name(w->frames, v)), 100 * v->low, 100 * v->high);
	if (changed_words_times_longer(v) <= LONGER_MAX)
		buf_printf(out, "; windows about %.0f times as long are needed",
			fmax(changed_words_times_longer(v), 2));
}

static void changed_words_describe(const struct changed_words *w, struct buf *out)
{
	switch (w->found->verdict) {
	case CHANGE_NO_NEW:
	case CHANGE_NO_BASE:
		buf_printf(
			out, "no data in the %s window", w->found->verdict == CHANGE_NO_NEW ? "new" : "base");
		return;
	case CHANGE_SHORT_NEW:
	case CHANGE_SHORT_BASE:
		changed_words_too_short(w, w->found->verdict == CHANGE_SHORT_BASE, out);
		return;
	case CHANGE_JUDGED:
		break;
	}
	if (!w->work->steps)
		changed_words_judged(w, out);
	else if (w->found->n > w->found->changed_n &&
		w->found->v[w->found->changed_n].word == CHANGE_UNKNOWN)
		buf_add_cstr(out, "not enough data at some steps; query one step alone for details");
}

/*
 * ---- remarks on one function and others like it ----
 *
 * None begins with the function's name, since pages begin a sentence with a capital letter.
 */

/* "main.work", "main.work and 2 more". */
static void changed_words_name(
	const struct changed_words *w, const struct change *c, size_t n, struct buf *out)
{
	buf_printf(out, STR_FMT, STR_ARG(changed_function_name(w->frames, c)));
	if (n > 1)
		buf_printf(out, " and %zu more", n - 1);
}

static void changed_words_slice(const struct changed_words *w, struct buf *out)
{
	if (w->slice_ns == NS_PER_MIN)
		buf_add_cstr(out, "minute");
	else
		duration_print(out, w->slice_ns);
}

/* What is seen where the default judgement alone would not call it a change. */
static void changed_words_apart(const struct changed_words *w, struct buf *out)
{
	const struct change_output *f = w->found;
	const struct change *first = NULL;
	int64_t shorter = w->side[0].all < w->side[1].all ? w->side[0].all : w->side[1].all;
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct change *c = &f->v[i];
		bool by_short = c->word == CHANGE_CHANGED && c->short_shocks;

		if (!c->apart || !(by_short || c->word == CHANGE_UNKNOWN) ||
			(first && c->word != first->word))
			continue;
		first = first ? first : c;
		n++;
	}
	if (!first)
		return;
	buf_add_cstr(out, "every ");
	changed_words_slice(w, out);
	buf_printf(out, " of New is %s every ",
		n > 1                     ? "apart from" :
			first->difference > 0 ? "above" :
									"below");
	changed_words_slice(w, out);
	buf_add_cstr(out, " of Base in ");
	changed_words_name(w, first, n, out);
	buf_add_cstr(out, "; ");
	if (first->word == CHANGE_CHANGED) {
		buf_add_cstr(out, "a change, unless shocks last longer than ");
		duration_print(out, CHANGE_SHOCK_SLICES * w->slice_ns);
		buf_add_cstr(out, ": ");
	}
	buf_add_cstr(out, first->word == CHANGE_CHANGED ? "one of " : "a shock of ");
	duration_print(out, shorter * w->slice_ns);
	buf_add_cstr(out, " could be the cause");
}

/* Drifts, and steps that lie within base: since when. The greatest is named first. */
static void changed_words_since(const struct changed_words *w, struct buf *out)
{
	const struct change_output *f = w->found;
	unsigned n = 0;

	for (size_t i = 0; i < f->changed_n; i++) {
		const struct change *c = &f->v[i];

		if (!(c->since > 0))
			continue;
		n++;
		buf_add_cstr(out, n > 1 ? ", since " : "since ");
		duration_print(out, (int64_t)ceil(c->since - 0.5) * w->slice_ns);
		buf_add_char(out, ' ');
		changed_words_name(w, c, 1, out);
		buf_printf(out, " %s",
			c->word == CHANGE_RISES     ? "rises" :
				c->word == CHANGE_FALLS ? "falls" :
				c->difference > 0       ? "is higher" :
										  "is lower");
		if (n == SINCE_MAX)
			break;
	}
}

/* Changes of one series, while the others stayed as they were. */
static void changed_words_alone(const struct changed_words *w, struct buf *out)
{
	const struct change_output *f = w->found;

	for (size_t i = 0; i < f->alone_n && i < ALONE_MAX; i++) {
		const struct change *c = &f->alone[i].change;

		buf_add_cstr(out, i > 0 ? ", " : "changed in one series only: ");
		changed_words_name(w, c, 1, out);
		buf_add_cstr(out, " in ");
		labels_print(out, w->alone[i]);
		buf_printf(out, " (%.1f %% to %.1f %%)", 100 * c->share[1], 100 * c->share[0]);
	}
	if (f->alone_n > ALONE_MAX)
		buf_printf(out, ", and %zu more", f->alone_n - ALONE_MAX);
}

static enum err_code changed_words_tell(const struct changed_words *w,
	void (*describe)(const struct changed_words *, struct buf *), struct err *err)
{
	struct buf text = { 0 };
	enum err_code rc = ERR_OK;

	describe(w, &text);
	if (buf_failed(&text))
		rc = work_nomem(w->work, err);
	else if (text.len)
		rc = work_info(w->work, err, "%s(): " STR_FMT, w->name, STR_ARG(buf_str(&text)));
	buf_release(&text);
	return rc;
}

enum err_code changed_explain(const struct changed_words *w, struct err *err)
{
	bool judged = w->found->verdict == CHANGE_JUDGED;
	enum err_code rc = changed_words_tell(w, changed_words_describe, err);

	if (!rc && judged && !w->work->steps)
		rc = changed_words_tell(w, changed_words_apart, err);
	if (!rc && judged && !w->work->steps)
		rc = changed_words_tell(w, changed_words_since, err);
	if (!rc && judged && !w->work->steps)
		rc = changed_words_tell(w, changed_words_alone, err);
	if (rc || !judged || w->found->paired || w->found->series_spread)
		return rc;
	return work_info(w->work, err,
		"%s(): one series on each side, not the same: differences between instances are reported "
		"as changes, too",
		w->name);
}
