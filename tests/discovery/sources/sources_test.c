/* The registry of sources, with a provider that the test controls. */
#include "discovery/sources/sources.h"

#include "tests/check.h"

static struct {
	int opened, closed;
	struct sd_source *host;
	const char *in_open; /* address published from within open; NULL: none */
	bool fail;
} fake;

static struct groups *set_of(const char *address)
{
	struct label l = { STR("__address__"), str_of(address) };
	struct labels target = { &l, 1 };
	struct target_group g = { STR("0"), { 0 }, &target, 1 };
	struct groups *out;
	struct err err;

	if (groups_pack(&g, 1, &out, &err))
		abort();
	return out;
}

static enum err_code fake_open(const struct source_env *env, const void *config,
	struct sd_source *host, void **out, struct err *err)
{
	if (fake.in_open)
		source_publish(host, set_of(fake.in_open));
	if (fake.fail)
		return err_set(err, ERR_INVALID, "no");
	fake.opened++;
	fake.host = host;
	*out = &fake;
	return ERR_OK;
}

static void fake_close(void *provider)
{
	CHECK(provider == &fake);
	fake.closed++;
}

static const struct source_ops one = { .kind = "one", .open = fake_open, .close = fake_close };
static const struct source_ops two = { .kind = "two", .open = fake_open, .close = fake_close };

static void count(void *ctx)
{
	(*(int *)ctx)++;
}

static struct str address(const struct sd_source *s)
{
	struct groups *g = source_groups(s);

	return g && g->n ? labels_get(g->v[0].targets[0], STR("__address__")) : STR("");
}

TEST(equal_entries_share_a_source)
{
	const struct source_env env = { 0 };
	const struct source_config a = { &one, NULL, STR("a") }, b = { &one, NULL, STR("b") };
	const struct source_config a2 = { &two, NULL, STR("a") };
	int changes[4] = { 0 };
	struct source_use use[4];
	struct sources *s;
	struct err err;

	memset(&fake, 0, sizeof(fake));
	for (size_t i = 0; i < 4; i++)
		use[i] = (struct source_use){ .changed = count, .ctx = &changes[i] };
	REQUIRE_OK(sources_open(&env, &s, &err), &err);
	REQUIRE_OK(sources_acquire(s, &a, &use[0], &err), &err);
	REQUIRE_OK(sources_acquire(s, &a, &use[1], &err), &err);
	CHECK_INT(fake.opened, 1);
	CHECK(use[0].source == use[1].source);
	CHECK(!source_groups(use[0].source));

	source_publish(fake.host, set_of("x"));
	CHECK_STR(address(use[1].source), "x");
	source_publish(fake.host, set_of("x")); /* equal: dropped */
	CHECK_INT(changes[0], 1);
	CHECK_INT(changes[1], 1);

	REQUIRE_OK(sources_acquire(s, &b, &use[2], &err), &err);
	REQUIRE_OK(sources_acquire(s, &a2, &use[3], &err), &err);
	CHECK_INT(fake.opened, 3);
	CHECK(!source_groups(use[3].source));
	sources_release(&use[0]);
	sources_release(&use[0]); /* released already */
	CHECK_INT(fake.closed, 0);
	CHECK_STR(address(use[1].source), "x");
	for (size_t i = 1; i < 4; i++)
		sources_release(&use[i]);
	CHECK_INT(fake.closed, 3);
	sources_close(s);
}

TEST(what_open_publishes_is_there_and_a_failed_open_leaves_nothing)
{
	const struct source_env env = { 0 };
	const struct source_config a = { &one, NULL, STR("a") };
	struct source_use use;
	struct sources *s;
	int changes = 0;
	struct err err;

	memset(&fake, 0, sizeof(fake));
	use = (struct source_use){ .changed = count, .ctx = &changes };
	REQUIRE_OK(sources_open(&env, &s, &err), &err);
	fake.in_open = "early";
	fake.fail = true;
	CHECK_ERR(sources_acquire(s, &a, &use, &err), &err, ERR_INVALID, "no");
	CHECK(!use.source);
	CHECK_INT(fake.closed, 0);
	fake.fail = false;
	REQUIRE_OK(sources_acquire(s, &a, &use, &err), &err);
	CHECK_STR(address(use.source), "early");
	CHECK_INT(changes, 0);
	err_set(&err, ERR_IO, "broken");
	source_failed(fake.host, &err);
	CHECK_STR(address(use.source), "early");
	sources_release(&use);
	sources_close(s);
}

