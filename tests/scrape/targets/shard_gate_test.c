/* The rule in force: what is being stored by it ends before another one is. */
#include "scrape/targets/shard_gate.h"

#include <stdlib.h>

#include "tests/check.h"
#include "tests/wait.h"

static struct err err;

/* A rule that gives this server the even keys, or the odd ones. */
struct parity {
	struct shard_rule rule;
	uint64_t odd;
	atomic_uint *released;
};

static enum shard_whose whose(const struct shard_rule *r, uint64_t key, struct shard_reason *why)
{
	if (key % 2 == ((const struct parity *)r)->odd)
		return SHARD_OWN;
	if (why)
		snprintf(why->text, sizeof(why->text), "another one has it");
	return SHARD_ELSEWHERE;
}

static void release(struct shard_rule *r)
{
	atomic_fetch_add(((struct parity *)r)->released, 1);
	free(r);
}

static struct shard parity_of(uint64_t odd, atomic_uint *released)
{
	struct parity *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	*p = (struct parity){ { .refs = 1, .whose = whose, .release = release }, odd, released };
	return (struct shard){ .rule = &p->rule };
}

struct setter {
	struct thread thread;
	struct shard_gate *gate;
	struct shard shard;
	atomic_bool done;
};

static void setter_run(void *ctx)
{
	struct setter *s = ctx;

	shard_gate_set(s->gate, &s->shard);
	atomic_store(&s->done, true);
}

TEST(a_new_rule_waits_for_what_is_inside)
{
	atomic_uint released = 0;
	struct shard even = parity_of(0, &released);
	struct setter s = { .shard = parity_of(1, &released) };
	struct shard_gate gate;
	unsigned turn, other;

	shard_gate_init(&gate, &even);
	shard_unref(&even);
	s.gate = &gate;
	CHECK_OK(shard_gate_enter(&gate, 2, &turn, &err), &err);
	CHECK_ERR(shard_gate_enter(&gate, 3, &other, &err), &err, ERR_CANCELED,
		"not stored: another one has it");
	REQUIRE_OK(thread_start(&s.thread, "set", setter_run, &s, &err), &err);
	/* The new rule is in force at once, and its setter waits all the same. */
	CHECK(WAIT_FOR(!shard_gate_enter(&gate, 3, &other, &err)));
	CHECK_ERR(shard_gate_enter(&gate, 2, &other, &err), &err, ERR_CANCELED,
		"not stored: another one has it");
	CHECK(!atomic_load(&s.done));
	CHECK_INT(released, 0);
	shard_gate_leave(&gate, turn);
	thread_join(&s.thread); /* what is inside by the new rule is not waited for */
	CHECK(atomic_load(&s.done));
	CHECK_INT(released, 1);
	shard_gate_leave(&gate, !turn);
	shard_unref(&s.shard);
	shard_gate_release(&gate);
	CHECK_INT(released, 2);
}

TEST(a_fixed_total)
{
	const struct shard all = { 0, 1, NULL }, third = { 1, 3, NULL };
	struct shard_reason why;
	unsigned own = 0;

	CHECK(shard_has_all(&all) && !shard_has_all(&third));
	CHECK_INT(shard_whose(&all, 7, NULL), SHARD_OWN);
	for (unsigned i = 0; i < 300; i++) {
		char address[16];
		uint64_t key;

		snprintf(address, sizeof(address), "h:%u", i);
		key = shard_key(STR("j"), str_of(address));
		if (shard_of(STR("j"), str_of(address), 3) == 1) {
			CHECK_INT(shard_whose(&third, key, &why), SHARD_OWN);
			own++;
		} else {
			CHECK_INT(shard_whose(&third, key, &why), SHARD_ELSEWHERE);
			CHECK(strstr(why.text, " scrapes it (shards 0 to 2)") != NULL);
		}
	}
	CHECK(own > 50 && own < 150);
}
