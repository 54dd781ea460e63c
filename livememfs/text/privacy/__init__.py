"""What is private leaves a text: credentials by their form and by their names, and `<private>` blocks."""
