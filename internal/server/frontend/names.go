package frontend

import "sync"

// The bounds on remembered names.
const (
	nameShards = 16 // powers of two
	shardNames = 256
)

// Names remember values made from clients' names, for all connections: thousands of connections are
// idle, and keep nothing themselves. The zero value is ready for use.
type Names[T any] struct {
	shards [nameShards]struct {
		mu   sync.Mutex
		made map[string]T
	}
}

// Get returns the remembered value of name, if any.
func (n *Names[T]) Get(name []byte) (made T, ok bool) {
	if len(name) == 0 {
		return made, false
	}
	s := &n.shards[name[len(name)-1]%nameShards] // names differ at their ends
	s.mu.Lock()
	defer s.mu.Unlock()
	made, ok = s.made[string(name)]
	return made, ok
}

// Put remembers made, and forgets others beyond the bound.
func (n *Names[T]) Put(name string, made T) {
	if name == "" {
		return
	}
	s := &n.shards[name[len(name)-1]%nameShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil || len(s.made) == shardNames {
		s.made = make(map[string]T)
	}
	s.made[name] = made
}
