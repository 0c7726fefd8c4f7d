# What every test runs with; scripts source it. The `go` in PATH is the one of tests/go.sh, and does not fetch another.
# Programs of the server's own choice are in EPI_BUILD.
_go=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && tests/go.sh) || exit 1
case :$PATH: in
:"${_go%/go}":*) ;;
*) PATH=${_go%/go}:$PATH ;;
esac
unset _go
export PATH GOTOOLCHAIN=local
