/* Discovery on real files in a directory of its own: what is delivered, and when. */
#include "discovery/discovery.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "tests/check.h"
#include "tests/discovery/dns_server.h"

#define DEADLINE_NS (10 * NS_PER_S)

struct fixture {
	char dir[64];
	struct discovery *d;
	struct arena arena;
	struct mutex lock;
	struct cond changed;
	/* guarded by lock */
	struct buf last[2]; /* per job (user is its index): addresses and labels, as text */
	int updates;
};

static void on_update(void *ctx, void *user, struct groups *g)
{
	struct fixture *f = ctx;
	struct buf *out = &f->last[(uintptr_t)user];

	mutex_lock(&f->lock);
	buf_clear(out);
	for (size_t i = 0; i < g->n; i++) {
		buf_add_str(out, g->v[i].source);
		buf_add_char(out, ' ');
		labels_print(out, g->v[i].labels);
		for (size_t k = 0; k < g->v[i].targets_n; k++) {
			buf_add_char(out, ' ');
			buf_add_str(out, labels_get(g->v[i].targets[k], STR("__address__")));
		}
		buf_add_char(out, '\n');
	}
	f->updates++;
	cond_broadcast(&f->changed);
	mutex_unlock(&f->lock);
}

static void fixture_init(struct fixture *f)
{
	struct discovery_options o = { .update = on_update, .ctx = f };
	struct err err;

	*f = (struct fixture){ .dir = "/tmp/epimetheus-sd-XXXXXX" };
	mutex_init(&f->lock);
	cond_init(&f->changed);
	arena_init(&f->arena, 0);
	if (!mkdtemp(f->dir) || discovery_open(&o, &f->d, &err))
		CHECK_FAIL("no fixture");
}

static void fixture_release(struct fixture *f)
{
	struct err err;

	discovery_close(f->d);
	CHECK_OK(fs_remove_tree(&fs_posix, f->dir, &err), &err);
	buf_release(&f->last[0]);
	buf_release(&f->last[1]);
	arena_release(&f->arena);
	mutex_destroy(&f->lock);
	cond_destroy(&f->changed);
}

static const char *in_dir(struct fixture *f, const char *name)
{
	return arena_printf(&f->arena, "%s/%s", f->dir, name);
}

static void put(struct fixture *f, const char *name, const char *text)
{
	FILE *out = fopen(in_dir(f, name), "w");

	if (!out || fputs(text, out) < 0 || fclose(out))
		CHECK_FAIL("cannot write %s", name);
}

/* sd from YAML: {static_configs: ..., file_sd_configs: ...} */
static enum err_code sd_of(struct fixture *f, const char *text, struct sd_configs *sd,
	struct err *err)
{
	static const struct yaml_field fields[] = { SD_CONFIG_FIELDS(0) };
	static const struct yaml_schema schema = {
		.name = "job", .size = sizeof(*sd), .fields = fields,
		.fields_n = sizeof(fields) / sizeof(fields[0]),
	};
	struct yaml_ctx ctx = { .arena = &f->arena, .dir = str_of(f->dir) };
	struct yaml_node *root;
	enum err_code rc;

	if ((rc = yaml_parse(&f->arena, "c.yml", str_of(text), &root, err)))
		return rc;
	return yaml_decode(&ctx, &schema, root, sd, err);
}

static void apply(struct fixture *f, const char *first, const char *second)
{
	const char *texts[2] = { first, second };
	struct sd_configs sd[2];
	struct sd_job jobs[2];
	struct err err;
	size_t n = 0;

	for (; n < 2 && texts[n]; n++) {
		CHECK_OK(sd_of(f, texts[n], &sd[n], &err), &err);
		jobs[n] = (struct sd_job){ n ? STR("second") : STR("first"), &sd[n], (void *)(uintptr_t)n };
	}
	CHECK_OK(discovery_apply(f->d, jobs, n, &err), &err);
}

static void expect(struct fixture *f, size_t job, const char *want)
{
	int64_t deadline = clock_monotonic_ns() + DEADLINE_NS;

	mutex_lock(&f->lock);
	while (!str_eq(buf_str(&f->last[job]), str_of(want)) &&
	       cond_wait_until(&f->changed, &f->lock, deadline))
		;
	CHECK_STR(buf_str(&f->last[job]), want);
	mutex_unlock(&f->lock);
}

