/* Lists, page by page (ListObjectsV2). Objects and prefixes of a page are visited in one order. */
#include <stdio.h>

#include "base/clock.h"
#include "base/xml/xml.h"
#include "tsdb/bucket/internal.h"

#define EMPTY_PAGES_MAX 100
#define PAGE_OBJECTS "1000" /* the most that stores give */

struct bucket_list_listing {
	struct bucket *b;
	struct str prefix, delimiter, after; /* with the configured prefix */
	struct buf last; /* the key that was visited last */
	struct buf token; /* of the next page */
	bool more;
	unsigned empty; /* pages, one after the other */
	bucket_visit_fn visit;
	void *ctx;
	enum err_code visit_rc; /* errors of `visit` are passed on as they are */
};

struct bucket_list_page {
	struct arena arena;
	struct xml_node *root;
};

static enum err_code bucket_check_page(struct bucket *b, struct bucket_call *c, struct err *err)
{
	struct bucket_list_page *p = c->ctx;

	arena_reset(&p->arena);
	if (xml_parse(&p->arena, buf_str(&c->answer.body), &p->root, err))
		return err_wrap(err, ERR_CORRUPT, "the list");
	if (!str_is(p->root->name, "ListBucketResult"))
		return err_set(err, ERR_INVALID, "the store answers with another XML than a list");
	return ERR_OK;
}

static enum err_code bucket_list_visit_one(
	struct bucket_list_listing *l, const struct xml_node *n, bool is_prefix, struct err *err)
{
	struct str key = xml_text(n, is_prefix ? "Prefix" : "Key"), etag = xml_text(n, "ETag");
	struct bucket_object o = { .is_prefix = is_prefix };

	if (!str_has_prefix(key, l->prefix))
		return err_set(err, ERR_INVALID, "the list has a key without the prefix");
	if (str_cmp(key, buf_str(&l->last)) <= 0)
		return err_set(err, ERR_INVALID, "the keys of the list do not ascend");
	buf_clear(&l->last);
	buf_add_str(&l->last, key);
	if (buf_failed(&l->last))
		return err_nomem(err, "list");
	if (!is_prefix &&
		(!str_to_u64(xml_text(n, "Size"), &o.info.bytes) || etag.len >= sizeof(o.info.etag)))
		return err_set(err, ERR_INVALID, "the list has an object without a size, or a long ETag");
	memcpy(o.info.etag, etag.len ? etag.ptr : "", etag.len);
	if (!is_prefix && time_parse(xml_text(n, "LastModified"), &o.info.modified_ns, NULL))
		o.info.modified_ns = 0;
	o.key = (struct str){ key.ptr + l->b->prefix.len, key.len - l->b->prefix.len };
	l->visit_rc = l->visit(l->ctx, &o, err);
	return l->visit_rc;
}

static enum err_code bucket_list_visit_page(
	struct bucket_list_listing *l, const struct xml_node *root, struct err *err)
{
	const struct xml_node *object = xml_child(root, "Contents");
	const struct xml_node *prefix = xml_child(root, "CommonPrefixes");
	struct str token = xml_text(root, "NextContinuationToken");
	enum err_code rc = ERR_OK;
	bool first;

	l->more = str_is(xml_text(root, "IsTruncated"), "true");
	l->empty = object || prefix ? 0 : l->empty + 1;
	if (l->more && (!token.len || l->empty > EMPTY_PAGES_MAX || str_eq(token, buf_str(&l->token))))
		return err_set(err, ERR_INVALID, "the list goes on, but does not say where");
	while (!rc && (object || prefix)) {
		first = object &&
			(!prefix || str_cmp(xml_text(object, "Key"), xml_text(prefix, "Prefix")) < 0);
		rc = bucket_list_visit_one(l, first ? object : prefix, !first, err);
		if (first)
			object = xml_next(object);
		else
			prefix = xml_next(prefix);
	}
	buf_clear(&l->token);
	buf_add_str(&l->token, token);
	return rc ? rc : buf_failed(&l->token) ? err_nomem(err, "list") : ERR_OK;
}

static enum err_code bucket_list_get_page(
	struct bucket_list_listing *l, struct bucket_list_page *p, struct err *err)
{
	struct bucket_call c = { .operation = "list",
		.right = "s3:ListBucket",
		.method = "GET",
		.check = bucket_check_page,
		.ctx = p };
	enum err_code rc;

	call_query(&c, "list-type", STR("2"));
	call_query(&c, "max-keys", STR(PAGE_OBJECTS));
	if (l->prefix.len)
		call_query(&c, "prefix", l->prefix);
	if (l->delimiter.len)
		call_query(&c, "delimiter", l->delimiter);
	if (l->token.len)
		call_query(&c, "continuation-token", buf_str(&l->token));
	else if (l->after.len)
		call_query(&c, "start-after", l->after);
	if (!(rc = bucket_call(l->b, &c, err)) && (rc = bucket_list_visit_page(l, p->root, err)) &&
		!l->visit_rc)
		rc = err_wrap(err, rc, "bucket " STR_FMT ": list " STR_FMT, STR_ARG(l->b->c.bucket),
			STR_ARG(l->prefix));
	answer_release(&c.answer);
	return rc;
}

static enum err_code bucket_list_join(
	struct arena *a, struct str s, struct str str, struct str *out, struct err *err)
{
	char *p = arena_printf(a, STR_FMT STR_FMT, STR_ARG(s), STR_ARG(str));

	*out = str_of(p);
	return p ? ERR_OK : arena_fail(a, "list", err);
}

enum err_code bucket_list(struct bucket *b, struct str prefix, struct str delimiter,
	struct str after, bucket_visit_fn visit, void *ctx, struct err *err)
{
	struct bucket_list_listing l = { .b = b,
		.delimiter = delimiter,
		.after = STR(""), .visit = visit, .ctx = ctx };
	struct bucket_list_page page = { .root = NULL };
	struct arena names;
	enum err_code rc;

	arena_init(&names, 0);
	arena_init(&page.arena, 0);
	if (!(rc = bucket_list_join(&names, b->prefix, prefix, &l.prefix, err)) && after.len)
		rc = bucket_list_join(&names, b->prefix, after, &l.after, err);
	if (!rc)
		do
			rc = bucket_list_get_page(&l, &page, err);
		while (!rc && l.more);
	arena_release(&names);
	arena_release(&page.arena);
	buf_release(&l.last);
	buf_release(&l.token);
	return rc;
}
