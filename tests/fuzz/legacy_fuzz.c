/*
 * fuzz: proto/legacy
 * Bodies before protobuf, and answers with names. A profile that is read must be sound, and must
 * come back from its encoding.
 */
#include "proto/legacy/legacy.h"
#include "proto/legacy/symbols.h"
#include "tests/fuzz/fuzz.h"

#define ARENA_BYTES (64u << 20)

static void check(const struct pprof *p)
{
	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *s = &p->samples[i];

		require(s->location_first <= p->location_ids_n &&
			s->location_n <= p->location_ids_n - s->location_first);
		require(s->label_first <= p->labels_n && s->label_n <= p->labels_n - s->label_first);
	}
	for (uint32_t i = 0; i < p->location_ids_n; i++)
		require(p->location_ids[i] < p->locations_n);
	for (uint32_t i = 0; i < p->locations_n; i++)
		require(p->locations[i].mapping == PPROF_NONE || p->locations[i].mapping < p->mappings_n);
}

static void check_encoding(struct arena *a, const struct pprof *p)
{
	struct buf wire = { 0 };
	struct pprof *again;
	struct err err;

	require(!pprof_encode(p, &wire, &err));
	require(!pprof_decode(a, buf_str(&wire), &pprof_limits_default, &again, &err));
	require(again->samples_n == p->samples_n && again->location_ids_n == p->location_ids_n);
	buf_release(&wire);
}

/* The same bytes as an answer: names for some of the profile's addresses. */
static void check_symbols(struct arena *a, const struct pprof *p, struct str answer)
{
	struct symbols s = { 0 };
	const struct pprof *named;
	uint64_t *addresses;
	struct err err = { 0 };
	uint32_t n;

	if (symbols_read(a, answer, &s, &err) || symbols_read_comments(a, answer, &s, &err)) {
		require(err.msg[0] != '\0');
		return;
	}
	symbols_sort(&s);
	for (uint32_t i = 1; i < s.n; i++)
		require(s.v[i - 1].address < s.v[i].address);
	if (!symbols_wanted(a, p, &addresses, &n, &err) && !symbols_apply(a, p, &s, &named, &err)) {
		check(named);
		check_encoding(a, named);
	}
}

/* As receivers call it: protobuf first, else the same as legacy_decode, with names of comments. */
static void check_any(struct str body, bool is_legacy)
{
	struct legacy_any any;
	struct err err = { 0 };
	struct pprof *wire;
	struct arena a;
	bool is_wire;

	arena_init(&a, ARENA_BYTES);
	is_wire = !pprof_decode(&a, body, &pprof_limits_default, &wire, &err);
	arena_release(&a);
	arena_init(&a, ARENA_BYTES);
	err.msg[0] = '\0';
	if (legacy_decode_any(&a, body, &pprof_limits_default, &any, &err)) {
		require(err.msg[0] != '\0' && !is_wire);
	} else {
		require(is_wire ? !any.is_legacy : is_legacy);
		check(any.profile);
	}
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str body = { (const char *)data, size };
	struct pprof *p = NULL;
	struct err err = { 0 };
	struct arena a;

	arena_init(&a, ARENA_BYTES);
	if (!legacy_decode(&a, body, &pprof_limits_default, &p, &err)) {
		check(p);
		check_encoding(&a, p);
		check_symbols(&a, p, body);
		check_any(body, true);
	} else {
		require(err.msg[0] != '\0' && !p);
		check_any(body, false);
	}
	arena_release(&a);
	return 0;
}
