/* A recording in the making, and what it decodes to, as text. */
#ifndef TESTS_PROTO_JFR_FIXTURE_H
#define TESTS_PROTO_JFR_FIXTURE_H

#include "proto/jfr/jfr.h"
#include "tests/check.h"
#include "tests/proto/jfr/show.h"
#include "tests/proto/jfr/writer.h"

static const struct jfr_options options = { .limits = &jfr_limits_default, .sample_rate_hz = 100 };

struct fixture {
	struct writer w;
	struct arena a;
	struct err err;
	struct jfr_file *f;
	enum err_code rc;
	struct buf text;
};

static inline void begin(struct fixture *x)
{
	*x = (struct fixture){ 0 };
	writer_init(&x->w);
	arena_init(&x->a, 0);
}

/* Finishes the chunk and decodes all. */
static inline void decode(struct fixture *x, const struct jfr_options *o)
{
	if (x->w.events.len)
		writer_chunk(&x->w);
	x->rc = jfr_decode(&x->a, buf_str(&x->w.out), o, &x->f, &x->err);
	buf_clear(&x->text);
	if (!x->rc)
		show_file(&x->text, x->f);
	else
		buf_printf(&x->text, "%s: %s", err_code_name(x->rc), x->err.msg);
}

static inline void end(struct fixture *x)
{
	writer_release(&x->w);
	arena_release(&x->a);
	buf_release(&x->text);
}

#define CHECK_SHOWN(x, o, want) \
	do { \
		decode(x, o); \
		CHECK_STR(buf_str(&(x)->text), want); \
		end(x); \
	} while (0)

#endif
