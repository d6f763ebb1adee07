package conns

// TotalBacklog is how much clients may leave unread together.
const TotalBacklog = totalBacklog

// AddUnread has other clients leave n bytes more unread.
func (s *Server) AddUnread(n int64) { s.unread.Add(n) }
