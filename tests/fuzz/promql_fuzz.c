/*
 * fuzz: promql/engine
 *
 * Any text is parsed, checked and printed without harm; what was printed reads back as the same
 * tree, checks alike, and is printed the same again. A fault names a place inside the text.
 */
#include "promql/syntax/check.h"
#include "tests/fuzz/fuzz.h"

static void check_fault(struct str text, enum err_code rc, const struct query_error *where)
{
	struct buf shown = { 0 };

	require(rc == ERR_INVALID || rc == ERR_LIMIT);
	if (where->line == 0)
		return;
	require(where->code == rc && where->at.start <= where->at.end && where->at.end <= text.len);
	require(where->column >= 1 && where->msg[0]);
	query_error_print(&shown, text, where);
	require(!buf_failed(&shown));
	buf_release(&shown);
}

/* Reads `text`, which was printed from q, and compares. */
static void read_back(struct str text, const struct parsed *q, enum err_code checked, bool is_line)
{
	struct parsed *again = NULL;
	struct buf printed = { 0 };
	struct err err = { 0 };
	struct arena a;

	arena_init(&a, 0);
	require(parse_query(&a, text, &again, NULL, &err) == ERR_OK);
	require(expr_eq(q->root, again->root));
	require(check_query(again, NULL, &err) == checked);
	require(q->root->types == again->root->types || checked);
	expr_print(&printed, again->root);
	require(!is_line || str_eq(buf_str(&printed), text));
	buf_release(&printed);
	parsed_release(again);
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct parsed *q = NULL;
	struct query_error where;
	struct buf printed = { 0 };
	struct err err = { 0 };
	struct arena a;
	enum err_code rc;

	arena_init(&a, 16u << 20);
	rc = parse_query(&a, text, &q, &where, &err);
	if (rc) {
		check_fault(text, rc, &where);
	} else {
		rc = check_query(q, &where, &err);
		if (rc)
			check_fault(q->text, rc, &where);
		expr_print(&printed, q->root);
		if (printed.len <= QUERY_TEXT_MAX) /* blanks between tokens can make it longer */
			read_back(buf_str(&printed), q, rc, true);
		buf_clear(&printed);
		expr_print_pretty(&printed, q->root);
		if (printed.len <= QUERY_TEXT_MAX)
			read_back(buf_str(&printed), q, rc, false);
		buf_release(&printed);
	}
	parsed_release(q);
	arena_release(&a);
	return 0;
}
