package frontend

import (
	"encoding/json"
	"os"
	"testing"
)

// The clients of other languages run the same file.
func TestErrorVectors(t *testing.T) {
	text, err := os.ReadFile("../../../api/vectors/errors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Errors []struct {
			Reason string
			Retry  bool
			HTTP   struct {
				Status int
				Body   Problem
			}
			Connect struct{ Code string }
		}
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	served := map[string]Kind{storeAway.Reason: storeAway, internal.Reason: internal}
	for _, k := range kinds {
		if k.kind.HTTP != StatusCanceled { // nobody is there to read it
			served[k.kind.Reason] = k.kind
		}
	}
	for _, v := range all.Errors {
		k, ok := served[v.Reason]
		delete(served, v.Reason)
		if !ok || k.HTTP != v.HTTP.Status || k.RPC.String() != v.Connect.Code || k.Retry != v.Retry {
			t.Errorf("the vectors have %+v, the server %+v", v, k)
		}
		if b := v.HTTP.Body; b.Reason != v.Reason || b.Status != v.HTTP.Status || b.Detail == "" {
			t.Errorf("%s: body %+v", v.Reason, b)
		}
	}
	for reason := range served {
		t.Errorf("the vectors lack %s", reason)
	}
}
