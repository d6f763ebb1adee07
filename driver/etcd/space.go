package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// format is what the marker of a space holds.
const format = `{"v":1}`

// A kind is what a space is for.
type kind struct {
	use     string // what it is to people
	name    string // of its folder and of its marker
	flag    string // of leaf init, which creates it
	missing error  // that is wrapped where there is none
	newer   error  // that is wrapped where a newer release made it
}

func tagKind() kind {
	return kind{use: "store", name: "alloc", flag: "--store", missing: segment.ErrNotCreated, newer: leaf.ErrUnsupported}
}

func workerKind() kind {
	return kind{use: "registry", name: "workers", flag: "--workers", missing: worker.ErrNotCreated, newer: worker.ErrNewer}
}

// A space is a kind below a prefix: a folder of keys and the marker that says that it
// was created.
type space struct {
	kind
	prefix string
	folder string
	marker string

	anonymous bool // connections are encrypted, and show no certificate of the client
}

// late returns the key of the mark of those who came too late for a tag.
func (s space) late(tag string) string { return s.prefix + "/late/" + tag }

func (k kind) at(prefix string) space {
	return space{kind: k, prefix: prefix, folder: prefix + "/" + k.name + "/", marker: prefix + "/format/" + k.name}
}

// fault reports why the space cannot be used, by what its marker holds.
func (s space) fault(marker held) error {
	if marker.revision == 0 {
		return fmt.Errorf("%w: etcd has no key %s: create it with leaf init %s URL, or correct the prefix in the URL", s.missing, s.marker, s.flag)
	}
	if marker.text == format {
		return nil
	}
	var version struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal([]byte(marker.text), &version); err != nil || version.Version < 2 {
		return fmt.Errorf("%w: the key %s holds %.50q, which leaf init did not write", leaf.ErrUnsupported, s.marker, marker.text)
	}
	return fmt.Errorf("%w: the key %s says format %d, made by a newer release: use that release", s.newer, s.marker, version.Version)
}

// create writes the marker, together with the given keys, where neither it nor any key
// of the space exists.
func (c *client) create(ctx context.Context, puts []clientv3.Op) error {
	resp, err := c.send(ctx, txn{
		compare: []clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(c.marker), "=", 0),
			clientv3.Compare(clientv3.CreateRevision(c.folder).WithPrefix(), "=", 0),
		},
		then:      append([]clientv3.Op{clientv3.OpPut(c.marker, format)}, puts...),
		otherwise: []clientv3.Op{clientv3.OpGet(c.marker)},
	})
	switch {
	case err != nil:
		return c.explain(err)
	case resp.Succeeded:
		return nil
	case heldBy(resp.Responses[0]).revision == 0:
		return existsError{fmt.Sprintf("etcd has no key %s, but keys below %s, left by an earlier %s: delete those, or put %s there with %s",
			c.marker, c.folder, c.use, c.marker, format)}
	}
	return existsError{"etcd has a key " + c.marker + " already"}
}

// created reports whether the space was created, by whatever release.
func (c *client) created(ctx context.Context) (bool, error) {
	resp, err := c.ask(ctx, txn{then: []clientv3.Op{clientv3.OpGet(c.marker)}})
	if err != nil {
		return false, fmt.Errorf("look for the etcd %s: %w", c.use, c.explain(err))
	}
	return heldBy(resp.Responses[0]).revision != 0, nil
}

// An existsError is [fs.ErrExist], without its words about files.
type existsError struct{ text string }

func (e existsError) Error() string        { return e.text }
func (e existsError) Is(target error) bool { return target == fs.ErrExist }

// attempt runs one call and makes its error fit for people.
func (c *client) attempt(ctx context.Context, do func() error) error {
	if c.ctx.Err() != nil {
		return leaf.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := do()
	if err == nil {
		return nil
	}
	err = c.explain(err)
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
