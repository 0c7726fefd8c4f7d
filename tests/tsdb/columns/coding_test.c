#include "tsdb/columns/coding.h"

#include "tests/check.h"

TEST(each_byte_is_of_one_coding_at_most)
{
	unsigned known = 0, rows;

	for (unsigned byte = 0; byte < 256; byte++) {
		rows = 0;
		for (unsigned i = 0; i < CODINGS_N; i++)
			rows += (byte & ~codings[i]->flags) == codings[i]->byte;
		if (rows > 1)
			CHECK_FAIL("byte 0x%02x is of %u codings", byte, rows);
		CHECK(!rows == !coding_of(byte));
		known += rows;
	}
	/* zero, multiple, like; counted, scaled, scaled levels with or without 32; levels 4; plain 8 */
	CHECK_INT(known, 3 + 2 * 3 + 4 + 8);
}

TEST(rows_of_the_table_are_whole)
{
	for (unsigned i = 0; i < CODINGS_N; i++) {
		const struct coding *c = codings[i];
		bool shares = c->flags & COLUMN_SHARED;

		CHECK(c->name && coding_of(c->byte) == c);
		CHECK((c->byte & c->flags) == 0);
		CHECK((c->shared_sections & ~c->sections) == 0);
		CHECK(shares == !!c->shared_sections);
		/* With sections it is written and read, without it has no cells of its own. */
		CHECK(!c->sections == !c->encode);
		CHECK(!c->sections == !c->add_some);
		/* Numbers and places of its own, or those of the column that it refers to. */
		if (c->sections & SECTION_BIT(SECTION_PLACES))
			CHECK(c->put_key && c->take_values);
		else if (c->sections)
			CHECK(c->take_reference);
		CHECK(!(c->byte & COLUMN_SCALED) == !(c->sections & SECTION_BIT(SECTION_UNITS)));
	}
}
