#include "base/clock.h"
#include "base/quote.h"
#include "web/files/files.h"
#include "web/files/kept.h"

#define FORM_TYPE "multipart/form-data"
#define FILE_NAMES_SHOWN 4u

bool files_admit_query(struct web *w, struct http_in *in, struct http_out *out)
{
	if (http_type_is(in->content_type, FORM_TYPE))
		in->body_bytes_max = FILES_QUERY_BYTES_MAX;
	return true;
}

static const struct multipart_part *files_request_part_of(
	const struct multipart *m, struct str name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (m->v[i].file_name.len && str_eq(m->v[i].file_name, name))
			return &m->v[i];
	return NULL;
}

/* That a name is neither: what came instead. */
static enum err_code files_request_not_found(const struct multipart *m, struct err *err)
{
	struct buf names = { 0 };
	size_t n = 0;
	enum err_code rc;

	for (size_t i = 0; i < m->n; i++) {
		if (!m->v[i].file_name.len || n++ >= FILE_NAMES_SHOWN)
			continue;
		buf_printf(&names, "%s%s", n > 1 ? ", " : "", QUOTED(m->v[i].file_name));
	}
	if (n > FILE_NAMES_SHOWN)
		buf_printf(&names, " and %zu more", n - FILE_NAMES_SHOWN);
	rc = n ?
		err_set(err, ERR_NOT_FOUND,
			"no such file in the query, only " STR_FMT ", and no stored file with this id",
			STR_ARG(buf_str(&names))) :
		err_set(err, ERR_NOT_FOUND, "no such file in the query, and no stored file with this id");
	buf_release(&names);
	return rc;
}

static enum err_code files_request_find(
	void *ctx, struct str name, struct arena *a, struct found_file *out, struct err *err)
{
	const struct file_request *r = ctx;
	const struct multipart_part *p = files_request_part_of(&r->parts, name, r->parts.n);
	struct kept_file kept;
	enum err_code rc;

	if (p) {
		*out = (struct found_file){ p->body, p->file_name };
		return ERR_OK;
	}
	if (!kept_is_id(name))
		return files_request_not_found(&r->parts, err);
	if (!r->kept)
		return err_set(err, ERR_NOT_FOUND, "this server stores no files");
	if ((rc = kept_get(r->kept, name, clock_now_ns(), a, &kept, &out->bytes, err)))
		return rc;
	out->name = str_dup(a, str_of(kept.name));
	return out->name.ptr ? ERR_OK : arena_fail(a, "file", err);
}

enum err_code files_read_request(
	struct web *w, struct http_in *in, struct file_request *out, struct err *err)
{
	struct http_param *params;
	enum err_code rc;

	out->parts.n = 0;
	out->kept = w->o.files;
	out->finder = (struct file_finder){ files_request_find, out };
	if (!http_type_is(in->content_type, FORM_TYPE))
		return ERR_OK;
	if ((rc = multipart_parse(in->content_type, in->body, &out->parts, err)))
		return rc;
	if (!(params = arena_array(&in->arena, struct http_param, in->params_n + out->parts.n + 1)))
		return arena_fail(&in->arena, "form", err);
	if (in->params_n)
		memcpy(params, in->params, in->params_n * sizeof(*params));
	in->params = params;
	for (size_t i = 0; i < out->parts.n; i++) {
		const struct multipart_part *p = &out->parts.v[i];

		if (!p->file_name.len)
			in->params[in->params_n++] = (struct http_param){ p->name, p->body };
		else if (files_request_part_of(&out->parts, p->file_name, i))
			return err_set(err, ERR_INVALID, "two files have the name %s", QUOTED(p->file_name));
	}
	return ERR_OK;
}
