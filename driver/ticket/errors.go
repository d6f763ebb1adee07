package ticket

import (
	"errors"
	"fmt"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/mysqlconn"
)

var (
	// errResized: the server has left the generation that this client knows.
	errResized = errors.New("the set of ticket servers is being changed, or was: once the resize is through, " +
		"start again with the URL of all servers")

	// errLeftOut: other callers have found out meanwhile that the server fails.
	errLeftOut = errors.New("the server failed others a moment ago")

	// errQueued: the server may be well, as it had too little of the call's time or none.
	errQueued = errors.New("the call waited too long for other draws of this process")
)

// wrapErr adds the server's name and a remedy to an error. The result never has a password.
func (m *member) wrapErr(err error) error { return wrap(explain(err), "%s", m.Name) }

func wrap(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
}

func explain(err error) error {
	switch {
	case mysqlconn.IsNumber(err, mysqlconn.TooLarge, mysqlconn.OutOfRange, mysqlconn.NoAutoInc, 167): // the last two: an AUTO_INCREMENT used up
		return fmt.Errorf("%w: %w", leaf.ErrOverflow, err)
	case mysqlconn.WritesNothing(err):
		return fmt.Errorf("each server of a ticket URL must be a primary: %w", err)
	}
	return mysqlconn.Advise(err, map[uint16]string{
		mysqlconn.NoTable: "a table is missing: restore it, or delete the tag and create it above its highest ID",
	})
}
