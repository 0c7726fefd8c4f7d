/* The list of wanted binaries: order, giving again, the limit. */
#include "tsdb/debuginfo/service/wanted.h"

#include <stdio.h>

#include "tests/check.h"

static struct debuginfo_id id_of(unsigned i)
{
	struct debuginfo_id id;
	char text[16];

	snprintf(text, sizeof(text), "%08x", i);
	if (debuginfo_id_init(&id, DEBUGINFO_GNU, str_of(text), NULL))
		abort();
	return id;
}

static void add(struct wanted *w, unsigned i, int64_t now_ns)
{
	struct debuginfo_id id = id_of(i);
	char path[32];

	snprintf(path, sizeof(path), "/bin/%u", i);
	wanted_add(w, &id, str_of(path), now_ns);
}

/* The next, which is given; 0: none. */
static unsigned take(struct wanted *w, int64_t now_ns)
{
	int64_t due_ns;
	const struct debuginfo_want *x = wanted_next(w, now_ns, &due_ns);
	unsigned i = x ? (unsigned)strtoul(x->path + 5, NULL, 10) : 0;
	struct debuginfo_id id = id_of(i);

	if (!x)
		return 0;
	CHECK(debuginfo_id_eq(&x->id, &id));
	wanted_give(w, &id, now_ns);
	return i;
}

TEST(new_ones_first_then_again)
{
	struct debuginfo_id two = id_of(2), four = id_of(4);
	int64_t again = DEBUGINFO_WANTED_AGAIN_NS, due_ns;
	struct wanted w;

	wanted_init(&w);
	CHECK(!wanted_next(&w, 0, &due_ns) && due_ns == INT64_MAX);
	add(&w, 1, 0);
	add(&w, 2, 1);
	CHECK_INT(take(&w, 5), 1);
	CHECK_INT(take(&w, 6), 2);
	CHECK_INT(take(&w, 7), 0);
	add(&w, 3, 8);
	CHECK_INT(take(&w, again + 10), 3); /* before those that were given */
	CHECK_INT(take(&w, again + 10), 1);
	wanted_remove(&w, &two);
	wanted_remove(&w, &four);
	CHECK(!wanted_find(&w, &two));
	CHECK(!wanted_next(&w, again + 11, &due_ns) && due_ns == again + 10 + again);
	CHECK_INT(take(&w, 2 * again + 10), 3);
	CHECK_INT(w.n, 2);
	wanted_release(&w);
}

TEST(the_oldest_goes)
{
	struct debuginfo_id id;
	struct wanted w;

	wanted_init(&w);
	add(&w, 1, 1);
	add(&w, 2, 2);
	CHECK_INT(take(&w, 3), 1);
	for (unsigned i = 3; i <= DEBUGINFO_WANTED_MAX; i++)
		add(&w, i, (int64_t)i + 1);
	CHECK_INT(w.n, DEBUGINFO_WANTED_MAX);
	add(&w, 5001, 5001);
	id = id_of(2);
	CHECK(!wanted_find(&w, &id));
	add(&w, 5002, 5002);
	id = id_of(1); /* given after 2 came, before 3 did */
	CHECK(!wanted_find(&w, &id));
	CHECK_INT(w.n, DEBUGINFO_WANTED_MAX);
	CHECK_INT(take(&w, 6000), 3);
	for (unsigned i = 0; i < 3 * DEBUGINFO_WANTED_MAX; i++)
		add(&w, 10000 + i, 7000 + (int64_t)i);
	CHECK_INT(w.n, DEBUGINFO_WANTED_MAX);
	wanted_release(&w);
}
