/*
 * fuzz: scrape/forward
 * What another shard sends: profiles, or answers to them. A profile that is read can be written,
 * and reads back with as many samples, links and kinds.
 */
#include "scrape/forward/push_entries.h"
#include "tests/fuzz/fuzz.h"

#define ARENA_BYTES (256u << 20)

static void check_profile(const struct sink_profile *p)
{
	const struct pprof *profile = p->profile;

	require(p->ts_ns >= 0 && p->interval_ns > 0 && p->gap_max_ns >= 0);
	require(label_name_valid(labels_get(p->labels, STR(LABEL_NAME))));
	for (uint32_t i = 0; i < profile->types_n; i++)
		require(p->kinds[i] <= KIND_CUMULATIVE);
	for (uint32_t i = 0; profile->sample_links && i < profile->samples_n; i++)
		require(profile->sample_links[i] < profile->links_n);
}

static void check_again(const struct sink_profile *p, uint64_t assignment)
{
	struct buf bytes = { 0 };
	struct sink_profile again;
	uint64_t number;
	struct arena a;

	arena_init(&a, 2 * ARENA_BYTES);
	require(!push_entry_write(p, assignment, &bytes, NULL));
	require(!push_entry_read(&a, buf_str(&bytes), &again, &number, NULL));
	require(number == assignment && labels_eq(p->labels, again.labels));
	require(p->ts_ns == again.ts_ns && p->interval_ns == again.interval_ns);
	require(p->gap_max_ns == again.gap_max_ns && p->as_sent == again.as_sent);
	require(p->profile->samples_n == again.profile->samples_n);
	require(p->profile->links_n == again.profile->links_n);
	require(p->profile->types_n == again.profile->types_n);
	require(p->profile->stacks_cut == again.profile->stacks_cut);
	buf_release(&bytes);
	arena_release(&a);
}

static void read_body(struct str body)
{
	struct sink_profile p;
	struct cursor entries;
	uint64_t assignment;
	struct arena a;
	unsigned n;

	if (push_body_open(body, &entries, &n, NULL))
		return;
	require(n && n <= PUSH_ENTRIES_MAX);
	for (unsigned i = 0; i < n; i++) {
		arena_init(&a, ARENA_BYTES);
		if (!push_entry_read(&a, push_body_next(&entries), &p, &assignment, NULL)) {
			check_profile(&p);
			check_again(&p, assignment);
		}
		arena_release(&a);
	}
	require(!entries.bad && !cursor_left(&entries));
}

static void read_answers(struct str body)
{
	struct sink_stored stored;
	enum err_code rc;
	struct cursor c;
	struct err why;
	size_t n = 0;

	if (push_answers_open(body, &c, NULL))
		return;
	while (push_answer_next(&c, &rc, &why, &stored)) {
		require(rc < ERR_CODES && (!rc || why.code == rc));
		require(++n <= body.len);
	}
	require(c.bad || cursor_left(&c) || push_answers_ended(&c));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_body((struct str){ (const char *)data, size });
	read_answers((struct str){ (const char *)data, size });
	return 0;
}
