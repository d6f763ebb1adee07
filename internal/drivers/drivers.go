package drivers

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// ErrNotCreated is wrapped where there is no store yet at a URL: [Init] creates it.
// Where there is no registry of worker IDs yet it is [worker.ErrNotCreated].
var ErrNotCreated = segment.ErrNotCreated

// A Store is a store whose connections are its own: Close ends them.
type Store interface {
	segment.Store
	io.Closer
}

// Options are the optional settings of [Open]; nil means all defaults.
type Options struct {
	Logger *slog.Logger // default: nothing is logged
}

// InitOptions say what [Init] creates beside the empty store.
type InitOptions struct {
	Tags []segment.Tag

	// Resize has ticket servers, which exist, become as many as the URL names. Retired
	// is the URL of those that are to be none of them any more.
	Resize  bool
	Retired string

	// Lost and Jump are those of [ticket.ResizeOptions].
	Lost []string
	Jump int64
}

// A driver is one way to keep tags. All its functions get the part of the URL that
// follows the scheme and its colon.
type driver struct {
	scheme string
	form   string // of the URL, for people
	open   func(rest string, o *Options) (Store, error)
	init   func(ctx context.Context, rest string, o InitOptions) error
	exists func(ctx context.Context, rest string) (bool, error)
	key    func(rest string) (string, error)
}

// table is the table of drivers: a new one is a line here.
func table() []driver {
	return append([]driver{
		{"sqlite", "sqlite:PATH", openSQLite, initSQLite, existsSQLite, keySQLite},
		{"mysql", "mysql://user:password@host:3306/db", openMySQL, initMySQL, existsMySQL, keyMySQL},
		{"postgres", "postgres://user:password@host:5432/db", openPostgres, initPostgres, existsPostgres, keyPostgres},
		{"etcd", "etcd://h1:2379,h2:2379/prefix", openEtcd, initEtcd, existsEtcd, keyEtcd},
		{"ticket+mysql", "ticket+mysql://u:p@h1/db,u:p@h2/db", openTicket, initTicket, existsTicket, keyTicket},
	}, redisDrivers()...)
}

// Schemes returns the schemes of the URLs that [Open] knows.
func Schemes() []string {
	var schemes []string
	for _, d := range table() {
		schemes = append(schemes, d.scheme)
	}
	return schemes
}

// Open returns the store that a URL names. It neither connects nor creates
// anything; it fails, wrapping [leaf.ErrInvalid], if the URL is malformed.
func Open(storeURL string, o *Options) (Store, error) {
	d, rest, err := find(storeURL)
	if err != nil {
		return nil, err
	}
	if o == nil {
		o = &Options{}
	}
	store, err := d.open(rest, o)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", Redact(storeURL), err)
	}
	return store, nil
}

// Init creates the durable state that a URL names. It fails, wrapping
// [io/fs.ErrExist], if that exists, and leaves it as it is.
func Init(ctx context.Context, storeURL string, o InitOptions) error {
	d, rest, err := find(storeURL)
	if err != nil {
		return err
	}
	if (o.Resize || o.Retired != "") && d.scheme != "ticket+mysql" {
		return fmt.Errorf("resize store %s: %w: only ticket servers have a number", Redact(storeURL), leaf.ErrInvalid)
	}
	if err := d.init(ctx, rest, o); err != nil {
		return fmt.Errorf("store %s: %w", Redact(storeURL), err)
	}
	return nil
}

// IsTicket reports whether a URL names ticket servers.
func IsTicket(storeURL string) bool {
	d, _, err := find(storeURL)
	return err == nil && d.scheme == "ticket+mysql"
}

// Exists reports whether [Init] has created the state that a URL names.
func Exists(ctx context.Context, storeURL string) (bool, error) {
	d, rest, err := find(storeURL)
	if err != nil {
		return false, err
	}
	ok, err := d.exists(ctx, rest)
	if err != nil {
		return false, fmt.Errorf("store %s: %w", Redact(storeURL), err)
	}
	return ok, nil
}

// Check reports why the store that a URL names cannot be used as it is. It changes nothing.
func Check(ctx context.Context, storeURL string) error {
	store, err := Open(storeURL, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	if c, ok := store.(interface{ Check(context.Context) error }); ok {
		err = c.Check(ctx)
	} else {
		for _, err = range store.Tags(ctx) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", Redact(storeURL), err)
	}
	return nil
}

// Key returns what identifies the state that a URL names, without credentials and
// parameters: two URLs of one state have one key, as far as can be told without
// asking the server.
func Key(storeURL string) (string, error) {
	d, rest, err := find(storeURL)
	if err != nil {
		return "", err
	}
	key, err := d.key(rest)
	if err != nil {
		return "", fmt.Errorf("store %s: %w", Redact(storeURL), err)
	}
	return keyScheme(d.scheme) + ":" + key, nil
}

// keyScheme returns the scheme of a key: whether the way to a server is encrypted does
// not make it another one.
func keyScheme(scheme string) string { return strings.Replace(scheme, "rediss", "redis", 1) }

// plainScheme returns the scheme that another one is only a longer name of.
func plainScheme(scheme string) string {
	if strings.EqualFold(scheme, "postgresql") {
		return "postgres"
	}
	return scheme
}

// find returns the driver of a URL and what it gets of it. A jdbc:mysql: URL, as it
// stands in a leaf.properties, is another way to write a mysql: one.
func find(storeURL string) (driver, string, error) {
	scheme, rest, ok := strings.Cut(storeURL, ":")
	if strings.EqualFold(scheme, "jdbc") {
		mysqlURL, err := FromJDBC(storeURL, "", "")
		if err != nil {
			return driver{}, "", fmt.Errorf("store URL %s: %w", Redact(storeURL), err)
		}
		return find(mysqlURL)
	}
	if ok {
		for _, d := range table() {
			if strings.EqualFold(d.scheme, plainScheme(scheme)) {
				return d, rest, nil
			}
		}
	}
	var schemes, forms []string
	for _, d := range table() {
		schemes, forms = append(schemes, d.scheme), append(forms, d.form)
	}
	why := hint(scheme, ok, schemes, forms)
	if slices.ContainsFunc(registryTable(), func(d registryDriver) bool { return ok && strings.EqualFold(d.scheme, scheme) }) {
		why = "it keeps worker IDs, no counters: give it as --workers, and a store as --store"
	}
	return driver{}, "", fmt.Errorf("%w: store URL %s: %s", leaf.ErrInvalid, Redact(storeURL), why)
}

// hint says how a URL with an unknown scheme might be meant; forms are those of URLs
// with the schemes that there are.
func hint(scheme string, ok bool, schemes, forms []string) string {
	known := fmt.Sprintf("write it as in %s; there are %s", strings.Join(forms[:2], " or "), strings.Join(schemes, ", "))
	near := cmp.Or(otherNames()[strings.ToLower(scheme)], nearest(scheme, schemes))
	switch {
	case !ok:
		return "it has no scheme: " + known
	case near != "":
		return fmt.Sprintf("unknown scheme (did you mean %s?): %s", near, known)
	}
	return "unknown scheme: " + known
}

// otherNames are schemes that people may expect.
func otherNames() map[string]string {
	return map[string]string{"mariadb": "mysql", "pg": "postgres", "file": "sqlite", "sqlite3": "sqlite", "zk": "zookeeper"}
}
