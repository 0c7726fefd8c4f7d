/* What the list says of binaries that profiles name. */
#include <stdio.h>

#include "base/clock.h"
#include "base/gzip/gzip.h"
#include "tests/check.h"
#include "tests/web/grafana.h"
#include "web/debuginfo/binaries.h"

struct native {
	const char *path, *build_id;
	uint32_t first, n; /* addresses */
	bool named; /* they have lines */
	bool placeless; /* they have no address */
};

static void ingest(const char *job, const struct native *v, size_t n, int64_t at_s)
{
	struct pprof_builder *b;
	struct buf raw = { 0 }, gz = { 0 };
	struct pprof *p;
	struct arena a;
	struct err err = { .msg = "a profile is not taken" };
	char path[200];
	int64_t value = 1;

	arena_init(&a, 0);
	must(pprof_builder_open(&a, &b, &err), &err);
	pprof_builder_type(b, STR("samples"), STR("count"));
	for (size_t i = 0; i < n; i++) {
		struct pprof_mapping m = { .start = 0x400000 + 0x1000000 * i,
			.limit = 0x400000 + 0x1000000 * i + 0x800000,
			.filename = pprof_builder_string(b, str_of(v[i].path)),
			.build_id = pprof_builder_string(b, str_of(v[i].build_id)) };
		struct pprof_function f = { .name = pprof_builder_string(b, STR("f")) };
		struct pprof_line line = { .function = pprof_builder_function(b, &f), .line = 1 };
		uint32_t mapping = pprof_builder_mapping(b, &m);

		for (uint32_t k = 0; k < v[i].n; k++) {
			struct pprof_location l = { .mapping = mapping,
				.address = v[i].placeless ? 0 : m.start + 16 * (v[i].first + k) };
			uint32_t at = pprof_builder_location(b, l, &line, v[i].named);

			pprof_builder_sample(b, &at, 1, NULL, 0, &value);
		}
	}
	must(pprof_builder_finish(b, &p, &err), &err);
	must(pprof_encode(p, &raw, &err), &err);
	must(gzip_compress(buf_str(&raw), 1, &gz, &err), &err);
	snprintf(path, sizeof(path),
		"POST /api/v1/ingest?name=process_cpu&job=%s&interval=10s&time=%lld", job, (long long)at_s);
	peer_ask(web_port(grafana.web), &grafana.r, path, "", buf_str(&gz));
	must(grafana.r.status == 200 ? ERR_OK : ERR_INVALID, &err);
	buf_release(&raw);
	buf_release(&gz);
	arena_release(&a);
}

#define HEAD \
	"{\"status\":\"success\",\"data\":{\"enabled\":false,\"uploadEnabled\":false,\"bytes\":0," \
	"\"bytesMax\":0,\"debuginfod\":[],\"directories\":[],\"binaries\":["

TEST(addresses_without_lines_are_counted_once)
{
	static const struct native a[] = { { "/bin/x", "aabb", 0, 10, false },
		{ "/lib/y.so", "", 0, 3, false }, { "/bin/z", "ccdd", 0, 5, true },
		{ "/bin/go", "Go/build/id", 0, 2, false }, { "/bin/w", "eeff", 0, 1, false, true } };
	static const struct native b[] = { { "/bin/x", "aabb", 5, 10, false },
		{ "/proc/1/exe", "00112233445566778899aabbccddeeff", 0, 1, false } };

	grafana_start();
	ingest("one", a, sizeof(a) / sizeof(a[0]), T0);
	ingest("two", b, sizeof(b) / sizeof(b[0]), T0);
	CHECK_STR(grafana_get("/api/v1/symbols?start=1699999990&end=1700000010"),
		HEAD
		"{\"id\":\"aabb\",\"kind\":\"gnu\",\"path\":\"/bin/x\",\"jobs\":[\"one\",\"two\"],"
		"\"addresses\":15,\"state\":\"unknown\"},"
		"{\"id\":\"\",\"kind\":\"\",\"path\":\"/lib/y.so\",\"jobs\":[\"one\"],\"addresses\":3,"
		"\"state\":\"unknown\"},"
		"{\"id\":\"Go/build/id\",\"kind\":\"go\",\"path\":\"/bin/go\",\"jobs\":[\"one\"],"
		"\"addresses\":2,\"state\":\"unknown\"},"
		"{\"id\":\"00112233445566778899aabbccddeeff\",\"kind\":\"file\",\"path\":\"/proc/1/exe\","
		"\"jobs\":[\"two\"],\"addresses\":1,\"state\":\"unknown\"}]}}\n");
	CHECK_STR(grafana_get("/api/v1/symbols"), HEAD "]}}\n"); /* the last hour */
	CHECK_STR(grafana_get("/api/v1/symbols?id=aabb&start=0"), HEAD "]}}\n");
	grafana_get("/api/v1/symbols?start=x");
	CHECK_INT(grafana.r.status, 400);
	grafana_get("/api/v1/symbols?start=10&end=5");
	CHECK_INT(grafana.r.status, 400);
	grafana_stop();
}

TEST(a_listed_thousand)
{
	static struct native v[1100];
	static char ids[1100][16];

	grafana_start();
	for (uint32_t i = 0; i < 1100; i++) {
		snprintf(ids[i], sizeof(ids[i]), "%08x", i);
		v[i] = (struct native){ "/bin/x", ids[i], 0, 1 + i / 1099, false };
	}
	ingest("one", v, 1100, T0);
	grafana_get("/api/v1/symbols?start=1699999990&end=1700000010");
	CHECK_INT(grafana_count("\"id\":"), 1000);
	CHECK_INT(grafana_count("\"binaries\":[{\"id\":\"0000044b\""), 1);
	CHECK_INT(grafana_count("\"warnings\":[\"there are more binaries than are listed\"]"), 1);
	grafana_stop();
}

TEST(kinds_by_their_looks)
{
	static const struct {
		const char *text;
		int kind; /* -1: none */
	} rows[] = { { "", -1 }, { "a", -1 }, { "ab", DEBUGINFO_GNU }, { "AB", DEBUGINFO_GNU },
		{ "0123456789012345678901234567890123456789", DEBUGINFO_GNU },
		{ "01234567890123456789012345678901", DEBUGINFO_FILE }, { "x/y/z", DEBUGINFO_GO },
		{ "not an id", -1 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct debuginfo_id id;
		bool is = debuginfo_id_guess(str_of(rows[i].text), &id);

		CHECK_INT(is ? id.kind : -1, rows[i].kind);
	}
}
