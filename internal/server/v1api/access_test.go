package v1api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/v1api"
	"github.com/leaf-id/leaf/internal/testserver/testgate"
)

// Without the right to take IDs the server looks nothing up, so the answer is always the same.
func TestAccessComesFirst(t *testing.T) {
	token := access.NewToken()
	gate := testgate.New(t, access.Options{}, "tokens:\n- {name: shop, hash: '"+access.HashToken(token)+"', take: [order]}\n")
	s := &source{err: leaf.ErrUnknownTag}
	ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(s)}, nil)
	h := v1api.New(&frontend.Options{IDs: ids, Access: gate}, http.NotFoundHandler())
	with := func(token, target string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, target := range []string{"/v1/ids/segment/order", "/v1/ids/segment/nope?n=x", "/v1/ids/ticket/order", "/v1/decode/1"} {
		if w := ask(h, http.MethodGet, target); w.Code != 401 || problem(t, w).Reason != "UNAUTHENTICATED" {
			t.Errorf("%s without a token: %d", target, w.Code)
		}
	}
	for _, target := range []string{"/v1/ids/segment/invoice", "/v1/ids/segment/nope", "/v1/ids/segment/nope?n=x"} {
		if w := with(token, target); w.Code != 403 || problem(t, w).Reason != "FORBIDDEN" {
			t.Errorf("%s with a token for another tag: %d", target, w.Code)
		}
	}
	if s.key.Load() != nil {
		t.Error("the source was asked")
	}
	if w := with(token, "/v1/ids/segment/order"); w.Code != 404 {
		t.Errorf("with a token for the tag: %d", w.Code)
	}
}
