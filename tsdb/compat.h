#ifndef COMPAT_H
#define COMPAT_H
#ifndef DB_JOBS_MAX
#define job_name_of partition_name_of
#define job partition
static inline void partition_unpin_(struct db *db, struct partition *p) { }
static inline enum err_code pneedw(struct db *db, struct partition *p, struct window *w, struct err *e) { return ERR_OK; }
static inline struct partition *wpp(struct db *db, struct window *w, struct partition *p) { return p; }
static inline enum err_code pneedb(struct db *db, struct partition *p, struct db_block *b, uint32_t slot, struct err *e)
{
	uint64_t lost = 0;
	struct err why = {0};
	enum err_code rc;
	mutex_lock(&p->lock);
	if (!(rc = block_load_symbols(b->block, slot, p, BLOCK_NAMES, &lost, &why)))
		rc = block_load_symbols(b->block, slot, p, BLOCK_STACKS, &lost, &why);
	mutex_unlock(&p->lock);
	if (rc) *e = why;
	return rc;
}
static inline enum err_code ppin(struct db *db, struct str name, uint32_t id, uint32_t epoch, struct partition **out, struct err *e)
{
	return db_partition(db, name, id, out, e);
}
#define partition_unpin(d,p) partition_unpin_(d,p)
#define partition_need_window pneedw
#define window_partition_pin wpp
#define partition_need_block(d,p,b,s,st,e) pneedb(d,p,b,s,e)
#define partition_pin ppin
#define partition_new_epoch(...) ERR_UNSUPPORTED
#define translation_open(...) ERR_UNSUPPORTED
#define translation_close(x) (void)0
#define translate_stack(...) ERR_UNSUPPORTED
#define translate_label_set(...) ERR_UNSUPPORTED
#define translate_header(...) ERR_UNSUPPORTED
#endif
#endif
