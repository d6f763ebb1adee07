package frontend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

const errorsPage = `# Errors

The reasons of errors, in every protocol. A program branches on the status or the code, and on the
reason where that is too coarse; a reason never changes. The link of a reason explains it. Errors
with "yes" carry ` + "`Retry-After`" + ` or a ` + "`RetryInfo`" + `. Java Leaf's routes answer 500 with the number of
Java in the text. The Redis protocol has
[its own first words](redis-protocol.md#what-do-errors-mean). ` + "`make reference`" + ` writes this page.

| reason | HTTP | gRPC, Connect | Java | retry | title |
|---|---|---|---|---|---|
`

// docs/errors.md is the table of kinds.
func TestReferenceOfErrors(t *testing.T) {
	type row struct {
		title string
		Kind
	}
	rows := []row{{"the store is unavailable", storeAway}, {"internal error", internal}}
	for _, k := range kinds {
		rows = append(rows, row{k.err.Error(), k.kind})
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(a.HTTP-b.HTTP, strings.Compare(a.Reason, b.Reason)) })
	var page strings.Builder
	page.WriteString(errorsPage)
	for _, r := range rows {
		java, retry := "", ""
		if r.Java != 0 {
			java = fmt.Sprint(r.Java)
		}
		if r.Retry {
			retry = "yes"
		}
		fmt.Fprintf(&page, "| [`%s`](http-api.md#%s) | %d | `%s` | %s | %s | %s |\n",
			r.Reason, strings.ToLower(r.Reason), r.HTTP, r.RPC, java, retry, r.title)
	}
	testserver.Page(t, "../../../docs/errors.md", page.String())
}
