/* Which of the connections that wait makes room, compared with the rule by looking at all. */
#include "tests/check.h"
#include "web/http/crowd.h"

#define MEMBERS 64
#define SHARE 8
#define STEPS 6000

struct model_member {
	struct crowd_member member;
	struct http_sender client;
	unsigned since; /* 0: it does not wait */
};

struct model {
	struct crowd crowd;
	struct model_member members[MEMBERS];
	unsigned now;
};

static struct http_sender address(unsigned n)
{
	return (
		struct http_sender){ { 127, 0, (unsigned char)(n >> 8), (unsigned char)n, 0, 0, 0, 0, 4 } };
}

static unsigned waiting_of(const struct model *m, struct http_sender client)
{
	unsigned n = 0;

	for (int i = 0; i < MEMBERS; i++)
		n += m->members[i].since && http_same_client(m->members[i].client, client);
	return n;
}

/* No address has more waiting than that of c, if any has more than its share. */
static bool is_judged(const struct model *m, const struct model_member *c)
{
	unsigned most = 0;

	for (int i = 0; i < MEMBERS; i++)
		if (m->members[i].since && waiting_of(m, m->members[i].client) > most)
			most = waiting_of(m, m->members[i].client);
	return most <= SHARE || waiting_of(m, c->client) == most;
}

/* Two addresses may have equally many: either may give one, its own longest waiting. */
static void check_first(const struct model *m)
{
	const struct model_member *got = (const struct model_member *)crowd_next(&m->crowd, NULL);
	unsigned waiting = 0;

	for (int i = 0; i < MEMBERS; i++)
		waiting += m->members[i].since > 0;
	CHECK_INT(got != NULL, waiting > 0);
	if (!got)
		return;
	CHECK(got->since && is_judged(m, got));
	for (int i = 0; i < MEMBERS; i++) {
		const struct model_member *c = &m->members[i];
		bool same = http_same_client(c->client, got->client);

		if (c->since && (same || waiting_of(m, got->client) <= SHARE))
			CHECK(c->since >= got->since);
	}
}

static void check_walk(const struct model *m)
{
	struct crowd_member *first = crowd_next(&m->crowd, NULL), *c;
	struct http_sender client;
	unsigned n = 0, since = 0, want = 0;

	if (!first)
		return;
	client = ((struct model_member *)first)->client;
	for (c = first; c; c = crowd_next(&m->crowd, c), n++) {
		CHECK(((struct model_member *)c)->since > since);
		since = ((struct model_member *)c)->since;
	}
	for (int i = 0; i < MEMBERS; i++)
		want += m->members[i].since > 0;
	CHECK_INT(n, waiting_of(m, client) > SHARE ? waiting_of(m, client) : want);
}

static void step(struct model *m, struct model_member *c, unsigned addresses)
{
	if (c->since) {
		crowd_leave(&m->crowd, &c->member);
		c->since = 0;
	} else {
		c->client = address((unsigned)rand() % addresses);
		crowd_join(&m->crowd, &c->member, c->client);
		c->since = ++m->now;
	}
	check_first(m);
}

TEST(the_longest_waiting_of_the_greediest_address_is_the_first)
{
	static const unsigned addresses[] = { 1, 2, 3, 7, 9, 60, 5000 };
	struct model *m = calloc(1, sizeof(*m));

	srand(1);
	for (size_t a = 0; a < sizeof(addresses) / sizeof(addresses[0]); a++) {
		*m = (struct model){ 0 };
		REQUIRE(crowd_open(&m->crowd, MEMBERS));
		CHECK(!crowd_next(&m->crowd, NULL));
		for (int i = 0; i < STEPS && !check_failures; i += CHECK_STEP) {
			step(m, &m->members[rand() % MEMBERS], addresses[a]);
			if (i % 64 == 0)
				check_walk(m);
		}
		for (int i = 0; i < MEMBERS; i++)
			crowd_leave(&m->crowd, &m->members[i].member);
		crowd_close(&m->crowd);
	}
	free(m);
}

TEST(an_address_is_greedy_from_one_over_its_share_on)
{
	struct model *m = calloc(1, sizeof(*m));

	REQUIRE(crowd_open(&m->crowd, MEMBERS));
	crowd_join(&m->crowd, &m->members[0].member, address(1));
	for (int i = 1; i <= SHARE; i++)
		crowd_join(&m->crowd, &m->members[i].member, address(2));
	CHECK(crowd_next(&m->crowd, NULL) == &m->members[0].member);
	crowd_join(&m->crowd, &m->members[SHARE + 1].member, address(2));
	CHECK(crowd_next(&m->crowd, NULL) == &m->members[1].member);
	crowd_leave(&m->crowd, &m->members[1].member);
	CHECK(crowd_next(&m->crowd, NULL) == &m->members[0].member);
	for (int i = 0; i < MEMBERS; i++)
		crowd_leave(&m->crowd, &m->members[i].member);
	crowd_close(&m->crowd);
	free(m);
}
