package datadir

// Slot returns the number of the slot: 0 for the only process on the directory.
func (d *Dir) Slot() int { return d.slot }
