package explain

// Accounts is what the tests hold against api/v1.
func Accounts() map[string]map[string]account { return accounts() }
