"""Pure drawing functions: numbers and a width in, text cells out."""
