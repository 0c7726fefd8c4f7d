/*
 * fuzz: cmd
 *
 * Any bytes as a configuration of Prometheus, Parca or Pyroscope (the first byte says which):
 * converted, or refused. What comes out is YAML.
 */
#include "cmd/epitool/convert/comments.c"
#include "cmd/epitool/convert/item.c"
#include "cmd/epitool/convert/prometheus.c"
#include "cmd/epitool/convert/pyroscope.c"
#include "cmd/epitool/convert/targets.c"
#include "cmd/epitool/convert/yaml_copy.c"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum err_code (*const converts[])(struct conversion *, struct err *) = { convert_prometheus,
		convert_parca, convert_pyroscope };
	struct buf out = { 0 };
	struct conversion x;
	struct arena a;
	struct err err;

	if (!size)
		return 0;
	arena_init(&a, CONVERT_ARENA_BYTES_MAX);
	conversion_init(&x, &a, "f", (struct str){ (const char *)data + 1, size - 1 });
	if (!converts[data[0] % 3](&x, &err)) {
		struct yaml_node *root;

		items_print(&out, &x);
		require(!buf_failed(&out));
		/* A key may be there twice, and aliases are written out. */
		if (yaml_parse(&a, "printed", buf_str(&out), &root, &err))
			require(err.code == ERR_LIMIT || strstr(err.msg, "already defined"));
	}
	buf_release(&out);
	arena_release(&a);
	return 0;
}
