"""How the pages are made: a function a page, of the session and the host; `parsers.session.pages` names them."""
