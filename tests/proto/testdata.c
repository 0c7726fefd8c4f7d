#include "tests/proto/testdata.h"

#include "base/fs.h"
#include "proto/pprof.h"

#define FILE_BYTES_MAX (1u << 20)
#define DIR "tests/proto/testdata/"

/* clang-format off */
const char *const testdata[] = {
	DIR "go_cpu.pb.gz", DIR "go_heap.pb.gz", DIR "go_allocs.pb.gz", DIR "go_block.pb.gz",
	DIR "go_mutex.pb.gz", DIR "go_goroutine.pb.gz", DIR "go_threadcreate.pb.gz",
	DIR "go_goroutineleak.pb.gz",
};
/* clang-format on */
const size_t testdata_n = sizeof(testdata) / sizeof(testdata[0]);

enum err_code testdata_body(struct arena *a, const char *path, struct str *out, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc = fs_read_file(path, FILE_BYTES_MAX, &b, err);

	if (!rc)
		*out = str_dup(a, buf_str(&b));
	buf_release(&b);
	return rc;
}

enum err_code testdata_inflated(struct arena *a, const char *path, struct str *out, struct err *err)
{
	struct str body;
	enum err_code rc = testdata_body(a, path, &body, err);

	return rc ? rc : pprof_inflate(a, body, &pprof_limits_default, out, err);
}
