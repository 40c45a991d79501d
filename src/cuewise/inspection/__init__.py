"""What a labelled image set gives away before any training: single cues that predict the labels, copies, broken files."""
