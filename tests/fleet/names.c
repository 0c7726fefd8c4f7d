#include <inttypes.h>
#include <stdio.h>

#include "tests/fleet/names.h"

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

void fleet_function_name(const struct fleet *f, uint32_t service, uint32_t function,
	struct fleet_names *out)
{
	uint64_t h = mix2(f->p.seed ^ 0x6e616d65, function);
	bool own = h >> 63, method = h >> 62 & 1;
	const char *package = own ? PICK(own_packages, h) : PICK(std_packages, h);
	const char *verb = PICK(verbs, h >> 8), *noun = PICK(nouns, h >> 16);
	char prefix[64] = "", call[96];

	if (own)
		snprintf(prefix, sizeof(prefix), "github.com/acme/svc%03" PRIu32 "/", service);
	snprintf(call, sizeof(call), method ? ".(*%s).%s%s%" PRIu32 : ".%.0s%s%s%" PRIu32,
		PICK(nouns, h >> 24), verb, noun, function);
	snprintf(out->name, sizeof(out->name), "%s%s%s%s", prefix, package, call,
		(h >> 32 & 15) == 0 ? ".func1" : "");
	snprintf(out->file, sizeof(out->file), "%s%s%s/%s%s.go",
		own ? "/build/" : "/usr/local/go/src/", prefix, package, verb,
		(h >> 40 & 1) ? noun : "");
	out->start_line = 10 + (int64_t)(h >> 20 & 1023);
}
