package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// Print writes the result of a command: v as JSON, or the text.
func Print(w io.Writer, asJSON bool, v any, format string, args ...any) error {
	if asJSON {
		return PrintJSON(w, v)
	}
	_, err := fmt.Fprintf(w, format, args...)
	return err
}

// PrintJSON writes v as JSON for people and programs.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Printable quotes text that would upset a terminal or the columns of a table: rows
// may come from anywhere. Spaces around it show.
func Printable(text string) string {
	if !utf8.ValidString(text) || text != strings.TrimSpace(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// Choose returns yes if ok, else no.
func Choose(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
