package image

// Waiting counts those who wait for a fetch.
func (f *Fetcher) Waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	waiting := 0
	for _, one := range f.flights {
		one.mu.Lock()
		waiting += len(one.listeners)
		one.mu.Unlock()
	}
	return waiting
}
