package conns

// AddUnread has other clients leave n bytes more unread.
func (s *Server) AddUnread(n int64) { s.opts.Budget.Add(n) }

// Used returns the bytes in use.
func (b *Budget) Used() int64 { return b.used.Load() }
