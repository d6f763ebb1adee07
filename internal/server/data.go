package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/datadir"
	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/segment"
)

// FirstTag is the sample row that Java Leaf's documentation creates. A new store of a server has it.
var FirstTag = segment.Tag{Name: "leaf-segment-test", MaxID: 1, Step: 2000, Options: segment.Describe("Test leaf Segment Mode Get Id")}

// openData opens the data directory and the memory of the store, and creates an embedded database.
// Only a server with the embedded store needs the directory.
func (s *Server) openData(ctx context.Context) (err error) {
	embedded := s.opts.Store != nil && s.cfg.Store == ""
	if s.dir, err = datadir.Open(s.cfg.Data); err == nil && s.opts.Store != nil {
		s.memory, err = s.dir.Memory(s.opts.Store.Key, s.log)
	}
	switch {
	case err == nil && embedded:
		return s.createEmbedded(ctx)
	case err == nil || !unusable(err):
		return err
	case embedded:
		return fmt.Errorf("%w: %w", hint.ErrDataDir, err)
	}
	text := "no memory of the counters: a store that loses writes while this server is down will not be noticed"
	if s.dir == nil {
		text = "no data directory: a store that loses writes while this server is down will not be noticed, and every start takes another worker ID"
	}
	s.log.Warn(text, "data", s.cfg.Data, "err", err)
	return nil
}

// compareHosts refuses a URL whose hosts have stores of their own.
func (s *Server) compareHosts(ctx context.Context) error {
	for _, b := range []*backend.Backend{s.opts.Store, s.opts.Workers} {
		if b == nil || len(b.Hosts) == 0 {
			continue
		}
		silent, err := b.CompareHosts(ctx)
		if err != nil {
			return err
		}
		for _, err := range silent {
			s.log.Warn("a host of the URL did not tell the identity of its store, and was not compared with the others", "err", err)
		}
		if len(silent) > 0 {
			s.unheard = append(s.unheard, b)
		}
	}
	return nil
}

// compareLate compares the hosts of the URLs that had silent ones at the start. It drops a URL once
// all of its hosts have answered, or two of them belong to different stores.
func (s *Server) compareLate(ctx context.Context) {
	s.unheard = slices.DeleteFunc(s.unheard, func(b *backend.Backend) bool {
		silent, err := b.CompareHosts(ctx)
		if err != nil {
			s.log.Error("a host that did not answer at the start has another store", "err", err)
		}
		return err != nil || len(silent) == 0
	})
}

// unusable tells a directory that cannot be written from one that must not be used,
// because a newer version has.
func unusable(err error) bool {
	_, ok := errors.AsType[*fs.PathError](err)
	return ok || errors.Is(err, errors.ErrUnsupported)
}

// createEmbedded creates the missing parts of the embedded database.
func (s *Server) createEmbedded(ctx context.Context) error {
	store := s.opts.Store
	there, err := store.Tags.Exists(ctx)
	if err == nil && !there && s.memory.Tags() > 0 {
		return fmt.Errorf("%w: there is no %s, and the data directory remembers IDs of it", hint.ErrGone, store.Name)
	}
	made := false
	if err == nil && !there {
		made, err = create(ctx, &store.Tags, FirstTag)
	}
	if err != nil {
		return fmt.Errorf("create the embedded database: %w", err)
	}
	if made {
		s.log.Info("created an embedded database, because no store is configured and there was none", "store", store.Name, "tag", FirstTag.Name)
	}
	added := false
	if there, err = store.Workers.Exists(ctx); err == nil && !there {
		added, err = create(ctx, &store.Workers)
	}
	if err != nil {
		return fmt.Errorf("add the table of worker IDs to the embedded database: %w", err)
	}
	if added && !made {
		s.log.Info("added the table of worker IDs to the embedded database", "store", store.Name)
	}
	return nil
}

// create creates a part, and reports whether it did. Of several servers that start at once one
// creates it.
func create(ctx context.Context, part *backend.Part, tags ...segment.Tag) (made bool, err error) {
	err = part.Init(ctx, tags...)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}