static struct {
	int made, freed;
	bool fail;
	void *seen; /* by the last open */
} common;

static enum err_code open_shared(const struct source_env *env, void **out, struct err *err)
{
	if (common.fail)
		return err_set(err, ERR_IO, "no share");
	common.made++;
	*out = &common;
	return ERR_OK;
}

static void close_shared(void *shared)
{
	CHECK(shared == &common);
	common.freed++;
}

static enum err_code sharing_open(const struct source_env *env, const void *config,
	struct sd_source *host, void **out, struct err *err)
{
	common.seen = env->shared;
	return fake_open(env, config, host, out, err);
}

TEST(sources_of_one_kind_share_what_it_makes)
{
	static const struct source_ops sharing = { .kind = "sharing",
		.open = sharing_open,
		.close = fake_close,
		.open_shared = open_shared,
		.close_shared = close_shared };
	const struct source_env env = { 0 };
	const struct source_config a = { &sharing, NULL, STR("a") }, b = { &sharing, NULL, STR("b") };
	struct source_use use[2] = { { .changed = count }, { .changed = count } };
	struct sources *s;
	struct err err;

	memset(&fake, 0, sizeof(fake));
	REQUIRE_OK(sources_open(&env, &s, &err), &err);
	common.fail = true;
	CHECK_ERR(sources_acquire(s, &a, &use[0], &err), &err, ERR_IO, "no share");
	CHECK(!use[0].source);
	common.fail = false;
	REQUIRE_OK(sources_acquire(s, &a, &use[0], &err), &err);
	CHECK(common.seen == &common);
	common.seen = NULL;
	REQUIRE_OK(sources_acquire(s, &b, &use[1], &err), &err);
	CHECK(common.seen == &common);
	CHECK_INT(common.made, 1);
	sources_release(&use[0]);
	sources_release(&use[1]);
	CHECK_INT(common.freed, 0); /* a reload may bring the kind back */
	sources_close(s);
	CHECK_INT(common.freed, 1);
}

struct entry {
	struct str name;
};

static const struct yaml_field entry_fields[] = {
	{ "name", YAML_STRING, 0, NULL, NULL, "", 0 },
	{ "secret", YAML_SECRET, 0, NULL, NULL, "", 0 },
};
static const struct yaml_schema entry_schema = {
	.name = "entry",
	.size = sizeof(struct entry),
	.fields = entry_fields,
	.fields_n = 2,
};

static enum err_code decode(
	struct arena *a, const char *dir, const char *text, struct source_configs *out, struct err *err)
{
	struct yaml_ctx ctx = { .arena = a, .dir = str_of(dir) };
	struct yaml_node *root;
	enum err_code rc;

	if ((rc = yaml_parse(a, "c.yml", str_of(text), &root, err)))
		return rc;
	return source_configs_decode(&ctx, root, "ones", &one, &entry_schema, out, err);
}

TEST(identity_is_what_an_entry_says_and_where)
{
	static const struct {
		const char *dir, *text;
		bool same;
	} rows[] = {
		{ "/d", "[name: x]", true },
		{ "/d", "- {'name': \"x\"} # written otherwise", true },
		{ "/e", "[name: x]", false },
		{ "/d", "[name: y]", false },
		{ "/d", "[{name: x, secret: z}]", false },
		{ "/d", "[{}]", false },
	};
	struct source_configs first = { 0 }, other, many = { 0 };
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(decode(&a, "/d", "[{name: x}]", &first, &err), &err);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		other = (struct source_configs){ 0 };
		REQUIRE_OK(decode(&a, rows[i].dir, rows[i].text, &other, &err), &err);
		CHECK_INT(other.n, 1);
		CHECK_INT(str_eq(other.v[0].identity, first.v[0].identity), rows[i].same);
	}
	REQUIRE_OK(decode(&a, "/d", "[name: '0', name: '1', name: '2', name: '3']", &many, &err), &err);
	REQUIRE_OK(decode(&a, "/d", "[{name: '4'}, {name: '5'}]", &many, &err), &err);
	CHECK_INT(many.n, 6);
	for (size_t i = 0; i < many.n; i++)
		CHECK_INT(((const struct entry *)many.v[i].config)->name.ptr[0], '0' + (int)i);
	CHECK_ERR(decode(&a, "", "[~]", &many, &err), &err, ERR_INVALID,
		"c.yml:1:2: empty or null section in ones");
	CHECK_ERR(decode(&a, "", "{}", &many, &err), &err, ERR_INVALID,
		"c.yml:1:1: expected a list of entry");
	arena_release(&a);
}
