#include "web/render/render.h"

#define BINARY "application/octet-stream"
#define TEXT "text/plain; charset=utf-8"

/* clang-format off */
const struct render_format render_formats[] = {
	{ .name = "json", .content_type = "application/json" },
	{ .name = "pprof", .write = render_pprof_gz, .content_type = BINARY,
		.suffix = "pb.gz",
		.encoded = true, .sample_labels = true, .whole_scrapes = true },
	{ .name = "pgo", .write = render_pgo_gz, .content_type = BINARY,
		.suffix = "pgo", .encoded = true },
	{ .name = "folded", .write = render_folded, .content_type = TEXT,
		.suffix = "folded.txt", .shown = true },
	{ .name = "speedscope", .write = render_speedscope, .content_type = "application/json",
		.suffix = "speedscope.json" },
	{ .name = "text", .write = render_text, .content_type = TEXT,
		.suffix = "txt", .shown = true, .sample_labels = true },
};
/* clang-format on */
const size_t render_formats_n = sizeof(render_formats) / sizeof(render_formats[0]);

const struct render_format *render_format_find(struct str name)
{
	for (size_t i = 0; i < render_formats_n; i++)
		if (str_is(name, render_formats[i].name))
			return &render_formats[i];
	return NULL;
}
