package conn

// CheckFiles reads the key and the known hosts as a dial would, and dials nothing. Its error
// is an *Error of StageFiles or StageHostKey.
func (h *Host) CheckFiles() error {
	_, err := h.credentials()
	return err
}
