/* The table against a plain list of the same keys, while entries come and go. */
#include "discovery/kubernetes/entries.h"

#include <stdlib.h>

#include "tests/check.h"

#define KEYS 3000

struct world {
	struct kube_entries t;
	uint64_t seed;
	bool there[KEYS];
	uint64_t dep[KEYS]; /* what it looked up last */
};

static unsigned draw(struct world *w, unsigned below)
{
	w->seed = w->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (unsigned)(w->seed >> 33) % below;
}

static unsigned number_of(const char *text)
{
	uint64_t n = KEYS;

	CHECK(str_to_u64(str_of(text), &n) && n < KEYS);
	return (unsigned)n;
}

static struct str name_of(char buf[16], unsigned i)
{
	return (struct str){ buf, (size_t)snprintf(buf, 16, "k%05u", i) };
}

static struct groups *group_of(struct str source)
{
	struct target_group g = { .source = source };
	struct groups *out = NULL;
	struct err err;

	CHECK_OK(groups_pack(&g, 1, &out, &err), &err);
	return out;
}

/* Marked entries get their group anew, or go if they are not there any more. */
static size_t rebuild(struct world *w)
{
	struct kube_entry *e;
	struct err err;
	size_t n = 0;
	unsigned i;

	for (; (e = kube_entries_take(&w->t)); n++) {
		i = number_of(e->key + 1);
		CHECK_INT(e->ns, i % 7);
		if (!w->there[i]) {
			kube_entries_remove(&w->t, e);
			continue;
		}
		w->dep[i] = draw(w, 5);
		CHECK_OK(kube_entries_give(&w->t, e, group_of((struct str){ e->key, e->key_len }),
					 (uint64_t[]){ w->dep[i], 1000 + i }, 2, &err),
			&err);
	}
	return n;
}

static void check_all(struct world *w)
{
	const struct target_group *g;
	struct groups_cursor c;
	struct groups *all;
	struct err err;
	char name[16];

	REQUIRE_OK(kube_entries_join(&w->t, &all, &err), &err);
	groups_begin(&c, all);
	for (unsigned i = 0; i < KEYS; i++)
		if (w->there[i] && ((g = groups_next(&c)) == NULL || !str_eq(g->source, name_of(name, i))))
			CHECK_FAIL("%s is not at its place", name);
	CHECK(!groups_next(&c));
	groups_unref(all);
}

static void put(struct world *w, unsigned i, bool there)
{
	char name[16];

	if (!there && !w->there[i])
		return;
	w->there[i] = there;
	CHECK(kube_entries_mark(&w->t, name_of(name, i), i % 7));
}

TEST(entries_come_and_go)
{
	struct world *w = calloc(1, sizeof(*w));
	size_t want;

	REQUIRE(w);
	w->seed = 3;
	kube_entries_init(&w->t);
	CHECK(!kube_entries_take(&w->t));
	check_all(w);
	for (unsigned i = 0; i < KEYS; i += 2) /* in order, as a first list comes */
		put(w, i, true);
	CHECK_INT(rebuild(w), KEYS / 2);
	check_all(w);
	for (int step = 0; step < 60 && !check_failures; step++) {
		bool grow = step < 20 || step > 40;

		for (int k = 0; k < 120; k++)
			put(w, draw(w, KEYS), draw(w, 4) < (grow ? 3u : 1u));
		rebuild(w);
		check_all(w);
		want = 0;
		for (unsigned i = 0; i < KEYS; i++)
			want += w->there[i] && w->dep[i] == 3;
		kube_entries_mark_those_of(&w->t, 3);
		CHECK_INT(rebuild(w), want);
		check_all(w);
	}
	for (unsigned i = 0; i < KEYS; i++)
		put(w, i, false);
	rebuild(w);
	CHECK_INT(w->t.n, 0);
	CHECK_INT(w->t.pages_n, 0);
	CHECK_INT(w->t.links_n, 0);
	check_all(w);
	kube_entries_release(&w->t);
	free(w);
}

TEST(a_change_makes_one_page_anew)
{
	struct world *w = calloc(1, sizeof(*w));
	struct groups *before, *after;
	struct err err;
	size_t same = 0;

	REQUIRE(w);
	kube_entries_init(&w->t);
	for (unsigned i = 0; i < KEYS; i++)
		put(w, i, true);
	rebuild(w);
	REQUIRE_OK(kube_entries_join(&w->t, &before, &err), &err);
	put(w, 7, true); /* the same group again */
	rebuild(w);
	put(w, 1500, false);
	rebuild(w);
	REQUIRE_OK(kube_entries_join(&w->t, &after, &err), &err);
	REQUIRE(before->parts_n == after->parts_n && before->parts_n == 12);
	for (size_t i = 0; i < 12; i++)
		same += before->parts[i] == after->parts[i];
	CHECK_INT(same, 11);
	groups_unref(before);
	groups_unref(after);
	kube_entries_mark_all(&w->t);
	CHECK_INT(rebuild(w), KEYS - 1);
	kube_entries_release(&w->t);
	free(w);
}
