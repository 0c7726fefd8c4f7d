# A function's name, and a struct's tag, is defined once in the tree, so that a search or a breakpoint finds one thing. A
# function's name has two words or more, and the first is a noun of its place: a word of its path, of a tag of its file, or one
# that three functions of its room begin with. A public function may begin with any noun: its header says whose it is.
BEGIN {
	split("add append ask begin build bump call check choose clear close collect compare copy count decode do drop emit " \
		"encode end feed fill find flush free get give go grow has have init insert is join keep load look make may move " \
		"need new next note on open parse pick pop print push put read release remove reset run save seek send set skip " \
		"sort start step stop swap take tell to try use visit wait walk was write", list, " ")
	for (i in list)
		verb[list[i]] = 1
}
function singular(word) { return word ~ /s$/ && length(word) > 3 ? substr(word, 1, length(word) - 1) : word }
function add_words(set, text,   n, part, i) {
	n = split(text, part, /[^a-z0-9]+/)
	for (i = 1; i <= n; i++) {
		set[FILENAME, part[i]] = 1
		set[FILENAME, singular(part[i])] = 1
	}
}
# A parameter of one letter is i, n, a or b, a character c, a number of mathematics, or begins a word of its struct's tag.
function parameters(head,   list, part, k, count, type, name, word, words, w) {
	sub(/^[^(]*\(/, "", head)
	gsub(/\([^()]*\)/, "", head)
	sub(/\).*/, "", head)
	count = split(head, part, ",")
	for (k = 1; k <= count; k++) {
		name = part[k]
		sub(/\[.*/, "", name)
		if (!match(name, /[^A-Za-z0-9_][A-Za-z]$/))
			continue
		type = substr(name, 1, RSTART)
		name = substr(name, RSTART + 1)
		if (name ~ /[inab]/ || type ~ /double/ || name == "c" && type ~ /char *$/)
			continue
		w = 0
		if (match(type, /(struct|enum|union) [a-z0-9_]+/)) {
			word = substr(type, RSTART, RLENGTH)
			sub(/^[a-z]+ /, "", word)
			w = ("_" word) ~ ("_" name)
		}
		if (!w)
			print FILENAME ":" FNR - 1 ": a parameter is called " name
	}
}
function stem(path) { sub(/\.[^.]*$/, "", path); return path } # one of several for #ifdef
function defined(kind, name,   what) {
	what = kind " " name
	if (what in first && stem(first[what]) != stem(FILENAME))
		print FILENAME ":" FNR ": " what " is defined in " first[what] " too"
	else
		first[what] = FILENAME
}
FNR == 1 {
	room = FILENAME
	sub("/[^/]*$", "", room)
	add_words(of_path, FILENAME)
	head = ""
}
{
	line = $0
	while (match(line, /(struct|enum|union) [a-z][a-z0-9_]*/)) {
		tag = substr(line, RSTART, RLENGTH)
		sub(/^[a-z]+ /, "", tag)
		sub(/_.*/, "", tag)
		of_tags[FILENAME, tag] = 1
		line = substr(line, RSTART + RLENGTH)
	}
}
match($0, /^\t*struct [a-z][a-z0-9_]* \{/) && !(FILENAME ~ /\.cc$/) {
	tag = $0
	sub(/^\t*struct /, "", tag)
	sub(/ .*/, "", tag)
	defined("struct", tag)
}
/^\{/ && head ~ /\(/ && head !~ /^(struct|enum|union|class|namespace|extern|static const|const)[^(]*=/ {
	name = head
	sub(/\(.*/, "", name)
	sub(/.*[ *]/, "", name)
	if (name ~ /^[a-z][a-z0-9_]*$/ && name != "main") {
		defined("function", name)
		word = name
		sub(/_.*/, "", word)
		n++
		place[n] = FILENAME ":" FNR - 1
		file[n] = FILENAME
		rooms[n] = room
		static[n] = head ~ /^static /
		names[n] = name
		words[n] = word
		shared[room, word]++
		parameters(head)
	}
	head = ""
}
/^[a-zA-Z]/ { head = $0; next }
/^[}#\/]/ || /^$/ { head = "" }
head != "" { head = head " " $0 }
END {
	for (i = 1; i <= n; i++) {
		if (names[i] !~ /_/)
			print place[i] ": " names[i] ": a name of one word"
		else if (static[i] && !((file[i], words[i]) in of_path) && !((file[i], words[i]) in of_tags) &&
			(words[i] in verb || shared[rooms[i], words[i]] < 3))
			print place[i] ": " names[i] " begins with no noun of its file"
	}
}
