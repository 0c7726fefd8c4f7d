/*
 * The grammar: Prometheus's, with aggregations read as calls, calls that take by, without, on and
 * ignoring, and a second spelling of a selector's braces (the lexer finds it). What each rule does
 * is in ast_builder.c.
 */
%include {
#include <assert.h>

#include "promql/syntax/ast_builder.h"
#include "promql/syntax/grammar.h"

/* A token of the list without its value. */
static struct ast_builder_item item_of(struct lexer_token name)
{
	return (struct ast_builder_item){ .name = name };
}
}

%name promql_parser
%token_prefix TOKEN_
%token_type { struct lexer_token }
%extra_argument { struct ast_builder *b }

/* Entries, not levels: one takes up to five (a call's name, modifier, bracket, arguments, comma). */
%stack_size 640
%stack_overflow { build_too_deep(b); }

/* Lowest first. LABELS_LEFT_OUT: a bracket behind group_left opens its labels, never an operand. */
%nonassoc LABELS_LEFT_OUT.
%nonassoc LPAREN.
%left OR.
%left AND UNLESS.
%left EQ NE LT LE GT GE.
%left ADD SUB.
%left MUL DIV MOD ATAN2.
%right POW.
%nonassoc OFFSET AT.
%nonassoc LBRACKET.

%token ILLEGAL.

%syntax_error {
	static const char *const names[] = {
		[TOKEN_NAME] = "label name", [TOKEN_LABEL] = "label name", [TOKEN_STRING] = "string",
		[TOKEN_NUMBER] = "number", [TOKEN_DURATION] = "duration", [TOKEN_COMMA] = "\",\"",
		[TOKEN_LPAREN] = "\"(\"", [TOKEN_RPAREN] = "\")\"", [TOKEN_RBRACKET] = "\"]\"",
		[TOKEN_RBRACE] = "\"}\"", [TOKEN_RANGLE] = "\">\"", [TOKEN_MATCH_EQ] = "\"=\"",
		[TOKEN_MATCH_NE] = "\"!=\"", [TOKEN_MATCH_RE] = "\"=~\"", [TOKEN_MATCH_NRE] = "\"!~\"",
		[TOKEN_START] = "start()", [TOKEN_END] = "end()", [TOKEN_ADD] = "\"+\"",
		[TOKEN_SUB] = "\"-\"", [TOKEN_COLON] = "\":\"",
	};
	const char *expected[5];
	YYACTIONTYPE state = yypParser->yytos->stateno;
	bool wants_label = yy_find_shift_action(TOKEN_NAME, state) != YY_ERROR_ACTION;
	size_t n = 0;

	for (unsigned i = 1; i < YYNTOKEN && n < 5; i++) {
		if (yy_find_shift_action((YYCODETYPE)i, state) == YY_ERROR_ACTION)
			continue;
		if (i >= sizeof(names) / sizeof(names[0]) || !names[i]) {
			if (!wants_label) /* keywords can be labels: not listed one by one */
				n = 5;
			continue;
		}
		if (!wants_label || (i != TOKEN_START && i != TOKEN_END))
			expected[n++] = names[i];
	}
	build_unexpected(b, expected, n);
	(void)yymajor;
	(void)yyminor;
}

%type query { struct expr * }
query ::= expr(E). { b->parsed->root = E; }

