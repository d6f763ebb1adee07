package worker

// NewStateFile returns a state file that is kept in f, for tests. An empty identity proves
// nothing.
func NewStateFile(f File, identity string) *StateFile {
	return &StateFile{slots: slots{file: f, size: stateSlot, version: stateVersion}, identity: identity}
}
