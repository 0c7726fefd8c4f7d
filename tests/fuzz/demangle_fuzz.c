/*
 * fuzz: proto
 * Names of functions as a profile may bring them: whatever they are, what is shown of them is
 * bounded, and what is in front of it stays.
 */
#include "base/demangle/demangle.h"
#include "proto/function_name.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str name = { (const char *)data, size };
	struct buf out = { 0 };
	bool shown;

	buf_add_cstr(&out, "before");
	shown = function_name_shown(name, name, &out);
	require(str_has_prefix(buf_str(&out), STR("before")));
	require(shown ? out.len > 6 : out.len == 6);
	require(out.len < 4 * DEMANGLE_TEXT_MAX + size);
	buf_release(&out);
	return 0;
}
