"""Who owns each moment of a core: of its ops, and between them."""
