"""Foreign files in: what others measured, brought into our types. One module per format."""
