/*
 * fuzz: base/net
 *
 * Any bytes as a document: parsed or refused within the limits. What is parsed is printed and read
 * again, and prints the same.
 */
#include "base/yaml/yaml.h"
#include "tests/fuzz/fuzz.h"

static void shown(struct buf *out, struct str text, bool must)
{
	struct yaml_node *n;
	struct arena a;
	struct err err;
	enum err_code rc;

	arena_init(&a, 64u << 20);
	rc = yaml_parse(&a, "fuzz.yml", text, &n, &err);
	if (rc == ERR_OK)
		yaml_print(out, n, NULL);
	else if (must && rc == ERR_INVALID)
		abort();
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf first = { 0 }, second = { 0 };

	shown(&first, (struct str){ (const char *)data, size }, false);
	if (first.len && first.len <= YAML_FILE_BYTES_MAX) {
		shown(&second, buf_str(&first), true);
		if (second.len && !str_eq(buf_str(&first), buf_str(&second)))
			abort();
	}
	buf_release(&first);
	buf_release(&second);
	return 0;
}
