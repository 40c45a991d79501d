"""Image set → image set: filtered, synthesised, corrupted; resumable, on this machine or on a cluster."""
