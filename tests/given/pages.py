"""Pages of HTML."""

from html.parser import HTMLParser


def tags(text):
    """Return the tags of a page, each with its attributes."""
    found = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, given: found.append((tag, dict(given)))
    parser.feed(text)
    return found
