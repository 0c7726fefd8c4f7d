/* The two readers, as tables of what their files offer. */
#include "promql/reader.h"

#include <math.h>

#include "promql/changed.h"
#include "promql/numeric.h"
#include "promql/plan.h"
#include "promql/subquery.h"

static double promql_reader_scalar_of(const struct value *costs)
{
	return costs->n == 1 ? costs->costs[0].value : NAN;
}

/* NaN might be refused by an operator above, and the plan would end there. */
static double promql_reader_scalar_noted(const struct value *costs)
{
	(void)costs;
	return 1;
}

const struct reader reader_reads = {
	.find = plan_find_read,
	.profiles = plan_read_values,
	.numbers = numeric_read,
	.subquery = subquery_read,
	.changed = changed_eval,
	.scalar = promql_reader_scalar_of,
};

const struct reader reader_notes = {
	.find = plan_note_read,
	.profiles = plan_note_values,
	.numbers = numeric_note,
	.subquery = subquery_note,
	.changed = changed_plan,
	.scalar = promql_reader_scalar_noted,
};
