"""What sources that read a stream share."""
