/* When the totals of a column are not what its kind says; and when a restart is only a restart. */
#include "scrape/growth.h"
#include "tests/check.h"

/* Many scrapes, a second apart. */
struct life {
	struct growth_watch growth;
	int64_t now_ns, connected_ns;
	enum value_kind kind;
};

static void see(struct life *l, double total)
{
	const struct growth_scrape s = { l->kind, total, l->connected_ns, l->now_ns };

	growth_note(&l->growth, &s);
	l->now_ns += 1000000000;
}

static bool doubted(const struct life *l)
{
	return growth_warning(&l->growth) != NULL;
}

/* From 0 to 999, always the same. */
static unsigned drawn(unsigned *state)
{
	*state = *state * 1103515245u + 12345u;
	return (*state >> 16) % 1000u;
}

TEST(differences_taken_for_counters_are_doubted)
{
	struct life l = { .kind = KIND_CUMULATIVE, .now_ns = 2, .connected_ns = 1 };
	unsigned state = 1, scrapes = 0;

	while (!doubted(&l) && scrapes < 100) {
		see(&l, drawn(&state));
		scrapes++;
	}
	CHECK(scrapes > GROWTH_FALLS_MIN && scrapes < 25);
	for (int i = 0; i < 10000; i++) {
		see(&l, drawn(&state));
		CHECK(doubted(&l)); /* it does not flicker */
	}
	/* after a reload that calls them delta */
	l.kind = KIND_DELTA;
	for (int i = 0; i < 10000; i++) {
		see(&l, drawn(&state));
		CHECK(!doubted(&l));
	}
	l.kind = KIND_GAUGE;
	see(&l, 0);
	CHECK(!doubted(&l));
}

TEST(restarts_are_not)
{
	struct life l = { .kind = KIND_CUMULATIVE, .now_ns = 2, .connected_ns = 1 };
	unsigned state = 1;
	double total = 0;

	/* It restarts in every interval: each scrape has a connection of its own. */
	for (int i = 0; i < 10000; i++) {
		l.connected_ns = l.now_ns - 1;
		see(&l, drawn(&state));
		CHECK(!doubted(&l));
	}
	/* Behind a proxy that holds its connection; while it starts a scrape fails. */
	l.connected_ns = 1;
	for (int i = 0; i < 10000; i++) {
		if (drawn(&state) < 300) {
			total = 0;
			growth_lose(&l.growth);
		}
		see(&l, total += drawn(&state));
		CHECK(!doubted(&l));
	}
	/* A few that nobody noticed, between many scrapes. */
	for (int i = 0; i < 10000; i++) {
		if (i % 10 == 0)
			total = 0;
		see(&l, total += 1 + drawn(&state));
		CHECK(!doubted(&l));
	}
}

TEST(an_idle_process_is_beyond_doubt)
{
	struct life l = { .kind = KIND_DELTA, .now_ns = 2, .connected_ns = 1 };

	for (int i = 0; i < 100; i++) {
		see(&l, 0);
		CHECK(!doubted(&l));
	}
}

TEST(counters_taken_for_differences_are_doubted)
{
	struct life l = { .kind = KIND_DELTA, .now_ns = 2, .connected_ns = 1 };
	double total = 1e15;

	for (int i = 0; i <= GROWTH_CHANGES; i++) {
		CHECK(!doubted(&l));
		l.connected_ns = l.now_ns - 1;
		see(&l, total += 4096);
		see(&l, total); /* nothing was added */
	}
	CHECK(doubted(&l));
	see(&l, 5); /* it restarts */
	CHECK(!doubted(&l));
}
