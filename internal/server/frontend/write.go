package frontend

import (
	"net/http"
	"strconv"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
)

const (
	piece   = 4096 // bytes that are written at once
	longest = 96   // no ID, or range, with what stands around it is longer
)

// WriteIDs writes the IDs in pieces, so that memory does not grow with their number.
func WriteIDs(w http.ResponseWriter, ids issuer.IDs, before, between, after string) {
	buf := append(make([]byte, 0, piece), before...)
	separator := ""
	for id := range ids.All() {
		buf = id.Append(append(buf, separator...))
		separator = between
		if len(buf) > piece-longest {
			if _, err := w.Write(buf); err != nil {
				return
			}
			buf = buf[:0]
		}
	}
	_, _ = w.Write(append(buf, after...)) // the IDs are spent whether they arrive or not
}

// WriteRanges writes ranges as JSON, in pieces.
func WriteRanges(w http.ResponseWriter, ranges []leaf.Range) {
	buf := append(make([]byte, 0, piece), `{"ranges":[`...)
	for i, r := range ranges {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = strconv.AppendInt(append(buf, `{"start":"`...), r.Start, 10)
		buf = strconv.AppendInt(append(buf, `","count":"`...), r.Len(), 10)
		buf = append(buf, `"}`...)
		if len(buf) > piece-longest {
			if _, err := w.Write(buf); err != nil {
				return
			}
			buf = buf[:0]
		}
	}
	_, _ = w.Write(append(buf, "]}\n"...)) // likewise
}
