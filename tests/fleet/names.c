#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/fleet/internal.h"

/*
 * Names as Go's: about half of the functions are of the standard library, the same for all
 * services; the others are the service's own.
 */
static const char *const std_packages[] = { "runtime", "net/http", "encoding/json", "internal/poll",
	"bufio", "sync", "crypto/tls", "compress/flate", "reflect", "strconv", "syscall", "bytes",
	"context", "regexp", "sort", "io", "net", "time", "os", "fmt" };
static const char *const own_packages[] = { "internal/order", "internal/cart", "internal/search",
	"internal/storage", "pkg/client", "pkg/codec", "internal/pricing", "internal/cache",
	"internal/handlers", "pkg/tracing", "internal/ranking", "internal/session" };
static const char *const verbs[] = { "scan", "parse", "encode", "read", "write", "merge", "find",
	"update", "flush", "resolve", "render", "compare", "grow", "insert", "walk", "decode" };
static const char *const nouns[] = { "Index", "Block", "Header", "Entry", "Token", "Value", "Frame",
	"Key", "Batch", "Row", "Node", "Span", "Label", "Page", "Queue", "State" };

#define PICK(list, h) ((list)[(h) % (sizeof(list) / sizeof((list)[0]))])

/*
 * Of C++, mangled, or of Go with an interface in brackets: a name that is shown differently. Of
 * those of C++ a quarter differ from others in their parameters alone, so they are shown as one.
 */
static const char *name_shown(
	struct fleet *f, uint32_t function, uint64_t h, const char *verb, const char *noun)
{
	static const char params[] = "ijlmdfbchs"; /* int, unsigned, ... */
	const char *own = nouns[h >> 24 & 3];
	char call[64];

	if (h >> 44 & 1)
		return arena_printf(&f->arena, "%s.%s%s%" PRIu32 "[interface { %s(int) }]",
			PICK(own_packages, h), verb, noun, function, own);
	if (h >> 45 & 3)
		snprintf(call, sizeof(call), "%s%s%" PRIu32, verb, noun, function);
	else
		snprintf(call, sizeof(call), "%s", verb);
	return arena_printf(&f->arena, "_ZN4shop%zu%s%zu%sE%c", strlen(own), own, strlen(call), call,
		params[function % (sizeof(params) - 1)]);
}

static bool name_function(struct fleet *f, uint32_t function, struct function *out)
{
	uint64_t h = mix2(f->p.seed ^ 0x6e616d65, function);
	bool method = h >> 62 & 1, shown = (double)(h >> 48 & 1023) < f->p.shown * 1024;
	const char *verb = PICK(verbs, h >> 8), *noun = PICK(nouns, h >> 16), *package, *name, *file;
	char call[96];

	out->own = h >> 63 && !shown;
	package = out->own ? PICK(own_packages, h) : PICK(std_packages, h);
	snprintf(call, sizeof(call), method ? ".(*%s).%s%s%" PRIu32 : ".%.0s%s%s%" PRIu32,
		PICK(nouns, h >> 24), verb, noun, function);
	name = arena_printf(&f->arena, "%s%s%s", package, call, (h >> 32 & 15) == 0 ? ".func1" : "");
	if (shown)
		name = name_shown(f, function, h, verb, noun);
	file = arena_printf(&f->arena, "%s%s/%s%s.go", out->own ? "" : "/usr/local/go/src/", package,
		verb, (h >> 40 & 1) ? noun : "");
	out->name = str_of(name);
	out->file = str_of(file);
	out->start_line = 10 + (int64_t)(h >> 20 & 1023);
	return name && file;
}

enum err_code fleet_name_functions(struct fleet *f, struct err *err)
{
	f->names = arena_array(&f->arena, struct function, f->p.functions);
	for (uint32_t i = 0; i < f->p.functions && f->names; i++)
		if (!name_function(f, i, &f->names[i]))
			return arena_fail(&f->arena, "names of a fleet", err);
	return f->names ? ERR_OK : arena_fail(&f->arena, "names of a fleet", err);
}
