package conns

// AddUnread has other clients leave n bytes more unread.
func (s *Server) AddUnread(n int64) { s.opts.Budget.Add(n) }