TEST(statics_come_at_once_and_again_at_each_apply)
{
	struct fixture f;

	fixture_init(&f);
	apply(&f, "static_configs: [{targets: ['a:1', 'b:2'], labels: {x: y}}, {targets: [c]}]",
		"static_configs: []");
	CHECK_INT(f.updates, 2);
	CHECK_STR(buf_str(&f.last[0]), "0 {x=\"y\"} a:1 b:2\n1 {} c\n");
	CHECK_STR(buf_str(&f.last[1]), "");
	apply(&f, "static_configs: [{targets: [z]}]", NULL);
	CHECK_INT(f.updates, 3);
	CHECK_STR(buf_str(&f.last[0]), "0 {} z\n");
	fixture_release(&f);
}

TEST(files_are_noticed_as_they_change)
{
	struct fixture f;
	const char *one;

	fixture_init(&f);
	one = arena_printf(&f.arena, "%s/one.json:0 {__meta_filepath=\"%s/one.json\"} a:1\n", f.dir,
		f.dir);
	put(&f, "one.json", "[{\"targets\": [\"a:1\"]}]");
	put(&f, "other.txt", "not read");
	apply(&f, "file_sd_configs: [{files: ['*.json', two.yml, 'one.*.json', 'one.json']}]", NULL);
	expect(&f, 0, one);

	put(&f, "two.yml", "- targets: [b]\n  labels: {k: v, __meta_filepath: forged}\n");
	expect(&f, 0, arena_printf(&f.arena,
		"%s%s/two.yml:0 {__meta_filepath=\"%s/two.yml\", k=\"v\"} b\n", one, f.dir, f.dir));

	/* written elsewhere and moved over, as careful programs do */
	put(&f, "tmp", "- targets: [c]\n");
	CHECK_INT(rename(in_dir(&f, "tmp"), in_dir(&f, "two.yml")), 0);
	expect(&f, 0, arena_printf(&f.arena, "%s%s/two.yml:0 {__meta_filepath=\"%s/two.yml\"} c\n", one,
		f.dir, f.dir));

	CHECK_INT(unlink(in_dir(&f, "two.yml")), 0);
	expect(&f, 0, one);
	fixture_release(&f);
}

/*
 * A ConfigMap's volume: d/f.yml -> ..data/f.yml, ..data -> a versioned directory, swapped by a
 * rename.
 */
TEST(a_config_map_swap_is_noticed)
{
	struct fixture f;

	fixture_init(&f);
	mkdir(in_dir(&f, "..v1"), 0755);
	mkdir(in_dir(&f, "..v2"), 0755);
	put(&f, "..v1/f.yml", "- targets: [v1]\n");
	put(&f, "..v2/f.yml", "- targets: [v2]\n");
	CHECK_INT(symlink("..v1", in_dir(&f, "..data")), 0);
	CHECK_INT(symlink("..data/f.yml", in_dir(&f, "f.yml")), 0);
	apply(&f, "file_sd_configs: [{files: ['*.yml']}]", NULL);
	expect(&f, 0, arena_printf(&f.arena, "%s/f.yml:0 {__meta_filepath=\"%s/f.yml\"} v1\n", f.dir,
		f.dir));
	CHECK_INT(symlink("..v2", in_dir(&f, "..new")), 0);
	CHECK_INT(rename(in_dir(&f, "..new"), in_dir(&f, "..data")), 0);
	expect(&f, 0, arena_printf(&f.arena, "%s/f.yml:0 {__meta_filepath=\"%s/f.yml\"} v2\n", f.dir,
		f.dir));
	fixture_release(&f);
}

static double failures(void)
{
	struct buf b = { 0 };
	const char *at;
	double v = 0;

	metrics_print(&b);
	buf_add_char(&b, '\0');
	at = strstr(b.ptr, "epimetheus_discovery_failures_total{provider=\"file\"} ");
	if (at)
		v = strtod(strchr(at, ' '), NULL);
	buf_release(&b);
	return v;
}

