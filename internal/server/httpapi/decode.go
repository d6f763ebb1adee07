package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const decodePath = "/decodeSnowflakeId"

// A decodedBody is Java Leaf's answer, whose values are all strings.
type decodedBody struct {
	Worker    string `json:"workerId"`
	Sequence  string `json:"sequenceId"`
	Timestamp string `json:"timestamp"`
}

// A decodeError is Java Leaf's answer, with status 200, to what is no ID.
type decodeError struct {
	Text string `json:"errorMsg"`
}

// javaUndecodable is Java Leaf's text, which clients may look for.
const javaUndecodable = "snowflake Id反解析发生异常!"

// decodeSnowflake answers as Java Leaf does, in the default layout.
func (h *handler) decodeSnowflake(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // what is malformed is as good as missing
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
	_, _ = w.Write(h.decoded(strings.Join(values, ","))) // a client that has gone needs no answer
}

func (h *handler) decoded(text string) []byte {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return jsonLine(decodeError{javaUndecodable})
	}
	d, err := h.layouts.Decode("", id)
	if err != nil {
		return jsonLine(decodeError{javaUndecodable})
	}
	return jsonLine(decodedBody{
		Worker:    strconv.FormatInt(d.Worker, 10),
		Sequence:  strconv.FormatInt(d.Sequence, 10),
		Timestamp: fmt.Sprintf("%d(%s)", d.Time.UnixMilli(), d.Time.Local().Format("2006-01-02 15:04:05.000")),
	})
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
