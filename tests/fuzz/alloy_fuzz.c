/*
 * fuzz: cmd
 *
 * Any bytes as a configuration of Grafana Alloy: parsed and converted, or refused, within limits.
 * What comes out is YAML.
 */
#include "cmd/epitool/convert/alloy_convert.c"
#include "cmd/epitool/convert/alloy_lexer.c"
#include "cmd/epitool/convert/alloy_parser.c"
#include "cmd/epitool/convert/alloy_targets.c"
#include "cmd/epitool/convert/alloy_value.c"
#include "cmd/epitool/convert/item.c"
#include "cmd/epitool/convert/targets.c"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct buf out = { 0 };
	struct conversion x;
	struct arena a;
	struct err err;

	arena_init(&a, CONVERT_ARENA_BYTES_MAX);
	conversion_init(&x, &a, "f", text);
	if (!convert_alloy(&x, &err)) {
		struct yaml_node *root;

		items_print(&out, &x);
		require(!buf_failed(&out));
		/* A key may be there twice, and the file be longer than one may be. */
		if (yaml_parse(&a, "printed", buf_str(&out), &root, &err))
			require(err.code == ERR_LIMIT || strstr(err.msg, "already defined"));
	}
	buf_release(&out);
	arena_release(&a);
	return 0;
}
