#include "tsdb/columns/coding.h"

/*
 * The table of codings, and the two that store no cells. The writer tries them in this order; of
 * two that are equally short it keeps the first.
 */

static bool coding_base_take(const struct chunk *c, struct chunk_column *to, struct cursor *in)
{
	return chunk_take_reference(c, in, &to->base);
}

/* clang-format off */
const struct coding coding_zero = {
	.name = "zero",
	.byte = COLUMN_ZERO,
};

const struct coding coding_multiple = {
	.name = "multiple",
	.byte = COLUMN_MULTIPLE,
	.take_reference = coding_base_take,
};

const struct coding *const codings[CODINGS_N] = {
	&coding_zero,          /* no cell */
	&coding_multiple,      /* the cells of an earlier column, times another factor */
	&coding_like,          /* the numbers of an earlier column, with other units */
	&coding_scaled,        /* counted numbers, each key's times its unit, cut */
	&coding_scaled_levels, /* the same of levels */
	&coding_counted,       /* none negative: number and sum per key, how it falls into values */
	&coding_plain,         /* varints */
	&coding_levels,        /* varints of the differences to the row before */
};
/* clang-format on */

const struct coding *coding_of(unsigned byte)
{
	for (unsigned i = 0; i < CODINGS_N; i++)
		if ((byte & ~codings[i]->flags) == codings[i]->byte)
			return codings[i];
	return NULL;
}
