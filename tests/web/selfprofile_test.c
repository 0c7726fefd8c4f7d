/* Real threads of this program are sampled while they work in functions whose names must then be
 * found. */
#include "web/selfprofile.h"

#include <openssl/evp.h>

#include "base/clock.h"
#include "base/thread.h"
#include "proto/pprof.h"
#include "tests/check.h"

#define ENOUGH_NS (NS_PER_S / 10)

static atomic_bool stop_work;

__attribute__((noinline)) static uint64_t burn_in_c(uint64_t x)
{
	for (int i = 0; i < 100000; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

__attribute__((noinline)) static uint64_t outer_of_c(uint64_t x)
{
	return burn_in_c(x) + 1;
}

static void work_in_c(void *ctx)
{
	volatile uint64_t x = 1;

	(void)ctx;
	while (!atomic_load(&stop_work))
		x = outer_of_c(x);
}

/* Hand-written assembly below a library without frame pointers. */
__attribute__((noinline)) static void hash_once(const unsigned char *data, size_t n)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len;

	EVP_Digest(data, n, digest, &len, EVP_sha256(), NULL);
}

static void work_in_openssl(void *ctx)
{
	static unsigned char data[1 << 16];

	(void)ctx;
	while (!atomic_load(&stop_work))
		hash_once(data, sizeof(data));
}

static bool has_name(const struct pprof *p, const struct pprof_sample *s, const char *name)
{
	for (uint32_t i = 0; i < s->location_n; i++) {
		const struct pprof_location *l = &p->locations[p->location_ids[s->location_first + i]];

		if (l->line_n &&
			str_is(p->strings[p->functions[p->lines[l->line_first].function].name], name))
			return true;
	}
	return false;
}

static int64_t cost_of(const struct pprof *p, const char *leafward, const char *rootward)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->samples_n; i++)
		if (has_name(p, &p->samples[i], leafward) && has_name(p, &p->samples[i], rootward))
			sum += p->values[i * p->types_n + 1];
	return sum;
}

static struct pprof *capture(struct arena *a, int64_t duration_ns, struct buf *gz, struct err *err)
{
	struct pprof *p = NULL;
	struct str raw;

	if (selfprofile_capture(duration_ns, 200, NULL, gz, err) ||
		pprof_inflate(a, buf_str(gz), &pprof_limits_default, &raw, err) ||
		pprof_decode(a, raw, &pprof_limits_default, &p, err))
		CHECK_FAIL("capture: %s", err->msg);
	return p;
}

TEST(stacks_of_own_threads_are_named_through_libraries_without_frame_pointers)
{
	struct thread in_c = { 0 }, in_openssl = { 0 };
	struct buf gz = { 0 };
	struct arena a;
	struct pprof *p = NULL;
	struct err err;
	int64_t c = 0, ssl = 0;

#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer holds signals back until a thread waits: one that works is not seen");
#endif
	arena_init(&a, 0);
	selfprofile_init();
	atomic_store(&stop_work, false);
	REQUIRE_OK(thread_start(&in_c, "burner", work_in_c, NULL, &err), &err);
	REQUIRE_OK(thread_start(&in_openssl, "hasher", work_in_openssl, NULL, &err), &err);
	/* On a busy machine a thread may get little CPU in a second: then it samples one more. */
	for (int i = 0; i < 20 && (c < ENOUGH_NS || ssl < ENOUGH_NS); i++) {
		buf_clear(&gz);
		if (!(p = capture(&a, NS_PER_S, &gz, &err)))
			break;
		c += cost_of(p, "burn_in_c", "work_in_c");
		ssl += cost_of(p, "hash_once", "work_in_openssl");
		CHECK_INT(cost_of(p, "burn_in_c", "outer_of_c"), cost_of(p, "burn_in_c", "work_in_c"));
		CHECK_INT(
			cost_of(p, "hash_once", "thread_main"), cost_of(p, "hash_once", "work_in_openssl"));
	}
	atomic_store(&stop_work, true);
	thread_join(&in_c);
	thread_join(&in_openssl);
	REQUIRE(p != NULL);
	CHECK_INT(p->types_n, 2);
	CHECK_STR(p->strings[p->types[1].type], "cpu");
	CHECK_STR(p->strings[p->period_type.unit], "nanoseconds");
	CHECK_INT(p->period, 5000000);
	CHECK(p->duration_nanos >= NS_PER_S);
	CHECK(c >= ENOUGH_NS);
	CHECK(ssl >= ENOUGH_NS);
	buf_release(&gz);
	arena_release(&a);
}

TEST(a_second_capture_is_refused_and_a_canceled_one_ends)
{
	atomic_bool cancel = true;
	struct buf gz = { 0 };
	struct err err;

	CHECK_ERR(selfprofile_capture(60 * NS_PER_S, 100, &cancel, &gz, &err), &err, ERR_CANCELED,
		"cpu profile: canceled");
	CHECK_INT(gz.len, 0);
	buf_release(&gz);
}
