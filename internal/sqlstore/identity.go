package sqlstore

import (
	"cmp"
	"crypto/rand"
	"database/sql"
	"errors"
)

// The table leaf_store has one row: the identity of the store, which each grant carries. An init
// draws it with leaf_alloc, and a server gives one to a store that an older release, or Java Leaf,
// created.

// NoIdentity warns of a store without one, before what to do.
const NoIdentity = "the store has no identity, so another one behind the same URL shows only by a counter that went back: "

// HasTable reports whether the database has a table.
func (s *Session) HasTable(name string) (bool, error) {
	if s.Has != nil {
		return s.Has(s, name)
	}
	var tables int64
	err := s.QueryRow(s.CountTables, name).Scan(&tables)
	return tables > 0, err
}

// ReadIdentity is an expression for the identity, a text. A database without the table refuses it.
func (d *Dialect) ReadIdentity() string {
	return `COALESCE((SELECT identity FROM ` + d.storeTable() + ` WHERE one = 1), '')`
}

func (d *Dialect) storeTable() string { return cmp.Or(d.StoreTable, "leaf_store") }

// Identify makes sure that the store has an identity. Create is [Session.CreateIdentity], in a
// transaction if it needs one. Refused is the database's reason against it: the store then has no
// identity.
func (s *Session) Identify(create func() error) (refused, err error) {
	has, refused := s.identified()
	if !has && refused == nil {
		undone := func(err error) bool { return s.Undone != nil && s.Undone(err) }
		failed := Repeat(s.Context, undone, create)
		has, refused = s.identified() // another process may have been faster
		refused = cmp.Or(failed, refused, errors.New("the row of leaf_store is not there"))
	}
	if has {
		return nil, nil
	}
	_, err = s.HasTable(s.storeTable()) // a refusal, or a lost connection?
	return refused, err
}

func (s *Session) identified() (bool, error) {
	if has, err := s.HasTable(s.storeTable()); err != nil || !has {
		return false, err
	}
	var identity string
	err := s.QueryRow(`SELECT ` + s.ReadIdentity()).Scan(&identity)
	return identity != "", err
}

// CreateIdentity creates the missing parts of the table and its row.
func (s *Session) CreateIdentity() error {
	_, err := s.On.ExecContext(s.Context, `CREATE TABLE IF NOT EXISTS `+s.storeTable()+` `+s.StoreColumns)
	if err != nil {
		return err
	}
	var identity sql.Null[string]
	err = s.QueryRow(`SELECT identity FROM ` + s.storeTable() + ` WHERE one = 1`).Scan(&identity)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = s.Change(`INSERT INTO `+s.storeTable()+` (one, identity) VALUES (1, $1)`, rand.Text())
	}
	return err
}

// RenewIdentity draws another identity, for a new leaf_alloc.
func (s *Session) RenewIdentity() error {
	if err := s.CreateIdentity(); err != nil {
		return err
	}
	return s.changeOne(errors.New("the row of leaf_store is not there"), `UPDATE `+s.storeTable()+` SET identity = $1 WHERE one = 1`, rand.Text())
}
