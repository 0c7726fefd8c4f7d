/*
 * fuzz: web/profefe
 * Texts of profefe's requests. The first byte says which: "t" a time, "l" labels, else ids. Labels
 * have keys, and ids are printed as texts that give them again.
 */
#include "base/clock.h"
#include "tests/fuzz/fuzz.h"
#include "web/profefe/notation.h"

#define NEAR_NS (INT64_C(4500000000) * NS_PER_S) /* 1827 to 2112: no zone moves it out of range */

static void check_time(struct str text)
{
	int64_t ns = INT64_MAX, again;
	struct buf out = { 0 };
	struct err err;

	if (profefe_time_parse(text, &ns, &err)) {
		require(err.msg[0] != '\0');
		return;
	}
	require(ns >= -TIME_MAX_NS && ns <= TIME_MAX_NS);
	profefe_time_print(&out, ns);
	if (ns > -NEAR_NS && ns < NEAR_NS) {
		require(!profefe_time_parse(buf_str(&out), &again, &err));
		require(again <= ns && ns - again < NS_PER_S);
	}
	buf_release(&out);
}

static void check_labels(struct arena *a, struct str text)
{
	struct label *v;
	struct err err;
	size_t n;

	if (profefe_labels_parse(a, text, &v, &n, &err)) {
		require(err.msg[0] != '\0');
		return;
	}
	require(n <= PROFEFE_LABELS_MAX);
	for (size_t i = 0; i < n; i++)
		require(v[i].name.len && v[i].name.len + v[i].value.len <= text.len);
}

static void check_ids(struct arena *a, struct str text)
{
	struct profefe_id *v, *again;
	struct buf out = { 0 };
	size_t n, again_n;
	struct err err;

	if (profefe_ids_parse(a, text, &v, &n, &err)) {
		require(err.msg[0] != '\0');
		return;
	}
	require(n > 0 && n <= PROFEFE_IDS_MAX);
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_add_char(&out, '+');
		profefe_id_print(&out, &v[i]);
	}
	require(!profefe_ids_parse(a, buf_str(&out), &again, &again_n, &err) && again_n == n);
	for (size_t i = 0; i < n; i++)
		require(again[i].ts_ns == v[i].ts_ns && again[i].series == v[i].series &&
			str_eq(again[i].service, v[i].service));
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;

	if (size < 1)
		return 0;
	arena_init(&a, 16u << 20);
	if (data[0] == 't')
		check_time((struct str){ (const char *)data + 1, size - 1 });
	else if (data[0] == 'l')
		check_labels(&a, (struct str){ (const char *)data + 1, size - 1 });
	else
		check_ids(&a, (struct str){ (const char *)data + 1, size - 1 });
	arena_release(&a);
	return 0;
}
