# Files have at most 600 lines, functions at most 80. A function is counted from its opening brace in the first column to
# the closing one.
FNR == 1 {
	if (file != "" && lines > 600)
		print file ":1: " lines " lines"
	file = FILENAME
	start = 0
}
{ lines = FNR }
/^\{/ && before !~ /^(class|struct|namespace|enum|extern) / { start = FNR }
{ before = $0 }
/^\}/ {
	if (start && FNR - start > 80)
		print FILENAME ":" start ": function of " FNR - start " lines"
	start = 0
}
END {
	if (lines > 600)
		print file ":1: " lines " lines"
}
