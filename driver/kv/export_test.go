package kv

// Counters returns how many counters the store keeps in memory.
func (s *Store) Counters() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.counters)
}
