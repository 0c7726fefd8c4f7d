/*
 * The name of a format, by its first words or its first line: for what is refused.
 */
#include "proto/legacy/reader.h"

#define CPU_WORDS 5u
#define LINES_MAX 1000u /* of comments, before the first line that is none */

/* The beginning of the first line that is not a comment. */
static const struct {
	const char *opening, *name;
} texts[] = {
	{ "heap profile:", "heap profile (text)" },
	{ "heap_v2/", "heap profile of jemalloc (text)" },
	{ "--- heapz", "heap profile of Java (text)" },
	{ "--- growth", "heap growth profile (text)" },
	{ "--- fragmentation", "heap fragmentation profile (text)" },
	{ "--- contention", "contention profile (text)" },
	{ "--- mutex", "mutex profile (text)" },
	{ "--- threadz", "thread profile (text)" },
	{ "--- Thread ", "thread profile (text)" },
	{ "--- symbol", "symbolized profile of gperftools" },
	{ "--- profile", "profile of gperftools" },
	{ "--- heap", "heap profile of gperftools" },
	{ "--- Memory map", "memory map" },
};

/* The words of a CPU profile have 4 or 8 bytes, in either byte order. */
static uint64_t legacy_word_at(struct str raw, size_t i, size_t bytes, bool high_first)
{
	uint64_t v = 0;

	for (size_t k = 0; k < bytes; k++) {
		size_t at = high_first ? k : bytes - 1 - k;

		v = v << 8 | (unsigned char)raw.ptr[i * bytes + at];
	}
	return v;
}

/* Its first words: 0, 3, 0 (1: Java), the period in microseconds, 0. */
static const char *legacy_cpu_name(struct str raw)
{
	for (unsigned form = 0; form < 4; form++) {
		size_t bytes = form & 2 ? 8 : 4;
		uint64_t w[CPU_WORDS];

		if (raw.len < CPU_WORDS * bytes)
			continue;
		for (size_t i = 0; i < CPU_WORDS; i++)
			w[i] = legacy_word_at(raw, i, bytes, form & 1);
		if (w[0] == 0 && w[1] == 3 && w[2] <= 1 && w[3] > 0 && w[4] == 0)
			return w[2] ? "CPU profile of Java (binary)" : "CPU profile of gperftools (binary)";
	}
	return NULL;
}

/* "goroutine profile: total 12" */
static bool legacy_is_count(struct str line)
{
	static const struct str middle = { " profile: total ", 16 };
	ptrdiff_t at = str_find(line, middle);
	size_t i = at > 0 ? (size_t)at + middle.len : line.len;

	if (i >= line.len || str_find(line, STR(" ")) != at)
		return false;
	for (; i < line.len; i++)
		if (line.ptr[i] < '0' || line.ptr[i] > '9')
			return false;
	return true;
}

static const char *legacy_text_name(struct str line)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (str_has_prefix(line, str_of(texts[i].opening)))
			return texts[i].name;
	return legacy_is_count(line) ? "profile of counts (text)" : NULL;
}

const char *legacy_name(struct str raw)
{
	const char *name = legacy_cpu_name(raw);
	struct str rest = raw, line;
	ptrdiff_t end;

	for (size_t i = 0; i < LINES_MAX && !name && rest.len > 0; i++) {
		end = str_find(rest, STR("\n"));
		line = str_trim((struct str){ rest.ptr, end < 0 ? rest.len : (size_t)end });
		if (line.len > 0 && line.ptr[0] != '#')
			return legacy_text_name(line);
		rest = end < 0 ? STR("") : (struct str){ rest.ptr + end + 1, rest.len - (size_t)end - 1 };
	}
	return name;
}
