#include "web/debuginfo/file.h"

#include "tsdb/debuginfo/elf/elf.h"

enum err_code debuginfo_file_ids(
	struct str head, bool goes_on, struct debuginfo_file_ids *out, struct err *err)
{
	struct elf *e;
	struct str text;
	enum err_code rc;

	*out = (struct debuginfo_file_ids){ 0 };
	if (head.len > FILE_HEAD_BYTES_MAX) {
		head.len = FILE_HEAD_BYTES_MAX;
		goes_on = true;
	}
	if ((rc = goes_on ? elf_open_head(head, &e, err) : elf_open(head, &e, err)))
		return rc;
	(void)!debuginfo_id_of_bytes(&out->gnu, DEBUGINFO_GNU, elf_build_id(e));
	text = elf_go_build_id(e);
	if (text.len && debuginfo_id_init(&out->go, DEBUGINFO_GO, text, NULL))
		out->go.len = 0;
	out->is_likely = !out->gnu.len && !out->go.len &&
		debuginfo_id_of_bytes(&out->gnu, DEBUGINFO_GNU, elf_likely_build_id(e));
	elf_close(e);
	return ERR_OK;
}

enum err_code debuginfo_file_key(
	struct str head, bool goes_on, bool has_id, struct debuginfo_id *id, struct err *err)
{
	struct debuginfo_file_ids ids;
	const struct debuginfo_id *own;
	enum err_code rc;

	if ((rc = debuginfo_file_ids(head, goes_on, &ids, err)))
		return rc;
	if (!has_id && !ids.gnu.len && !ids.go.len)
		return err_set(
			err, ERR_INVALID, "no build id in the first MiB of the file: set `id` and `kind`");
	if (!has_id) {
		*id = ids.gnu.len ? ids.gnu : ids.go;
		return ERR_OK;
	}
	own = id->kind == DEBUGINFO_GO ? &ids.go : &ids.gnu;
	if (id->kind != DEBUGINFO_FILE && own->len && !ids.is_likely && !debuginfo_id_eq(own, id))
		return err_set(err, ERR_INVALID, "the file's build id is " STR_FMT ", not " STR_FMT,
			STR_ARG(debuginfo_id_text(own)), STR_ARG(debuginfo_id_text(id)));
	return ERR_OK;
}

bool debuginfo_kind_parse(struct str name, enum debuginfo_id_kind *out)
{
	for (int i = 0; i < DEBUGINFO_ID_KINDS; i++)
		if (str_is(name, debuginfo_id_kind_name((enum debuginfo_id_kind)i))) {
			*out = (enum debuginfo_id_kind)i;
			return true;
		}
	return false;
}
