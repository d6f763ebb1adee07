package leafconn

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

// A refusal is an answer of the shared test vectors.
type refusal struct {
	Status  int
	Body    json.RawMessage
	Another bool `json:"another_server"`
}

// The clients of other languages run the same file. They believe a server that does not know a tag;
// a relay loses all its stock by that, so here another server has to agree.
func TestErrorVectors(t *testing.T) {
	text, err := os.ReadFile("../../api/vectors/errors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Errors []struct {
			Reason  string
			Connect refusal
		}
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, v := range all.Errors {
		var asked int
		answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(v.Connect.Status)
			_, _ = w.Write(v.Connect.Body)
		})
		one, two := httptest.NewServer(answer), httptest.NewServer(answer)
		c, err := Open([]string{one.URL, two.URL}, &Options{Hedge: -1})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Store{c}.Advance(context.Background(), "order", 1)
		if another := asked == 2; err == nil || another != (v.Connect.Another || v.Reason == "UNKNOWN_TAG") {
			t.Errorf("%s: %v, asked another server: %t", v.Reason, err, another)
		}
		if want, ok := reasons[v.Reason]; ok && !errors.Is(err, want) {
			t.Errorf("%s: %v is not %v", v.Reason, err, want)
		}
		_ = c.Close()
		one.Close()
		two.Close()
	}
	if len(all.Errors) == 0 {
		t.Fatal("no vectors")
	}
}
