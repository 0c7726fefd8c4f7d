#include "scrape/symbol_cache.h"

#include "base/clock.h"
#include "tests/check.h"

static struct symbol_known known(const char *name)
{
	return (struct symbol_known){ .name = str_of(name), .known = true };
}

TEST(names_are_kept_per_process)
{
	struct symbol_cache *c = symbol_cache_open();
	const uint64_t addresses[3] = { 1, 2, 3 };
	struct symbol_known names[3] = { known("f"), known(""), { .known = false } }, got[3];
	struct symbol_entry *a, *b;

	REQUIRE(c);
	a = symbol_cache_enter(c, STR("u"), 1, 0);
	symbol_entry_add(a, addresses, 3, names);
	symbol_entry_find(a, addresses, 3, got);
	CHECK(got[0].known && got[1].known && !got[2].known);
	CHECK_STR(got[0].name, "f");
	CHECK_STR(got[1].name, "");
	names[0] = known("g");
	symbol_entry_add(a, addresses, 1, names);
	symbol_entry_find(a, addresses, 1, got);
	CHECK_STR(got[0].name, "f");
	CHECK(!symbol_entry_is_replaced(a));
	b = symbol_cache_enter(c, STR("u"), 2, 0);
	CHECK(symbol_entry_is_replaced(a));
	CHECK_STR(got[0].name, "f"); /* as long as it is held */
	symbol_entry_find(b, addresses, 1, got);
	CHECK(!got[0].known);
	symbol_cache_leave(a);
	symbol_cache_leave(b);
	b = symbol_cache_enter(c, STR("v"), 0, 0); /* of no known process: nothing is kept */
	symbol_entry_add(b, addresses, 3, names);
	symbol_entry_find(b, addresses, 3, got);
	CHECK(!got[0].known);
	symbol_cache_leave(b);
	CHECK_INT(symbol_cache_stats(c).entries, 2);
	symbol_cache_close(c);
}

TEST(whom_to_ask)
{
	static const int64_t waits[] = { 30, 60, 120, 240, 480, 600, 600 };
	struct symbol_cache *c = symbol_cache_open();
	struct symbol_entry *e = symbol_cache_enter(c, STR("u"), 1, 0);
	bool news;

	CHECK(symbol_entry_may_ask(e, 0));
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		symbol_entry_failed(e, 0, &news);
		CHECK_INT(news, i == 0);
		CHECK(!symbol_entry_may_ask(e, waits[i] * NS_PER_S - 1));
		CHECK(symbol_entry_may_ask(e, waits[i] * NS_PER_S));
	}
	symbol_entry_answered(e);
	CHECK(symbol_entry_may_ask(e, 0));
	symbol_entry_has_none(e, 0, &news);
	CHECK(news);
	CHECK(!symbol_entry_may_ask(e, NS_PER_HOUR - 1) && symbol_entry_may_ask(e, NS_PER_HOUR));
	symbol_entry_has_none(e, 0, &news);
	CHECK(!news);
	symbol_cache_leave(e);
	symbol_cache_close(c);
}

/* Of one process more names than fit: it begins anew. */
TEST(an_entry_is_bounded)
{
	enum { NAME = 4096 };
	struct symbol_cache *c = symbol_cache_open();
	struct symbol_entry *e = symbol_cache_enter(c, STR("u"), 1, 0);
	uint64_t n = 0;
	char name[NAME + 1];

	memset(name, 'x', NAME);
	name[NAME] = '\0';
	for (; symbol_cache_stats(c).entries && n < 2 * SYMBOL_ENTRY_BYTES_MAX / NAME; n++) {
		struct symbol_known k = known(name);

		snprintf(name, 17, "%016" PRIx64, n);
		name[16] = 'x';
		symbol_entry_add(e, &n, 1, &k);
		CHECK(symbol_cache_stats(c).bytes <= SYMBOL_ENTRY_BYTES_MAX + 64 * 1024);
	}
	CHECK_INT(symbol_cache_stats(c).entries, 0);
	CHECK_INT(symbol_cache_stats(c).bytes, 0);
	CHECK(n > SYMBOL_ENTRY_BYTES_MAX / NAME / 2);
	CHECK(!symbol_entry_is_replaced(e)); /* the answers are right */
	symbol_cache_leave(e);
	symbol_cache_close(c);
}

/* Of many processes: the one that was unused for longest goes. */
TEST(the_cache_is_bounded)
{
	struct symbol_cache *c = symbol_cache_open();
	struct symbol_known got, f = known("f");
	struct symbol_entry *e;
	const uint64_t address = 1;
	char service[32];

	for (unsigned i = 0; i < SYMBOL_ENTRIES_MAX + 10; i++) {
		snprintf(service, sizeof(service), "u%u", i);
		e = symbol_cache_enter(c, str_of(service), 1, i);
		symbol_entry_add(e, &address, 1, &f);
		symbol_cache_leave(e);
	}
	CHECK_INT(symbol_cache_stats(c).entries, SYMBOL_ENTRIES_MAX);
	CHECK(symbol_cache_stats(c).bytes <= SYMBOL_CACHE_BYTES_MAX);
	e = symbol_cache_enter(c, STR("u11"), 1, SYMBOL_ENTRIES_MAX + 10);
	symbol_entry_find(e, &address, 1, &got);
	CHECK(got.known);
	symbol_cache_leave(e);
	e = symbol_cache_enter(c, STR("u3"), 1, SYMBOL_ENTRIES_MAX + 11);
	symbol_entry_find(e, &address, 1, &got);
	CHECK(!got.known);
	symbol_cache_leave(e);
	symbol_cache_close(c);
}
