#include "tsdb/debuginfo/service/inspect.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/log.h"

enum err_code inspect_id(const struct debuginfo_id *id, const struct symindex *s, struct err *err)
{
	struct str inside = symindex_build_id(s), want = debuginfo_id_text(id);
	struct debuginfo_id same;
	bool is_gnu = !debuginfo_id_init(&same, DEBUGINFO_GNU, inside, NULL);

	if (id->kind == DEBUGINFO_GNU ?
			!is_gnu || str_eq(inside, want) :
			is_gnu || id->kind != DEBUGINFO_GO || str_has_prefix(want, inside))
		return ERR_OK;
	return err_set(err, ERR_INVALID, "the file has build id " STR_FMT ", not " STR_FMT,
		STR_ARG(inside), STR_ARG(want));
}

static enum debuginfo_places inspect_places(const struct symindex *s)
{
	enum debuginfo_places places = DEBUGINFO_PLACES_UNSAID;
	struct symindex_load l;

	for (uint32_t i = 0; symindex_load_at(s, i, &l); i++)
		if (l.executable && (!l.lost || places == DEBUGINFO_PLACES_UNSAID))
			places = l.lost ? DEBUGINFO_PLACES_LOST : DEBUGINFO_PLACES;
	return places;
}

enum err_code inspect_job(
	const struct debuginfo_job *j, struct debuginfo_found *found, struct err *err)
{
	struct symindex *x = NULL;
	struct stat st;
	enum err_code rc;
	void *map;

	if (fstat(j->out_fd, &st))
		return err_errno(err, errno, "index");
	if (st.st_size <= 0)
		return err_set(err, ERR_CORRUPT, "index is empty");
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, j->out_fd, 0);
	if (map == MAP_FAILED)
		return err_errno(err, errno, "map index");
	rc = symindex_open((struct str){ map, (size_t)st.st_size }, &x, err);
	if (!rc)
		rc = inspect_id(&j->id, x, err);
	if (!rc) {
		found->quality = (enum debuginfo_quality)symindex_best(x);
		found->places = inspect_places(x);
	}
	symindex_close(x);
	munmap(map, (size_t)st.st_size);
	return rc;
}

void inspect_older(struct debuginfo_job *j)
{
	struct debuginfo_index *older;
	struct symindex *x = NULL;
	struct err err;
	enum err_code rc;

	if (j->older_fd < 0 || debuginfo_peek(j->store, &j->id, &older, &err))
		return;
	if (!(rc = symindex_open(debuginfo_index_bytes(older), &x, &err)))
		rc = symindex_verify_all(x, &err);
	if (rc == ERR_CORRUPT) {
		log_warn("debuginfo", "stored symbols are damaged and removed",
			LOG_STR("id", debuginfo_id_text(&j->id)), LOG_E(&err));
		debuginfo_drop(j->store, older);
		debuginfo_job_forget_older(j);
	}
	symindex_close(x);
	debuginfo_index_close(older);
}