%type expr { struct expr * }
expr(A) ::= number(T). { A = build_number(b, T); }
expr(A) ::= STRING(T). { A = build_string(b, T); }
expr(A) ::= LPAREN(L) expr(E) RPAREN(R). { A = build_paren(b, E, L, R); }
expr(A) ::= ADD|SUB(O) expr(E). [MUL] { A = build_unary(b, O, E); }
expr(A) ::= expr(L) OR(O) matching(M) expr(R). { A = build_binary(b, L, O, M, R); }
expr(A) ::= expr(L) AND|UNLESS(O) matching(M) expr(R). [AND] { A = build_binary(b, L, O, M, R); }
expr(A) ::= expr(L) EQ|NE|LT|LE|GT|GE(O) matching(M) expr(R). [EQ] {
	A = build_binary(b, L, O, M, R);
}
expr(A) ::= expr(L) ADD|SUB(O) matching(M) expr(R). [ADD] { A = build_binary(b, L, O, M, R); }
expr(A) ::= expr(L) MUL|DIV|MOD|ATAN2(O) matching(M) expr(R). [MUL] {
	A = build_binary(b, L, O, M, R);
}
expr(A) ::= expr(L) POW(O) matching(M) expr(R). { A = build_binary(b, L, O, M, R); }

/* A duration is its seconds, and a number of seconds a duration. */
number(A) ::= NUMBER|DURATION(T). { A = T; }

/* Modifiers of a binary operator. */
%type matching { struct matching }
matching(A) ::= bool(B). { A = (struct matching){ .returns_bool = B }; }
matching(A) ::= bool(B) ON|IGNORING(W) labels(L). {
	A = (struct matching){ .returns_bool = B, .on = build_modifier(W, L) };
}
matching(A) ::= bool(B) ON|IGNORING(W) labels(L) GROUP_LEFT|GROUP_RIGHT(G) include(I). {
	A = (struct matching){
		.returns_bool = B,
		.on = build_modifier(W, L),
		.card = G.id == TOKEN_GROUP_LEFT ? CARD_GROUP_LEFT : CARD_GROUP_RIGHT,
		.include = I,
	};
}

%type bool { bool }
bool(A) ::= . { A = false; }
bool(A) ::= BOOL. { A = true; }

%type include { struct list }
include(A) ::= . [LABELS_LEFT_OUT] { A = (struct list){ 0 }; }
include(A) ::= labels(L). { A = L; }

%type labels { struct list }
labels(A) ::= LPAREN(L) RPAREN(R). { A = list_at((struct list){ 0 }, L, R); }
labels(A) ::= LPAREN(L) label_list(X) RPAREN(R). { A = list_at(X, L, R); }
labels(A) ::= LPAREN(L) label_list(X) COMMA RPAREN(R). { A = list_at(X, L, R); }

%type label_list { struct list }
label_list(A) ::= label(T). {
	A = build_list(b, (struct list){ 0 }, item_of(T), QUERY_LABELS_MAX, "labels");
}
label_list(A) ::= label_list(L) COMMA label(T). {
	A = build_list(b, L, item_of(T), QUERY_LABELS_MAX, "labels");
}
label(A) ::= NAME|AND|OR|UNLESS|ATAN2|BOOL|BY|ON|IGNORING|GROUP_LEFT|GROUP_RIGHT(T). { A = T; }
label(A) ::= OFFSET|START|END|STRING|METRIC(T). { A = T; }

/* Calls; the function table and the check decide which arguments are valid. */
expr(A) ::= NAME(N) args(X). {
	A = build_call(b, N, (struct modifier){ 0 }, X, (struct modifier){ 0 });
}
expr(A) ::= NAME(N) modifier(M) args(X). { A = build_call(b, N, M, X, (struct modifier){ 0 }); }
expr(A) ::= NAME(N) args(X) by(M). { A = build_call(b, N, (struct modifier){ 0 }, X, M); }

expr(A) ::= START(N) args(X). {
	A = build_call(b, N, (struct modifier){ 0 }, X, (struct modifier){ 0 });
}
expr(A) ::= END(N) args(X). {
	A = build_call(b, N, (struct modifier){ 0 }, X, (struct modifier){ 0 });
}

%type modifier { struct modifier }
%type by { struct modifier }
modifier(A) ::= by(M). { A = M; }
modifier(A) ::= ON|IGNORING(W) labels(L). { A = build_modifier(W, L); }
by(A) ::= BY|WITHOUT(W) labels(L). { A = build_modifier(W, L); }

