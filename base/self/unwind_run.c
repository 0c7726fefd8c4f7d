/*
 * Runs a frame description: the CIE's program and then the FDE's, up to the address. The result is
 * the place of each register of the caller: at an offset from the canonical frame address (CFA, the
 * stack pointer before the call), unchanged, or given by an expression.
 */
#include "base/self/unwind_internal.h"

#include <assert.h>

#define STATES_MAX 8 /* nested remember_state; compilers use one or two */

enum rule_kind {
	RULE_SAME,
	RULE_UNDEFINED,
	RULE_OFFSET,
	RULE_VAL_OFFSET,
	RULE_REG,
	RULE_EXPR,
	RULE_VAL_EXPR
};

struct unwind_run_rule {
	enum rule_kind kind;
	int64_t value; /* offset or register */
	struct str expr; /* RULE_EXPR, RULE_VAL_EXPR */
};

struct unwind_run_row {
	struct unwind_run_rule regs[UNWIND_REGS];
	uint64_t cfa_reg;
	int64_t cfa_offset;
	struct str cfa_expr; /* when not empty the CFA is this expression */
};

static bool unwind_run_read_word(const struct unwind_context *u, uint64_t address, uint64_t *out)
{
	uint64_t at = address - u->stack_base;

	if (address < u->stack_base || at > u->stack_len || u->stack_len - at < sizeof(*out))
		return false;
	memcpy(out, u->stack + at, sizeof(*out));
	return true;
}

#define EXPR_STACK 32
#define EXPR_STEPS 256

struct expr_stack {
	uint64_t v[EXPR_STACK];
	size_t n;
	bool bad;
};

static void expr_stack_push(struct expr_stack *s, uint64_t value)
{
	if (s->n == EXPR_STACK)
		s->bad = true;
	else
		s->v[s->n++] = value;
}

static uint64_t expr_stack_pop(struct expr_stack *s)
{
	if (s->n == 0) {
		s->bad = true;
		return 0;
	}
	return s->v[--s->n];
}

static void expr_stack_binary(struct expr_stack *s, unsigned op)
{
	uint64_t b = expr_stack_pop(s), a = expr_stack_pop(s);

	switch (op) {
	case 0x1a:
		expr_stack_push(s, a & b);
		break;
	case 0x1c:
		expr_stack_push(s, a - b);
		break;
	case 0x1e:
		expr_stack_push(s, a * b);
		break;
	case 0x21:
		expr_stack_push(s, a | b);
		break;
	case 0x22:
		expr_stack_push(s, a + b);
		break;
	case 0x24:
		expr_stack_push(s, b < 64 ? a << b : 0);
		break;
	case 0x25:
		expr_stack_push(s, b < 64 ? a >> b : 0);
		break;
	case 0x27:
		expr_stack_push(s, a ^ b);
		break;
	case 0x29:
		expr_stack_push(s, a == b);
		break;
	case 0x2a:
		expr_stack_push(s, (int64_t)a >= (int64_t)b);
		break;
	case 0x2b:
		expr_stack_push(s, (int64_t)a > (int64_t)b);
		break;
	case 0x2c:
		expr_stack_push(s, (int64_t)a <= (int64_t)b);
		break;
	case 0x2d:
		expr_stack_push(s, (int64_t)a < (int64_t)b);
		break;
	case 0x2e:
		expr_stack_push(s, a != b);
		break;
	default:
		s->bad = true;
	}
}

static void expr_stack_constant(struct expr_stack *s, unsigned op, struct cursor *c)
{
	static const unsigned char size[] = { 1, 1, 2, 2, 4, 4, 8, 8 };
	unsigned i = op - 0x08, bits;
	uint64_t v;

	if (op == 0x10) {
		expr_stack_push(s, cursor_varint(c));
	} else if (op == 0x11) {
		expr_stack_push(s, (uint64_t)unwind_sleb(c));
	} else {
		v = unwind_fixed(c, size[i]);
		bits = 64 - 8u * size[i];
		expr_stack_push(s, i & 1 ? (uint64_t)((int64_t)(v << bits) >> bits) : v);
	}
}

