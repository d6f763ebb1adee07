package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

const decodePath = "/decodeSnowflakeId"

// A decodedBody is Java Leaf's answer, whose values are all strings.
type decodedBody struct {
	Worker    string `json:"workerId"`
	Sequence  string `json:"sequenceId"`
	Timestamp string `json:"timestamp"`
}

// A decodeError is Java Leaf's answer, with status 200, to a number that is not an ID.
type decodeError struct {
	Text string `json:"errorMsg"`
}

// javaUndecodable is Java Leaf's text, which clients may look for.
const javaUndecodable = "snowflake Id反解析发生异常!"

// maxForm is how many bytes a form may have.
const maxForm = 64 << 10

// decodeSnowflake answers as Java Leaf does, in the default layout.
func (h *handler) decodeSnowflake(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	_ = r.ParseForm() // a malformed or too long form counts as missing
	values, ok := r.Form["snowflakeId"]
	if !ok {
		writeError(w, r, errorBody{
			Status:    http.StatusBadRequest,
			Exception: missingParameterException,
			Message:   "Required String parameter 'snowflakeId' is not present",
		})
		return
	}
	w.Header()["Content-Type"] = jsonText
	_, _ = w.Write(h.decoded(strings.Join(values, ","))) // a vanished client needs no answer
}

func (h *handler) decoded(text string) []byte {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return jsonLine(decodeError{javaUndecodable})
	}
	d, err := h.Layouts.Decode("", id)
	if err != nil {
		return jsonLine(decodeError{javaUndecodable})
	}
	return jsonLine(decodedBody{
		Worker:    strconv.FormatInt(d.Worker, 10),
		Sequence:  strconv.FormatInt(d.Sequence, 10),
		Timestamp: fmt.Sprintf("%d(%s)", d.Time.UnixMilli(), d.Time.Local().Format("2006-01-02 15:04:05.000")),
	})
}

const uidParsePrefix = "/api/uid/parse/"

// A parsedUID is what parseUID of uid-generator answers, whose values are all strings.
type parsedUID struct {
	UID       string `json:"UID"`
	Timestamp string `json:"timestamp"`
	Worker    string `json:"workerId"`
	Sequence  string `json:"sequence"`
}

// parseUID answers as parseUID of uid-generator does, in the default layout of the scheme or a
// named one.
func (h *handler) parseUID(w http.ResponseWriter, r *http.Request) {
	text, ok := parseKey(r.URL, uidParsePrefix)
	if !ok {
		h.notFound(w, r)
		return
	}
	query, err := frontend.ParseQuery(r.URL.RawQuery, "layout")
	if err != nil {
		writeError(w, r, errorBody{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		writeError(w, r, errorBody{Status: http.StatusBadRequest, Message: "the uid must be a whole number from 0 to 9223372036854775807"})
		return
	}
	d, err := h.Layouts.Decode(cmp.Or(query.Get("layout"), h.Layouts.Default(issuer.UID)), id)
	if err != nil {
		writeError(w, r, errorBody{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	w.Header()["Content-Type"] = jsonText
	_, _ = w.Write(jsonLine(parsedUID{ // a vanished client needs no answer
		UID:       strconv.FormatInt(id, 10),
		Timestamp: d.Time.Local().Format("2006-01-02 15:04:05"),
		Worker:    strconv.FormatInt(d.Worker, 10),
		Sequence:  strconv.FormatInt(d.Sequence, 10),
	}))
}

// jsonLine is v as JSON the way Java Leaf writes it: nothing is escaped for HTML, and
// no line ends it.
func jsonLine(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // numbers and strings always encode
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
