package mysql_test

import (
	"context"
	"database/sql"
	"errors"

	"github.com/leaf-id/leaf/driver/mysql"
	"github.com/leaf-id/leaf/segment"
)

// The functions below open one part, or make one call.

func storeOn(db *sql.DB, opts *mysql.Options) (*mysql.Store, error) {
	d, err := mysql.New(db, opts)
	if err != nil {
		return nil, err
	}
	return d.Store(), nil
}

func registryOn(db *sql.DB, opts *mysql.Options) (*mysql.Registry, error) {
	d, err := mysql.New(db, opts)
	if err != nil {
		return nil, err
	}
	return d.Registry(), nil
}

func initStore(ctx context.Context, db *sql.DB, tags []segment.Tag) error {
	d, err := mysql.New(db, nil)
	if err != nil {
		return err
	}
	return errors.Join(d.Init(ctx, tags), d.Close())
}

func initRegistry(ctx context.Context, db *sql.DB) error {
	d, err := mysql.New(db, nil)
	if err != nil {
		return err
	}
	return errors.Join(d.InitRegistry(ctx), d.Close())
}

func existsStore(ctx context.Context, db *sql.DB) (bool, error) {
	s, err := storeOn(db, nil)
	if err != nil {
		return false, err
	}
	defer s.Close()
	return s.Exists(ctx)
}

func existsRegistry(ctx context.Context, db *sql.DB) (bool, error) {
	r, err := registryOn(db, nil)
	if err != nil {
		return false, err
	}
	defer r.Close()
	return r.Exists(ctx)
}
