package worker

import (
	"errors"
	"fmt"
)

// lock locks a worker ID, in every layout, against the other processes of this machine. It
// wraps [ErrInUse] if one of them has it. Where locks do not work, a warning has to do: the
// registry keeps apart all who share it.
func (k *Keeper) lock(id int64) error {
	k.unlock()
	if k.opts.Lock == nil {
		return nil
	}
	locked := make(map[ServedLayout]bool)
	for _, l := range k.opts.Layouts {
		l.Name = "" // layouts with the same values make the same IDs
		if locked[l] {
			continue
		}
		locked[l] = true
		lock, err := k.opts.Lock(l, id)
		switch {
		case errors.Is(err, ErrInUse):
			k.unlock()
			return fmt.Errorf("worker ID %d is %w of this machine, which has it from another registry", id, ErrInUse)
		case err == nil:
			k.locks = append(k.locks, lock)
		case !k.unlocked:
			k.unlocked = true
			k.log.Warn("processes of this machine with other registries can use the same worker ID: it cannot be locked", "err", err)
		}
	}
	return nil
}

// unlock ends the locks of an unused worker ID.
func (k *Keeper) unlock() {
	for _, l := range k.locks {
		_ = l.Close() // a lock that stays costs a worker ID on this machine
	}
	k.locks = nil
}
