/*
 * fuzz: web
 * A request of Grafana's: the first byte is the method, with its high bit for JSON, the rest the
 * body. What can be decoded says the same after it was written as JSON and read again, and a
 * selector that is taken gives a query that can be parsed and asks for the same.
 */
#include <assert.h>

#include "base/json.h"
#include "promql/syntax/check.h"
#include "web/pyroscope/json.h"
#include "web/pyroscope/pyroscope.h"
#include "web/pyroscope/selector.h"

#define ARENA_BYTES (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_json(struct buf *out, const ProtobufCMessage *m)
{
	struct json j;

	json_init(&j, out);
	pyroscope_json_write(&j, m);
}

static void check_again(
	struct arena *a, const ProtobufCMessageDescriptor *d, const ProtobufCMessage *m)
{
	struct buf once = { 0 }, twice = { 0 };
	ProtobufCMessage *again;
	struct err err;

	write_json(&once, m);
	if (pyroscope_json_read(a, d, buf_str(&once), &again, &err) == ERR_OK) {
		write_json(&twice, again);
		assert(str_eq(buf_str(&once), buf_str(&twice)));
	} else {
		assert(err.code == ERR_LIMIT);
	}
	buf_release(&once);
	buf_release(&twice);
}

static void check_selector(struct arena *a, const char *type, const char *text)
{
	struct pyroscope_selector s;
	struct parsed *q;
	struct buf ours = { 0 };
	struct err err;

	if (pyroscope_selector_read(a, str_of(type), str_of(text), &s, &err))
		return;
	pyroscope_selector_print(&ours, &s);
	if (2 * s.types_n + s.matchers_n <= QUERY_MATCHERS_MAX && ours.len <= QUERY_TEXT_MAX) {
		enum err_code rc = parse_query(a, buf_str(&ours), &q, NULL, &err);

		assert(rc == ERR_OK || rc == ERR_LIMIT);
		if (!rc) {
			const struct selector *x = &q->root->selector;

			assert(q->root->kind == EXPR_SELECTOR && !x->name.len && !x->window_ns);
			assert(x->matchers_n == 2 * s.types_n + s.matchers_n);
			for (size_t i = 0; i < s.matchers_n; i++) {
				const struct matcher *m = &x->matchers[2 * s.types_n + i];

				assert(m->op == s.matchers[i].op);
				assert(str_eq(m->name, s.matchers[i].name));
				assert(str_eq(m->value, s.matchers[i].value));
			}
			for (size_t i = 0; i < s.types_n; i++)
				assert(
					matcher_test(&x->matchers[2 * i + 1], s.types[i].id) != s.types[i].delta_only);
			parsed_release(q);
		}
	}
	pyroscope_selector_release(&s);
	buf_release(&ours);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const ProtobufCMessageDescriptor *d;
	ProtobufCMessage *m;
	struct arena a;
	struct err err;

	if (size == 0)
		return 0;
	d = pyroscope_methods[(data[0] & 0x7f) % pyroscope_methods_n].request;
	arena_init(&a, ARENA_BYTES);
	if (pyroscope_decode(&a, d, data[0] & 0x80, (struct str){ (const char *)data + 1, size - 1 },
			&m, &err) == ERR_OK) {
		/* A step of -0 is 0 in JSON. */
		if (d == &epimetheus__pyroscope__select_series_request__descriptor &&
			((Epimetheus__Pyroscope__SelectSeriesRequest *)(void *)m)->step == 0)
			((Epimetheus__Pyroscope__SelectSeriesRequest *)(void *)m)->step = 0;
		check_again(&a, d, m);
		/* These begin with the two strings alike. */
		if (d == &epimetheus__pyroscope__select_series_request__descriptor ||
			d == &epimetheus__pyroscope__select_merge_profile_request__descriptor ||
			d == &epimetheus__pyroscope__select_merge_stacktraces_request__descriptor) {
			const Epimetheus__Pyroscope__SelectMergeProfileRequest *r = (void *)m;

			check_selector(&a, r->profile_typeid, r->label_selector);
		}
	}
	arena_release(&a);
	return 0;
}
