/*
 * Which format a body has: each is tried in google/pprof's order. And what google/pprof adds to
 * all of them: the names of frames that belong to the profiler or the allocator.
 */
#include "proto/legacy/reader.h"
#include "proto/legacy/symbols.h"

/* clang-format off */
/* Expressions for drop_frames and keep_frames, joined by '|'. */
static const char allocation_frames[] =
	/* POSIX */
	"calloc|cfree|malloc|free|memalign|do_memalign|(__)?posix_memalign|pvalloc|valloc|realloc|"
	/* tcmalloc */
	"tcmalloc::.*|tc_calloc|tc_cfree|tc_malloc|tc_free|tc_memalign|tc_posix_memalign|tc_pvalloc|"
	"tc_valloc|tc_realloc|tc_new|tc_delete|tc_newarray|tc_deletearray|tc_new_nothrow|"
	"tc_newarray_nothrow|"
	/* macOS */
	"malloc_zone_malloc|malloc_zone_calloc|malloc_zone_valloc|malloc_zone_realloc|"
	"malloc_zone_memalign|malloc_zone_free|"
	/* Go */
	"runtime\\..*|"
	/* others */
	"BaseArena::.*|(::)?do_malloc_no_errno|(::)?do_malloc_pages|(::)?do_malloc|"
	"DoSampledAllocation|MallocedMemBlock::MallocedMemBlock|_M_allocate|__builtin_(vec_)?delete|"
	"__builtin_(vec_)?new|__gnu_cxx::new_allocator::allocate|__libc_malloc|"
	"__malloc_alloc_template::allocate|allocate|cpp_alloc|operator new(\\[\\])?|"
	"simple_alloc::allocate";
static const char allocation_kept[] = "runtime\\.panic|runtime\\.reflectcall|runtime\\.call[0-9]*";
static const char cpu_frames[] = "ProfileData::Add|ProfileData::prof_handler|"
	"CpuProfiler::prof_handler|__pthread_sighandler|__restore";
static const char lock_frames[] =
	"RecordLockProfileData|(base::)?RecordLockProfileData.*|(base::)?SubmitMutexProfileData.*|"
	"(base::)?SubmitSpinLockProfileData.*|(base::Mutex::)?AwaitCommon.*|(base::Mutex::)?Unlock.*|"
	"(base::Mutex::)?UnlockSlow.*|(base::Mutex::)?ReaderUnlock.*|(base::MutexLock::)?~MutexLock.*|"
	"(Mutex::)?AwaitCommon.*|(Mutex::)?Unlock.*|(Mutex::)?UnlockSlow.*|(Mutex::)?ReaderUnlock.*|"
	"(MutexLock::)?~MutexLock.*|(SpinLock::)?Unlock.*|(SpinLock::)?SlowUnlock.*|"
	"(SpinLockHolder::)?~SpinLockHolder.*";

static const struct {
	enum err_code (*read)(struct legacy_reader *r, bool *is);
	const char *drop, *keep;
} texts[] = {
	{ legacy_heap, allocation_frames, allocation_kept },
	{ legacy_jemalloc, allocation_frames, allocation_kept },
	{ legacy_counts, cpu_frames, "" },
	{ legacy_threads, cpu_frames, "" },
	{ legacy_contentions, lock_frames, "" },
};
/* clang-format on */

static enum err_code legacy_unknown(struct legacy_reader *r, struct str raw)
{
	const char *name = legacy_name(raw);

	/* Texts but Java's are read above, if their first line is right. */
	if (name && strstr(name, "(text)") && !strstr(name, "Java"))
		return err_set(r->err, ERR_INVALID, "%s: its first line is damaged", name);
	if (name)
		return err_set(r->err, ERR_UNSUPPORTED, "a legacy %s is not supported", name);
	return err_set(r->err, ERR_INVALID, "not a profile in a format before protobuf");
}

static enum err_code legacy_decode_with(struct legacy_reader *r, struct str raw)
{
	const char *drop = cpu_frames, *keep = "";
	enum err_code rc;
	bool is = false;

	if ((rc = legacy_cpu(r, raw, &is)))
		return rc;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && !is; i++) {
		r->rest = raw;
		r->line_n = 0;
		reader_next(r);
		if ((rc = texts[i].read(r, &is)))
			return rc;
		drop = texts[i].drop;
		keep = texts[i].keep;
	}
	if (!is)
		return legacy_unknown(r, raw);
	r->p->drop_frames = pprof_builder_string(r->b, str_of(drop));
	r->p->keep_frames = pprof_builder_string(r->b, str_of(keep));
	return ERR_OK;
}

enum err_code legacy_decode(struct arena *a, struct str raw, const struct pprof_limits *limits,
	struct pprof **out, struct err *err)
{
	struct legacy_reader r = { .a = a, .limits = limits, .err = err, .seed = hash_seed() };
	enum err_code rc;

	if (!raw.len)
		return err_set(err, ERR_INVALID, "profile is empty");
	if (raw.len > limits->raw_bytes_max)
		return err_set(err, ERR_LIMIT, "profile is %zu bytes inflated, limit %zu", raw.len,
			limits->raw_bytes_max);
	if ((rc = pprof_builder_open(a, &r.b, err)))
		return rc;
	r.p = pprof_builder_profile(r.b);
	map_init(&r.by_address);
	if (!(rc = legacy_decode_with(&r, raw)))
		rc = pprof_builder_finish(r.b, out, err);
	map_release(&r.by_address);
	return rc;
}

/* Go's texts bring names in comments. */
static enum err_code legacy_name_by_comments(
	struct arena *a, struct str raw, const struct pprof **p, struct err *err)
{
	struct symbols s = { 0 };
	enum err_code rc = symbols_read_comments(a, raw, &s, err);

	if (rc || !s.n)
		return rc;
	symbols_sort(&s);
	return symbols_apply(a, *p, &s, p, err);
}

enum err_code legacy_decode_any(struct arena *a, struct str raw, const struct pprof_limits *limits,
	struct legacy_any *out, struct err *err)
{
	static const enum value_kind cpu_kinds[] = { KIND_DELTA, KIND_DELTA };
	struct pprof *p = NULL;
	struct err why;
	enum err_code rc = pprof_decode(a, raw, limits, &p, err);

	*out = (struct legacy_any){ .profile = p };
	if (rc != ERR_INVALID)
		return rc;
	rc = legacy_decode(a, raw, limits, &p, &why);
	out->is_legacy = !rc || legacy_name(raw);
	if (!out->is_legacy)
		return ERR_INVALID; /* as pprof_decode says */
	if (rc) {
		err_copy(err, &why);
		return rc;
	}
	out->profile = p;
	if (str_is(p->strings[p->period_type.type], "cpu"))
		out->kinds = cpu_kinds;
	return legacy_name_by_comments(a, raw, &out->profile, err);
}