%type args { struct list }
args(A) ::= LPAREN(L) RPAREN(R). { A = list_at((struct list){ 0 }, L, R); }
args(A) ::= LPAREN(L) arg_list(X) RPAREN(R). { A = list_at(X, L, R); }

%type arg_list { struct list }
arg_list(A) ::= expr(E). {
	A = build_list(b, (struct list){ 0 }, (struct ast_builder_item){ .expr = E }, QUERY_ARGS_MAX, "arguments");
}
arg_list(A) ::= arg_list(L) COMMA expr(E). {
	A = build_list(b, L, (struct ast_builder_item){ .expr = E }, QUERY_ARGS_MAX, "arguments");
}

/* Selectors. */
expr(A) ::= name(N). { A = build_selector(b, &N, NULL); }
expr(A) ::= name(N) matchers(M). { A = build_selector(b, &N, &M); }
expr(A) ::= matchers(M). { A = build_selector(b, NULL, &M); }
name(A) ::= NAME(T). { A = T; }
name(A) ::= METRIC|AND|OR|UNLESS|BY|WITHOUT|OFFSET(T). { A = T; }
name(A) ::= START(T). { A = T; }
name(A) ::= END(T). { A = T; }

%type matchers { struct list }
matchers(A) ::= LBRACE(L) RBRACE(R). { A = list_at((struct list){ 0 }, L, R); }
matchers(A) ::= LBRACE(L) matcher_list(X) RBRACE(R). { A = list_at(X, L, R); }
matchers(A) ::= LBRACE(L) matcher_list(X) COMMA RBRACE(R). { A = list_at(X, L, R); }
matchers(A) ::= LANGLE(L) matcher_list(X) RANGLE(R). { A = list_at(X, L, R); }
matchers(A) ::= LANGLE(L) matcher_list(X) COMMA RANGLE(R). { A = list_at(X, L, R); }

%type matcher_list { struct list }
matcher_list(A) ::= matcher(M). {
	A = build_list(b, (struct list){ 0 }, M, QUERY_MATCHERS_MAX, "matchers");
}
matcher_list(A) ::= matcher_list(L) COMMA matcher(M). {
	A = build_list(b, L, M, QUERY_MATCHERS_MAX, "matchers");
}
%type matcher { struct ast_builder_item }
matcher(A) ::= LABEL(N) MATCH_EQ|MATCH_NE|MATCH_RE|MATCH_NRE(O) STRING(V). {
	A = (struct ast_builder_item){ .name = N, .op = O, .value = V };
}
matcher(A) ::= STRING(N) MATCH_EQ|MATCH_NE|MATCH_RE|MATCH_NRE(O) STRING(V). {
	A = (struct ast_builder_item){ .name = N, .op = O, .value = V };
}
/* The name of the series, which may have any characters. */
matcher(A) ::= STRING(N). { A = item_of(N); }

expr(A) ::= expr(E) LBRACKET number(D) RBRACKET(R). { A = build_window(b, E, D, R); }
expr(A) ::= expr(E) LBRACKET number(D) COLON RBRACKET(R). { A = build_subquery(b, E, D, NULL, R); }
expr(A) ::= expr(E) LBRACKET number(D) COLON number(S) RBRACKET(R). {
	A = build_subquery(b, E, D, &S, R);
}
expr(A) ::= expr(E) OFFSET(W) number(D). { A = build_offset(b, E, W, false, D); }
expr(A) ::= expr(E) OFFSET(W) ADD|SUB(S) number(D). {
	A = build_offset(b, E, W, S.id == TOKEN_SUB, D);
}
expr(A) ::= expr(E) AT(T) number(N). { A = build_at_time(b, E, T, false, N); }
expr(A) ::= expr(E) AT(T) ADD|SUB(S) number(N). {
	A = build_at_time(b, E, T, S.id == TOKEN_SUB, N);
}
expr(A) ::= expr(E) AT(T) START|END(W) LPAREN RPAREN(R). { A = build_at_edge(b, E, T, W, R); }
