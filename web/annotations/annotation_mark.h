/*
 * Annotation mark: one mark as the API has it, posted or derived from versions.
 *
 * Units:     nanoseconds since 1970; JSON has seconds, to the millisecond.
 * Ownership: texts and labels are those of whoever made it.
 * Threads:   values.
 */
#ifndef WEB_ANNOTATIONS_ANNOTATION_MARK_H
#define WEB_ANNOTATIONS_ANNOTATION_MARK_H

#include "base/json.h"
#include "base/labels.h"

struct annotation_mark {
	int64_t time_ns, end_ns; /* end_ns 0: of an instant */
	struct str text; /* posted */
	struct str label, from, to; /* of a version; label empty: it was posted */
	struct labels labels; /* without __name__ */
};

/* Of a list of marks. */
struct annotation_marks {
	struct annotation_mark *v; /* malloc'ed */
	size_t n, cap;
};

void annotation_marks_release(struct annotation_marks *m);
MUST_CHECK enum err_code annotation_marks_add(
	struct annotation_marks *m, struct annotation_mark mark, struct err *err);
/* By time, then by what they say; of equal ones one is left. */
void annotation_marks_sort(struct annotation_marks *m);

void annotation_mark_write(struct json *j, const struct annotation_mark *m);
/* Labels of a series without __name__, in the arena. False: the arena failed. */
bool annotation_mark_labels(struct arena *a, struct labels of, struct labels *out);
/* All matchers that name a label of the set accept it. Names that begin with __ do not count, but
 * for LABEL_SERVICE. */
bool annotation_labels_fit(struct labels labels, const struct matcher *m, size_t n);

#endif
