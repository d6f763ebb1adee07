package drivers

import "github.com/leaf-id/leaf/driver/kv"

// A kvStore is the store of a [kv.DB], which it closes.
type kvStore struct {
	*kv.Store
	db *kv.DB
}

func (s kvStore) Close() error { return s.db.Close() }

// A kvRegistry is the registry of a [kv.DB], which it closes.
type kvRegistry struct {
	*kv.Registry
	db *kv.DB
}

func (r kvRegistry) Close() error { return r.db.Close() }

// withDB opens a [kv.DB] for one call.
func withDB(open func() (*kv.DB, error), call func(*kv.DB) error) error {
	db, err := open()
	if err != nil {
		return err
	}
	defer db.Close()
	return call(db)
}