TEST(a_broken_file_keeps_its_last_targets_also_across_an_apply)
{
	struct fixture f;
	const char *good;
	double before = failures();

	fixture_init(&f);
	good = arena_printf(&f.arena, "%s/a.yml:0 {__meta_filepath=\"%s/a.yml\"} a\n", f.dir, f.dir);
	put(&f, "a.yml", "- targets: [a]\n");
	apply(&f, "file_sd_configs: [{files: [a.yml]}]", NULL);
	expect(&f, 0, good);
	put(&f, "a.yml", "- targets: [b\n");
	for (int i = 0; i < 1000 && failures() == before; i++)
		usleep(10000);
	CHECK(failures() > before);
	expect(&f, 0, good);
	apply(&f, "file_sd_configs: [{files: ['*.yml']}]", NULL);
	CHECK_STR(buf_str(&f.last[0]), good);
	put(&f, "a.yml", "[]");
	expect(&f, 0, "");
	fixture_release(&f);
}

TEST(a_directory_that_appears_later_is_found)
{
	struct fixture f;

	fixture_init(&f);
	apply(&f, "file_sd_configs: [{files: ['later/*.yml'], refresh_interval: 1s}]", NULL);
	CHECK_STR(buf_str(&f.last[0]), "");
	mkdir(in_dir(&f, "later"), 0755);
	put(&f, "later/x.yml", "- targets: [x]\n");
	expect(&f, 0, arena_printf(&f.arena,
		"%s/later/x.yml:0 {__meta_filepath=\"%s/later/x.yml\"} x\n", f.dir, f.dir));
	fixture_release(&f);
}

TEST(configuration)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "static_configs: [{targets: [a, 'http://b']}]",
			"c.yml:1:32: \"http://b\" is not a valid hostname" },
		{ "static_configs: [~]", "c.yml:1:18: empty or null target group" },
		{ "file_sd_configs: [{files: [a.txt]}]",
		  "c.yml:1:28: path name \"a.txt\" is not valid for file discovery" },
		{ "file_sd_configs: [{files: ['*/a.yml']}]",
		  "c.yml:1:28: path name \"*/a.yml\" is not valid for file discovery" },
		{ "file_sd_configs: [{files: ['.yml']}]",
		  "c.yml:1:28: path name \".yml\" is not valid for file discovery" },
		{ "file_sd_configs: [{}]",
		  "c.yml:1:19: file service discovery config must contain at least one path name" },
		{ "file_sd_configs: [{files: [a.yml], refresh_interval: 1}]",
		  "c.yml:1:54: not a valid duration string: \"1\"" },
		{ "file_sd_configs: [~]", "c.yml:1:19: empty or null section in file_sd_configs" },
		{ "file_sd_configs: [{file: [a.yml]}]",
		"c.yml:1:20: field file not found in type file_sd_config" },
	};
	struct sd_configs sd;
	struct fixture f;
	struct err err;

	fixture_init(&f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_ERR(sd_of(&f, rows[i].text, &sd, &err), &err, ERR_INVALID, rows[i].want);
	REQUIRE_OK(sd_of(&f, "file_sd_configs: [{files: ['*.json', missing.yml]}]", &sd, &err), &err);
	CHECK_ERR(sd_check_files(&sd, &err), &err, ERR_NOT_FOUND, arena_printf(&f.arena,
		"open %s/missing.yml: No such file or directory", f.dir));
	put(&f, "missing.yml", "- targets: [x]");
	CHECK_OK(sd_check_files(&sd, &err), &err);
	fixture_release(&f);
}

/* The same entry in two jobs and in two configurations is asked for once per interval. */
TEST(jobs_share_dns_names)
{
	static const char yaml[] = "dns_sd_configs: [{names: [_a._tcp.test.], refresh_interval: 3s}]";
	struct dns_server server;
	struct discovery_options o = { .update = on_update, .dns_servers = server.address };
	struct fixture f;
	struct err err;

	REQUIRE(dns_server_start(&server, "_a._tcp.test SRV 81 b.test\n_a._tcp.test SRV 80 a.test\n"));
	fixture_init(&f);
	discovery_close(f.d);
	f.d = NULL;
	o.ctx = &f;
	REQUIRE_OK(discovery_open(&o, &f.d, &err), &err);
	apply(&f, yaml, yaml);
	expect(&f, 0, "_a._tcp.test. {} a.test:80 b.test:81\n");
	expect(&f, 1, "_a._tcp.test. {} a.test:80 b.test:81\n");
	apply(&f, yaml, NULL);
	CHECK_INT(dns_server_asked(&server, ""), 1);
	dns_server_zone(&server, "_a._tcp.test SRV 82 c.test\n");
	expect(&f, 0, "_a._tcp.test. {} c.test:82\n");
	fixture_release(&f);
	dns_server_stop(&server);
}
