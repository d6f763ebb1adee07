package server

// BoundBody is boundBody.
var BoundBody = boundBody