/* DWARF expressions as compilers and hand-written assembly use them for frames. */
static bool unwind_run_expr_eval(const struct unwind_context *u, struct str expr, bool has_initial,
	uint64_t initial, uint64_t *out)
{
	struct expr_stack s = { .n = 0 };
	struct cursor c = cursor_of(expr);
	uint64_t v;

	if (has_initial)
		expr_stack_push(&s, initial);
	for (unsigned step = 0; cursor_left(&c) && !c.bad && !s.bad; step++) {
		unsigned op = (unsigned)unwind_fixed(&c, 1);

		if (step == EXPR_STEPS)
			return false;
		if (op >= 0x30 && op <= 0x4f) {
			expr_stack_push(&s, op - 0x30);
		} else if (op >= 0x70 && op <= 0x70 + UNWIND_RIP) {
			expr_stack_push(&s, u->regs[op - 0x70] + (uint64_t)unwind_sleb(&c));
		} else if (op >= 0x08 && op <= 0x11) {
			expr_stack_constant(&s, op, &c);
		} else if (op == 0x06) {
			if (!unwind_run_read_word(u, expr_stack_pop(&s), &v))
				return false;
			expr_stack_push(&s, v);
		} else if (op == 0x12) {
			v = expr_stack_pop(&s);
			expr_stack_push(&s, v);
			expr_stack_push(&s, v);
		} else if (op == 0x13) {
			expr_stack_pop(&s);
		} else if (op == 0x23) {
			expr_stack_push(&s, expr_stack_pop(&s) + cursor_varint(&c));
		} else {
			expr_stack_binary(&s, op);
		}
	}
	*out = expr_stack_pop(&s);
	return !c.bad && !s.bad;
}

struct unwind_run_machine {
	struct unwind_run_row row, initial, saved[STATES_MAX];
	size_t saved_n;
	uint64_t location;
	bool bad;
};

static void unwind_run_machine_set_rule(
	struct unwind_run_machine *m, uint64_t reg, enum rule_kind kind, int64_t value, struct str expr)
{
	if (reg < UNWIND_REGS)
		m->row.regs[reg] = (struct unwind_run_rule){ kind, value, expr };
}

static void unwind_run_machine_set_cfa(struct unwind_run_machine *m, uint64_t reg, int64_t offset)
{
	m->row.cfa_reg = reg;
	m->row.cfa_offset = offset;
	m->row.cfa_expr = (struct str){ NULL, 0 };
	m->bad |= reg >= UNWIND_REGS;
}

static void unwind_run_machine_restore_rule(struct unwind_run_machine *m, uint64_t reg)
{
	if (reg < UNWIND_REGS)
		m->row.regs[reg] = m->initial.regs[reg];
}

static void run_state(struct unwind_run_machine *m, unsigned op)
{
	if (op == 0x0a && m->saved_n < STATES_MAX)
		m->saved[m->saved_n++] = m->row;
	else if (op == 0x0b && m->saved_n)
		m->row = m->saved[--m->saved_n];
	else
		m->bad = true;
}

/* A factored offset. A broken table may wrap, and gives a short stack then. */
static int64_t unwind_run_scaled(uint64_t factor, const struct cie *cie)
{
	return (int64_t)(factor * (uint64_t)cie->data_align);
}

/* The instructions whose first byte holds no operand. */
static void run_extended(
	struct unwind_run_machine *m, const struct cie *cie, unsigned op, struct cursor *c)
{
	static const struct str none;
	uint64_t reg;

	switch (op) {
	case 0x00: /* nop */
		break;
	case 0x01: /* set_loc */
		m->location = unwind_encoded(c, cie->fde_encoding, 0);
		break;
	case 0x02: /* advance_loc1, 2, 4 */
	case 0x03:
	case 0x04:
		m->location += unwind_fixed(c, (size_t)1 << (op - 2)) * cie->code_align;
		break;
	case 0x05: /* offset_extended */
		reg = cursor_varint(c);
		unwind_run_machine_set_rule(
			m, reg, RULE_OFFSET, unwind_run_scaled(cursor_varint(c), cie), none);
		break;
	case 0x06: /* restore_extended */
		unwind_run_machine_restore_rule(m, cursor_varint(c));
		break;
	case 0x07: /* undefined */
		unwind_run_machine_set_rule(m, cursor_varint(c), RULE_UNDEFINED, 0, none);
		break;
	case 0x08: /* same_value */
		unwind_run_machine_set_rule(m, cursor_varint(c), RULE_SAME, 0, none);
		break;
	case 0x09: /* register */
		reg = cursor_varint(c);
		unwind_run_machine_set_rule(m, reg, RULE_REG, (int64_t)cursor_varint(c), none);
		break;
	case 0x0a: /* remember_state, restore_state */
	case 0x0b:
		run_state(m, op);
		break;
	case 0x0c: /* def_cfa */
		reg = cursor_varint(c);
		unwind_run_machine_set_cfa(m, reg, (int64_t)cursor_varint(c));
		break;
	case 0x0d: /* def_cfa_register */
		unwind_run_machine_set_cfa(m, cursor_varint(c), m->row.cfa_offset);
		break;
	case 0x0e: /* def_cfa_offset */
		unwind_run_machine_set_cfa(m, m->row.cfa_reg, (int64_t)cursor_varint(c));
		break;
	case 0x0f: /* def_cfa_expression */
		m->row.cfa_expr = cursor_lenstr(c);
		break;
	case 0x10: /* expression, val_expression */
	case 0x16:
		reg = cursor_varint(c);
		unwind_run_machine_set_rule(
			m, reg, op == 0x10 ? RULE_EXPR : RULE_VAL_EXPR, 0, cursor_lenstr(c));
		break;
	case 0x11: /* offset_extended_sf */
		reg = cursor_varint(c);
		unwind_run_machine_set_rule(
			m, reg, RULE_OFFSET, unwind_run_scaled((uint64_t)unwind_sleb(c), cie), none);
		break;
	case 0x12: /* def_cfa_sf */
		reg = cursor_varint(c);
		unwind_run_machine_set_cfa(m, reg, unwind_run_scaled((uint64_t)unwind_sleb(c), cie));
		break;
	case 0x13: /* def_cfa_offset_sf */
		unwind_run_machine_set_cfa(
			m, m->row.cfa_reg, unwind_run_scaled((uint64_t)unwind_sleb(c), cie));
		break;
	case 0x14: /* val_offset */
		reg = cursor_varint(c);
		unwind_run_machine_set_rule(
			m, reg, RULE_VAL_OFFSET, unwind_run_scaled(cursor_varint(c), cie), none);
		break;
	case 0x2e: /* GNU_args_size */
		cursor_varint(c);
		break;
	default:
		m->bad = true;
	}
}

