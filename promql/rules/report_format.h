/*
 * The bytes of a report (report.h). Private to promql/rules/.
 *
 * magic, version (1 byte), lenstr host, int written_ns, varint alerts_cut, groups_cut, varint n, n
 * groups, and a hash of all before (8 bytes, big endian). int: a zigzag varint.
 *
 *   group: lenstr file, name; int interval_ns, query_offset_ns; varint limit; labels;
 *          int last_evaluation_ns, evaluation_ns; varint iterations, missed; varint n, n rules
 *   rule:  kind (1 byte); lenstr name, expr, expr_pretty; int for_ns, keep_firing_for_ns;
 *          texts labels, annotations; health (1 byte); lenstr last_error; phase (1 byte);
 *          int last_evaluation_ns, evaluation_ns; varint n, n alerts
 *   texts: varint n, n x (lenstr name, text)
 *   alert: labels; phase (1 byte); int active_at_ns, keep_firing_since_ns; labels annotations;
 *          the value's bits (8 bytes, big endian)
 */
#ifndef PROMQL_RULES_REPORT_FORMAT_H
#define PROMQL_RULES_REPORT_FORMAT_H

#define REPORT_MAGIC "epimetheus rules\n"
#define REPORT_VERSION 1
#define REPORT_HASH_BYTES 8u
#define REPORT_HEAD_BYTES \
	(sizeof(REPORT_MAGIC) + 5 * 10 + REPORT_HASH_BYTES) /* at most, and the host */

/* The least bytes of each. */
#define REPORT_GROUP_BYTES_MIN 11u
#define REPORT_RULE_BYTES_MIN 14u
#define REPORT_ALERT_BYTES_MIN 13u
#define REPORT_TEXT_BYTES_MIN 2u

#endif
