package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/leaf-id/leaf/internal/server/frontend"
)

//go:embed assets
var assets embed.FS

// policy lets the page load its own files alone. Trusted types forbid text as HTML.
var policy = []string{"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"}

var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
}

// A file is an asset as it is sent.
type file struct {
	plain, zipped []byte
	tag           string // ETag
	kind          string // Content-Type
}

// files compresses all assets once, at the first request for one.
var files = sync.OnceValue(func() map[string]*file {
	entries, _ := assets.ReadDir("assets") // always there
	all := make(map[string]*file, len(entries))
	for _, e := range entries {
		plain, _ := assets.ReadFile("assets/" + e.Name())
		sum := sha256.Sum256(plain)
		f := &file{plain: plain, tag: `"` + hex.EncodeToString(sum[:8]) + `"`, kind: types[path.Ext(e.Name())]}
		var buf bytes.Buffer
		z, _ := gzip.NewWriterLevel(&buf, gzip.BestCompression) // the level exists
		_, _ = z.Write(plain)                                   // memory takes all
		_ = z.Close()
		f.zipped = buf.Bytes()
		all[e.Name()] = f
	}
	return all
})

// Page serves the page, at the root of a server.
func Page(w http.ResponseWriter, r *http.Request) { serve(w, r, "index.html") }

// serve serves a file to a browser, which asks each time whether it has changed.
func serve(w http.ResponseWriter, r *http.Request, name string) {
	f := files()[name]
	if f == nil {
		frontend.WriteProblem(w, errNoFile)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.tag)
	h.Set("Vary", "Accept-Encoding, Accept")
	h["Content-Security-Policy"] = policy
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.zipped
	}
	_, _ = w.Write(body) // a vanished client needs no answer
}

// A Console serves the parts that a server's state is in.
type Console struct {
	opts *frontend.Options
	live *live
}

// New returns a console that shows nothing live before [Console.Run].
func New(opts *frontend.Options) *Console { return &Console{opts, newLive(opts.Snapshot)} }

// Register adds the console's paths, but for the page itself.
func (c *Console) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /console/{file}", func(w http.ResponseWriter, r *http.Request) { serve(w, r, r.PathValue("file")) })
	mux.HandleFunc("GET /console/events", c.events)
	mux.HandleFunc("GET /console/history", c.history)
}
