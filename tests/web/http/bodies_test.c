/* Memory of bodies that are received: limits of one, of an address, of all, and which is dropped.
 */
#include "web/http/bodies.h"

#include "tests/check.h"

#define ALL 1000
#define SHARE 600
#define BODY_MAX 500

static const char bytes[ALL + 1];

static struct http_sender client(unsigned char n)
{
	return (struct http_sender){ { 127, 0, 0, n, 0, 0, 0, 0, 4 } };
}

static void add(struct bodies *all, struct http_body *b, unsigned char from, size_t n)
{
	body_add(all, b, client(from), bytes, n, BODY_MAX);
}

TEST(a_body_is_kept_up_to_its_limit)
{
	struct bodies all;
	struct http_body b = { 0 };

	bodies_init(&all, ALL, SHARE);
	add(&all, &b, 1, 300);
	add(&all, &b, 1, 200);
	CHECK_INT(b.refused, 0);
	CHECK_INT(b.data.len, 500);
	CHECK_INT(all.bytes, 500);
	add(&all, &b, 1, 1);
	CHECK_INT(b.refused, 413);
	CHECK_INT(b.data.len, 0);
	CHECK_INT(all.bytes, 0);
	add(&all, &b, 1, 1); /* stays refused */
	CHECK_INT(b.data.len, 0);
	body_drop(&all, &b);
}

TEST(an_address_has_a_share)
{
	struct http_body b[3] = { 0 };
	struct bodies all;

	bodies_init(&all, ALL, SHARE);
	add(&all, &b[0], 1, 400);
	add(&all, &b[1], 1, 201);
	CHECK_INT(b[1].refused, 429);
	add(&all, &b[2], 1, 200); /* refused bytes are not counted */
	CHECK_INT(b[2].refused, 0);
	body_drop(&all, &b[0]);
	b[0] = (struct http_body){ 0 };
	add(&all, &b[0], 1, 400);
	CHECK_INT(b[0].refused, 0);
	for (int i = 0; i < 3; i++)
		body_drop(&all, &b[i]);
	CHECK_INT(all.bytes, 0);
}

TEST(who_holds_most_gives_way)
{
	struct http_body b[5] = { 0 };
	struct bodies all;

	bodies_init(&all, ALL, SHARE);
	add(&all, &b[0], 1, 200);
	add(&all, &b[1], 1, 350);
	add(&all, &b[2], 2, 400);
	add(&all, &b[3], 3, 100); /* 1 holds 550: its longest body is dropped */
	CHECK_INT(b[1].refused, 503);
	CHECK_INT(b[0].refused | b[2].refused | b[3].refused, 0);
	CHECK_INT(all.bytes, 700);
	add(&all, &b[3], 3, 300); /* there is room */
	add(&all, &b[4], 4, 201); /* 2 and 3 hold 400 each: one of them */
	CHECK_INT(b[4].refused, 0);
	CHECK_INT(b[2].refused + b[3].refused, 503);
	CHECK_INT(all.bytes, 801);
	for (int i = 0; i < 5; i++)
		body_drop(&all, &b[i]);
	CHECK_INT(all.bytes, 0);
}

TEST(what_came_whole_stays_and_equals_do_not_take_from_each_other)
{
	struct http_body b[3] = { 0 };
	struct bodies all;

	bodies_init(&all, ALL, SHARE);
	add(&all, &b[0], 1, 500);
	add(&all, &b[1], 2, 500);
	b[0].whole = true;
	add(&all, &b[2], 3, 100); /* not the first: a worker has it */
	CHECK_INT(b[0].refused, 0);
	CHECK_INT(b[1].refused, 503);
	CHECK_INT(b[2].refused, 0);
	b[2].whole = true;
	body_drop(&all, &b[1]);
	b[1] = (struct http_body){ 0 };
	add(&all, &b[1], 2, 401); /* no body can be dropped for it */
	CHECK_INT(b[1].refused, 503);
	for (int i = 0; i < 3; i++)
		body_drop(&all, &b[i]);

	memset(b, 0, sizeof(b));
	add(&all, &b[0], 1, 500);
	add(&all, &b[1], 2, 499);
	add(&all, &b[1], 2, 1);
	CHECK_INT(all.bytes, ALL);
	add(&all, &b[2], 3, 500); /* it holds as much as the others: none of theirs is dropped */
	CHECK_INT(b[2].refused, 503);
	CHECK_INT(b[0].refused | b[1].refused, 0);
	for (int i = 0; i < 3; i++)
		body_drop(&all, &b[i]);
	CHECK_INT(all.bytes, 0);
}

TEST(many_addresses_come_and_go)
{
	static struct http_body b[900];
	struct bodies all;

	bodies_init(&all, ALL, SHARE);
	for (int round = 0; round < 3; round++) {
		memset(b, 0, sizeof(b));
		for (int i = 0; i < 900; i++) {
			struct http_sender c = { { (unsigned char)i, (unsigned char)(i >> 8) } };

			body_add(&all, &b[i], c, bytes, 1, BODY_MAX);
			CHECK_INT(b[i].refused, 0);
		}
		CHECK_INT(all.bytes, 900);
		for (int i = 899; i >= 0; i--)
			body_drop(&all, &b[i]);
		CHECK_INT(all.bytes, 0);
		for (size_t i = 0; i < BODIES_SLOTS; i++)
			CHECK(!all.slots[i]);
	}
}
