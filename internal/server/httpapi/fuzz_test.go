package httpapi_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/httpapi"
	"github.com/leaf-id/leaf/internal/testserver/testgate"
)

// No request line and head cause a panic or an undocumented status. Without a token the server
// looks nothing up.
func FuzzRoutes(f *testing.F) {
	for _, seed := range []string{
		"GET /api/segment/get/order HTTP/1.1\r\n", "POST //api/segment/get/order/?n=3 HTTP/1.1\r\nAccept: application/json\r\n",
		"GET /v1/ids/segment/order?n=2&ranges=1 HTTP/1.1\r\n", "GET /v1/decode/1?layout=x HTTP/1.1\r\n", "HEAD /v1/ids/uid/%2F HTTP/1.1\r\n",
		"GET /api/uid/parse/1 HTTP/1.1\r\n", "GET /decodeSnowflakeId?snowflakeId=-1 HTTP/1.1\r\n", "GET /cache/ HTTP/1.1\r\n",
		"GET /readyz?verbose&scheme=x HTTP/1.1\r\n", "OPTIONS * HTTP/1.1\r\n", "GET http://h/db HTTP/1.1\r\nAuthorization: Bearer \r\n", "PATCH /../db HTTP/1.0\r\n",
	} {
		f.Add(seed)
	}
	closed := testgate.New(f, access.Options{Local: true}, "tokens: [{name: a, hash: '"+access.HashToken("x")+"', take: ['*']}]")
	documented := []int{200, 204, 301, 307, 400, 401, 403, 404, 405, 500, 501, 503}
	f.Fuzz(func(t *testing.T, head string) {
		for _, gate := range []*access.Gate{nil, closed} {
			req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head + "Host: x\r\n\r\n")))
			if err != nil {
				return // net/http answers with 400
			}
			source := new(fakeSource)
			ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(source)}, &issuer.Options{MaxBatch: 5000})
			rec := httptest.NewRecorder()
			httpapi.New(http.NewServeMux(), &frontend.Options{IDs: ids, Access: gate}).ServeHTTP(rec, req)
			what := fmt.Sprintf("%q: %d %.200s", head, rec.Code, rec.Body)
			if !slices.Contains(documented, rec.Code) {
				t.Error(what)
			}
			if n := source.next.Load(); gate != nil && (n > 0 || source.lastKey() != "") {
				t.Errorf("%s: %d IDs without a token", what, n)
			}
		}
	})
}