/* Runs a program until it would pass pc. */
static void unwind_run_instructions(
	struct unwind_run_machine *m, const struct cie *cie, struct str program, uint64_t pc)
{
	static const struct str none;
	struct cursor c = cursor_of(program);

	while (cursor_left(&c) && !c.bad && !m->bad) {
		unsigned op = (unsigned)unwind_fixed(&c, 1), low = op & 0x3f;
		uint64_t before = m->location;

		if (op >> 6 == 1)
			m->location += low * cie->code_align;
		else if (op >> 6 == 2)
			unwind_run_machine_set_rule(
				m, low, RULE_OFFSET, unwind_run_scaled(cursor_varint(&c), cie), none);
		else if (op >> 6 == 3)
			unwind_run_machine_restore_rule(m, low);
		else
			run_extended(m, cie, op, &c);
		if (m->location != before && m->location > pc)
			return;
	}
	m->bad |= c.bad;
}

static bool unwind_run_apply_rule(const struct unwind_context *u, const struct unwind_run_rule *r,
	unsigned reg, uint64_t cfa, uint64_t *out)
{
	uint64_t at;

	switch (r->kind) {
	case RULE_SAME:
		*out = u->regs[reg];
		return true;
	case RULE_OFFSET:
		return unwind_run_read_word(u, cfa + (uint64_t)r->value, out);
	case RULE_VAL_OFFSET:
		*out = cfa + (uint64_t)r->value;
		return true;
	case RULE_REG:
		*out = (uint64_t)r->value < UNWIND_REGS ? u->regs[r->value] : 0;
		return true;
	case RULE_EXPR:
		return unwind_run_expr_eval(u, r->expr, true, cfa, &at) && unwind_run_read_word(u, at, out);
	case RULE_VAL_EXPR:
		return unwind_run_expr_eval(u, r->expr, true, cfa, out);
	default:
		*out = 0;
		return true;
	}
}

bool unwind_step(const struct fde *fde, struct unwind_context *u, uint64_t pc)
{
	struct unwind_run_machine m = { .location = fde->start };
	uint64_t caller[UNWIND_REGS], cfa;

	assert(fde->cie.return_reg < UNWIND_REGS);
	unwind_run_instructions(&m, &fde->cie, fde->cie.program, UINT64_MAX);
	m.initial = m.row;
	m.location = fde->start;
	unwind_run_instructions(&m, &fde->cie, fde->program, pc);
	if (m.bad || m.row.regs[fde->cie.return_reg].kind == RULE_UNDEFINED)
		return false;
	assert(m.row.cfa_reg < UNWIND_REGS);
	if (m.row.cfa_expr.len) {
		if (!unwind_run_expr_eval(u, m.row.cfa_expr, false, 0, &cfa))
			return false;
	} else {
		cfa = u->regs[m.row.cfa_reg] + (uint64_t)m.row.cfa_offset;
	}
	for (unsigned reg = 0; reg < UNWIND_REGS; reg++)
		if (!unwind_run_apply_rule(u, &m.row.regs[reg], reg, cfa, &caller[reg]))
			return false;
	caller[UNWIND_RIP] = caller[fde->cie.return_reg];
	if (m.row.regs[UNWIND_RSP].kind == RULE_SAME)
		caller[UNWIND_RSP] = cfa;
	memcpy(u->regs, caller, sizeof(caller));
	return true;
}
