#include "web/debuginfo/file.h"

#include "tsdb/debuginfo/elf/elf.h"

enum err_code debuginfo_file_ids(
	struct str head, struct debuginfo_id *gnu, struct debuginfo_id *go, struct err *err)
{
	struct elf *e;
	struct str text;
	enum err_code rc;

	*gnu = *go = (struct debuginfo_id){ 0 };
	if (head.len > FILE_HEAD_BYTES_MAX)
		head.len = FILE_HEAD_BYTES_MAX;
	if ((rc = elf_open(head, &e, err)))
		return rc;
	(void)!debuginfo_id_of_bytes(gnu, DEBUGINFO_GNU, elf_build_id(e));
	text = elf_go_build_id(e);
	if (text.len && debuginfo_id_init(go, DEBUGINFO_GO, text, NULL))
		go->len = 0;
	elf_close(e);
	return ERR_OK;
}

enum err_code debuginfo_file_key(
	struct str head, bool has_id, struct debuginfo_id *id, struct err *err)
{
	struct debuginfo_id gnu, go;
	const struct debuginfo_id *own;
	enum err_code rc;

	if ((rc = debuginfo_file_ids(head, &gnu, &go, err)))
		return rc;
	if (!has_id && !gnu.len && !go.len)
		return err_set(
			err, ERR_INVALID, "no build id in the first MiB of the file: set `id` and `kind`");
	if (!has_id) {
		*id = gnu.len ? gnu : go;
		return ERR_OK;
	}
	own = id->kind == DEBUGINFO_GO ? &go : &gnu;
	if (id->kind != DEBUGINFO_FILE && own->len && !debuginfo_id_eq(own, id))
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
