package worker

import (
	"encoding/json"
	"fmt"
	"os"
)

// An inspector has the functions that only the command of a server needs.
type inspector struct{}

// Inspect returns functions for the command of a server: they read files of processes that may run.
func Inspect() inspector { return inspector{} }

// CheckLayouts reports a layout that a record has with other values. The error is a [LayoutError]. A
// claim makes the same comparison.
func (inspector) CheckLayouts(layouts []ServedLayout, records map[int64]Record) error {
	return checkLayouts(layouts, records)
}

// ReadState returns the lease in the state file at path, as a record, and the lease's registry; a
// zero record without a lease. It changes nothing, and a process may have the file open.
func (inspector) ReadState(path string) (r Record, registry string, err error) {
	text, err := readSlots(path, stateSlot, stateVersion)
	if err != nil || text == nil {
		return Record{}, "", err
	}
	var l savedLease
	if err := json.Unmarshal(text, &l); err != nil {
		return Record{}, "", fmt.Errorf("read %s: %w", path, err)
	}
	return Record{Worker: l.Worker, Instance: l.Instance, Term: l.Term, Horizon: l.Horizon.Time, Layouts: l.Layouts}, l.Registry, nil
}

// ReadStatic returns the record in the file of a [Static]; a zero record without one. It changes
// nothing, and a process may have the file open.
func (inspector) ReadStatic(path string, worker int64) (Record, error) {
	r := Record{Worker: worker}
	text, err := readSlots(path, recordSlot, staticVersion)
	if err == nil && text != nil {
		err = r.UnmarshalText(text)
	}
	return r, err
}

func readSlots(path string, size int64, version int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := slots{file: f, size: size, version: version}
	text, err := s.read()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return text, nil
}
